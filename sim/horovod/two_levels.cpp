// SPDX-License-Identifier: Apache-2.0
#include "sim/horovod/two_levels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "sim/horovod/controller.hpp"
#include "sim/host/host_model.hpp"
#include "sim/scenario/cut_calls.hpp"
#include "sim/scenario/rebuild.hpp"

namespace rehearse::sim {
namespace {

using traces::Call;
using traces::Collective;

// Where the members of a communicator sit.
struct Levels {
  bool even = false;  // several nodes with as many members each
  std::map<uint32_t, std::vector<traces::RankId>> nodes;
  std::map<traces::RankId, std::pair<uint32_t, uint32_t>> seat;  // node, place among its members
  std::optional<HostLibrary> library;

  [[nodiscard]] uint32_t places() const {
    return static_cast<uint32_t>(nodes.begin()->second.size());
  }
};

Levels levels_of(const pb::Launch& launch, const std::map<uint32_t, uint32_t>& node_of,
                 const traces::Communicator& communicator) {
  Levels out;
  for (const traces::RankId member : communicator.members) {
    const auto at = node_of.find(member);
    if (at == node_of.end()) return out;
    auto& here = out.nodes[at->second];
    out.seat[member] = {at->second, static_cast<uint32_t>(here.size())};
    here.push_back(member);
  }
  out.library = host_library(launch, communicator);
  out.even = out.nodes.size() > 1 && std::all_of(out.nodes.begin(), out.nodes.end(), [&](auto& n) {
               return n.second.size() == out.places();
             });
  return out;
}

enum class How : uint8_t { kFlat, kHierarchical, kTorus, kGather };

class TwoLevels {
 public:
  TwoLevels(const Scenario& scenario, traces::Program& program, std::vector<bool>& grew)
      : launch_(scenario.document.launch()), program_(program), grew_(grew) {
    for (const pb::RankLaunch& seat : launch_.ranks()) node_of_[seat.rank()] = seat.node();
    for (const traces::Communicator& communicator : program.communicators) {
      levels_.push_back(levels_of(launch_, node_of_, communicator));
    }
  }

  Result<void> edit() {
    for (const pb::RankLaunch& seat : launch_.ranks()) {
      const int at = program_.find(seat.rank());
      if (at < 0) continue;
      const HorovodSettings settings = horovod_settings(launch_, seat);
      if (!asks(settings)) continue;
      auto done = edit(program_.ranks[static_cast<size_t>(at)], settings);
      if (!done) return done;
    }
    return {};
  }

  static bool asks(const HorovodSettings& settings) {
    return settings.hierarchical_allreduce || settings.hierarchical_allgather ||
           settings.torus_allreduce;
  }

 private:
  void idle(const char* variable, const char* why) {
    program_.findings.add("horovod-setting", Severity::kWarning, variable, why);
  }

  How how(traces::RankId rank, const Call& call, const HorovodSettings& settings) {
    const Levels& levels = levels_[call.communicator];
    if (!levels.seat.contains(rank)) return How::kFlat;  // a recording may miss a member
    const bool reduce = call.collective == Collective::kAllReduce &&
                        (settings.hierarchical_allreduce || settings.torus_allreduce);
    const bool gather =
        call.collective == Collective::kAllGather && settings.hierarchical_allgather;
    if ((!reduce && !gather) || levels.nodes.size() < 2) return How::kFlat;
    const char* name = gather                            ? "HOROVOD_HIERARCHICAL_ALLGATHER"
                       : settings.hierarchical_allreduce ? "HOROVOD_HIERARCHICAL_ALLREDUCE"
                                                         : "HOROVOD_TORUS_ALLREDUCE";
    if (!levels.even) {
      idle(name, "nodes have different numbers of members; these collectives stay at one level");
      return How::kFlat;
    }
    if (gather) {
      if (levels.library == HostLibrary::kMpi) return How::kGather;
      idle(name, "it is for gathers by MPI; these are not");
      return How::kFlat;
    }
    if (levels.library) {
      idle(name, "it needs NCCL; these collectives run on the hosts");
      return How::kFlat;
    }
    if (settings.hierarchical_allreduce) {
      if (settings.mpi) return How::kHierarchical;
      idle("HOROVOD_HIERARCHICAL_ALLREDUCE", "it needs MPI, and HOROVOD_CONTROLLER is gloo");
    }
    return settings.torus_allreduce ? How::kTorus : How::kFlat;
  }

