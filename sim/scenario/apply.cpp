// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/document.hpp"
#include "base/text.hpp"
#include "sim/scenario/expand.hpp"
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

// The names of a path without selectors, up to a variable of the environment.
std::vector<std::string> fields_of(std::string_view path) {
  std::vector<std::string> out(1);
  int depth = 0;
  for (char c : path) {
    depth += c == '[' ? 1 : 0;
    if (depth == 0 && c == '.') {
      if (out.back() == "env" || out.back() == "versions") return out;
      out.emplace_back();
    } else if (depth == 0) {
      out.back() += c == '-' ? '_' : c;
    }
    depth -= c == ']' ? 1 : 0;
  }
  return out;
}

// Fields that expansion has used up: changing them now would change nothing.
bool is_fixed(const std::vector<std::string>& fields) {
  if (fields.front() == "trace" || fields.front() == "patches") return true;
  return std::any_of(fields.begin(), fields.end(), [](const std::string& field) {
    return field == "like" || field == "count" || field == "scale";
  });
}

// Fields that describe what no model looks at yet.
bool is_unused(const std::vector<std::string>& fields) {
  static const std::set<std::string> kUnused = {"seed",        "world_size",
                                                "master_addr", "master_port",
                                                "launcher",    "framework_version",
                                                "latency",     "mtu",
                                                "gid_index",   "clock",
                                                "sms",         "memory",
                                                "flops",       "shm",
                                                "firewall",    "memory_bandwidth",
                                                "dns",         "storage",
                                                "addresses",   "iommu",
                                                "versions",    "ports_in_use",
                                                "compute",     "hop_latency"};
  const bool numa = std::find(fields.begin(), fields.end(), "numa") != fields.end();
  return !numa && std::any_of(fields.begin(), fields.end(),
                              [](const std::string& field) { return kUnused.count(field) > 0; });
}

Result<void> check_path(const std::string& path, const std::string& value, Findings& findings) {
  const std::vector<std::string> fields = fields_of(path);
  if (is_fixed(fields)) {
    return fail(Code::kBadInput, "this is fixed once the scenario is loaded", path,
                "write it in a scenario file instead");
  }
  if (value.empty() && fields.back() != "env") {
    return fail(Code::kBadInput, "there is no value", path, "write path=value");
  }
  if (is_unused(fields)) {
    findings.add("not-simulated", Severity::kWarning, path,
                 "the field is described but no model uses it yet: it changes nothing");
  }
  return {};
}

// A patch on one line, as --set and --patch take it.
std::string describe(const pb::Patch& patch,
                     const std::vector<std::pair<std::string, std::string>>& assignments) {
  std::string out;
  for (const auto& [path, value] : assignments) {
    if (!out.empty()) out += ' ';
    out.append(path).append(1, '=').append(value);
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
  Findings findings = scenario.findings;
  for (const auto& [path, value] : assignments) {
    if (auto open = check_path(path, value, findings); !open) return open;
    RH_TRY(int fields, set_path(edited, path, value));
    (void)fields;
  }
  if (auto seated = check_seats(edited, "patch"); !seated) return seated;
  if (patch.transform_case() == pb::Patch::kUndo) {
    if (auto undone = undo(scenario, patch.undo()); !undone) return undone;
  } else if (patch.transform_case() != pb::Patch::TRANSFORM_NOT_SET) {
    scenario.transforms.push_back(patch);
  }
  scenario.document = std::move(edited);
  scenario.findings = std::move(findings);
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
