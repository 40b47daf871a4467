// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>

#include "sim/replay/agreement.hpp"
#include "sim/replay/tags.hpp"
#include "sim/snapshot/snapshot.hpp"

namespace rehearse::sim {
namespace {

// What flows of a call do, by meeting.
struct Moving {
  uint32_t flows = 0;
  bool any_rate = false;
};

std::vector<Moving> moving_calls(const Instant& instant) {
  std::vector<Moving> out(instant.past.replayed.meetings.size());
  for (const Fabric::InFlight& flow : instant.standing.fabric.flows()) {
    const Tag kind = kind_of(flow.tag);
    if (kind != Tag::kWhole && kind != Tag::kHop && kind != Tag::kMessage) continue;
    ++out[id_of(flow.tag)].flows;
    out[id_of(flow.tag)].any_rate |= flow.rate > 0;
  }
  return out;
}

// Why those that have come never leave; empty: they may.
std::string why_never(const Instant& instant, uint32_t id,
                      const std::vector<const traces::Call*>& arrived) {
  const Replayed& past = instant.past.replayed;
  const Replayed::Shape& shape = past.shapes[past.shape_of[id]];
  if (!shape.dissent.empty())
    return "settings make its members plan it differently: " + shape.dissent;
  const bool pair = traces::is_point_to_point(past.meetings[id].call.collective);
  const bool apart = pair ? arrived.size() > 1 && past.meetings[id].mismatch
                          : std::any_of(arrived.begin(), arrived.end(), [&](const auto* call) {
                              return !agree(*arrived.front(), *call);
                            });
  if (apart) return "its members disagree about what it is";
  if (past.meetings[id].halted) return "a member stopped in the middle of it";
  return {};
}

// Members whose program has no such call at all are missing too.
void add_silent(const Instant& instant, uint32_t id, pb::OpenCall& row) {
  const Replayed& past = instant.past.replayed;
  const traces::Program& program = instant.past.program;
  std::vector<traces::RankId> called;
  for (uint32_t i = past.calls_begin[id]; i < past.calls_begin[id + 1]; ++i) {
    called.push_back(program.ranks[past.calls_of[i].rank].rank);
  }
  std::sort(called.begin(), called.end());
  for (const traces::RankId member :
       program.communicators[past.meetings[id].communicator].members) {
    if (program.find(member) < 0) continue;
    if (!std::binary_search(called.begin(), called.end(), member)) row.add_missing(member);
  }
  std::sort(row.mutable_missing()->begin(), row.mutable_missing()->end());
}

void fill_call(const Instant& instant, uint32_t id, const Moving& moving, pb::Snapshot& out) {
  const Replayed& past = instant.past.replayed;
  pb::OpenCall row;
  std::vector<const traces::Call*> arrived;
  for (uint32_t i = past.calls_begin[id]; i < past.calls_begin[id + 1]; ++i) {
    const uint32_t r = past.calls_of[i].rank, c = past.calls_of[i].call;
    const traces::RankProgram& rank = instant.past.program.ranks[r];
    if (past.arrival[r][c] < 0) {
      row.add_missing(rank.rank);
      continue;
    }
    arrived.push_back(&rank.calls[c]);
    pb::Arrived& who = *row.add_arrived();
    who.set_rank(rank.rank);
    who.set_time_ns(past.arrival[r][c]);
    if (past.end[r][rank.call_op[c]] >= 0) row.add_left(rank.rank);
  }
  const Meeting& meeting = past.meetings[id];
  const bool gone = row.missing().empty() && row.left_size() == row.arrived_size();
  if (arrived.empty() || (gone && arrived.size() >= meeting.expected)) return;
  if (!traces::is_point_to_point(meeting.call.collective)) add_silent(instant, id, row);
  if (row.missing().empty() && gone) return;
  row.set_communicator(instant.past.program.communicators[meeting.communicator].id);
  row.set_sequence(meeting.sequence);
  row.set_operation(name_of(arrived.front()->collective));
  row.set_bytes(arrived.front()->bytes_in);
  row.set_why(why_never(instant, id, arrived));
  row.set_state(!row.why().empty()  ? "never"
                : moving.flows == 0 ? (row.missing().empty() ? "starting" : "waiting")
                : moving.any_rate   ? "moving"
                                    : "standing");
  *out.add_calls() = std::move(row);
}

// What a flow belongs to.
std::string owner_of(const Instant& instant, uint64_t tag) {
  const Replayed& replayed = instant.past.replayed;
  switch (kind_of(tag)) {
    case Tag::kWhole:
    case Tag::kHop:
    case Tag::kMessage:
      return describe_call(instant.past, replayed.meetings[id_of(tag)].call);
    case Tag::kTransfer: {
      const traces::RankProgram& rank = instant.past.program.ranks[id_of(tag)];
      for (size_t i = 0; i < rank.transfers.size(); ++i) {
        const bool open = replayed.transfer_begin[id_of(tag)][i] >= 0 &&
                          replayed.end[id_of(tag)][rank.transfers[i].op] < 0;
        if (open) {
          return std::string(name_of(rank.transfers[i].way)) + " of rank " +
                 std::to_string(rank.rank);
        }
      }
      return "transfer of rank " + std::to_string(rank.rank);
    }
    default:
      return "traffic of others";
  }
}

}  // namespace

void fill_calls(const Instant& instant, pb::Snapshot& out) {
  const std::vector<Moving> moving = moving_calls(instant);
  for (uint32_t id = 0; id < moving.size(); ++id) fill_call(instant, id, moving[id], out);
}

void fill_flows(const Instant& instant, pb::Snapshot& out) {
  const Fabric& fabric = instant.standing.fabric;
  const std::vector<Fabric::InFlight> flows = fabric.flows();
  struct Use {
    double rate = 0;
    uint32_t flows = 0;
  };
  std::map<LinkId, Use> used;
  for (const Fabric::InFlight& flow : flows) {
    for (const LinkWeight& link : fabric.links_of(flow.route)) {
      used[link.link].rate += flow.rate * link.weight;
      ++used[link.link].flows;
    }
  }
  const auto share = [&](LinkId link) {
    const BytesPerSec capacity = fabric.capacity(link);
    return capacity > 0 ? used.at(link).rate / capacity : 2;  // one that is down stops all
  };
  for (const Fabric::InFlight& flow : flows) {
    pb::FlowState& row = *out.add_flows();
    row.set_of(owner_of(instant, flow.tag));
    row.set_bytes(flow.bytes);
    row.set_left(std::nearbyint(flow.left));
    row.set_rate(flow.rate);
    LinkId tightest = platforms::kNoLink;
    for (const LinkWeight& link : fabric.links_of(flow.route)) {
      row.set_links(row.links() + 1);
      if (tightest == platforms::kNoLink || share(link.link) > share(tightest)) {
        tightest = link.link;
      }
    }
    if (tightest != platforms::kNoLink) row.set_tightest(instant.past.links[tightest].name);
  }
  std::vector<LinkId> order;
  order.reserve(used.size());
  for (const auto& [link, use] : used) order.push_back(link);
  std::stable_sort(order.begin(), order.end(),
                   [&](LinkId a, LinkId b) { return share(a) > share(b); });
  for (const LinkId link : order) {
    pb::LinkState& row = *out.add_links();
    row.set_name(instant.past.links[link].name);
    row.set_rate(used[link].rate);
    row.set_capacity(fabric.capacity(link));
    row.set_flows(used[link].flows);
  }
}

}  // namespace rehearse::sim
