// SPDX-License-Identifier: Apache-2.0
// The same run with some of it taking no time: operations keep their order, edges and the time they took, transfers
// take as long as they did, and ranks meet anew. No fabric: shares of links stay as they were, so the answer is what
// could be saved at most by that change alone. O(operations + edges) per question.
#pragma once

#include <functional>

#include "sim/outcome/outcome.hpp"

namespace rehearse::sim {

class Retimed {
 public:
  // Of a run that completed. `evidence` must outlive this.
  explicit Retimed(const Evidence& evidence);

  struct Without {
    std::function<bool(size_t rank, OpId op)> operation;  // own work that takes no time
    std::function<bool(uint32_t meeting)> transfer;       // meetings whose transfer takes no time
  };
  // When the run would end.
  [[nodiscard]] Nanos end(const Without& without) const;

 private:
  const Evidence& evidence_;
  std::vector<std::vector<Nanos>> own_;  // gap and duration each operation really took
};

}  // namespace rehearse::sim
