// SPDX-License-Identifier: Apache-2.0
// `rehearse compare`: what makes one run longer than another.
#include "sim/compare/compare.hpp"

#include <fmt/format.h>

#include <boost/program_options/value_semantic.hpp>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/document.hpp"
#include "base/markup.hpp"
#include "base/units.hpp"
#include "cli/outcome_file.hpp"
#include "cli/outcome_text.hpp"
#include "cli/report/documents.hpp"
#include "cli/table.hpp"
#include "cli/verbs.hpp"
#include "faults/world.hpp"

namespace rehearse::cli {
namespace {
namespace po = boost::program_options;

constexpr int kMostDifferences = 8;

// A run with the whole of its critical path; of an outcome from an older program or a scenario that is gone, with the
// rows it has.
Result<pb::Outcome> run_of(Context& context, const std::string& what) {
  if (!is_outcome_file(what)) {
    RH_TRY(const sim::Scenario scenario, sim::load_scenario(what, context.reporter()));
    RH_TRY(pb::Outcome outcome, sim::simulate_blamed(scenario, context.reporter()));
    RH_TRY(const faults::Rules rules, faults::Rules::load_shipped());
    faults::observe(scenario, rules, nullptr, outcome);
    return outcome;
  }
  RH_TRY(pb::Outcome outcome, read_outcome(what));
  if (!outcome.has_critical_path()) return outcome;
  const auto subject = load_subject(context, what);
  if (!subject) return outcome;
  const auto again = sim::simulate_blamed(subject->scenario, context.reporter());
  const bool same = again && again->end_ns() == outcome.end_ns() &&
                    again->critical_path().length_ns() == outcome.critical_path().length_ns();
  if (same) *outcome.mutable_critical_path() = again->critical_path();
  return outcome;
}

std::string signed_duration(int64_t time) {
  return (time < 0 ? "-" : "+") + format_duration(time < 0 ? -time : time);
}

std::string percent_of(int64_t part, int64_t whole) {
  return whole > 0 ? fmt::format("{:+.1f} %",
                                 100.0 * static_cast<double>(part) / static_cast<double>(whole))
                   : "";
}

std::string difference_rows(const char* title,
                            const google::protobuf::RepeatedPtrField<pb::Difference>& rows,
                            const Terminal& terminal) {
  if (rows.empty()) return "";
  Table table({{title}, {"A", Align::kRight}, {"B", Align::kRight}, {"difference", Align::kRight}});
  int64_t a = 0, b = 0;  // of those that are not shown
  int hidden = 0, shown = 0;
  for (const pb::Difference& row : rows) {
    if (!row.rest() && (++shown > kMostDifferences || row.difference_ns() == 0)) {
      ++hidden;
      a += row.a_ns();
      b += row.b_ns();
    } else {
      table.add({shortened(row.name(), kLongestName), format_duration(row.a_ns()),
                 format_duration(row.b_ns()), signed_duration(row.difference_ns())});
    }
  }
  if (hidden > 0) {
    table.add({fmt::format("{} more", hidden), format_duration(a), format_duration(b),
               signed_duration(b - a)});
  }
  return "\n" + table.text(terminal);
}

std::string run_line(const pb::ComparedRun& run) {
  std::string out = fmt::format("{}, {}", run.name(), verdict_name(run.verdict()));
  if (run.steps() > 0) out += fmt::format(", step time {}", format_duration(run.step_ns()));
  for (const std::string& patch : run.patches()) out += "; " + patch;
  return out;
}

std::string comparison_text(const pb::Comparison& comparison, const Terminal& terminal) {
  const pb::ComparedRun &a = comparison.a(), &b = comparison.b();
  std::string head;
  if (comparison.has_step_difference_ns()) {
    head =
        fmt::format("step time {} -> {} ({}, {})", format_duration(a.step_ns()),
                    format_duration(b.step_ns()), signed_duration(comparison.step_difference_ns()),
                    percent_of(comparison.step_difference_ns(), a.step_ns()));
  } else {
    head = fmt::format("{} -> {}", verdict_name(a.verdict()), verdict_name(b.verdict()));
  }
  std::string out = terminal.styled(Style::kBold, head) + "\n";
  Table runs({{""}, {""}});
  runs.add({"  A", run_line(a)});
  runs.add({"  B", run_line(b)});
  if (!comparison.operations().empty()) {
    runs.add({"  run", fmt::format("{} -> {} ({}); each table below adds up to that",
                                   format_duration(a.length_ns()), format_duration(b.length_ns()),
                                   signed_duration(comparison.difference_ns()))});
  }
  for (const std::string& note : comparison.notes()) runs.add({"  note", note});
  return out + runs.text(terminal) +
         difference_rows("on the critical path", comparison.operations(), terminal) +
         difference_rows("work of ranks", comparison.ranks(), terminal) +
         difference_rows("links", comparison.links(), terminal);
}

// --fail-above 5%: a share.
Result<double> threshold_of(Context& context) {
  std::string text = context.get<std::string>("fail-above");
  if (text.ends_with('%')) text.pop_back();
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= 0 && value <= 1e6) {
    return value / 100;
  }
  return fail(Code::kUsage, fmt::format("'{}' is not a percentage", text), "--fail-above",
              "write --fail-above 5%");
}

bool is_worse(const pb::Comparison& comparison, double threshold) {
  const pb::ComparedRun &a = comparison.a(), &b = comparison.b();
  if (a.verdict() != b.verdict()) return a.verdict() == pb::COMPLETED;
  const bool steps = comparison.has_step_difference_ns();
  const auto before = static_cast<double>(steps ? a.step_ns() : a.length_ns());
  const auto after = static_cast<double>(steps ? b.step_ns() : b.length_ns());
  return after > before * (1 + threshold);
}

Result<int> run_compare(Context& context) {
  double threshold = -1;
  if (context.has("fail-above")) {
    RH_TRY(threshold, threshold_of(context));
  }
  const std::vector<std::string>& inputs = context.inputs();
  if (inputs.size() > 2) {
    return fail(Code::kUsage, fmt::format("{} runs", inputs.size()), "compare", "name two");
  }
  pb::Outcome a, b;
  if (inputs.size() == 2) {
    RH_TRY(a, run_of(context, inputs[0]));
    RH_TRY(b, run_of(context, inputs[1]));
  } else {
    RH_TRY(const sim::Scenario scenario, sim::load_scenario(inputs[0], context.reporter()));
    RH_TRY(a, sim::recorded_run(scenario, context.reporter()));
    RH_TRY(b, run_of(context, inputs[0]));
  }
  const pb::Comparison comparison = sim::compare(a, b);
  auto done =
      context.json()
          ? context.print(to_json(comparison))
          : context.print(std::string_view(comparison_text(comparison, context.terminal())));
  const bool worse = threshold >= 0 && is_worse(comparison, threshold);
  return exit_code(std::move(done), worse ? static_cast<int>(Code::kFinding) : 0);
}

}  // namespace

