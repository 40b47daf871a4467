// SPDX-License-Identifier: Apache-2.0
#include "base/finding.hpp"

#include <algorithm>

namespace rehearse {

const char* name_of(Severity severity) {
  switch (severity) {
    case Severity::kInfo:
      return "info";
    case Severity::kWarning:
      return "warning";
    case Severity::kDataLoss:
      return "data-loss";
    case Severity::kError:
      return "error";
  }
  return "error";
}

void Findings::add(std::string_view id, Severity severity, std::string_view where,
                   std::string_view advice, uint64_t count) {
  auto row = std::find_if(rows_.begin(), rows_.end(), [&](const Finding& f) { return f.id == id; });
  if (row != rows_.end()) {
    row->count += count;
    return;
  }
  rows_.push_back({std::string(id), severity, count, std::string(where), std::string(advice)});
}

void Findings::merge(const Findings& other) {
  for (const Finding& f : other.rows_) add(f.id, f.severity, f.first, f.advice, f.count);
}

uint64_t Findings::count(std::string_view id) const {
  auto row = std::find_if(rows_.begin(), rows_.end(), [&](const Finding& f) { return f.id == id; });
  return row == rows_.end() ? 0 : row->count;
}

}  // namespace rehearse
