// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <span>

#include "base/units.hpp"

namespace rehearse {
namespace {

struct Step {
  double size;
  std::string_view name;
};

// Three significant digits in the largest unit that keeps the number at 1 or above.
std::string rounded(double value, std::span<const Step> steps) {
  const char* sign = std::signbit(value) && value != 0 ? "-" : "";
  const double size = std::abs(value);
  if (!std::isfinite(value)) return fmt::format("{} {}", value, steps.front().name);
  for (size_t i = 0; i < steps.size(); ++i) {
    const double scaled = size / steps[i].size;
    const int decimals = scaled < 9.995 ? 2 : scaled < 99.95 ? 1 : 0;
    const bool last = i + 1 == steps.size();
    const double power = decimals == 2 ? 100 : decimals == 1 ? 10 : 1;
    const double shown = std::nearbyint(scaled * power) / power;
    if (!last && shown * steps[i].size >= steps[i + 1].size) continue;
    const bool whole = steps[i].size == 1 && scaled == std::floor(scaled);
    return fmt::format("{}{:.{}f} {}", sign, scaled, whole ? 0 : decimals, steps[i].name);
  }
  return {};
}

struct ExactUnit {
  int64_t size;
  std::string_view name;
};

// The shortest decimal of `value` in the largest SI unit at or below it that parses back to it.
template <typename Parse>
std::string exact(double value, std::string_view unit, Parse parse) {
  constexpr Step kPrefixes[] = {{1e15, "P"}, {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}};
  if (value == 0) return "0";
  for (const Step& prefix : kPrefixes) {
    if (std::abs(value) < prefix.size) continue;
    std::string text = fmt::format("{}{}{}", value / prefix.size, prefix.name, unit);
    if (auto back = parse(text); back && *back == value) return text;
  }
  return fmt::format("{}{}", value, unit);
}

}  // namespace

std::string format_bytes(Bytes bytes) {
  constexpr Step kSteps[] = {
      {1, "B"}, {0x1p10, "KiB"}, {0x1p20, "MiB"}, {0x1p30, "GiB"}, {0x1p40, "TiB"}};
  return rounded(static_cast<double>(bytes), kSteps);
}

std::string format_bandwidth(BytesPerSec rate) {
  constexpr Step kSteps[] = {
      {1, "B/s"}, {1e3, "kB/s"}, {1e6, "MB/s"}, {1e9, "GB/s"}, {1e12, "TB/s"}};
  return rounded(rate, kSteps);
}

std::string format_duration(Nanos time) {
  constexpr Step kSteps[] = {{1, "ns"},     {1e3, "us"},   {1e6, "ms"},   {1e9, "s"},
                             {60e9, "min"}, {3600e9, "h"}, {86400e9, "d"}};
  return rounded(static_cast<double>(time), kSteps);
}

std::string format_count(uint64_t count) {
  std::string text = fmt::format("{}", count);
  for (int i = static_cast<int>(text.size()) - 3; i > 0; i -= 3) {
    text.insert(static_cast<size_t>(i), 1, ',');
  }
  return text;
}

std::string exact_bytes(Bytes bytes) {
  constexpr ExactUnit kUnits[] = {
      {1ll << 40, "TiB"}, {1'000'000'000'000, "TB"}, {1ll << 30, "GiB"}, {1'000'000'000, "GB"},
      {1ll << 20, "MiB"}, {1'000'000, "MB"},         {1ll << 10, "KiB"}, {1'000, "kB"}};
  for (const ExactUnit& unit : kUnits) {
    if (bytes != 0 && bytes % unit.size == 0)
      return fmt::format("{}{}", bytes / unit.size, unit.name);
  }
  return fmt::format("{}", bytes);
}

std::string exact_duration(Nanos time) {
  constexpr ExactUnit kWhole[] = {
      {86'400'000'000'000, "d"}, {3'600'000'000'000, "h"}, {60'000'000'000, "min"}};
  constexpr ExactUnit kUnits[] = {{1'000'000'000, "s"}, {1'000'000, "ms"}, {1'000, "us"}};
  if (time == 0) return "0";
  for (const ExactUnit& unit : kWhole) {
    if (time % unit.size == 0) return fmt::format("{}{}", time / unit.size, unit.name);
  }
  for (const ExactUnit& unit : kUnits) {
    if (time % (unit.size / 1000) != 0 ||
        std::abs(static_cast<double>(time)) < static_cast<double>(unit.size))
      continue;
    const int64_t thousandths = time / (unit.size / 1000);
    std::string text = fmt::format("{}{}.{:03}", time < 0 ? "-" : "", std::abs(thousandths / 1000),
                                   std::abs(thousandths % 1000));
    while (text.back() == '0') text.pop_back();
    if (text.back() == '.') text.pop_back();
    return text.append(unit.name);
  }
  return fmt::format("{}ns", time);
}

std::string exact_bandwidth(BytesPerSec rate) { return exact(rate, "B/s", parse_bandwidth); }
std::string exact_flops(double rate) { return exact(rate, "FLOPS", parse_flops); }
std::string exact_hertz(double frequency) { return exact(frequency, "Hz", parse_hertz); }

}  // namespace rehearse
