// SPDX-License-Identifier: Apache-2.0
// Spellings of the Kineto format. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "base/units.hpp"
#include "traces/model/trace.hpp"

namespace rehearse::traces {

// Nanoseconds as decimal microseconds: 1234567 -> "1234.567".
[[nodiscard]] std::string kineto_time(Nanos time);
// The text as a JSON string with quotes; bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] std::string json_string(std::string_view text);
// "allreduce", "_allgather_base", ... as record_param_comms names them.
[[nodiscard]] const char* kineto_name(Collective collective);
// "Float", "BFloat16", ...; unknown types are "Byte".
[[nodiscard]] const char* kineto_name(DType dtype);
// CUPTI callback id of a CUDA runtime call; 0: not one of those written here.
[[nodiscard]] int callback_id(std::string_view runtime_call);

}  // namespace rehearse::traces
