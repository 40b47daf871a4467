// SPDX-License-Identifier: Apache-2.0
// Launchers and devices. mpirun and horovodrun reach every host over SSH and are called back from there;
// srun starts processes through its own daemons; torchrun's agents meet at the store.
#include <fmt/format.h>

#include <cstdlib>
#include <optional>

#include "base/text.hpp"
#include "sim/bringup/interfaces.hpp"
#include "sim/bringup/states.hpp"

namespace rehearse::sim::bringup {
namespace {

constexpr uint32_t kSshPort = 22;
constexpr Nanos kHorovodStart = 30 * kSeconds;  // horovodrun --start-timeout

// "-p 2222" among the arguments that mpirun hands to ssh.
uint32_t ssh_port(const Process& process) {
  const std::vector<std::string> words = split(process.variable("OMPI_MCA_plm_rsh_args"), ' ');
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == "-p")
      return static_cast<uint32_t>(std::strtoul(words[i + 1].c_str(), nullptr, 10));
  }
  return kSshPort;
}

// Functions of NCCL that frameworks call, newest first, and the release that brought them (nccl.h).
struct LibraryFunction {
  const char *since, *name;
  bool only_pytorch;
};
constexpr LibraryFunction kFunctions[] = {{"2.19", "ncclCommRegister", true},
                                          {"2.11", "ncclRedOpCreatePreMulSum", true},
                                          {"2.7", "ncclSend", false}};

// A function that the framework was built to call and version `there` lacks; null: none.
const char* missing_function(const pb::Launch& launch, const std::string& there) {
  for (const LibraryFunction& function : kFunctions) {
    if (function.only_pytorch && launch.framework() != pb::PYTORCH) continue;
    if (compare_versions(launch.nccl_version(), function.since) < 0) continue;
    if (compare_versions(there, function.since) < 0) return function.name;
  }
  return nullptr;
}

// The library of the node is older than what the framework was built for, and lacks a function. Where it lacks none,
// NCCL compares versions itself (nccl_bootstrap.cpp).
void check_libraries(Job& job) {
  for (const size_t p : job.started()) {
    const Process& process = job.processes[p];
    const auto& versions = job.node(process.node).versions();
    const auto nccl = versions.find("nccl");
    if (nccl == versions.end()) continue;
    const char* missing = missing_function(job.launch, nccl->second);
    if (missing == nullptr) continue;
    Trouble trouble{.process = p, .state = "launch", .error = "undefined-symbol"};
    trouble.gives_up = process.clock;
    trouble.facts = {{"version", nccl->second}, {"function", missing}};
    job.add(std::move(trouble));
    job.blame("node", process.node,
              fmt::format("has NCCL {}, the framework was built with {}", nccl->second,
                          job.launch.nccl_version()));
  }
}

bool uses_mpirun(const Job& job) {
  return job.launcher == pb::MPIRUN ||
         (job.launcher == pb::HOROVODRUN &&
          job.processes.front().variable("HOROVOD_CONTROLLER") == "mpi");
}

// The interface of mpirun's own messages on a node; nothing, and trouble, when none is left there. All daemons get what
// mpirun was told.
std::optional<ChosenInterface> control_interface(Job& job, uint32_t node, const MpiFilter& told) {
  auto found = mpi_interface(job.network, job.document.platform(), node, told);
  if (found) return found;
  const Process& first = job.processes.front();
  const bool included = !told.include.empty();
  Trouble trouble{.process = 0, .state = "launch", .error = included ? "oob-included" : "oob-none"};
  trouble.since = trouble.gives_up = first.clock;
  trouble.facts = {{"host", job.node(node).name()},
                   {"interface", included ? told.include : told.exclude}};
  job.add(std::move(trouble));
  job.blame("node", node,
            fmt::format("OMPI_MCA_oob_tcp_if_{}={} leaves mpirun no interface there",
                        included ? "include" : "exclude", included ? told.include : told.exclude));
  return std::nullopt;
}

