// SPDX-License-Identifier: Apache-2.0
// What a launch script says: exports, and the options of torchrun, deepspeed, accelerate, mpirun, horovodrun, srun and
// #SBATCH lines. The script is read, never run: values that depend on commands are left out.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/proto/scenario.pb.h"

namespace rehearse::faults {

struct HostSlots {
  std::string name;
  std::optional<uint32_t> slots;
};

struct LaunchScript {
  std::map<std::string, std::string> variables;
  pb::Launcher launcher = pb::LAUNCHER_UNSPECIFIED;
  std::optional<uint32_t> processes;  // in all
  std::optional<uint32_t> nodes;
  std::optional<uint32_t> processes_per_node;
  bool one_per_gpu = false;                    // --nproc-per-node=gpu
  std::optional<uint32_t> launchers_per_node;  // where each task of srun is a torchrun
  std::optional<uint32_t> allocated_nodes;     // and the nodes that srun starts them on
  std::optional<uint32_t> node_rank;
  std::string
      node_rank_variable;  // of each node's environment that gives it: "--node-rank=$NODE_RANK"
  std::string master_addr;
  std::optional<uint32_t> master_port;
  std::vector<HostSlots> hosts;
};

[[nodiscard]] LaunchScript read_launch_script(std::string_view text);

// "a:4,b:4" (mpirun -H), and the lines of a hostfile ("a slots=4", "a:4", "a").
[[nodiscard]] std::vector<HostSlots> read_host_list(std::string_view list);
[[nodiscard]] std::vector<HostSlots> read_hostfile(std::string_view text);

// "node[0-3,7]" of SLURM_JOB_NODELIST; at most 65536 names.
[[nodiscard]] std::vector<std::string> expand_node_list(std::string_view list);

}  // namespace rehearse::faults