Verb compare_verb() {
  Verb verb;
  verb.name = "compare";
  verb.summary = "what makes one run longer than another";
  verb.details =
      "A and B are outcomes (`run --json`) or scenarios. The critical path of each run is divided "
      "among operations, "
      "among ranks and among links; what each part gained or lost adds up to the difference. With "
      "A alone, a recording "
      "(A) is compared with its simulation (B). Exit code 1 only with --fail-above: when B is "
      "slower by more than that, "
      "or does not complete where A does.";
  verb.positionals = {
      {"RUN",
       "A and B: outcomes (.json) or scenarios; one: a recording and its simulation",
       Count::kSome,
       {}}};
  verb.options = [](po::options_description& options) {
    options.add_options()("fail-above", po::value<std::string>()->value_name("PERCENT"),
                          "exit code 1 when the step time of B is more than this above that of A");
  };
  verb.writes = Writes::kFile;
  verb.examples = {{"./rehearse run ddp-16 --json -o a.json", "a run"},
                   {"./rehearse run ddp-16 --fault F16 --json -o b.json",
                    "the same with InfiniBand off on a node"},
                   {"./rehearse compare a.json b.json", "where the time went"},
                   {"./rehearse compare a.json b.json --fail-above 5%", "a gate for a pipeline", 1},
                   {"./rehearse compare ddp-16", "a recording and its simulation"}};
  verb.run = run_compare;
  return verb;
}

}  // namespace rehearse::cli
