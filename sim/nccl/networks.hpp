// SPDX-License-Identifier: Apache-2.0
// Which networks a rank may use on its node: NCCL's choice of a network library and of devices by
// each rank's environment (NCCL model §8, NET). Pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "platforms/proto/platform.pb.h"

namespace rehearse::sim {

[[nodiscard]] bool is_rdma(const pb::Nic& nic);

// NCCL_NET asks for a network that is not there: NCCL refuses to start. `rank` is for the message.
[[nodiscard]] Result<void> check_network(const pb::Node& node,
                                         const std::map<std::string, std::string>& env,
                                         uint32_t rank);

// Why a rank cannot use RDMA; "" when it can.
[[nodiscard]] std::string rdma_refusal(const pb::Node& node,
                                       const std::map<std::string, std::string>& env);

// RDMA adapters that a rank may use, by index.
[[nodiscard]] std::vector<uint32_t> usable_adapters(const pb::Node& node,
                                                    const std::map<std::string, std::string>& env);

// What NCCL's sockets run over, by index: IPoIB where there is one, else every interface but loopback
// and docker's bridges; with a filter every one that fits. At most 16.
[[nodiscard]] std::vector<uint32_t> usable_interfaces(
    const pb::Node& node, const std::map<std::string, std::string>& env);

}  // namespace rehearse::sim
