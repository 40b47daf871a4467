// SPDX-License-Identifier: Apache-2.0
#include "traces/export/chakra_edges.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace rehearse::traces {
namespace {

constexpr uint32_t kNoOperation = UINT32_MAX;

class Edges {
 public:
  explicit Edges(const RankTrace& rank)
      : rank_(rank),
        ops_(rank.ops),
        last_(rank.lanes.size(), kNoOperation),
        enqueued_(rank.lanes.size(), kNoOperation),
        waits_(rank.lanes.size()),
        open_(rank.lanes.size()) {}

  ChakraEdges find() {
    const auto n = static_cast<uint32_t>(ops_.size());
    out_.parent.assign(n, kNoParent);
    out_.own = ops_.duration;
    for (uint32_t op = 0; op < n; ++op) {
      if (on_stream(op) && ops_.correlation[op] != 0) work_[ops_.correlation[op]].push_back(op);
    }
    for (uint32_t op = 0; op < n; ++op) visit(op);
    for (const Dependency& d : ops_.dependencies) edge(d.op, d.on);
    std::sort(pairs_.begin(), pairs_.end());
    pairs_.erase(std::unique(pairs_.begin(), pairs_.end()), pairs_.end());
    out_.begin.assign(n + 1, 0);
    for (const auto& [op, on] : pairs_) {
      ++out_.begin[op + 1];
      out_.on.push_back(on);
    }
    for (uint32_t op = 0; op < n; ++op) out_.begin[op + 1] += out_.begin[op];
    return std::move(out_);
  }

 private:
  [[nodiscard]] bool on_stream(uint32_t op) const {
    return rank_.lanes[ops_.lane[op]].kind == LaneKind::kStream;
  }
  [[nodiscard]] Nanos end(uint32_t op) const { return ops_.start[op] + ops_.duration[op]; }
  // Chakra readers take nodes in the order of the file: an edge points back.
  void edge(uint32_t op, uint32_t on) {
    if (on != kNoOperation && on < op) pairs_.emplace_back(op, on);
  }

  void visit(uint32_t op) {
    const OpKind kind = ops_.kind[op];
    if (kind == OpKind::kMemory || kind == OpKind::kAnnotation) return;
    const uint16_t lane = ops_.lane[op];
    edge(op, std::exchange(last_[lane], op));
    if (on_stream(op)) return;
    enclose(op, lane);
    if (const Sync* sync = ops_.sync(op)) synchronise(op, *sync);
    if (kind != OpKind::kLaunch && kind != OpKind::kGraphLaunch) return;
    const auto work = work_.find(ops_.correlation[op]);
    if (work == work_.end()) return;
    for (const uint32_t gpu : work->second) {
      edge(gpu, op);
      if (gpu > op && out_.parent[gpu] == kNoParent) out_.parent[gpu] = op;
      const uint16_t stream = ops_.lane[gpu];
      for (const uint32_t waited : waits_[stream]) edge(gpu, waited);
      waits_[stream].clear();
      enqueued_[stream] = gpu;
    }
  }

  // Host operations nest; each one's time is taken from the one around it.
  void enclose(uint32_t op, uint16_t lane) {
    std::vector<uint32_t>& open = open_[lane];
    while (!open.empty() && end(open.back()) <= ops_.start[op] &&
           !(ops_.duration[op] == 0 && end(open.back()) == ops_.start[op] &&
             ops_.duration[open.back()] > 0)) {
      open.pop_back();
    }
    if (!open.empty() && end(open.back()) >= end(op)) {
      out_.parent[op] = open.back();
      Nanos& own = out_.own[open.back()];
      own = std::max<Nanos>(0, own - ops_.duration[op]);
    }
    open.push_back(op);
  }

  void synchronise(uint32_t op, const Sync& sync) {
    const auto stream = static_cast<size_t>(sync.stream_lane);
    const bool known = sync.stream_lane >= 0 && stream < rank_.lanes.size();
    const auto event = events_.find(sync.event);
    const auto wait_for = [&](uint32_t gpu) {
      if (gpu == kNoOperation) return;
      edge(op, gpu);
      if (gpu < op) out_.own[op] = std::min(out_.own[op], std::max<Nanos>(0, end(op) - end(gpu)));
    };
    switch (sync.sync) {
      case SyncKind::kRecord:
        if (known && sync.event != 0) events_[sync.event] = enqueued_[stream];
        break;
      case SyncKind::kWaitEvent:
        if (known && event != events_.end() && event->second != kNoOperation)
          waits_[stream].push_back(event->second);
        break;
      case SyncKind::kEvent:
        if (event != events_.end()) wait_for(event->second);
        break;
      case SyncKind::kStream:
        if (known) wait_for(enqueued_[stream]);
        break;
      case SyncKind::kDevice:
        for (const uint32_t last : enqueued_) wait_for(last);
        break;
    }
  }

  const RankTrace& rank_;
  const Operations& ops_;
  ChakraEdges out_;
  std::vector<uint32_t> last_, enqueued_;  // per lane
  std::vector<std::vector<uint32_t>> waits_, open_;
  std::unordered_map<int64_t, std::vector<uint32_t>> work_;
  std::unordered_map<uint64_t, uint32_t> events_;
  std::vector<std::pair<uint32_t, uint32_t>> pairs_;  // (op, on)
};

}  // namespace

ChakraEdges chakra_edges(const RankTrace& rank) { return Edges(rank).find(); }

}  // namespace rehearse::traces
