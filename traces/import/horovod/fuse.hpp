// SPDX-License-Identifier: Apache-2.0
// Tensors that travelled together, and the ranks of the job that took part.
#pragma once

#include <vector>

#include "traces/import/horovod/timeline.hpp"
#include "traces/import/part.hpp"

namespace rehearse::traces::horovod {

// One collective: the tensors of a fusion buffer.
struct FusedCall {
  Collective collective = Collective::kAllReduce;
  std::string name;
  Nanos start = 0, end = 0;
  Bytes bytes = 0;
  DType dtype = DType::kUnknown;  // of the first tensor
  bool sized = true;              // the bytes of all tensors are told
  uint32_t tensors = 0;
  std::vector<Ready> ready;  // per rank the last of its tensors; ascending by rank
};

// Tensors are one collective when they do the same activity and their starts, and their ends, follow each
// other within 50 us: Horovod writes the rows of a fusion buffer one after the other. In order of start.
[[nodiscard]] std::vector<FusedCall> fuse(std::vector<TensorCall> calls);

// The ranks of the job as the timeline tells them: rank 0, all that were ever ready, and those between when
// there are collectives. Takes what it needs out of `timeline`.
[[nodiscard]] std::vector<RankPart> ranks_of(Timeline& timeline, const std::string& file,
                                             ReadContext& context);

}  // namespace rehearse::traces::horovod