  // The communicator of that name; made on first use.
  uint32_t communicator(const std::string& id, std::vector<traces::RankId> members,
                        std::string backend) {
    const auto [at, fresh] =
        made_.emplace(id, static_cast<uint32_t>(program_.communicators.size()));
    if (!fresh) return at->second;
    // Members of another replica make it one that grew with the job.
    const bool grew = std::any_of(members.begin(), members.end(),
                                  [&](traces::RankId member) { return program_.find(member) < 0; });
    program_.communicators.push_back({id, kLevelOfHorovod, std::move(members), std::move(backend)});
    grew_.push_back(grew);
    levels_.emplace_back();
    return at->second;
  }

  std::vector<Call> parts(const traces::RankProgram& rank, const Call& call, How how) {
    const Levels levels = levels_[call.communicator];
    const traces::Communicator whole = program_.communicators[call.communicator];
    const auto [node, place] = levels.seat.at(rank.rank);
    const std::vector<traces::RankId>& local = levels.nodes.at(node);
    std::vector<traces::RankId> across;
    for (const auto& [n, members] : levels.nodes) across.push_back(members[place]);
    const bool gather = how == How::kGather;
    const uint32_t inside =
        communicator(fmt::format("{}/node{}", whole.id, node), local, whole.backend);
    std::vector<Call> out;
    const auto add = [&](uint32_t where, Collective what, Bytes in, Bytes result) {
      Call part = call;
      part.communicator = where;
      part.collective = what;
      part.bytes_in = in;
      part.bytes_out = result;
      part.sequence = next_[{rank.rank, where}]++;
      part.peer = what == Collective::kGather || what == Collective::kBroadcast ? 0 : -1;
      if (what == Collective::kAllGather) part.reduction = traces::Reduction::kNone;
      out.push_back(part);
    };
    const auto places = static_cast<Bytes>(levels.places());
    const auto others = fmt::format("{}/place{}", whole.id, place);
    if (gather) {
      const Bytes own = call.bytes_in, all = std::max(call.bytes_in, call.bytes_out);
      add(inside, Collective::kGather, own, own * places);
      if (place == 0) {
        add(communicator(others, across, whole.backend), Collective::kAllGather, own * places, all);
      }
      add(inside, Collective::kBroadcast, all, all);
    } else {
      const Bytes all = std::max(call.bytes_in, call.bytes_out);
      const Bytes part = (all + places - 1) / places;
      add(inside, Collective::kReduceScatter, all, part);
      add(communicator(others, across, how == How::kHierarchical ? "mpi" : whole.backend),
          Collective::kAllReduce, part, part);
      add(inside, Collective::kAllGather, part, all);
    }
    return out;
  }

  Result<void> edit(traces::RankProgram& rank, const HorovodSettings& settings) {
    if (auto written = write_out(rank, program_.steps); !written) return written;
    std::map<traces::OpId, CallCut> cuts;
    for (size_t c = 0; c < rank.calls.size(); ++c) {
      const Call& whole = rank.calls[c];
      const How as = how(rank.rank, whole, settings);
      if (as == How::kFlat) continue;
      // What the whole call would have waited for, its first part waits for.
      const Nanos waits = longer_start(
          settings,
          static_cast<uint32_t>(program_.communicators[whole.communicator].members.size()),
          std::max(whole.bytes_in, whole.bytes_out));
      cuts[rank.call_op[c]] = {parts(rank, whole, as), waits};
    }
    return cut_calls(rank, program_.steps, cuts);
  }

  const pb::Launch& launch_;
  traces::Program& program_;
  std::vector<bool>& grew_;
  std::map<uint32_t, uint32_t> node_of_;
  std::vector<Levels> levels_;                                   // by communicator
  std::map<std::string, uint32_t> made_;                         // communicators by id
  std::map<std::pair<traces::RankId, uint32_t>, int64_t> next_;  // sequence numbers
};

}  // namespace

Result<void> in_two_levels(const Scenario& scenario, traces::Program& program,
                           std::vector<bool>& grew) {
  return TwoLevels(scenario, program, grew).edit();
}

}  // namespace rehearse::sim
