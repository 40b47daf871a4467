// SPDX-License-Identifier: Apache-2.0
// The lists of NCCL_ALGO and NCCL_PROTO: which element is allowed for which function. Grammar
// (NCCL 2.28.9): `list[;function:list]…`, elements separated by commas, a leading `^` inverts a
// list, case does not matter; only the first list may lack its function and then holds for all.
// Pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "sim/nccl/names.hpp"

namespace rehearse::sim {

// kAuto: no list spoke about it, the model's own rules decide.
enum class Switch { kOff, kOn, kAuto };

// One switch per element and function, outer index the function.
using SwitchTable = std::array<std::vector<Switch>, kCollectiveCount>;

struct Selection {
  std::string_view variable;                   // "NCCL_ALGO", for messages
  std::span<const std::string_view> elements;  // known names, in table order
};

// Reads `text`; functions that no list names stay kAuto throughout, in the others every element is
// kOn or kOff. An unknown element or function, or a later list without function, is
// Code::kBadInput.
[[nodiscard]] Result<SwitchTable> parse_selection(const Selection& selection,
                                                  std::string_view text);

}  // namespace rehearse::sim
