// SPDX-License-Identifier: Apache-2.0
// Which networks a rank may use on its node: NCCL's choice of a network library and of devices by
// each rank's environment (NCCL model §8, NET). Models, the start of a job and the static check all ask
// here. Pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "platforms/proto/platform.pb.h"

namespace rehearse::sim {

// What NCCL_NET asks for, in any case of letters: NCCL's own "IB" and "Socket", or the names that public
// plugins give themselves. kAny: it is not set.
enum class NetworkLibrary : uint8_t { kAny, kIb, kSocket, kLibfabric, kUnknown };

[[nodiscard]] NetworkLibrary asked_network(const std::map<std::string, std::string>& env);
// NCCL_IB_DISABLE is a number other than 0.
[[nodiscard]] bool verbs_disabled(const std::map<std::string, std::string>& env);

[[nodiscard]] bool is_rdma(const pb::Nic& nic);

// NCCL_IB_HCA lets an adapter pass, whether it is up or not; plugins (EFA, Slingshot) do not read it.
[[nodiscard]] bool passes_hca_filter(const pb::Nic& nic,
                                     const std::map<std::string, std::string>& env);

// Why NCCL refuses to start on a node: NCCL_NET asks for a network that is not there, or that is
// switched off. "" when it does not.
[[nodiscard]] std::string network_refusal(const pb::Node& node,
                                          const std::map<std::string, std::string>& env);
// The same as an error; `rank` is for the message.
[[nodiscard]] Result<void> check_network(const pb::Node& node,
                                         const std::map<std::string, std::string>& env,
                                         uint32_t rank);

// RDMA adapters that a rank may use, by index.
[[nodiscard]] std::vector<uint32_t> usable_adapters(const pb::Node& node,
                                                    const std::map<std::string, std::string>& env);

// Why there is none; "" when there is one.
[[nodiscard]] std::string rdma_refusal(const pb::Node& node,
                                       const std::map<std::string, std::string>& env);

// How NCCL sorts IP interfaces (src/misc/socket.cc): it takes those of the lowest class that has any.
// With NCCL_SOCKET_IFNAME all that fit are of one class; without it ib*, then the rest, then docker*, then
// lo. kNoClass: never taken.
constexpr int kNoClass = -1;
constexpr int kDockerClass = 2;
[[nodiscard]] int interface_class(std::string_view name,
                                  const std::map<std::string, std::string>& env);

// NCCL_SOCKET_FAMILY: "AF_INET" or "AF_INET6"; any other value asks for neither.
enum class AddressFamily : uint8_t { kAny, kFour, kSix };
[[nodiscard]] AddressFamily asked_family(const std::map<std::string, std::string>& env);

// What NCCL's sockets run over, by index; without a filter never loopback and docker's bridges, which
// lead nowhere. At most 16.
[[nodiscard]] std::vector<uint32_t> usable_interfaces(
    const pb::Node& node, const std::map<std::string, std::string>& env);

}  // namespace rehearse::sim
