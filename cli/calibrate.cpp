// SPDX-License-Identifier: Apache-2.0
// `rehearse calibrate`: a platform's parameters fitted to measured times of collectives.
#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/document.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "cli/context.hpp"
#include "cli/platform_option.hpp"
#include "cli/table.hpp"
#include "cli/verbs.hpp"
#include "validation/calibrate/evidence_rows.hpp"
#include "validation/calibrate/machine.hpp"
#include "validation/calibrate/observations.hpp"
#include "validation/calibrate/overlay.hpp"

namespace rehearse::cli {
namespace {
namespace po = boost::program_options;
using Json = nlohmann::ordered_json;
using validation::ErrorSummary;
using validation::Fit;
using validation::Observation;

// Errors of the rows themselves: how well the parameters describe what they were fitted to.
ErrorSummary errors_at(const std::vector<Observation>& observations,
                       const validation::Point& point) {
  std::vector<double> errors;
  errors.reserve(observations.size());
  for (const Observation& o : observations) {
    errors.push_back(validation::predicted_us(o, point) / o.measured_us - 1);
  }
  return validation::summarise(std::move(errors));
}

// Calls of one collective on as many GPUs.
struct GroupErrors {
  std::string what;
  ErrorSummary before, after;
};

std::vector<GroupErrors> errors_by_group(const std::vector<Observation>& observations,
                                         const validation::Point& point) {
  const validation::Point prior(validation::parameters().size(), 0);
  std::map<std::string, std::vector<Observation>> groups;
  for (const Observation& o : observations) groups[o.group].push_back(o);
  std::vector<GroupErrors> out;
  out.reserve(groups.size());
  for (const auto& [what, own] : groups) {
    out.push_back({what, errors_at(own, prior), errors_at(own, point)});
  }
  return out;
}

struct Calibrated {
  pb::Patch patch;
  Fit fit;
  ErrorSummary before, after;
  std::vector<GroupErrors> groups;
  std::vector<validation::TraceCost> costs;
  validation::Interference interference;
  validation::MachineReading machine;
};

constexpr double kUnexplained = .25;  // what a data sheet alone should reach

constexpr const char* kBeside = "time of a kernel beside a collective over alone";

std::string range_of(const validation::Interference& found) {
  return fmt::format("{:.3g} - {:.3g}", found.low, found.high);
}

std::string costs_text(const Calibrated& done, const Terminal& terminal) {
  if (done.costs.empty()) return {};
  Table table({{"measured in the trace"},
               {"median", Align::kRight},
               {"range", Align::kRight},
               {"operations", Align::kRight},
               {"standing"}});
  for (const validation::TraceCost& cost : done.costs) {
    const auto figure = [&](double value) {
      return cost.determined ? fmt::format("{:.3g} {}", value, cost.unit) : std::string();
    };
    table.add({cost.what, figure(cost.median),
               cost.determined ? fmt::format("{:.3g} - {:.3g}", cost.low, cost.high) : "",
               format_count(cost.n),
               cost.determined ? "measured; a replay has each operation's own"
                               : "undetermined, prior used: " + cost.note});
  }
  const validation::Interference& beside = done.interference;
  table.add({kBeside, beside.determined ? fmt::format("{:.3g}", beside.slowdown) : "",
             beside.determined ? range_of(beside) : "", format_count(beside.kernels),
             beside.determined ? "measured and used" : "undetermined, prior used: " + beside.why});
  return "\n" + table.text(terminal);
}

// For people who read an overlay: what of the trace is measured and not a parameter.
std::string costs_comment(const Calibrated& done) {
  std::string out;
  for (const validation::TraceCost& cost : done.costs) {
    out += cost.determined
               ? fmt::format(
                     "# Measured in the trace: {} {:.3g} {} ({:.3g} to {:.3g}, {} operations).\n",
                     cost.what, cost.median, cost.unit, cost.low, cost.high, cost.n)
               : fmt::format("# Undetermined, prior used: {}: {}.\n", cost.what, cost.note);
  }
  if (!done.costs.empty() && !done.interference.determined) {
    out += fmt::format("# Undetermined, prior used: {}: {}.\n", kBeside, done.interference.why);
  }
  return out;
}

Json interference_json(const validation::Interference& found) {
  Json out = {{"what", kBeside}, {"unit", ""}, {"operations", found.kernels}};
  out["standing"] = found.determined ? "measured" : "undetermined";
  if (found.determined) {
    out["median"] = found.slowdown;
    out["low"] = found.low;
    out["high"] = found.high;
  } else {
    out["why"] = found.why;
  }
  return out;
}

Json costs_json(const Calibrated& done) {
  Json out = Json::array();
  for (const validation::TraceCost& cost : done.costs) {
    Json one = {{"what", cost.what}, {"unit", cost.unit}, {"operations", cost.n}};
    one["standing"] = cost.determined ? "measured" : "undetermined";
    if (cost.determined) {
      one["median"] = cost.median;
      one["low"] = cost.low;
      one["high"] = cost.high;
    } else {
      one["why"] = cost.note;
    }
    out.push_back(std::move(one));
  }
  out.push_back(interference_json(done.interference));
  return out;
}

std::string machine_text(const validation::MachineReading& machine, const Terminal& terminal) {
  if (machine.empty()) return {};
  std::string out = fmt::format(
      "\nNCCL's own costs: {} of {} are those that NCCL would have on the platform as described\n",
      format_count(machine.agreed), format_count(machine.costs));
  if (!machine.first_difference.empty()) out += "first: " + machine.first_difference + "\n";
  for (const std::string& note : machine.notes) out += note + "\n";
  if (machine.figures.empty()) return out;
  Table table({{"what NCCL's costs tell of the machine"},
               {"described"},
               {"used"},
               {"would do as well"},
               {"standing"}});
  for (const validation::MachineFigure& figure : machine.figures) {
    const bool undetermined = figure.told == validation::Told::kUndetermined;
    table.add({figure.what, figure.described, figure.value, join_words(figure.others),
               undetermined ? "undetermined, description used" : name_of(figure.told)});
  }
  return out + "\n" + table.text(terminal);
}

Json machine_json(const validation::MachineReading& machine) {
  Json figures = Json::array();
  for (const validation::MachineFigure& figure : machine.figures) {
    figures.push_back({{"path", figure.path},
                       {"what", figure.what},
                       {"described", figure.described},
                       {"value", figure.value},
                       {"others", figure.others},
                       {"standing", name_of(figure.told)}});
  }
  return {{"costs", machine.costs},
          {"agreed", machine.agreed},
          {"first_difference", machine.first_difference},
          {"notes", machine.notes},
          {"figures", std::move(figures)}};
}

std::string in_words(const std::string& standing) {
  if (standing == "undetermined") return "undetermined, prior used";
  if (standing == "conditional") return "if those undetermined are at their priors";
  return standing;
}

std::string times_text(const Calibrated& done, const Terminal& terminal) {
  if (done.fit.observations == 0) {
    return terminal.styled(Style::kBold, "no measured time") +
           ": shares of links and latencies are undetermined, priors used\n";
  }
  std::string out = terminal.styled(
      Style::kBold,
      fmt::format("{} measured call{}: median error {:.1f} % with priors, {:.1f} % fitted",
                  format_count(done.fit.observations), done.fit.observations == 1 ? "" : "s",
                  100 * done.before.median, 100 * done.after.median));
  out += "\n(of the calls it was fitted to; `rehearse validate` has held-out errors)\n";
  if (done.fit.let_go > 0) {
    out += fmt::format("{} call{} far off any prediction and count{} for nothing\n",
                       format_count(done.fit.let_go), done.fit.let_go == 1 ? " is" : "s are",
                       done.fit.let_go == 1 ? "s" : "");
  }
  for (const GroupErrors& group : done.groups) {
    if (group.after.median <= kUnexplained) continue;
    out += fmt::format(
        "not explained by parameters within their bounds: {}: {} call{}, median error {:.0f} %\n",
        group.what, group.after.rows, group.after.rows == 1 ? "" : "s", 100 * group.after.median);
  }
  out += "\n";
  Table table({{"parameter"},
               {"what"},
               {"prior", Align::kRight},
               {"fitted", Align::kRight},
               {"90 % range", Align::kRight},
               {"standing"}});
  for (const pb::CalibratedParameter& row : done.patch.calibration().parameters()) {
    const bool undetermined = row.standing() == "undetermined";
    table.add({row.path(), row.what(), row.prior(), undetermined ? "" : row.value(),
               row.low() + " - " + row.high(), in_words(row.standing())});
  }
  return out + table.text(terminal);
}

std::string summary_text(const Calibrated& done, const Terminal& terminal) {
  return times_text(done, terminal) + machine_text(done.machine, terminal) +
         costs_text(done, terminal);
}

Json summary_json(const Calibrated& done) {
  Json out = {{"schema", "rehearse.calibrate/1"}};
  out["observations"] = done.fit.observations;
  const bool measured = done.fit.observations > 0;
  out["median_error_prior"] = measured ? Json(done.before.median) : Json(nullptr);
  out["median_error_fitted"] = measured ? Json(done.after.median) : Json(nullptr);
  out["let_go"] = done.fit.let_go;
  Json groups = Json::array();
  for (const GroupErrors& group : done.groups) {
    groups.push_back({{"what", group.what},
                      {"n", group.after.rows},
                      {"median_error_prior", group.before.median},
                      {"median_error_fitted", group.after.median}});
  }
  out["groups"] = std::move(groups);
  if (!done.machine.empty()) out["machine"] = machine_json(done.machine);
  if (!done.costs.empty()) out["trace_costs"] = costs_json(done);
  out["patch"] = to_json(done.patch);
  return out;
}

Result<int> run_calibrate(Context& context) {
  if (!context.has("platform")) {
    return fail(Code::kUsage, "--platform is missing: the machine that was measured", "calibrate",
                "rehearse platforms lists those of the catalogue");
  }
  validation::TestMachineOptions options;
  options.platform_id = context.get<std::string>("platform");
  RH_TRY(options.platform, read_platform(options.platform_id));
  if (context.has("nccl-version")) options.nccl_version = context.get<std::string>("nccl-version");
  if (context.has("nodes")) {
    RH_TRY(const int64_t nodes, context.number("nodes", 1, 65536));
    options.nodes = static_cast<uint32_t>(nodes);
  }
  if (context.has("gpus")) {
    RH_TRY(const int64_t gpus, context.number("gpus", 1, 65536));
    options.gpus = static_cast<uint32_t>(gpus);
  }
  RH_TRY(const int64_t draws, context.number("draws", 0, 10000));
  RH_TRY(const int64_t seed, context.number("seed", 0, INT64_MAX));
  const std::vector<std::filesystem::path> files(context.inputs().begin(), context.inputs().end());
  RH_TRY(auto evidence,
         validation::read_measured(
             files, context.has("collective") ? context.get<std::string>("collective") : "",
             context.reporter()));
  Calibrated done;
  RH_TRY(done.machine,
         validation::read_machine(evidence.recorded, *options.platform, options.platform_id));
  options.set = validation::recorded_figures(done.machine);
  RH_TRY(auto machines, validation::TestMachines::create(options));
  std::vector<Observation> observations;
  for (const auto& hardware : validation::observe(evidence.rows, machines, evidence.findings)) {
    const auto own = hardware.observations();
    observations.insert(observations.end(), own.begin(), own.end());
  }
  context.show(evidence.findings);
  if (observations.empty() && evidence.recorded.empty() && !evidence.interference.determined) {
    return fail(Code::kBadInput, "no measured call can be placed on the platform",
                options.platform_id,
                "-v says why for each; --nodes and --gpus fill in what is not said");
  }
  done.costs = std::move(evidence.costs);
  done.interference = std::move(evidence.interference);
  done.fit = validation::fit(observations);
  done.before = errors_at(observations, validation::Point(validation::parameters().size(), 0));
  done.after = errors_at(observations, done.fit.point);
  done.groups = errors_by_group(observations, done.fit.point);
  done.patch =
      validation::overlay(done.fit, {options.platform_id, evidence.files,
                                     static_cast<uint64_t>(seed), static_cast<uint32_t>(draws)});
  validation::add_interference(done.interference, static_cast<uint64_t>(seed), done.patch);
  validation::add_machine(done.machine, done.patch);
  if (const auto file = context.output()) {
    const std::string text =
        fmt::format("# Made by `rehearse calibrate` for {}; use it with `run --patch-file`.\n{}{}",
                    options.platform_id, costs_comment(done), write_document(done.patch));
    if (auto written = write_file(*file, text, context.overwrite()); !written) {
      return tl::unexpected(std::move(written).error());
    }
  }
  return exit_code(context.json() ? context.print_stdout(summary_json(done))
                                  : context.print_stdout(
                                        std::string_view(summary_text(done, context.terminal()))));
}

}  // namespace

Verb calibrate_verb() {
  Verb verb;
  verb.name = "calibrate";
  verb.summary = "fit a platform to measured times of collectives";
  verb.details =
      "EVIDENCE is what nccl-tests printed (or a CSV of such tables), records of NCCL Inspector, "
      "or "
      "a trace of all ranks of a job (the last arriver's kernel of each synchronising collective "
      "is "
      "its transfer), or NCCL's own costs: a capture `--with tuner`, a log with "
      "NCCL_DEBUG_SUBSYS=TUNING. Few parameters with physical meaning and bounds are fitted "
      "robustly: shares "
      "of "
      "links, latencies of hops by transport and protocol, launch costs. What the data cannot "
      "tell apart is left at its prior and named undetermined. NCCL's own costs are beliefs and "
      "no times: they tell which rates, links and version NCCL found on the machine, where only "
      "one "
      "value explains them. Of a trace of several steps also what kernels lose beside a "
      "collective; launches and copy engines as recorded. -o writes a patch that `run "
      "--patch-file` and scenarios take, with its evidence, ranges and joint draws.";
  verb.positionals = {{"EVIDENCE", "files of measured times", Count::kSome, {}}};
  verb.options = [](po::options_description& options) {
    auto add = options.add_options();
    add("platform", po::value<std::string>()->value_name("P"),
        "machine that was measured: a catalogue id or a YAML file");
    add("nodes", po::value<std::string>()->value_name("N"), "nodes of tables that do not say");
    add("gpus", po::value<std::string>()->value_name("N"), "GPUs of tables that do not say");
    add("collective", po::value<std::string>()->value_name("C"),
        "collective of tables that do not say");
    add("nccl-version", po::value<std::string>()->value_name("V"),
        "version of tables that do not say");
    add("draws", po::value<std::string>()->value_name("N")->default_value("64"),
        "joint draws to keep");
    add("seed", po::value<std::string>()->value_name("N")->default_value("0"), "seed of the draws");
  };
  verb.writes = Writes::kFile;
  verb.examples = {
      {"./rehearse calibrate tests/golden/nccl_tests/all_reduce.txt --platform hgx-h100 -o "
       "hgx-h100.overlay.yaml",
       "from a table that all_reduce_perf printed"},
      {"./rehearse run ddp-16 --draws 20", "a step time with its range over uncertain parameters"}};
  verb.run = run_calibrate;
  return verb;
}

}  // namespace rehearse::cli
