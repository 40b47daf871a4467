// SPDX-License-Identifier: Apache-2.0
// What programs print about a machine, as parts of a platform. Each reader takes the whole text and passes over lines
// it does not know. Pure functions.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "faults/check/files/collect.hpp"
#include "platforms/proto/platform.pb.h"

namespace rehearse::faults {

// `ip addr`, `ip -o addr` or `ip -br addr`: name, addresses, state, MTU as far as they say; the kind by the name.
[[nodiscard]] std::vector<pb::Interface> read_ip_addr(std::string_view text);
[[nodiscard]] std::vector<pb::Interface> read_ifconfig(std::string_view text);

// `ip route`, `route -n` or `netstat -rn`.
[[nodiscard]] std::vector<pb::Route> read_routes(std::string_view text);

// `ibstat`, `ibstatus` or `ibv_devinfo`: adapters by name with kind, state and rate of their first port.
[[nodiscard]] std::vector<pb::Nic> read_ibstat(std::string_view text);

// `pip list`, `pip freeze`, `nvidia-smi`, `nvcc --version`, `mpirun --version`: versions by the names of the check's
// tables (pytorch, tensorflow, horovod, nccl, driver, cuda, openmpi, ...).
[[nodiscard]] std::map<std::string, std::string> read_versions(std::string_view text);

// `nvidia-smi topo -m`: GPUs and adapters, in order. Only names and kinds: the table says no more.
struct TopologyParts {
  uint32_t gpus = 0;
  std::vector<std::string> adapters;
};
[[nodiscard]] TopologyParts read_topology(const std::string& text, const std::string& name);

// Sizes of /dev/shm in `df` output: bytes; 0 when it is not there.
[[nodiscard]] int64_t read_shm(std::string_view text);

// Puts what one of these outputs tells into the description of a node; other kinds tell nothing. `name` is the file's.
void describe_node(FileKind kind, const std::string& text, const std::string& name, pb::Node& node);

}  // namespace rehearse::faults
