// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario/environment.hpp"

#include <utility>

#include "base/environment.hpp"

namespace rehearse::sim {
namespace {

constexpr const char* kSystemFile = "/etc/nccl.conf";

}  // namespace

std::map<std::string, std::string> environment_of(const pb::Launch& launch,
                                                  const pb::RankLaunch& rank) {
  std::map<std::string, std::string> env(rank.env().begin(), rank.env().end());
  for (const auto& [name, value] : launch.env()) env.emplace(name, value);
  const auto none = [](const auto& variable) { return variable.second.empty(); };
  std::erase_if(env, none);
  if (launch.files().empty()) return env;
  const auto add_file = [&](const std::string& path) {
    for (const pb::LaunchFile& file : launch.files()) {
      if (file.path() != path) continue;
      // What is set already stays (src/misc/param.cc).
      for (VariableLine& line : read_environment(file.text())) {
        env.emplace(std::move(line.name), std::move(line.value));
      }
    }
  };
  if (const auto named = env.find("NCCL_CONF_FILE"); named != env.end()) add_file(named->second);
  add_file(kSystemFile);
  std::erase_if(env, none);
  return env;
}

}  // namespace rehearse::sim
