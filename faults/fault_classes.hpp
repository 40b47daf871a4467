// SPDX-License-Identifier: Apache-2.0
// Faults that cannot be told apart by what a run shows (faults/classes.yaml), and what has to be collected
// to tell them apart. A test simulates each class and compares what is observable.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "faults/proto/fault_class.pb.h"

namespace rehearse::faults {

class FaultClasses {
 public:
  [[nodiscard]] static Result<FaultClasses> load_shipped();

  [[nodiscard]] const pb::FaultClassTable& table() const { return table_; }
  // Null: they are told apart.
  [[nodiscard]] const pb::FaultClass* joining(std::string_view a, std::string_view b) const;

 private:
  pb::FaultClassTable table_;
};

}  // namespace rehearse::faults
