// SPDX-License-Identifier: Apache-2.0
// What error texts of frameworks and libraries tell about the category. Pure.
#pragma once

#include <string_view>

#include "sim/proto/outcome.pb.h"

namespace rehearse::faults {

struct CrashText {
  std::string_view text;         // occurs in the error text, letter case does not matter
  std::string_view setup;        // category while starting, in rendezvous or bootstrap
  std::string_view preparation;  // category in preparation
  std::string_view training;     // category in training or later, or when the phase is unknown
};

// The first row whose text occurs in `message`, or null. Rows from specific to general.
[[nodiscard]] const CrashText* match_crash_text(std::string_view message);
// The category of a row in a phase; empty when the row says nothing about that phase.
[[nodiscard]] std::string_view category_in(const CrashText& row, pb::Phase phase);

}  // namespace rehearse::faults
