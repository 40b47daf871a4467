// SPDX-License-Identifier: Apache-2.0
#include "faults/fault_classes.hpp"

#include <algorithm>

#include "base/document.hpp"
#include "base/install.hpp"

namespace rehearse::faults {

Result<FaultClasses> FaultClasses::load_shipped() {
  FaultClasses out;
  RH_TRY(const auto path, shipped("faults/classes.yaml"));
  if (auto read = read_document_file(path.string(), out.table_); !read)
    return tl::unexpected(read.error());
  return out;
}

const pb::FaultClass* FaultClasses::joining(std::string_view a, std::string_view b) const {
  const auto holds = [](const pb::FaultClass& row, std::string_view id) {
    return std::any_of(row.alike().begin(), row.alike().end(),
                       [&](const pb::AlikeFault& fault) { return fault.id() == id; });
  };
  for (const pb::FaultClass& row : table_.classes()) {
    if (holds(row, a) && holds(row, b)) return &row;
  }
  return nullptr;
}

const pb::UnseenPlace* FaultClasses::unseen_place(std::string_view id) const {
  const auto row = std::find_if(table_.places().begin(), table_.places().end(),
                                [&](const pb::UnseenPlace& place) { return place.id() == id; });
  return row == table_.places().end() ? nullptr : &*row;
}

}  // namespace rehearse::faults
