// SPDX-License-Identifier: Apache-2.0
#include "validation/fault_pair_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "base/document.hpp"
#include "base/install.hpp"
#include "platforms/model/catalogue.hpp"
#include "sim/nccl/explain.hpp"
#include "sim/scenario/scenario.hpp"
#include "validation/pairs/published.hpp"
#include "validation/pairs/reading.hpp"
#include "validation/proto/fault_pairs.pb.h"

namespace rehearse::validation {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPairsId = "fault-fix-pairs";
constexpr const char* kPairsWhat =
    "rate after a fix over the rate before, effect from the mechanism alone";
constexpr double kPairTolerance = .25;
constexpr double kPairTarget = .80;
// Reports of no effect: a change of less is none, measured or predicted.
constexpr double kNoEffect = .05;

// The sets that were frozen before any pair of them was computed, in order.
constexpr const char* kFrozenSets[] = {"validation/figures/held_out",
                                       "validation/figures/held_out_second"};

Result<double> seconds_of(const pb::PairModel& model, const pb::PairState& state) {
  RH_TRY(const auto folder, shipped("platforms/catalogue"));
  RH_TRY(pb::Platform platform, platforms::PlatformCatalogue(folder).platform(model.platform()));
  platform.set_scale(model.nodes());
  if (auto done = platforms::expand(platform, model.platform()); !done) {
    return tl::unexpected(done.error());
  }
  for (const auto& [path, value] : sim::sorted_assignments(state.set())) {
    if (auto done = set_path(platform, path, value); !done) return tl::unexpected(done.error());
  }
  sim::TestbedOptions options;
  options.nodes = model.nodes();
  options.gpus_per_node = model.gpus_per_node();
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
  if (model.gpus_per_node() > 0) out += fmt::format(" --gpus-per-node {}", model.gpus_per_node());
  if (!state.nccl_version().empty()) out += " --nccl-version " + state.nccl_version();
  const std::map<std::string, std::string> env(state.env().begin(), state.env().end());
  for (const auto& [name, value] : env) out += fmt::format(" --env {}={}", name, value);
  for (const auto& [path, value] : sim::sorted_assignments(state.set()))
    out += fmt::format(" --set '{}={}'", path, value);
  return out;
}

// The prediction is the ratio of the times that the two print.
std::string commands_of(const pb::PairModel& model) {
  return command_of(model, model.before()) + " && " + command_of(model, model.after());
}

bool right_direction(const CheckRow& row) {
  const double predicted = row.predicted - 1, measured = row.measured - 1;
  if (predicted * measured > 0) return true;
  return std::abs(measured) <= kNoEffect && std::abs(predicted) <= kNoEffect;
}

size_t right_of(const Check& check) {
  return static_cast<size_t>(std::count_if(check.rows.begin(), check.rows.end(), right_direction));
}

// Share of rows within the tolerance, all in the right direction.
void judge_pairs(Check& check) {
  size_t within = 0;
  const size_t right = right_of(check);
  for (const CheckRow& row : check.rows) {
    within += std::abs(row.error()) <= kPairTolerance ? 1 : 0;
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

// How many times as fast after the fix.
Result<double> predicted_gain(const pb::PairModel& model) {
  RH_TRY(const double before, seconds_of(model, model.before()));
  RH_TRY(const double after, seconds_of(model, model.after()));
  return before / after;
}

// Which of the pairs are used and how: the shipped list, and one that stands beside the pairs.
Result<std::map<std::string, pb::FaultPair>> listed_pairs(const fs::path& beside) {
  pb::FaultPairs all;
  RH_TRY(const auto file, shipped("validation/figures/fault_pairs.yaml"));
  if (auto read = read_document_file(file.string(), all); !read) {
    return tl::unexpected(read.error());
  }
  if (fs::exists(beside)) {
    pb::FaultPairs own;
    if (auto read = read_document_file(beside.string(), own); !read) {
      return tl::unexpected(read.error());
    }
    all.mutable_pairs()->MergeFrom(own.pairs());
  }
  std::map<std::string, pb::FaultPair> out;
  for (const pb::FaultPair& pair : all.pairs()) out[pair.id()] = pair;
  return out;
}

// An id alone may be another report's.
bool is_same_report(const pb::FaultPair& listed, const PublishedPair& published) {
  return listed.source().empty() || published.source.empty() || listed.source() == published.source;
}

// Adds what comes of one pair to the check.
class PairRows {
 public:
  explicit PairRows(Check& check) : check_(check) {}

  void add(const PublishedPair& published, const pb::FaultPair& pair) {
    const double measured = published.gain().value_or(0);
    const pb::PairModel& model = pair.model();
    const auto predicted = predicted_gain(model);
    if (!predicted) {
      note(fmt::format("{} cannot be predicted: {}", pair.id(), predicted.error().what));
      if (pair.use() != pb::MECHANISM) return;
    }
    for (const std::string& assumed : model.assumptions()) note(pair.id() + ": " + assumed);
    if (pair.use() == pb::GIVEN_SIZE) {
      note(
          fmt::format("{}: {:.2f} times predicted, {:.2f} measured; the size of the fault was an "
                      "input, not judged",
                      pair.id(), *predicted, measured));
      return;
    }
    // Counted as no effect: what cannot be predicted is not left out.
    CheckRow row{fmt::format("{}: {}", pair.id(), pair.why()),
                 "",
                 predicted.value_or(1),
                 measured,
                 "",
                 published.source,
                 commands_of(model),
                 0,
                 0};
    if (std::abs(row.error()) > kPairTolerance && !model.known().empty()) {
      check_.why += (check_.why.empty() ? "" : "; ") + pair.id() + ": " + model.known();
    }
    check_.rows.push_back(std::move(row));
  }

  void note(std::string what) { check_.assumptions.push_back(std::move(what)); }

 private:
  Check& check_;
};

std::string in_words(const PublishedPair& pair) {
  return pair.fault_class.empty() ? pair.cause : pair.fault_class;
}

}  // namespace

Check pair_check(const fs::path& file) {
  Check check;
  check.id = kPairsId;
  check.what = kPairsWhat;
  const auto unable = [&](const Error& error) {
    return skipped_check(check.id, check.what, error.what + ": " + error.where);
  };
  const auto published = read_published_pairs(file);
  if (!published) return unable(published.error());
  const auto listed = listed_pairs(file.parent_path() / "fault_pairs.yaml");
  if (!listed) return unable(listed.error());
  const auto reader = PairReader::shipped_words();
  if (!reader) return unable(reader.error());
  Check words = check;  // of pairs that nobody has written down how to predict
  PairRows rows(check), from_words(words);
  size_t left_out = 0;
  for (const PublishedPair& pair : *published) {
    const auto known = listed->find(pair.id);
    if (known == listed->end() || !is_same_report(known->second, pair)) {
      auto model = reader->read(pair);
      if (!model) {
        rows.note(fmt::format("{} is not predicted: {}", pair.id, model.error().what));
        continue;
      }
      pb::FaultPair own;
      own.set_id(pair.id);
      own.set_use(pb::MECHANISM);
      own.set_why(in_words(pair) + " (read from its words)");
      *own.mutable_model() = std::move(*model);
      from_words.add(pair, own);
      continue;
    }
    if (known->second.use() == pb::LEFT_OUT || !pair.gain()) {
      ++left_out;
      continue;
    }
    rows.add(pair, known->second);
  }
  if (left_out > 0) {
    rows.note(
        fmt::format("{} published pairs are left out, each with its reason in "
                    "validation/figures/fault_pairs.yaml",
                    left_out));
  }
  const bool only_words = check.rows.empty();
  if (!words.rows.empty()) {
    rows.note(
        fmt::format("{} pairs are in no list and were read from their own words "
                    "(validation/figures/pair_words.yaml){}",
                    words.rows.size(), only_words ? "" : "; they are not judged"));
  }
  for (const std::string& note : words.assumptions) rows.note(note);
  if (only_words) check.rows = std::move(words.rows);
  for (const CheckRow& row : words.rows) {
    rows.note(fmt::format("{}: {:.2f} times predicted, {:.2f} measured", row.what, row.predicted,
                          row.measured));
  }
  if (check.rows.empty()) {
    Check none = skipped_check(
        check.id, check.what,
        "no pair says enough to be predicted; say how in "
        "a fault_pairs.yaml beside the pairs (as validation/figures/fault_pairs.yaml)");
    none.assumptions = check.assumptions;
    return none;
  }
  judge_pairs(check);
  return check;
}

// What a frozen set gave at first sight and gives today; none where it is not installed.
static std::optional<std::string> note_of_frozen(const std::string& set) {
  const auto file = shipped(set + "/fault_fix_pairs.json");
  const auto list = shipped(set + "/fault_pairs.yaml");
  pb::FaultPairs frozen;
  if (!file || !list || !read_document_file(list->string(), frozen)) return {};
  const Check now = pair_check(*file);
  const pb::FirstSight& first = frozen.first_sight();
  return fmt::format(
      "not judged: of {} further pairs, frozen before any of them was computed, {} were within 25 "
      "% "
      "at first sight and {} in the right direction; the models have been changed with them in "
      "view "
      "since and now have {:.0f} % within 25 % and {} in the right direction (`rehearse validate "
      "pairs "
      "{}/fault_fix_pairs.json --rows`; each miss in docs/collectives.md)",
      first.pairs(), first.within(), first.right(), 100 * now.value, right_of(now), set);
}

std::vector<Check> fault_pair_checks(const fs::path& data, Reporter&) {
  const fs::path pairs = data / "faults" / "fault_fix_pairs.json";
  Check check;
  if (data.empty() || !fs::exists(pairs)) {
    check = skipped_check(kPairsId, kPairsWhat,
                          data.empty()
                              ? "needs faults/fault_fix_pairs.json of a data folder (--data DIR)"
                              : pairs.string() + " is not there");
  } else {
    check = pair_check(pairs);
  }
  for (const char* set : kFrozenSets) {
    if (auto note = note_of_frozen(set)) check.assumptions.push_back(std::move(*note));
  }
  return {check};
}

}  // namespace rehearse::validation
