// SPDX-License-Identifier: Apache-2.0
#include "faults/lessons/changes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/document.hpp"
#include "base/text.hpp"
#include "faults/lessons/remarks.hpp"
#include "sim/scenario/environment.hpp"
#include "sim/scenario/places.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/scenario/timed.hpp"
#include "sim/scenario/transforms.hpp"

namespace rehearse::faults {
namespace {

using Json = nlohmann::ordered_json;

// Places where two messages differ, as JSON pointers without the first '/'.
std::set<std::string> differences(const google::protobuf::Message& a,
                                  const google::protobuf::Message& b) {
  std::set<std::string> out;
  for (const Json& row : Json::diff(to_json(a), to_json(b))) {
    std::string path = row.at("path").get<std::string>().substr(1);
    // An element more at the end is a change of the list.
    if (path.ends_with("/-")) path.resize(path.size() - 2);
    out.insert(std::move(path));
  }
  return out;
}

// One stands for the other or for a part of it.
bool covers(const std::string& a, const std::string& b) {
  const std::string& part = a.size() < b.size() ? b : a;
  const std::string& whole = a.size() < b.size() ? a : b;
  return part.starts_with(whole) && (part.size() == whole.size() || part[whole.size()] == '/');
}

pb::Platform machine_of(const sim::Scenario& job) {
  pb::Platform platform = job.document.platform();
  platform.clear_sources();
  platform.clear_assumptions();
  platform.clear_name();
  platform.clear_description();
  return platform;
}

// Settings that decide what is computed, not how it is spread.
struct WorkField {
  const char* name;
  bool more_is_fine;
};
constexpr WorkField kWork[] = {{"model", false},     {"layers", false}, {"hidden", false},
                               {"heads", false},     {"dtype", false},  {"vocabulary", false},
                               {"sequence", true},   {"steps", true},   {"experts", false},
                               {"top_k", false},     {"gpu", false},    {"tables", false},
                               {"embedding", false}, {"jitter", false}, {"seed", false}};

std::optional<double> number_in(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return value;
}

pb::LabRemark remark_of(std::string_view id, std::string text) {
  pb::LabRemark out;
  out.set_id(std::string(id));
  out.set_text(std::move(text));
  return out;
}

std::optional<pb::LabRemark> judge_undo(const pb::Undo& undo, const LabJob& job) {
  const sim::Transform* wanted_one = sim::find_transform(undo.transform());
  const std::string wanted(wanted_one == nullptr ? undo.transform() : wanted_one->name);
  bool found = false, all_on_ranks = true;
  for (const pb::Patch& patch : job.sealed) {
    if (wanted_one == nullptr || sim::transform_of(patch) != wanted_one) continue;
    // Several ranks that are slow together are a stage, not parts of which one could be replaced.
    if (undo.has_rank() && sim::rank_of(patch) != undo.rank()) continue;
    found = true;
    all_on_ranks = all_on_ranks && sim::rank_of(patch).has_value();
  }
  const std::string what =
      undo.has_rank() ? fmt::format("undo {} on rank {}", wanted, undo.rank()) : "undo " + wanted;
  if (!found) {
    return remark_of(remark::kUnneeded,
                     fmt::format("`{}` repairs something that was not broken; take it out", what));
  }
  if (!undo.has_rank() && all_on_ranks) {
    return remark_of(remark::kTooBroad,
                     fmt::format("`{}` replaces a part on every rank; find the one that is broken "
                                 "and name it",
                                 what));
  }
  return std::nullopt;
}

// A repair for a time must be about a part that is broken for a time.
std::optional<pb::LabRemark> judge_timed(const pb::Patch& patch, const LabJob& job) {
  for (const auto& assignment : sim::sorted_assignments(patch.set())) {
    const std::string& path = assignment.first;
    const bool known =
        std::any_of(job.sealed.begin(), job.sealed.end(),
                    [&](const pb::Patch& each) { return each.set().count(path) > 0; });
    if (known) continue;
    return remark_of(remark::kUnneeded,
                     fmt::format("{} was in order all the time; take the repair out", path));
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> machine_changes(const LabJobs& jobs) {
  const std::set<std::string> touched =
      differences(machine_of(jobs.healthy), machine_of(jobs.broken));
  std::vector<std::string> out;
  for (const std::string& path : differences(machine_of(jobs.broken), machine_of(jobs.learners))) {
    const bool was_broken = std::any_of(touched.begin(), touched.end(),
                                        [&](const std::string& t) { return covers(t, path); });
    if (!was_broken) out.push_back(path);
  }
  return out;
}

double samples_per_step(const sim::Scenario& job) {
  if (!job.trace->header.has_synth()) return 1;
  const pb::Synth& synth = job.trace->header.synth();
  return double{1} * std::max(1u, synth.micro_batch()) * std::max(1u, synth.micro_batches()) *
         std::max(1u, synth.dp());
}

std::string work_lost(const LabJobs& jobs) {
  if (jobs.learners.trace->ranks.size() < jobs.healthy.trace->ranks.size()) {
    return fmt::format("{} ranks instead of {}", jobs.learners.trace->ranks.size(),
                       jobs.healthy.trace->ranks.size());
  }
  const auto absent = [](const sim::Scenario& job) {
    const auto& ranks = job.document.launch().ranks();
    return std::count_if(ranks.begin(), ranks.end(), [](const auto& r) { return r.absent(); });
  };
  if (absent(jobs.learners) > absent(jobs.broken)) return "ranks that are not started";
  if (!jobs.healthy.trace->header.has_synth()) return "";
  if (!jobs.learners.trace->header.has_synth()) return "another trace";
  const Json healthy = to_json(jobs.healthy.trace->header.synth());
  const Json learners = to_json(jobs.learners.trace->header.synth());
  for (const WorkField& field : kWork) {
    const Json& was = healthy.value(field.name, Json());
    const Json& is = learners.value(field.name, Json());
    if (was == is || (field.more_is_fine && is > was)) continue;
    return fmt::format("{} {} instead of {}", field.name, is.dump(), was.dump());
  }
  if (samples_per_step(jobs.learners) < samples_per_step(jobs.healthy)) {
    return fmt::format("{:.0f} samples in a step instead of {:.0f}",
                       samples_per_step(jobs.learners), samples_per_step(jobs.healthy));
  }
  return "";
}

std::vector<std::string> longer_timers(const LabJobs& jobs, const pb::CheckTables& tables) {
  std::vector<std::string> out;
  const pb::Launch& before = jobs.broken.document.launch();
  const pb::Launch& after = jobs.learners.document.launch();
  if (after.collective_timeout() > before.collective_timeout())
    out.emplace_back("launch.collective_timeout");
  if (after.start_timeout() > before.start_timeout()) out.emplace_back("launch.start_timeout");
  std::set<std::string> timers;
  for (const pb::KnownVariable& variable : tables.variables()) {
    if (variable.use() == "timer") timers.insert(variable.name());
  }
  std::set<std::string> longer;
  for (int i = 0; i < std::min(before.ranks_size(), after.ranks_size()); ++i) {
    const auto was = sim::environment_of(before, before.ranks(i));
    for (const auto& [name, value] : sim::environment_of(after, after.ranks(i))) {
      if (timers.count(name) == 0) continue;
      const auto at = was.find(name);
      const auto now = number_in(value);
      const auto then = at == was.end() ? std::nullopt : number_in(at->second);
      if (now && (!then || *now > *then)) longer.insert(name);
    }
  }
  out.insert(out.end(), longer.begin(), longer.end());
  return out;
}

std::vector<std::string> silenced(const LabJobs& jobs) {
  std::vector<std::string> out;
  const pb::Training& before = jobs.broken.document.launch().training();
  const pb::Training& after = jobs.learners.document.launch().training();
  std::vector<const google::protobuf::FieldDescriptor*> set;
  before.GetReflection()->ListFields(before, &set);
  for (const auto* field : set) {
    // A list that became empty may be the repair.
    if (field->is_repeated() || after.GetReflection()->HasField(after, field)) continue;
    out.push_back(field->name());
  }
  return out;
}

std::vector<std::string> emptied_environment(const LabJobs& jobs) {
  const pb::Launch& healthy = jobs.healthy.document.launch();
  const pb::Launch& broken = jobs.broken.document.launch();
  const pb::Launch& after = jobs.learners.document.launch();
  const int ranks = std::min({healthy.ranks_size(), broken.ranks_size(), after.ranks_size()});
  for (int i = 0; i < ranks; ++i) {
    const auto then = sim::environment_of(healthy, healthy.ranks(i));
    const auto was = sim::environment_of(broken, broken.ranks(i));
    const auto now = sim::environment_of(after, after.ranks(i));
    std::vector<std::string> gone;
    bool some_left = false;
    for (const auto& [name, value] : then) {
      const auto at = was.find(name);
      if (at == was.end() || at->second != value) continue;
      if (now.count(name) > 0) {
        some_left = true;
      } else {
        gone.push_back(name);
      }
    }
    if (!some_left && gone.size() > 1) return gone;
  }
  return {};
}

std::vector<pb::LabRemark> judge_patches(const pb::Scenario& written, const LabJob& job) {
  std::vector<pb::LabRemark> out;
  for (const pb::Patch& patch : written.patches()) {
    std::optional<pb::LabRemark> remark;
    const sim::Transform* transform = sim::transform_of(patch);
    if (patch.has_undo()) {
      remark = judge_undo(patch.undo(), job);
    } else if (transform != nullptr || patch.has_calibration()) {
      remark = remark_of(remark::kNotARepair,
                         fmt::format("`{}` under patches is nothing that a person can do to a job",
                                     patch.has_calibration() ? "calibration" : transform->name));
    } else if (sim::is_timed(patch)) {
      remark = judge_timed(patch, job);
    }
    if (remark) out.push_back(std::move(*remark));
  }
  return out;
}

}  // namespace rehearse::faults
