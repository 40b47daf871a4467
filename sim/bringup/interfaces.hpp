// SPDX-License-Identifier: Apache-2.0
// Which IP interface a library takes, from what a process sees and what its environment says. Pure functions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "sim/bringup/network.hpp"

namespace rehearse::sim::bringup {

struct ChosenInterface {
  uint32_t index = 0;
  std::string name;
  std::string address;
};

// NCCL's bootstrap: the first interface of the lowest class (sim/nccl/networks.hpp) that has an address of the
// family asked for; every interface that is up has a link-local IPv6 address. Nothing when none fits.
[[nodiscard]] std::optional<ChosenInterface> nccl_interface(
    const Network& network, const pb::Platform& platform, uint32_t node,
    const std::map<std::string, std::string>& env);

// Gloo: the interface of that name, or with an empty one the address of the host's own name. Nothing when
// there is no such interface or it has no address.
[[nodiscard]] std::optional<ChosenInterface> gloo_interface(const Network& network,
                                                            const pb::Platform& platform,
                                                            uint32_t node, std::string_view wanted);

// Lists of names and networks, as in "eth0,10.0.0.0/8"; empty: not told.
struct MpiFilter {
  std::string include, exclude;
};

// Open MPI, for its messages (btl_tcp_if_...) and for mpirun's own (oob_tcp_if_...): it takes every interface that it may; one
// that leads nowhere is tried and waited for. Nothing when none is left.
[[nodiscard]] std::optional<ChosenInterface> mpi_interface(const Network& network,
                                                           const pb::Platform& platform,
                                                           uint32_t node, const MpiFilter& filter);

}  // namespace rehearse::sim::bringup
