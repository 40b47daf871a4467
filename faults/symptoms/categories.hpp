// SPDX-License-Identifier: Apache-2.0
// The symptom categories of the literature with their counts and fix patterns, as shipped data
// (faults/symptoms/categories.yaml). Immutable once loaded.
#pragma once

#include <string_view>

#include "base/error.hpp"
#include "faults/proto/symptom_category.pb.h"

namespace rehearse::faults {

class Categories {
 public:
  [[nodiscard]] static Result<Categories> load_shipped();
  [[nodiscard]] static Result<Categories> read(std::string_view text, const std::string& file);

  [[nodiscard]] const pb::SymptomTable& table() const { return table_; }
  // Null when there is none of that id.
  [[nodiscard]] const pb::SymptomCategory* find(std::string_view id) const;
  // How many faults of the category were solved by the pattern, alone or as part of a joined label
  // ("fix dependency version & fix network setting"); letter case does not matter.
  [[nodiscard]] uint32_t solved(std::string_view category, std::string_view pattern) const;

 private:
  pb::SymptomTable table_;
};

}  // namespace rehearse::faults
