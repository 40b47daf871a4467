// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario/environment.hpp"

namespace rehearse::sim {

std::map<std::string, std::string> environment_of(const pb::Launch& launch,
                                                  const pb::RankLaunch& rank) {
  std::map<std::string, std::string> env(rank.env().begin(), rank.env().end());
  for (const auto& [name, value] : launch.env()) env.emplace(name, value);
  std::erase_if(env, [](const auto& variable) { return variable.second.empty(); });
  return env;
}

}  // namespace rehearse::sim
