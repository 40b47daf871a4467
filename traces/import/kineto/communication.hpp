// SPDX-License-Identifier: Apache-2.0
// Gives the collectives of a rank their arguments. New traces have them on the kernel; older ones
// on the host operation (record_param_comms, or its "nccl:..." annotation) whose span holds the
// launch; the oldest nowhere. Sends and receives that were collected and launched as one kernel
// become a call each, of one group; collectives become one call. Also the communicators they run on.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/finding.hpp"
#include "traces/import/kineto/event.hpp"
#include "traces/import/kineto/metadata.hpp"
#include "traces/import/part.hpp"

namespace rehearse::traces::kineto {

// CallArgs that own what they say.
struct CallFacts {
  std::optional<Collective> collective;
  DType dtype = DType::kUnknown;
  int element_bytes = 0;       // also of types that have no DType
  bool dtype_unknown = false;  // there is one, but nobody knows how wide it is
  int64_t elements_in = -1, elements_out = -1;
  std::string group, description, ranks;
  int64_t group_size = -1, rank_start = -1, rank_stride = -1;
  int64_t source = -1, destination = -1, root = -1, sequence = -1;
  int64_t place = -1;  // the root's, of rooted collectives
  // Takes from `other` what is not known here.
  void complete(const CallFacts& other);
};
[[nodiscard]] CallFacts facts_of(const Event& event);

class Communication {
 public:
  // A host span that tells arguments of the collective launched inside.
  void span(LaneId lane, Nanos start, Nanos duration, int64_t external, CallFacts facts);
  // A collective's kernel; `call` is its index in ops.calls.
  void kernel(size_t op, uint32_t call, int64_t external, CallFacts facts);
  [[nodiscard]] size_t kernels() const { return kernels_.size(); }

  struct Launch {
    LaneId lane = 0;
    Nanos start = 0;
    bool graph = false;  // of kernels that were captured earlier
  };
  // Fills calls, communicators, recorded sequence and launch times of `part`. `launches` finds the
  // host call of a correlation id. Times are those of the events, before the base is added.
  void attach(RankPart& part, const Metadata& metadata,
              const std::unordered_map<int64_t, Launch>& launches, const Strings& strings,
              const std::string& where, Findings& findings);
  // Correlation ids that attach() wants to find.
  [[nodiscard]] std::vector<int64_t> correlations(const Operations& ops) const;

 private:
  struct Span {
    LaneId lane = 0;
    Nanos start = 0, end = 0;
    int64_t external = -1;
    CallFacts facts;
    bool launches = false;  // a kernel that was found
  };
  struct Kernel {
    size_t op = 0;
    uint32_t call = 0;
    int64_t external = -1;
    CallFacts facts;
  };
  void sort_spans();
  [[nodiscard]] std::vector<Span>::iterator behind(const Launch& launch);
  void complete(Kernel& kernel, const Launch* launch,
                const std::unordered_map<int64_t, Span*>& by_external);
  template <typename Wanted>
  [[nodiscard]] std::vector<CallFacts> collected(const Launch& launch, const Wanted& wanted);
  size_t join_collected(Kernel& kernel, const Launch& launch, std::optional<Collective> kind);

  std::vector<Span> spans_;
  std::vector<Kernel> kernels_;
};

}  // namespace rehearse::traces::kineto
