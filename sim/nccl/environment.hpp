// SPDX-License-Identifier: Apache-2.0
// Small things NCCL reads from the environment. Name filters (NCCL_IB_HCA, NCCL_SOCKET_IFNAME): a
// comma-separated list of prefixes; a leading ^ excludes, = asks for exact names, ^= excludes exact
// names.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace rehearse::sim {

// An empty filter allows every name. What follows a colon is not looked at.
[[nodiscard]] bool name_allowed(std::string_view name, std::string_view filter);

// The same for adapters, where a number after a colon is a port ("mlx5_0:1"): every adapter of a
// platform is the first port of its device.
[[nodiscard]] bool hca_allowed(std::string_view name, std::string_view filter);

// A variable that is a whole number; `otherwise` when it is not set or not a number.
[[nodiscard]] int whole_number(const std::map<std::string, std::string>& env, const char* name,
                               int otherwise);

}  // namespace rehearse::sim
