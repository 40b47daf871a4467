// SPDX-License-Identifier: Apache-2.0
// Findings about single records of one file, of which there may be millions of a kind: the first of each
// is told with its place, the others are only counted until flush().
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/finding.hpp"

namespace rehearse::traces {

class Notes {
 public:
  // `findings` outlives the notes; `where` is the place of all but the first of a kind.
  Notes(Findings& findings, std::string where) : findings_(findings), where_(std::move(where)) {}

  // `place` gives the text of the record's place; it is asked for the first of a kind only. `id` and
  // `advice` are literals.
  template <typename Place>
  void add(const char* id, Severity severity, const char* advice, Place&& place) {
    const auto seen =
        std::find_if(repeats_.begin(), repeats_.end(), [&](const Repeat& r) { return r.id == id; });
    if (seen != repeats_.end()) {
      ++seen->more;
      return;
    }
    repeats_.push_back({id, severity, advice, 0});
    findings_.add(id, severity, place(), advice);
  }

  void flush() {
    for (const Repeat& r : repeats_) {
      if (r.more > 0) findings_.add(r.id, r.severity, where_, r.advice, r.more);
    }
    repeats_.clear();
  }

 private:
  struct Repeat {
    const char* id = nullptr;
    Severity severity = Severity::kInfo;
    const char* advice = nullptr;
    uint64_t more = 0;  // beyond the first, which is in the findings already
  };
  Findings& findings_;
  std::string where_;
  std::vector<Repeat> repeats_;
};

}  // namespace rehearse::traces
