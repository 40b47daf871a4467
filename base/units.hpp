// SPDX-License-Identifier: Apache-2.0
// Quantities as people write them and as they are stored. One stored unit per kind: bytes, bytes
// per second, nanoseconds, FLOP/s, hertz. SI prefixes are powers of 1000, IEC prefixes (Ki, Mi, Gi,
// Ti) powers of 1024; b means bits, B means bytes; "Gbps" is bits and "GB/s" or "GBps" is bytes per
// second. Parsing is decimal: 1.5us is exactly 1500 ns. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace rehearse {

using Nanos = int64_t;  // simulated and recorded time
using Bytes = int64_t;
using BytesPerSec = double;

// Each takes the whole text; an unknown unit is an error that lists the units accepted. A bare
// number is bytes for parse_bytes; for the others only 0 may stand without a unit. Whole units are
// rounded to the nearest, ties to even. Negative numbers parse; bounds are the caller's.
[[nodiscard]] Result<Bytes> parse_bytes(std::string_view text);
[[nodiscard]] Result<BytesPerSec> parse_bandwidth(std::string_view text);
[[nodiscard]] Result<Nanos> parse_duration(std::string_view text);
[[nodiscard]] Result<double> parse_flops(std::string_view text);
[[nodiscard]] Result<double> parse_hertz(std::string_view text);

// Shortest readable form with three significant digits: "25.0 MiB", "24.6 GB/s", "1.50 us", "212
// ms".
[[nodiscard]] std::string format_bytes(Bytes bytes);
[[nodiscard]] std::string format_bandwidth(BytesPerSec rate);
[[nodiscard]] std::string format_duration(Nanos time);
// A text that parses back to the same value: "80GiB", "12.5GB/s", "1.5us".
[[nodiscard]] std::string exact_bytes(Bytes bytes);
[[nodiscard]] std::string exact_bandwidth(BytesPerSec rate);
[[nodiscard]] std::string exact_duration(Nanos time);
[[nodiscard]] std::string exact_flops(double rate);
[[nodiscard]] std::string exact_hertz(double frequency);

// "1,234,567".
[[nodiscard]] std::string format_count(uint64_t count);

}  // namespace rehearse
