// SPDX-License-Identifier: Apache-2.0
// Faults, and places of one fault, that cannot be told apart by what a run shows (faults/classes.yaml), and what has to be
// collected to tell them apart. A test simulates each class and compares what is observable.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "faults/proto/fault_class.pb.h"

namespace rehearse::faults {

// Runs that are more alike than this (likeness.hpp) are equal within noise.
constexpr double kSameWithinNoise = 0.97;

class FaultClasses {
 public:
  [[nodiscard]] static Result<FaultClasses> load_shipped();

  [[nodiscard]] const pb::FaultClassTable& table() const { return table_; }
  // Null: they are told apart.
  [[nodiscard]] const pb::FaultClass* joining(std::string_view a, std::string_view b) const;
  // Null: the places of the fault are told apart in every job.
  [[nodiscard]] const pb::UnseenPlace* unseen_place(std::string_view id) const;

 private:
  pb::FaultClassTable table_;
};

}  // namespace rehearse::faults
