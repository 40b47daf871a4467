// SPDX-License-Identifier: Apache-2.0
#include "validation/fault_pair_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <set>

#include "base/document.hpp"
#include "base/install.hpp"
#include "platforms/model/catalogue.hpp"
#include "sim/nccl/explain.hpp"
#include "validation/certainty/change.hpp"
#include "validation/proto/fault_pairs.pb.h"

namespace rehearse::validation {
namespace {

namespace fs = std::filesystem;

constexpr double kPairTolerance = .25;
constexpr double kPairTarget = .80;

// What was published.
struct PublishedPair {
  double before = 0, after = 0;
  bool is_time = false;  // less is better
  std::string source;
};

// A number, or the time of an object that states one.
std::optional<double> figure_of(const nlohmann::json& value) {
  if (value.is_number()) return value.get<double>();
  if (value.is_object() && value.contains("t_us") && value["t_us"].is_number()) {
    return value["t_us"].get<double>();
  }
  return {};
}

// "about 2x": the ratio is all that was reported.
std::optional<double> times_of(const nlohmann::json& value) {
  static const std::regex times(R"(([0-9]+(?:\.[0-9]+)?)\s*x\b)");
  std::smatch found;
  if (!value.is_string()) return {};
  const auto text = value.get<std::string>();
  if (text.size() > 100 || !std::regex_search(text, found, times)) return {};
  return std::stod(found[1].str());
}

std::map<std::string, PublishedPair> published(const fs::path& file) {
  std::map<std::string, PublishedPair> out;
  std::ifstream in(file);
  const auto all = nlohmann::json::parse(in, nullptr, false);
  if (!all.is_array()) return out;
  for (const auto& pair : all) {
    const auto text = [&](const char* key) {
      return pair.contains(key) && pair[key].is_string() ? pair[key].get<std::string>() : "";
    };
    if (!pair.is_object() || !pair.contains("before") || !pair.contains("after")) continue;
    const auto before = figure_of(pair["before"]);
    auto after = figure_of(pair["after"]);
    if (const auto times = times_of(pair["after"]); times && before) after = *before * *times;
    if (!before || !after || *before <= 0 || *after <= 0) continue;
    const std::string metric = text("metric");
    const bool is_time =
        metric == "ms" || metric.starts_with("time") || metric.find("s/step") != std::string::npos;
    out[text("id")] = {*before, *after, is_time, text("source")};
  }
  return out;
}

Result<double> seconds_of(const pb::PairModel& model, const pb::PairState& state) {
  RH_TRY(const auto folder, shipped("platforms/catalogue"));
  RH_TRY(pb::Platform platform, platforms::PlatformCatalogue(folder).platform(model.platform()));
  platform.set_scale(model.nodes());
  if (auto done = platforms::expand(platform, model.platform()); !done) {
    return tl::unexpected(done.error());
  }
  const std::map<std::string, std::string> sets(state.set().begin(), state.set().end());
  for (const auto& [path, value] : sets) {
    if (auto done = set_path(platform, path, value); !done) return tl::unexpected(done.error());
  }
  sim::TestbedOptions options;
  options.nodes = model.nodes();
  options.nccl_version = state.nccl_version();
  const std::map<std::string, std::string> env(state.env().begin(), state.env().end());
  for (const auto& [name, value] : env) options.settings.push_back({name, value, {}});
  RH_TRY(const auto testbed, sim::Testbed::make(platform, options, model.platform()));
  RH_TRY(const sim::CommunicatorModel world, testbed->world());
  sim::Question question;
  question.collective = model.collective();
  question.bytes = model.bytes();
  RH_TRY(const sim::CallTraffic traffic, sim::traffic_of(testbed->context(), world, question));
  RH_TRY(const sim::AloneTime time, sim::time_alone(testbed->context(), traffic));
  return static_cast<double>(time.total()) * 1e-9;
}

std::string command_of(const pb::PairModel& model, const pb::PairState& state) {
  std::string out =
      fmt::format("rehearse nccl explain --platform {} --nodes {} --collective {} --bytes {}",
                  model.platform(), model.nodes(), model.collective(), model.bytes());
  const std::map<std::string, std::string> env(state.env().begin(), state.env().end());
  for (const auto& [name, value] : env) out += fmt::format(" --env {}={}", name, value);
  return out;
}

// What the fix changes.
std::string change_of(const pb::PairModel& model) {
  const auto variables = [](const pb::PairState& state) {
    return std::map<std::string, std::string>(state.env().begin(), state.env().end());
  };
  const bool settings = model.before().nccl_version() != model.after().nccl_version() ||
                        variables(model.before()) != variables(model.after());
  return name_of(settings ? Change::kEnvironment : Change::kBandwidth);
}

// Share of rows within the tolerance, all in the right direction.
void judge_pairs(Check& check) {
  size_t within = 0, right = 0;
  for (const CheckRow& row : check.rows) {
    within += std::abs(row.error()) <= kPairTolerance ? 1 : 0;
    right += (row.predicted - 1) * (row.measured - 1) > 0 ? 1 : 0;
  }
  const auto n = static_cast<double>(std::max<size_t>(1, check.rows.size()));
  check.metric = "share of pairs within 25 %";
  check.value = static_cast<double>(within) / n;
  check.at_least = true;
  check.target = kPairTarget;
  judge_value(check);
  check.met = check.met && right == check.rows.size();
  check.assumptions.push_back(
      fmt::format("the direction is right in {} of {} pairs", right, check.rows.size()));
}

}  // namespace

std::vector<Check> fault_pair_checks(const fs::path& data, Reporter&) {
  Check check;
  check.id = "fault-fix-pairs";
  check.what = "rate after a fix over the rate before, effect from the mechanism alone";
  pb::FaultPairs pairs;
  const auto file = shipped("validation/figures/fault_pairs.yaml");
  if (!file) return {skipped_check(check.id, check.what, file.error().what)};
  if (auto read = read_document_file(file->string(), pairs); !read) {
    return {skipped_check(check.id, check.what, read.error().what)};
  }
  // A data folder may bring pairs of its own, with how they are predicted.
  if (const fs::path own = data / "faults" / "fault_pairs.yaml"; fs::exists(own)) {
    pb::FaultPairs more;
    if (auto read = read_document_file(own.string(), more); !read) {
      return {skipped_check(check.id, check.what, read.error().what)};
    }
    pairs.mutable_pairs()->MergeFrom(more.pairs());
  }
  const auto known = published(data / "faults" / "fault_fix_pairs.json");
  size_t left_out = 0, given_size = 0;
  for (const pb::FaultPair& pair : pairs.pairs()) {
    left_out += pair.use() == pb::LEFT_OUT ? 1 : 0;
    given_size += pair.use() == pb::GIVEN_SIZE ? 1 : 0;
    const auto at = known.find(pair.id());
    if (pair.use() != pb::MECHANISM || at == known.end()) continue;
    const PublishedPair& was = at->second;
    const double measured = was.is_time ? was.before / was.after : was.after / was.before;
    const auto before = seconds_of(pair.model(), pair.model().before());
    const auto after = seconds_of(pair.model(), pair.model().after());
    if (!before || !after) {
      const Error& error = before ? after.error() : before.error();
      check.assumptions.push_back(fmt::format("{} cannot be predicted: {}", pair.id(), error.what));
      // Counted as no effect: what cannot be predicted is not left out.
      check.rows.push_back({pair.id(), "", 1, measured, "", was.source, "", 0, 0});
      continue;
    }
    check.rows.push_back({fmt::format("{}: {}", pair.id(), pair.why()), "", *before / *after,
                          measured, "", was.source, command_of(pair.model(), pair.model().before()),
                          0, 0, change_of(pair.model())});
    if (std::abs(check.rows.back().error()) > kPairTolerance && !pair.model().known().empty()) {
      check.why += (check.why.empty() ? "" : "; ") + pair.id() + ": " + pair.model().known();
    }
    for (const std::string& assumed : pair.model().assumptions()) {
      check.assumptions.push_back(pair.id() + ": " + assumed);
    }
  }
  check.assumptions.push_back(fmt::format(
      "{} published pairs are left out, each with its reason in "
      "validation/figures/fault_pairs.yaml; in {} the size of the fault would be an input",
      left_out, given_size));
  std::set<std::string> listed;
  for (const pb::FaultPair& pair : pairs.pairs()) listed.insert(pair.id());
  std::string unlisted;
  for (const auto& [id, pair] : known) {
    if (!listed.contains(id)) unlisted += (unlisted.empty() ? "" : ", ") + id;
  }
  if (!unlisted.empty()) {
    check.assumptions.push_back(fmt::format(
        "no list says how to predict {}: add them to faults/fault_pairs.yaml of the data folder",
        unlisted));
  }
  judge_pairs(check);
  return {check};
}

}  // namespace rehearse::validation
