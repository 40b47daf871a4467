// SPDX-License-Identifier: Apache-2.0
#include "traces/capture/stretch.hpp"

#include <charconv>

namespace rehearse::capture {
namespace {

// One end of a stretch; `unit` is 0 for a number of a step, else nanoseconds.
bool read_end(std::string_view text, int64_t& value, int64_t& unit) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || value < 0) return false;
  const std::string_view suffix(stop, static_cast<size_t>(end - stop));
  unit = suffix.empty()    ? 0
         : suffix == "ms"  ? 1'000'000
         : suffix == "s"   ? 1'000'000'000
         : suffix == "min" ? 60'000'000'000
                           : -1;
  return unit >= 0 && (unit == 0 || value < INT64_MAX / 2 / unit);
}

}  // namespace

bool read_stretch(std::string_view text, Stretch& out) {
  const size_t dash = text.find('-');
  int64_t first = 0, last = 0, first_unit = 0, last_unit = 0;
  if (!read_end(text.substr(0, dash), first, first_unit)) return false;
  if (dash == std::string_view::npos) {
    last = first;
    last_unit = first_unit;
  } else if (!read_end(text.substr(dash + 1), last, last_unit)) {
    return false;
  }
  if ((first_unit == 0) != (last_unit == 0)) return false;
  const bool time = first_unit != 0;
  if (time) {
    first *= first_unit;
    last *= last_unit;
  }
  if (last < first || (time && last == first)) return false;
  out = {time ? Stretch::Of::kTime : Stretch::Of::kSteps, first, last};
  return true;
}

}  // namespace rehearse::capture
