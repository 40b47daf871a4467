// SPDX-License-Identifier: Apache-2.0
#include "faults/fix/own.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <regex>

#include "sim/scenario/scenario.hpp"

namespace rehearse::faults {

Result<pb::Patch> parse_own_fix(const std::string& text) {
  static const std::regex variable(
      R"(^\s*(?:(node|rank)\s*(\d+)\s*:\s*)?(?:export\s+)?([A-Z][A-Z0-9_]*)=(.*)$)");
  std::smatch parts;
  if (text.size() < 4096 && std::regex_match(text, parts, variable)) {
    const std::string whose =
        parts[1].matched ? fmt::format("{}={}", parts[1].str(), parts[2].str()) : std::string("*");
    pb::Patch patch;
    (*patch.mutable_set())[fmt::format("launch.ranks[{}].env.{}", whose, parts[3].str())] =
        parts[4].str();
    return patch;
  }
  if (text.find(':') != std::string::npos) {
    if (auto patch = sim::parse_patch(text, "--verify"); patch) return patch;
  }
  auto patch = sim::parse_assignment(text);
  if (patch) return patch;
  return fail(Code::kUsage, "this is no variable, path or patch: " + text, "--verify",
              "write NCCL_IB_HCA=mlx5_0, 'node 1: NAME=VALUE', PATH=VALUE or a patch");
}

}  // namespace rehearse::faults
