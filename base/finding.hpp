// SPDX-License-Identifier: Apache-2.0
// Findings: what was ignored, repaired or contradictory, as data instead of log lines. Each kind is one
// row with a count, the first place it was seen and advice, so that nothing is dropped silently and a
// file with a million odd events still gives one line. Not thread-safe; merge() joins tables.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse {

enum class Severity { kInfo, kWarning, kDataLoss, kError };
[[nodiscard]] const char* name_of(Severity severity);

struct Finding {
  std::string id;  // stable kebab-case name of the kind, e.g. "negative-duration"
  Severity severity = Severity::kInfo;
  uint64_t count = 0;
  std::string first;   // where it was first seen
  std::string advice;  // what the user can do
};

class Findings {
 public:
  // Counts `count` more of kind `id`; place and advice of the first call are kept.
  void add(std::string_view id, Severity severity, std::string_view where, std::string_view advice,
           uint64_t count = 1);
  // Adds all rows of `other`, keeping the order of first appearance.
  void merge(const Findings& other);
  [[nodiscard]] const std::vector<Finding>& rows() const { return rows_; }
  [[nodiscard]] uint64_t count(std::string_view id) const;

 private:
  std::vector<Finding> rows_;
};

}  // namespace rehearse
