// SPDX-License-Identifier: Apache-2.0
// What the check of a lab can say against a repair. The ids are part of the JSON document.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse::faults {

namespace remark {
constexpr std::string_view kNothingChanged = "nothing-changed";
constexpr std::string_view kStillThere = "still-there";      // the same symptom
constexpr std::string_view kOtherSymptom = "other-symptom";  // another one instead
constexpr std::string_view kWrongResult = "wrong-result";    // it runs and trains something else
constexpr std::string_view kSlow = "slow";                   // it runs, performance is not back
constexpr std::string_view kLongerTimeout = "longer-timeout";
constexpr std::string_view kLessWork = "less-work";  // another job than the one that was broken
constexpr std::string_view kOtherMachine = "other-machine";  // parts changed that were not broken
constexpr std::string_view kSilenced = "silenced";  // the description was removed, not the fault
constexpr std::string_view kNotARepair = "not-a-repair";  // nothing a person can do to a job
constexpr std::string_view kTooBroad = "too-broad";       // everything replaced to hit one part
constexpr std::string_view kUnneeded = "unneeded";        // a repair of what was not broken
}  // namespace remark

constexpr std::array kRemarks = {
    remark::kNothingChanged, remark::kStillThere,    remark::kOtherSymptom, remark::kWrongResult,
    remark::kSlow,           remark::kLongerTimeout, remark::kLessWork,     remark::kOtherMachine,
    remark::kSilenced,       remark::kNotARepair,    remark::kTooBroad,     remark::kUnneeded};

[[nodiscard]] inline bool is_remark(std::string_view id) {
  return std::find(kRemarks.begin(), kRemarks.end(), id) != kRemarks.end();
}

[[nodiscard]] inline std::vector<std::string> remark_ids() {
  return {kRemarks.begin(), kRemarks.end()};
}

}  // namespace rehearse::faults
