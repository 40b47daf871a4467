// SPDX-License-Identifier: Apache-2.0
#include "validation/certainty/change.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/document.hpp"
#include "base/install.hpp"
#include "sim/nccl/variables.hpp"

namespace rehearse::validation {
namespace {

constexpr std::array<const char*, kChanges> kChangeNames = {
    "algorithm", "transport", "environment", "bandwidth", "scale", "layout", "compute", "program"};

// Of a variable: what it acts on by NCCL's own table.
Change change_of_variable(const std::string& name) {
  const sim::Variable* variable = sim::find_variable(name);
  if (variable == nullptr) return Change::kEnvironment;
  switch (variable->acts) {
    case sim::Acts::kDecision:
      return Change::kAlgorithm;
    case sim::Acts::kTransport:
    case sim::Acts::kTime:
      return Change::kTransport;
    default:
      return Change::kEnvironment;
  }
}

Change change_of(const std::string& path) {
  if (path.starts_with("platform")) {
    return path.ends_with(".speed") ? Change::kCompute : Change::kBandwidth;
  }
  const size_t env = path.rfind("env.");
  return env == path.npos ? Change::kEnvironment : change_of_variable(path.substr(env + 4));
}

Change change_of(const pb::Patch& patch) {
  if (const sim::Transform* transform = sim::transform_of(patch)) return transform->change;
  return patch.set().empty() ? Change::kProgram : change_of(patch.set().begin()->first);
}

// Patches that only one of them has.
void differing(const std::vector<pb::Patch>& a, const std::vector<pb::Patch>& b,
               std::set<Change>& out) {
  std::map<std::string, std::pair<int, Change>> count;
  for (const auto& [patches, sign] : {std::pair{&a, 1}, std::pair{&b, -1}}) {
    for (const pb::Patch& patch : *patches) {
      auto& [n, change] = count[write_document(patch)];
      n += sign;
      change = change_of(patch);
    }
  }
  for (const auto& [text, entry] : count) {
    if (entry.first != 0) out.insert(entry.second);
  }
}

std::optional<Change> change_named(const std::string& name) {
  for (size_t i = 0; i < kChanges; ++i) {
    if (name == kChangeNames[i]) return static_cast<Change>(i);
  }
  return {};
}

}  // namespace

const char* name_of(Change change) { return kChangeNames[static_cast<size_t>(change)]; }

std::set<Change> changes_between(const sim::Scenario& base, const sim::Scenario& changed) {
  std::set<Change> out;
  differing(base.transforms, changed.transforms, out);
  differing(base.timed, changed.timed, out);
  for (size_t i = std::min(base.assigned.size(), changed.assigned.size());
       i < changed.assigned.size(); ++i) {
    const std::string& path = changed.assigned[i].first;
    if (!path.starts_with("platform.efficiency")) out.insert(change_of(path));
  }
  if (base.replicas != changed.replicas) out.insert(Change::kScale);
  return out;
}

double ChangeError::at(double share) const {
  if (quantiles.empty()) return 0;
  const double place = std::clamp(share, .05, .95) * static_cast<double>(quantiles.size() + 1) - 1;
  const double low = std::clamp(std::floor(place), 0.0, static_cast<double>(quantiles.size() - 1));
  const auto at = static_cast<size_t>(low);
  const size_t next = std::min(at + 1, quantiles.size() - 1);
  return quantiles[at] + (quantiles[next] - quantiles[at]) * std::clamp(place - low, 0.0, 1.0);
}

Result<ChangeErrors> ChangeErrors::load_shipped() {
  const auto file = shipped("validation/figures/change_errors.yaml");
  if (!file) return ChangeErrors{};
  pb::ChangeErrors document;
  if (auto done = read_document_file(file->string(), document); !done) {
    return tl::unexpected(done.error());
  }
  return read(document, file->string());
}

Result<ChangeErrors> ChangeErrors::read(const pb::ChangeErrors& document,
                                        const std::string& where) {
  ChangeErrors out;
  for (const pb::ChangeErrorEntry& entry : document.changes()) {
    const auto change = change_named(entry.change());
    if (!change || entry.quantiles().empty() ||
        !std::is_sorted(entry.quantiles().begin(), entry.quantiles().end())) {
      return fail(Code::kBadInput, "'" + entry.change() + "' is no kind of change with quantiles",
                  where, "write the file again: rehearse validate --save-changes");
    }
    out.errors_.push_back({*change,
                           entry.rows(),
                           entry.configurations(),
                           {entry.quantiles().begin(), entry.quantiles().end()}});
  }
  return out;
}

const ChangeError* ChangeErrors::find(Change change) const {
  const auto at = std::find_if(errors_.begin(), errors_.end(),
                               [&](const ChangeError& one) { return one.change == change; });
  return at == errors_.end() ? nullptr : &*at;
}

const ChangeError* ChangeErrors::find(const std::set<Change>& changes) const {
  const ChangeError* widest = nullptr;
  for (const Change change : changes) {
    const ChangeError* one = find(change);
    if (one == nullptr) return nullptr;
    const auto width = [](const ChangeError& e) {
      return e.quantiles.back() - e.quantiles.front();
    };
    if (widest == nullptr || width(*one) > width(*widest)) widest = one;
  }
  return widest;
}

}  // namespace rehearse::validation
