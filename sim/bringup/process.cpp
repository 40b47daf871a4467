// SPDX-License-Identifier: Apache-2.0
#include "sim/bringup/process.hpp"

#include <charconv>

#include "base/text.hpp"
#include "sim/scenario/environment.hpp"

namespace rehearse::sim::bringup {
namespace {

// The names under which rank, size and local rank are told.
struct IdentityNames {
  const char *rank, *size, *local;
};

// What the framework reads under each launcher; a script in between may also set the first.
std::vector<IdentityNames> identity_names(pb::Framework framework, pb::Launcher launcher) {
  std::vector<IdentityNames> out;
  if (framework == pb::TENSORFLOW || framework == pb::KERAS) return out;  // TF_CONFIG says it
  if (framework == pb::HOROVOD) {
    out.push_back({"HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK"});
  } else {
    out.push_back({"RANK", "WORLD_SIZE", "LOCAL_RANK"});
  }
  if (launcher == pb::MPIRUN) {
    out.push_back({"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"});
  }
  if (launcher == pb::SRUN) out.push_back({"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"});
  return out;
}

std::optional<uint32_t> whole(std::string_view text) {
  uint32_t value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || ec != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<uint32_t> first_set(const Process& process, const std::vector<IdentityNames>& names,
                                  const char* IdentityNames::*which) {
  for (const IdentityNames& each : names) {
    if (const auto value = whole(process.variable(each.*which))) return value;
  }
  return std::nullopt;
}

// CUDA stops at the first entry that it does not know.
std::vector<uint32_t> visible_devices(const Process& process, uint32_t gpus) {
  std::vector<uint32_t> out;
  const auto mask = process.env.find("CUDA_VISIBLE_DEVICES");
  if (mask == process.env.end()) {
    for (uint32_t g = 0; g < gpus; ++g) out.push_back(g);
    return out;
  }
  for (const std::string& part : split(mask->second, ',')) {
    const auto index = whole(part);
    if (!index || *index >= gpus) break;
    out.push_back(*index);
  }
  return out;
}

// Scripts that are told no local rank count it from the ranks of a node, where they are told those.
std::optional<uint32_t> counted_local(const Process& process, pb::Launcher launcher) {
  const auto size = whole(process.variable("LOCAL_WORLD_SIZE"));
  if (launcher == pb::TORCHRUN || !size || *size == 0) return std::nullopt;
  return process.rank % *size;
}

void choose_device(const pb::RankLaunch& entry, uint32_t gpus, pb::Launcher launcher,
                   const std::vector<IdentityNames>& names, Process& out) {
  out.visible = visible_devices(out, gpus);
  auto told = first_set(out, names, &IdentityNames::local);
  const bool pytorch = !names.empty() && std::string_view(names.front().local) == "LOCAL_RANK";
  if (!told && pytorch) told = counted_local(out, launcher);
  const bool masked = out.env.count("CUDA_VISIBLE_DEVICES") > 0;
  if (!told && !masked) {
    out.ordinal = entry.gpu();
    out.gpu = entry.gpu();
    return;
  }
  // A launcher that gives each process one GPU of its own calls it 0; scripts ask for their local rank.
  out.ordinal = told.value_or(out.local);
  if (out.ordinal < out.visible.size()) out.gpu = out.visible[out.ordinal];
}

}  // namespace

pb::Launcher launcher_of(const pb::Launch& launch) {
  if (launch.launcher() != pb::LAUNCHER_UNSPECIFIED) return launch.launcher();
  if (launch.framework() == pb::PYTORCH) return pb::TORCHRUN;
  return launch.framework() == pb::HOROVOD ? pb::HOROVODRUN : pb::PLAIN;
}

std::vector<Process> processes_of(const pb::Scenario& document) {
  const pb::Launch& launch = document.launch();
  const pb::Launcher launcher = launcher_of(launch);
  const auto names = identity_names(launch.framework(), launcher);
  std::map<uint32_t, uint32_t> on_node;
  std::vector<Process> out;
  out.reserve(static_cast<size_t>(launch.ranks_size()));
  for (const pb::RankLaunch& entry : launch.ranks()) {
    Process process;
    process.seat = entry.rank();
    process.node = entry.node();
    process.local = on_node[entry.node()]++;
    process.absent = entry.absent();
    process.env = environment_of(launch, entry);
    // Horovod takes itself for alone where nothing tells it otherwise.
    const bool alone = launch.framework() == pb::HOROVOD && launcher == pb::PLAIN;
    process.rank =
        first_set(process, names, &IdentityNames::rank).value_or(alone ? 0 : entry.rank());
    const uint32_t size =
        launch.world_size() > 0 ? launch.world_size() : static_cast<uint32_t>(launch.ranks_size());
    process.world_size = first_set(process, names, &IdentityNames::size).value_or(alone ? 1 : size);
    process.master = process.variable("MASTER_ADDR");
    if (process.master.empty()) process.master = launch.master_addr();
    process.port = whole(process.variable("MASTER_PORT")).value_or(launch.master_port());
    const auto gpus = document.platform().nodes(static_cast<int>(entry.node())).gpus_size();
    choose_device(entry, static_cast<uint32_t>(gpus), launcher, names, process);
    out.push_back(std::move(process));
  }
  return out;
}

int compare_versions(std::string_view a, std::string_view b) {
  const auto part = [](std::string_view& text) {
    const size_t dot = text.find('.');
    std::string_view head = text.substr(0, dot);
    int value = 0;
    std::from_chars(head.data(), head.data() + head.size(), value);
    text = dot == text.npos ? std::string_view() : text.substr(dot + 1);
    return value;
  };
  while (!a.empty() || !b.empty()) {
    const int x = part(a), y = part(b);
    if (x != y) return x < y ? -1 : 1;
  }
  return 0;
}

}  // namespace rehearse::sim::bringup
