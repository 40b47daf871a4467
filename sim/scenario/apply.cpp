// SPDX-License-Identifier: Apache-2.0
#include <google/protobuf/descriptor.h>

#include <algorithm>

#include "base/document.hpp"
#include "base/proto/options.pb.h"
#include "sim/scenario/expand.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/scenario/timed.hpp"
#include "sim/scenario/transforms.hpp"

namespace rehearse::sim {
namespace {

using Fields = std::vector<const google::protobuf::FieldDescriptor*>;

// Fields that expansion has used up: changing them now would change nothing.
bool is_fixed(const Fields& fields) {
  if (fields.front()->name() == "trace" || fields.front()->name() == "patches") return true;
  return std::any_of(fields.begin(), fields.end(), [](const auto* field) {
    return field->name() == "like" || field->name() == "count" || field->name() == "scale";
  });
}

bool is_not_simulated(const Fields& fields) {
  return std::any_of(fields.begin(), fields.end(), [](const auto* field) {
    return field->options().GetExtension(pb::not_simulated);
  });
}

Result<void> check_path(const pb::Scenario& document, const std::string& path,
                        const std::string& value, Findings& findings) {
  RH_TRY(const Fields fields, fields_of_path(document, path));
  if (is_fixed(fields)) {
    return fail(Code::kBadInput, "this is fixed once the scenario is loaded", path,
                "write it in a scenario file instead");
  }
  if (value.empty() && fields.back()->name() != "env") {
    return fail(Code::kBadInput, "there is no value", path, "write path=value");
  }
  if (is_not_simulated(fields)) {
    findings.add("not-simulated", Severity::kWarning, path,
                 "the field is described but no model uses it yet: it changes nothing");
  }
  return {};
}

// A patch on one line, as --set (assignments alone) and --patch take it.
std::string describe(const pb::Patch& patch, const Assignments& assignments) {
  if (patch.transform_case() != pb::Patch::TRANSFORM_NOT_SET || is_timed(patch)) {
    pb::Patch written = patch;
    written.clear_calibration();
    return write_line(written);
  }
  std::string out;
  for (const auto& [path, value] : assignments) {
    if (!out.empty()) out += ' ';
    out.append(path).append(1, '=').append(value);
  }
  return out;
}

// A patch that was applied, so that it can be applied again.
void remember(Scenario& scenario, const pb::Patch& patch, const Assignments& assignments) {
  scenario.applied.push_back(describe(patch, assignments));
  pb::Patch& edit = *scenario.origin.add_edits();
  edit = patch;
  if (edit.has_calibration()) edit.mutable_calibration()->clear_draws();
}

}  // namespace

Assignments sorted_assignments(const google::protobuf::Map<std::string, std::string>& set) {
  Assignments out(set.begin(), set.end());
  std::sort(out.begin(), out.end());
  return out;
}

Result<Scenario> applied(Scenario scenario, const pb::Patch& patch) {
  const Transform* transform = transform_of(patch);
  if (auto given = check_required(patch, transform == nullptr ? "" : std::string(transform->name));
      !given) {
    return tl::unexpected(std::move(given).error());
  }
  const bool timed = is_timed(patch) || (transform != nullptr && transform->interval &&
                                         transform->acts_on == ActsOn::kRun);
  pb::Scenario before;
  if (timed) {
    if (auto good = check_interval(patch); !good) return tl::unexpected(std::move(good).error());
    before = scenario.document;
  }
  const Assignments assignments = sorted_assignments(patch.set());
  for (const auto& [path, value] : assignments) {
    if (auto open = check_path(scenario.document, path, value, scenario.findings); !open) {
      return tl::unexpected(std::move(open).error());
    }
    RH_TRY(int fields, set_path(scenario.document, path, value));
    (void)fields;
  }
  if (auto seated = check_seats(scenario.document, "patch"); !seated) {
    return tl::unexpected(std::move(seated).error());
  }
  if (timed) {
    // Its assignments have been tried here; the run makes them when their time comes.
    scenario.document = std::move(before);
    scenario.timed.push_back(patch);
  } else {
    scenario.assigned.insert(scenario.assigned.end(), assignments.begin(), assignments.end());
    if (transform != nullptr && transform->apply != nullptr) {
      if (auto done = transform->apply(scenario, patch); !done) {
        return tl::unexpected(std::move(done).error());
      }
    } else if (transform != nullptr) {
      scenario.transforms.push_back(patch);
    }
  }
  remember(scenario, patch, assignments);
  return scenario;
}

Result<void> apply(Scenario& scenario, const pb::Patch& patch) {
  RH_TRY(scenario, applied(scenario, patch));
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
