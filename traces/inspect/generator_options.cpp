// SPDX-License-Identifier: Apache-2.0
#include "traces/inspect/generator_options.hpp"

#include "base/document.hpp"

namespace rehearse::traces {

std::vector<std::pair<std::string, nlohmann::ordered_json>> generator_options(
    const pb::Synth& synth) {
  std::vector<std::pair<std::string, nlohmann::ordered_json>> out;
  const nlohmann::ordered_json all = rehearse::to_json(synth);
  for (const auto& [name, value] : all.items()) {
    if (value != 0 && value != nlohmann::ordered_json("")) out.emplace_back(name, value);
  }
  return out;
}

}  // namespace rehearse::traces
