// SPDX-License-Identifier: Apache-2.0
#include "traces/program/infer_host.hpp"

#include <algorithm>
#include <functional>
#include <queue>

namespace rehearse::traces {
namespace {

constexpr Nanos kWake = 50'000;  // from the end of the GPU's work to the next sign of the thread
constexpr Nanos kShortest = 20'000;  // shorter waits are not told from work

class HostWaits {
 public:
  explicit HostWaits(Draft& draft) : d_(draft) {}

  void infer() {
    enqueued_.resize(d_.rank.lanes.size());
    for (const Draft::Issued& i : d_.issued) enqueued_[d_.lane(i.op)].push_back(i);
    threads_.resize(d_.rank.lanes.size());
    for (uint32_t r = 0; r < d_.ops.size(); ++r) {
      const LaneId lane = d_.ops.lane[r];
      const OpKind kind = d_.ops.kind[r];
      if (d_.rank.lanes[lane].kind != LaneKind::kHostThread) continue;
      if (kind == OpKind::kMemory || kind == OpKind::kAnnotation) continue;
      Thread& thread = threads_[lane];
      const Nanos start = d_.ops.start[r];
      for (; !thread.open.empty() && thread.open.top() <= start; thread.open.pop()) {
        sign(thread, thread.open.top());
      }
      sign(thread, start);
      thread.open.push(start + d_.ops.duration[r]);
      if (d_.position[r] == kNoOp) continue;
      for (const OpId from : thread.waited) d_.inferred_edge(from, d_.position[r]);
      thread.waited.clear();
    }
  }

 private:
  struct Thread {
    std::priority_queue<Nanos, std::vector<Nanos>, std::greater<>> open;  // ends of what it is in
    Nanos last = 0;                                                       // last sign of life
    bool alive = false;
    std::vector<OpId> waited;  // for the next call of the program
  };

  // Something of the thread begins or ends at `now`.
  void sign(Thread& thread, Nanos now) {
    const Nanos since = std::exchange(thread.last, std::max(now, thread.last));
    if (!std::exchange(thread.alive, true) || now - since < kShortest) return;
    std::vector<OpId> last;
    OpId latest = kNoOp;
    bool dry = true;
    for (const auto& stream : enqueued_) {
      const auto past = std::partition_point(
          stream.begin(), stream.end(), [&](const auto& i) { return d_.start(i.launch) < now; });
      if (past == stream.begin()) continue;
      const OpId op = (past - 1)->op;
      if (d_.end(op) > now) {
        dry = false;
        continue;
      }
      last.push_back(op);
      if (latest == kNoOp || d_.end(op) > d_.end(latest)) latest = op;
    }
    if (latest == kNoOp) return;
    const Nanos waited = d_.end(latest) - since, late = now - d_.end(latest);
    if (late > kWake || waited < std::max(kShortest, late)) return;
    // With other streams still busy it was one stream that was waited for.
    thread.waited = dry ? std::move(last) : std::vector<OpId>{latest};
  }

  Draft& d_;
  std::vector<std::vector<Draft::Issued>> enqueued_;  // by stream
  std::vector<Thread> threads_;                       // by host lane
};

}  // namespace

void infer_host_waits(Draft& draft) {
  if (draft.issued.empty() || !draft.ops.dependencies.empty()) return;
  const bool recorded =
      std::any_of(draft.ops.syncs.begin(), draft.ops.syncs.end(), [](const Sync& s) {
        return s.sync == SyncKind::kEvent || s.sync == SyncKind::kStream ||
               s.sync == SyncKind::kDevice;
      });
  if (!recorded) HostWaits(draft).infer();
}

}  // namespace rehearse::traces
