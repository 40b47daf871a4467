// SPDX-License-Identifier: Apache-2.0
#include "sim/host/host_model.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "sim/host/gloo.hpp"
#include "sim/host/open_mpi.hpp"
#include "sim/scenario/environment.hpp"

namespace rehearse::sim {

namespace {

// HOROVOD_CPU_OPERATIONS of the communicator's first member; CCL sends by MPI. Nothing: Horovod was built for one.
std::optional<HostLibrary> told_operations(const pb::Launch& launch,
                                           const traces::Communicator& communicator) {
  if (launch.framework() != pb::HOROVOD || communicator.members.empty()) return std::nullopt;
  for (const pb::RankLaunch& rank : launch.ranks()) {
    if (rank.rank() != communicator.members.front()) continue;
    const auto env = environment_of(launch, rank);
    const auto at = env.find("HOROVOD_CPU_OPERATIONS");
    if (at == env.end()) break;
    const std::string word = lower_case(at->second);
    if (word == "gloo") return HostLibrary::kGloo;
    if (word == "mpi" || word == "ccl") return HostLibrary::kMpi;
  }
  return std::nullopt;
}

}  // namespace

std::optional<HostLibrary> host_library(const pb::Launch& launch,
                                        const traces::Communicator& communicator) {
  if (launch.backend() != pb::NCCL) {
    if (const auto told = told_operations(launch, communicator)) return told;
  }
  if (launch.backend() == pb::GLOO) return HostLibrary::kGloo;
  if (launch.backend() == pb::MPI) return HostLibrary::kMpi;
  const std::string& own = communicator.backend;
  if (own.find("nccl") != std::string::npos) return std::nullopt;
  if (own.find("gloo") != std::string::npos) return HostLibrary::kGloo;
  if (own.find("mpi") != std::string::npos) return HostLibrary::kMpi;
  return std::nullopt;
}

Result<HostModel> HostModel::create(const ModelContext& context, HostLibrary library,
                                    const traces::Communicator& communicator) {
  // Seats are found as for NCCL; transports are our own, and a node is a host.
  pb::Launch launch = context.launch;
  launch.set_backend(pb::NCCL);
  const std::map<std::string, std::string> one_host_one_node = {{"NCCL_MNNVL_ENABLE", "0"},
                                                                {"NCCL_NET_DISABLE_INTRA", "1"},
                                                                {"NCCL_SHM_DISABLE", "0"},
                                                                {"NCCL_NET", ""}};
  for (const auto& [name, value] : one_host_one_node) {
    (*launch.mutable_env())[name] = value;
    for (auto& rank : *launch.mutable_ranks()) (*rank.mutable_env())[name] = value;
  }
  const ModelContext seats{context.platform, context.links, launch};
  RH_TRY(Placement placement, place(seats, communicator));
  placement.fallbacks.clear();
  RH_TRY(HostWires wires, library == HostLibrary::kGloo ? gloo_wires(context, placement)
                                                        : mpi_wires(context, placement));
  return HostModel(library, std::move(placement), std::move(wires));
}

const char* HostModel::transport() const {
  if (library_ == HostLibrary::kGloo) return "TCP";
  if (placement_.groups.size() < 2) return "SHM";
  return wires_.rdma ? "RDMA" : "TCP";
}

Result<CallTraffic> HostModel::traffic(const ModelContext& context, const traces::Call& call,
                                       uint32_t member) const {
  const auto members = static_cast<uint32_t>(placement_.members.size());
  if (traces::is_point_to_point(call.collective)) {
    const auto peer = static_cast<uint32_t>(std::max(0, call.peer));
    if (peer >= members || member >= members) {
      return fail(Code::kBadInput,
                  fmt::format("{} names member {} of a communicator of {}",
                              name_of(call.collective), peer, members),
                  "trace", "the trace contradicts itself; record it again");
    }
    // A communicator of the two.
    Placement pair = placement_;
    pair.members = {placement_.members[member], placement_.members[peer]};
    HostPlan plan{library_ == HostLibrary::kGloo ? "GLOO/SEND" : "MPI/SEND",
                  HostPattern::kRoot,
                  1,
                  static_cast<double>(std::max(call.bytes_in, call.bytes_out)),
                  false,
                  0};
    CallTraffic out = host_traffic(context, pair, wires_, plan, call);
    for (FlowLoad& flow : out.flows) flow.pair = member * members + peer + 1;
    return out;
  }
  const HostPlan plan =
      library_ == HostLibrary::kGloo ? gloo_plan(call, members) : mpi_plan(call, members);
  return host_traffic(context, placement_, wires_, plan, call);
}

}  // namespace rehearse::sim
