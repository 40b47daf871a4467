// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/document.hpp"
#include "base/text.hpp"
#include "sim/scenario/expand.hpp"
#include "sim/scenario/grow.hpp"
#include "sim/scenario/regenerate.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/scenario/timed.hpp"

namespace rehearse::sim {
namespace {

const google::protobuf::OneofDescriptor& transforms() {
  return *pb::Patch::descriptor()->FindOneofByName("transform");
}

// The name of a transform as people write it.
std::string written(const google::protobuf::FieldDescriptor& transform) {
  std::string name = transform.name();
  for (char& c : name) c = c == '_' ? '-' : c;
  return name;
}

// A patch's transform by name, and the rank it acts on.
struct Named {
  std::string name;
  bool has_rank = false;
  uint32_t rank = 0;
};

Named name_of(const pb::Patch& patch) {
  const auto* field = patch.GetReflection()->GetOneofFieldDescriptor(patch, &transforms());
  if (field == nullptr || patch.has_undo()) return {};
  Named named{written(*field)};
  const auto& how = patch.GetReflection()->GetMessage(patch, field);
  const auto* rank = how.GetDescriptor()->FindFieldByName("rank");
  if (rank != nullptr && how.GetReflection()->HasField(how, rank)) {
    named.has_rank = true;
    named.rank = how.GetReflection()->GetUInt32(how, rank);
  }
  return named;
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
  static const std::set<std::string> kUnused = {"latency", "memory", "flops", "compute",
                                                "hop_latency"};
  const auto has = [&](const char* name) {
    return std::find(fields.begin(), fields.end(), name) != fields.end();
  };
  if (has("gpus") && fields.back() == "memory") return false;
  return !has("numa") && !has("storage") &&
         std::any_of(fields.begin(), fields.end(),
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
  if (patch.transform_case() == pb::Patch::TRANSFORM_NOT_SET && !is_timed(patch)) return out;
  nlohmann::ordered_json transform = to_json(patch);  // flow YAML that --patch reads
  transform.erase("set");
  return out.empty() ? transform.dump() : out + ' ' + transform.dump();
}

// A patch that was applied, so that it can be applied again.
void remember(Scenario& scenario, const pb::Patch& patch,
              const std::vector<std::pair<std::string, std::string>>& assignments) {
  scenario.applied.push_back(describe(patch, assignments));
  pb::Patch& edit = *scenario.origin.add_edits();
  edit = patch;
  if (edit.has_calibration()) edit.mutable_calibration()->clear_draws();
}

Result<void> undo(Scenario& scenario, const pb::Undo& what) {
  std::string wanted = what.transform();
  for (char& c : wanted) c = c == '_' ? '-' : c;
  std::vector<std::string> known;
  for (int i = 0; i < transforms().field_count(); ++i) {
    std::string name = written(*transforms().field(i));
    if (name != "undo" && name != "grow-data-parallel") known.push_back(std::move(name));
  }
  if (std::find(known.begin(), known.end(), wanted) == known.end()) {
    const std::string near = nearest(wanted, known);
    return fail(
        Code::kBadInput, "there is no transform " + wanted, "undo",
        near.empty() ? "transforms are " + join_words(known) : "did you mean " + near + "?");
  }
  const auto meant = [&](const pb::Patch& patch) {
    const Named named = name_of(patch);
    return named.name == wanted &&
           (!what.has_rank() || (named.has_rank && named.rank == what.rank()));
  };
  std::erase_if(scenario.transforms, meant);
  std::erase_if(scenario.timed, meant);
  return {};
}

}  // namespace

Result<void> apply(Scenario& scenario, const pb::Patch& patch) {
  const bool timed = is_timed(patch) || patch.has_background_traffic();
  if (timed) {
    if (auto good = check_interval(patch); !good) return good;
  }
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
  if (patch.has_grow_data_parallel()) {
    Scenario grown = scenario;
    grown.document = std::move(edited);
    grown.findings = std::move(findings);
    grown.assigned.insert(grown.assigned.end(), assignments.begin(), assignments.end());
    if (auto done = grow(grown, patch.grow_data_parallel()); !done) return done;
    remember(grown, patch, assignments);
    scenario = std::move(grown);
    return {};
  }
  if (patch.transform_case() == pb::Patch::kUndo) {
    if (auto undone = undo(scenario, patch.undo()); !undone) return undone;
    if (patch.undo().transform() == "regenerate") {
      if (auto made = regenerate(scenario); !made) return made;
    }
  } else if (timed) {
    scenario.timed.push_back(patch);
  } else if (patch.transform_case() != pb::Patch::TRANSFORM_NOT_SET) {
    scenario.transforms.push_back(patch);
    if (patch.has_regenerate()) {
      if (auto made = regenerate(scenario); !made) {
        scenario.transforms.pop_back();
        return made;
      }
    }
  }
  // Assignments for an interval have been tried here; the run makes them when their time comes.
  if (!timed) {
    scenario.document = std::move(edited);
    scenario.assigned.insert(scenario.assigned.end(), assignments.begin(), assignments.end());
  }
  scenario.findings = std::move(findings);
  remember(scenario, patch, assignments);
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
