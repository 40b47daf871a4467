// SPDX-License-Identifier: Apache-2.0
#include "tests/traces/same_operations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace rehearse::traces::samples {
namespace {

// One operation with everything that tables and indices hold, spelled out.
std::string told(const Trace& trace, const RankTrace& rank, size_t op) {
  const Operations& o = rank.ops;
  const auto lane = [&](int64_t l) {
    if (l < 0) return std::string("none");
    const Lane& x = rank.lanes.at(static_cast<size_t>(l));
    return fmt::format("{}:{}", static_cast<int>(x.kind), x.id);
  };
  std::string out = fmt::format("{} '{}' on {} at {} for {} correlation {}", name_of(o.kind[op]),
                                trace.strings.at(o.name[op]), lane(o.lane[op]), o.start[op],
                                o.duration[op], o.correlation[op]);
  if (const Call* c = o.call(op)) {
    out += fmt::format(" {} #{} in {} out {} {} reduction {} peer {} group {} of {}",
                       name_of(c->collective), c->sequence, c->bytes_in, c->bytes_out,
                       name_of(c->dtype), static_cast<int>(c->reduction), c->peer, c->group,
                       trace.communicators.at(c->communicator).id);
  }
  if (const Copy* c = o.copy(op))
    out += fmt::format(" {} bytes, direction {}", c->bytes, static_cast<int>(c->direction));
  if (const Sync* s = o.sync(op))
    out += fmt::format(" sync {} stream {} event {}", static_cast<int>(s->sync),
                       lane(s->stream_lane), s->event);
  if (const Memory* m = o.mem(op)) out += fmt::format(" {} bytes at {}", m->bytes, m->address);
  return out;
}

std::string difference(const Trace& ta, const RankTrace& a, const Trace& tb, const RankTrace& b) {
  if (a.rank != b.rank) return fmt::format("rank {} is rank {}", a.rank, b.rank);
  if (a.gpu != b.gpu || a.gpu_model != b.gpu_model || a.gpu_memory != b.gpu_memory)
    return fmt::format("GPU of rank {}", a.rank);
  if (a.steps.size() != b.steps.size())
    return fmt::format("rank {}: {} steps, {}", a.rank, a.steps.size(), b.steps.size());
  for (size_t s = 0; s < a.steps.size(); ++s) {
    if (a.steps[s].number != b.steps[s].number || a.steps[s].start != b.steps[s].start ||
        a.steps[s].end != b.steps[s].end)
      return fmt::format("rank {}: step {}", a.rank, s);
  }
  if (a.ops.size() != b.ops.size())
    return fmt::format("rank {}: {} operations, {}", a.rank, a.ops.size(), b.ops.size());
  // Operations that start together stand in the order of lane numbers, which may differ.
  const auto lines = [](const Trace& t, const RankTrace& r) {
    std::vector<std::string> all;
    for (size_t op = 0; op < r.ops.size(); ++op) all.push_back(told(t, r, op));
    size_t from = 0;
    for (size_t op = 1; op <= all.size(); ++op) {
      if (op < all.size() && r.ops.start[op] == r.ops.start[from]) continue;
      std::sort(all.begin() + static_cast<ptrdiff_t>(from),
                all.begin() + static_cast<ptrdiff_t>(op));
      from = op;
    }
    return all;
  };
  const auto la = lines(ta, a), lb = lines(tb, b);
  for (size_t i = 0; i < la.size(); ++i) {
    if (la[i] != lb[i]) return fmt::format("rank {}:\n  {}\n  {}", a.rank, la[i], lb[i]);
  }
  if (a.ops.dependencies.size() != b.ops.dependencies.size())
    return fmt::format("rank {}: {} dependencies, {}", a.rank, a.ops.dependencies.size(),
                       b.ops.dependencies.size());
  for (size_t i = 0; i < a.ops.dependencies.size(); ++i) {
    const Dependency x = a.ops.dependencies[i], y = b.ops.dependencies[i];
    if (told(ta, a, x.op) != told(tb, b, y.op) || told(ta, a, x.on) != told(tb, b, y.on))
      return fmt::format("rank {}: dependency {}", a.rank, i);
  }
  return {};
}

}  // namespace

std::string difference(const Trace& a, const Trace& b) {
  if (a.ranks.size() != b.ranks.size())
    return fmt::format("{} ranks, {}", a.ranks.size(), b.ranks.size());
  if (a.header.world_size() != b.header.world_size())
    return fmt::format("world of {}, {}", a.header.world_size(), b.header.world_size());
  for (const Communicator& c : a.communicators) {
    const auto same = std::find_if(b.communicators.begin(), b.communicators.end(),
                                   [&](const Communicator& d) { return d.id == c.id; });
    if (same == b.communicators.end()) return "no communicator " + c.id;
    if (same->members != c.members) return "other members in " + c.id;
    if (same->description != c.description || same->backend != c.backend)
      return fmt::format("communicator {}: '{}' '{}', '{}' '{}'", c.id, c.description, c.backend,
                         same->description, same->backend);
  }
  for (size_t r = 0; r < a.ranks.size(); ++r) {
    if (std::string d = difference(a, a.ranks[r], b, b.ranks[r]); !d.empty()) return d;
  }
  return {};
}

void drop_memory(Operations& ops) {
  Operations kept;
  for (size_t op = 0; op < ops.size(); ++op) {
    if (ops.kind[op] == OpKind::kMemory) continue;
    kept.add(ops.kind[op], ops.lane[op], ops.name[op], ops.start[op], ops.duration[op],
             ops.correlation[op]);
    kept.detail.back() = ops.detail[op];
  }
  std::vector<uint32_t> place(ops.size(), 0);
  uint32_t next = 0;
  for (size_t op = 0; op < ops.size(); ++op) {
    place[op] = next;
    if (ops.kind[op] != OpKind::kMemory) ++next;
  }
  for (const Dependency& d : ops.dependencies) {
    if (ops.kind[d.op] != OpKind::kMemory && ops.kind[d.on] != OpKind::kMemory)
      kept.dependencies.push_back({place[d.op], place[d.on]});
  }
  kept.calls = std::move(ops.calls);
  kept.copies = std::move(ops.copies);
  kept.syncs = std::move(ops.syncs);
  ops = std::move(kept);
}

}  // namespace rehearse::traces::samples
