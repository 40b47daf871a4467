// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/document.hpp"
#include "base/text.hpp"
#include "sim/scenario/scenario.hpp"

namespace rehearse::sim {
namespace {

// The name of a patch's transform as people write it, and the rank it acts on.
struct Named {
  std::string name;
  uint32_t rank = 0;
};

Named name_of(const pb::Patch& patch) {
  switch (patch.transform_case()) {
    case pb::Patch::kSlowRank:
      return {"slow-rank", patch.slow_rank().rank()};
    case pb::Patch::kSkipCollective:
      return {"skip-collective", patch.skip_collective().rank()};
    case pb::Patch::kUndo:
    case pb::Patch::TRANSFORM_NOT_SET:
      break;
  }
  return {};
}

// A patch on one line, as --set and --patch take it.
std::string describe(const pb::Patch& patch,
                     const std::vector<std::pair<std::string, std::string>>& assignments) {
  std::string out;
  for (const auto& [path, value] : assignments) {
    if (!out.empty()) out += ' ';
    out += path + '=' + value;
  }
  if (patch.transform_case() == pb::Patch::TRANSFORM_NOT_SET) return out;
  nlohmann::ordered_json transform = to_json(patch);  // flow YAML that --patch reads
  transform.erase("set");
  return out.empty() ? transform.dump() : out + ' ' + transform.dump();
}

Result<void> undo(Scenario& scenario, const pb::Undo& what) {
  std::string wanted = what.transform();
  for (char& c : wanted) c = c == '_' ? '-' : c;
  static const std::vector<std::string> kKnown = {"slow-rank", "skip-collective"};
  if (std::find(kKnown.begin(), kKnown.end(), wanted) == kKnown.end()) {
    const std::string meant = nearest(wanted, kKnown);
    return fail(
        Code::kBadInput, "there is no transform " + wanted, "undo",
        meant.empty() ? "transforms are " + join_words(kKnown) : "did you mean " + meant + "?");
  }
  std::erase_if(scenario.transforms, [&](const pb::Patch& patch) {
    const Named named = name_of(patch);
    return named.name == wanted && (!what.has_rank() || named.rank == what.rank());
  });
  return {};
}

}  // namespace

Result<void> apply(Scenario& scenario, const pb::Patch& patch) {
  // All or nothing: a patch that fails half-way leaves the scenario as it was.
  pb::Scenario edited = scenario.document;
  std::vector<std::pair<std::string, std::string>> assignments(patch.set().begin(),
                                                               patch.set().end());
  std::sort(assignments.begin(), assignments.end());
  for (const auto& [path, value] : assignments) {
    RH_TRY(int fields, set_path(edited, path, value));
    (void)fields;
  }
  if (patch.transform_case() == pb::Patch::kUndo) {
    if (auto undone = undo(scenario, patch.undo()); !undone) return undone;
  } else if (patch.transform_case() != pb::Patch::TRANSFORM_NOT_SET) {
    scenario.transforms.push_back(patch);
  }
  scenario.document = std::move(edited);
  scenario.applied.push_back(describe(patch, assignments));
  return {};
}

Result<pb::Patch> parse_assignment(std::string_view text) {
  const size_t equals = [&] {
    // `=` inside brackets belongs to a selector.
    int depth = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '[') ++depth;
      if (text[i] == ']') --depth;
      if (text[i] == '=' && depth <= 0) return i;
    }
    return text.npos;
  }();
  if (equals == text.npos || equals == 0) {
    return fail(Code::kUsage, "an assignment is path=value", std::string(text),
                "for example platform.nodes[1].nics[*].bandwidth=100Gbps");
  }
  pb::Patch patch;
  (*patch.mutable_set())[std::string(text.substr(0, equals))] =
      std::string(text.substr(equals + 1));
  return patch;
}

Result<pb::Patch> parse_patch(std::string_view yaml, const std::string& where) {
  pb::Patch patch;
  if (auto read = read_document(yaml, where, patch); !read) return tl::unexpected(read.error());
  if (patch.set().empty() && patch.transform_case() == pb::Patch::TRANSFORM_NOT_SET) {
    return fail(Code::kBadInput, "the patch changes nothing", where,
                "for example 'slow-rank: {rank: 6, slowdown: 2.0}'");
  }
  return patch;
}

}  // namespace rehearse::sim
