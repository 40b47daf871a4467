// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/transfers.hpp"

#include <algorithm>

#include "sim/replay/tags.hpp"

namespace rehearse::sim {
namespace {

// Caps hold for the copies of one rank in one direction.
uint64_t cap_owner(size_t rank, traces::Way way) {
  return uint64_t{1} << 62 | static_cast<uint64_t>(way) << 32 | rank;
}

}  // namespace

Result<Transfers> Transfers::declare(const traces::Program& program, const ReplayOptions& options,
                                     Fabric& fabric, LinkUsers& users, Replayed& out) {
  Transfers made;
  made.declared_.resize(program.ranks.size());
  made.stops_.resize(program.ranks.size());
  out.transfer_begin.resize(program.ranks.size());
  for (size_t r = 0; options.transfer && r < program.ranks.size(); ++r) {
    const auto& transfers = program.ranks[r].transfers;
    out.transfer_begin[r].assign(transfers.size(), -1);
    for (uint32_t i = 0; i < transfers.size(); ++i) {
      RH_TRY(const std::optional<CallTraffic> traffic, options.transfer(r, transfers[i]));
      if (!traffic) continue;
      Declared declared;
      declared.latency = traffic->latency;
      declared.index = i;
      for (const FlowLoad& flow : traffic->flows) {
        const RateCap cap{flow.cap, cap_owner(r, transfers[i].way)};
        users.add_others(flow.links);
        declared.flows.emplace_back(fabric.add_route(flow.links, cap), flow.bytes);
      }
      made.stops_[r].push_back(transfers[i].op);
      made.declared_[r].push_back(std::move(declared));
      if (made.shortest_ < 0 || traffic->latency < made.shortest_) {
        made.shortest_ = traffic->latency;
      }
    }
  }
  return made;
}

void Transfers::arrive(size_t rank, OpId op, Nanos when, Fabric& fabric) const {
  const auto& stops = stops_[rank];
  const auto at = std::lower_bound(stops.begin(), stops.end(), op) - stops.begin();
  const auto position = static_cast<size_t>(at);
  fabric.timer(when + declared_[rank][position].latency, tag_of(Tag::kTransfer, position, rank));
}

bool Transfers::start(uint64_t tag, Fabric& fabric, Replayed& out) {
  Declared& declared = declared_[id_of(tag)][part_of(tag)];
  out.transfer_begin[id_of(tag)][declared.index] = fabric.now();
  declared.flows_left = static_cast<uint32_t>(declared.flows.size());
  for (const auto& [route, bytes] : declared.flows) fabric.start(route, bytes, tag);
  return declared.flows.empty();
}

bool Transfers::flow_ended(uint64_t tag) {
  return --declared_[id_of(tag)][part_of(tag)].flows_left == 0;
}

OpId Transfers::operation(uint64_t tag) const { return stops_[id_of(tag)][part_of(tag)]; }

}  // namespace rehearse::sim
