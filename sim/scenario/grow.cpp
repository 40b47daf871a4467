// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario/grow.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/document.hpp"
#include "platforms/model/catalogue.hpp"
#include "sim/scenario/expand.hpp"

namespace rehearse::sim {
namespace {

using traces::Collective;

constexpr uint64_t kMostNodes = 65536;

// "data parallel", "default_pg", "expert data parallel": how frameworks name groups of replicas.
bool spans_replicas(const traces::Communicator& communicator, size_t ranks) {
  if (communicator.members.size() == ranks) return true;
  std::string words = communicator.description + " " + communicator.id;
  for (char& c : words) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const char* name : {"data parallel", "data_parallel", "default_pg"}) {
    if (words.find(name) != std::string::npos) return true;
  }
  return false;
}

// Shards get smaller with more members; what all have together stays.
void shrink_shards(const std::vector<bool>& grew, uint32_t factor, traces::Program& program) {
  const auto part = [&](Bytes bytes) { return (bytes + factor - 1) / factor; };
  for (traces::RankProgram& rank : program.ranks) {
    for (traces::Call& call : rank.calls) {
      if (!grew[call.communicator]) continue;
      if (call.collective == Collective::kAllGather) call.bytes_in = part(call.bytes_in);
      if (call.collective == Collective::kReduceScatter) call.bytes_out = part(call.bytes_out);
    }
  }
}

}  // namespace

Result<void> grow(Scenario& scenario, const pb::GrowDataParallel& how) {
  const uint32_t factor = how.factor();
  const pb::Scenario before = scenario.document;
  const auto nodes = static_cast<uint64_t>(before.platform().nodes_size());
  if (nodes * factor > kMostNodes) {
    return fail(Code::kLimit, fmt::format("the platform would have {} nodes", nodes * factor),
                "grow-data-parallel: factor", fmt::format("at most {}", kMostNodes));
  }
  pb::Scenario document = before;
  *document.mutable_platform() = scenario.written;
  document.mutable_platform()->set_scale(static_cast<uint32_t>(nodes * factor));
  if (auto expanded = platforms::expand(*document.mutable_platform(), "grow-data-parallel");
      !expanded) {
    return expanded;
  }
  // What was changed before the nodes were added still holds.
  for (const auto& [path, value] : scenario.assigned) {
    RH_TRY(int fields, set_path(document, path, value));
    (void)fields;
  }
  if (scenario.replicas == 1) {
    scenario.replica_ranks = before.launch().ranks(before.launch().ranks_size() - 1).rank() + 1;
  }
  const uint32_t step = scenario.replica_ranks * scenario.replicas;
  pb::Launch& launch = *document.mutable_launch();
  for (uint32_t j = 1; j < factor; ++j) {
    for (const pb::RankLaunch& rank : before.launch().ranks()) {
      pb::RankLaunch& copy = *launch.add_ranks();
      copy = rank;
      copy.set_rank(rank.rank() + j * step);
      copy.set_node(rank.node() + j * static_cast<uint32_t>(nodes));
    }
  }
  launch.set_world_size(before.launch().world_size() * factor);
  if (auto seated = check_seats(document, "grow-data-parallel"); !seated) return seated;
  scenario.document = std::move(document);
  scenario.replicas *= factor;
  scenario.growing.assign(how.communicators().begin(), how.communicators().end());
  if (scenario.replicas == 1) return {};
  scenario.findings.add(
      "replicas-alike", Severity::kInfo, fmt::format("grow-data-parallel: {}", factor),
      "only the recorded ranks are replayed; further replicas do the same at the same time");
  return {};
}

traces::Communicator replica_of(const traces::Communicator& communicator, uint32_t replica,
                                uint32_t ranks) {
  traces::Communicator out = communicator;
  for (traces::RankId& member : out.members) member += replica * ranks;
  return out;
}

Result<std::vector<bool>> grow_communicators(const Scenario& scenario, traces::Program& program) {
  std::vector<bool> grew(program.communicators.size(), false);
  if (scenario.replicas <= 1) return grew;
  for (const std::string& id : scenario.growing) {
    const bool known = std::any_of(
        program.communicators.begin(), program.communicators.end(),
        [&](const traces::Communicator& communicator) { return communicator.id == id; });
    if (!known) {
      return fail(Code::kBadInput, "there is no communicator " + id, "grow-data-parallel",
                  "`rehearse inspect` lists them");
    }
  }
  for (size_t c = 0; c < program.communicators.size(); ++c) {
    traces::Communicator& communicator = program.communicators[c];
    grew[c] = scenario.growing.empty() ? spans_replicas(communicator, program.ranks.size())
                                       : std::find(scenario.growing.begin(), scenario.growing.end(),
                                                   communicator.id) != scenario.growing.end();
    if (!grew[c]) continue;
    const std::vector<traces::RankId> members = communicator.members;
    for (uint32_t j = 1; j < scenario.replicas; ++j) {
      for (traces::RankId member : members) {
        communicator.members.push_back(member + j * scenario.replica_ranks);
      }
    }
  }
  shrink_shards(grew, scenario.replicas, program);
  return grew;
}

void add_traffic(CallTraffic& to, const CallTraffic& copy) {
  const bool alike = to.flows.size() == copy.flows.size() &&
                     std::equal(to.flows.begin(), to.flows.end(), copy.flows.begin(),
                                [](const FlowLoad& a, const FlowLoad& b) {
                                  return a.bytes == b.bytes && a.cap == b.cap;
                                });
  const size_t hops = std::min(to.hops.size(), copy.hops.size());
  for (size_t h = 0; h < hops; ++h) {
    auto& links = to.hops[h].load.links;
    links.insert(links.end(), copy.hops[h].load.links.begin(), copy.hops[h].load.links.end());
  }
  if (!alike) {
    to.flows.insert(to.flows.end(), copy.flows.begin(), copy.flows.end());
    to.latency = std::max(to.latency, copy.latency);
    return;
  }
  for (size_t f = 0; f < to.flows.size(); ++f) {
    to.flows[f].links.insert(to.flows[f].links.end(), copy.flows[f].links.begin(),
                             copy.flows[f].links.end());
  }
}

}  // namespace rehearse::sim