// The launcher on the node of the first process reaches the node of process `p`, and is reached from there.
void reach_host(Job& job, size_t p) {
  const Process& first = job.processes.front();
  const Process& process = job.processes[p];
  const std::string& host = job.node(process.node).name();
  const uint32_t port = ssh_port(first);
  Trouble trouble{.process = 0, .state = "launch", .error = ""};
  trouble.since = first.clock;
  trouble.for_ranks = {process.seat};
  trouble.facts = {{"host", host}, {"port", std::to_string(port)}};
  const Lookup found = job.network.lookup(first.node, host);
  if (found.result != Lookup::Result::kFound) {
    trouble.error = "ssh-unresolved";
    trouble.gives_up = first.clock + found.delay;
    job.blame("node", first.node, fmt::format("the name {} does not resolve there", host));
    return job.add(std::move(trouble));
  }
  const Arrival ssh = job.network.knock(first.node, found.address, port);
  if (ssh.answer != Answer::kArrives) {
    trouble.error = "ssh";
    trouble.facts["errno"] = error_of(ssh.answer).text;
    const bool silent = ssh.answer == Answer::kDropped;
    trouble.waits = silent;
    trouble.gives_up = first.clock + (silent ? kSynTimeout : 0);
    job.blame("node", ssh.node == UINT32_MAX ? process.node : ssh.node,
              fmt::format("port {} is not reachable from {}", port, job.node(first.node).name()));
    return job.add(std::move(trouble));
  }
  std::string address = job.network.own_address(first.node);
  const MpiFilter told{first.variable("OMPI_MCA_oob_tcp_if_include"),
                       first.variable("OMPI_MCA_oob_tcp_if_exclude")};
  if (uses_mpirun(job) && !(told.include.empty() && told.exclude.empty())) {
    const auto here = control_interface(job, first.node, told);
    if (!here || !control_interface(job, process.node, told)) return;
    address = here->address;
  }
  const uint32_t back = ephemeral_port(job.node(first.node), 0);
  const Arrival called = job.network.knock(process.node, address, back);
  if (called.answer == Answer::kArrives && called.node == first.node) return;
  const bool horovod = job.launcher == pb::HOROVODRUN;
  trouble.error = "callback";
  trouble.waits = true;
  const Nanos patience =
      job.launch.start_timeout() > 0 ? job.launch.start_timeout() : kHorovodStart;
  trouble.gives_up = horovod ? first.clock + patience : kNever;
  trouble.facts["seconds"] = std::to_string(patience / kSeconds);
  job.blame("node", called.node == UINT32_MAX ? process.node : called.node,
            fmt::format("{} cannot connect back to the launcher at port {}", host, back));
  job.add(std::move(trouble));
}

}  // namespace

void start_processes(Job& job) {
  check_libraries(job);
  if (!job.troubles.empty() || job.processes.empty()) return;
  if (job.launcher != pb::MPIRUN && job.launcher != pb::HOROVODRUN) return;
  if (!job.network.described()) return;
  std::set<uint32_t> reached = {job.processes.front().node};
  for (const size_t p : job.started()) {
    if (!reached.insert(job.processes[p].node).second) continue;
    reach_host(job, p);
    if (!job.troubles.empty()) return;
  }
}

void select_devices(Job& job) {
  for (const size_t p : job.started()) {
    const Process& process = job.processes[p];
    if (process.gpu) continue;
    Trouble trouble{.process = p, .state = "device", .error = ""};
    trouble.error = process.visible.empty() ? "none" : "ordinal";
    trouble.since = trouble.gives_up = process.clock;
    trouble.facts = {{"ordinal", std::to_string(process.ordinal)},
                     {"visible", std::to_string(process.visible.size())}};
    job.add(std::move(trouble));
    job.blame("rank", process.seat,
              fmt::format("asks for GPU {} and sees {} (CUDA_VISIBLE_DEVICES={})", process.ordinal,
                          process.visible.size(), process.variable("CUDA_VISIBLE_DEVICES")));
  }
}

}  // namespace rehearse::sim::bringup
