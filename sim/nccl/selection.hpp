// SPDX-License-Identifier: Apache-2.0
// The lists of NCCL_ALGO and NCCL_PROTO: which element is allowed for which function. Pure functions.
//
// Since 2.24 (src/graph/tuning.cc parseList): `list[;function:list]…`, elements separated by commas, a leading
// `^` inverts a list, case does not matter; only the first list may lack its function and then holds for all. A
// name that is unknown ends ncclCommInitRank with ncclInvalidUsage.
// Before: one list for all functions. A name that is unknown is passed over, so that a list of such names alone
// switches everything off.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

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

// What NCCL does not understand in a list.
struct SelectionSlip {
  enum class Kind : uint8_t { kElement, kFunction, kNoFunction };
  Kind kind = Kind::kElement;
  std::string token;
  std::string nearest;  // the name that was probably meant; "": none is near
};

// As 2.24 and newer read `text`: functions that no list names stay kAuto throughout, in the others every element
// is kOn or kOff.
[[nodiscard]] tl::expected<SwitchTable, SelectionSlip> parse_selection(const Selection& selection,
                                                                       std::string_view text);

// As versions before 2.24 read it; `passed_over` gets the names that they do not know.
[[nodiscard]] SwitchTable parse_plain_selection(const Selection& selection, std::string_view text,
                                                std::vector<SelectionSlip>& passed_over);

}  // namespace rehearse::sim
