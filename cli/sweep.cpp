// SPDX-License-Identifier: Apache-2.0
// `rehearse sweep`: a study, here, on one shard of many, or as a Slurm job array.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <thread>

#include "base/document.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "cli/context.hpp"
#include "cli/draws_option.hpp"
#include "cli/scenario_options.hpp"
#include "cli/shard.hpp"
#include "cli/study/runner.hpp"
#include "cli/study/search.hpp"
#include "cli/study/slurm.hpp"
#include "cli/study/summary.hpp"
#include "cli/table.hpp"
#include "cli/verbs.hpp"

namespace rehearse::cli {
namespace {
namespace po = boost::program_options;
namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

Result<RunLimits> limits_of(const Context& context) {
  RunLimits limits;
  RH_TRY(const int64_t jobs, context.number("jobs", 1, 4096));
  limits.jobs = static_cast<unsigned>(jobs);
  if (context.has("point-time")) {
    RH_TRY(const Nanos time, parse_duration(context.get<std::string>("point-time")));
    limits.time = std::chrono::nanoseconds(time);
  }
  if (context.has("point-memory")) {
    RH_TRY(const Bytes bytes, parse_bytes(context.get<std::string>("point-memory")));
    limits.memory = static_cast<uint64_t>(bytes);
  }
  return limits;
}

Result<Sampling> sampling_of(const Context& context) {
  Sampling out;
  RH_TRY(const int64_t draws, context.number("draws", 0, 10000));
  out.draws = static_cast<uint32_t>(draws);
  if (!context.has("patch-file")) return out;
  const auto file = context.get<std::string>("patch-file");
  pb::Patch patch;
  if (auto read = read_document_file(file, patch); !read) return tl::unexpected(read.error());
  if (!patch.has_calibration()) {
    return fail(Code::kBadInput, "this is no calibration", file,
                "give what `rehearse calibrate` wrote; other changes belong into the study");
  }
  out.calibration = std::move(patch);
  return out;
}

Result<void> show_plan(Context& context, const Plan& plan) {
  const std::vector<std::string> names = plan.columns();
  if (context.json()) {
    Json points = Json::array();
    for (size_t p = 0; p < plan.points.size(); ++p) {
      const std::vector<std::string> labels = plan.labels(p);
      Json point = Json::object();
      for (size_t c = 0; c < names.size(); ++c) point[names[c]] = labels[c];
      points.push_back(std::move(point));
    }
    return context.print_stdout(
        Json{{"schema", "rehearse.plan/1"}, {"study", plan.study.name()}, {"points", points}});
  }
  std::vector<Column> columns = {{"point", Align::kRight}};
  for (const std::string& name : names) columns.push_back({name});
  Table table(columns);
  for (size_t p = 0; p < plan.points.size(); ++p) {
    std::vector<std::string> cells = {std::to_string(p)};
    for (std::string& label : plan.labels(p)) cells.push_back(std::move(label));
    table.add(std::move(cells));
  }
  return context.print_stdout(std::string_view(table.text(context.terminal())));
}

Result<void> list_studies(Context& context) {
  RH_TRY(const auto studies, shipped_studies());
  if (context.json()) {
    Json rows = Json::array();
    for (const ShippedStudy& study : studies) {
      rows.push_back({{"name", study.name}, {"description", study.description}});
    }
    return context.print_stdout(Json{{"schema", "rehearse.studies/1"}, {"studies", rows}});
  }
  Table table({{"study"}, {"what it asks"}});
  for (const ShippedStudy& study : studies) table.add({study.name, study.description});
  return context.print_stdout(std::string_view(table.text(context.terminal())));
}

// All of it: plan, store, runner and what was asked for.
class Sweep {
 public:
  Sweep(Context& context, Plan plan, Goal goal, Store store, faults::FaultCatalogue catalogue,
        RunLimits limits, Sampling sampling)
      : context_(context),
        plan_(std::move(plan)),
        goal_(std::move(goal)),
        store_(std::move(store)),
        catalogue_(std::move(catalogue)),
        limits_(limits),
        runner_(plan_, store_, catalogue_, limits_, context.reporter()) {
    all_.resize(plan_.points.size());
    std::iota(all_.begin(), all_.end(), size_t{0});
    runner_.sample(std::move(sampling));
    runner_.seen = [this](size_t point, const Row& row) { tell(point, row); };
  }

  Result<int> here() {
    const auto begin = std::chrono::steady_clock::now();
    RH_TRY(const auto rows, runner_.run(all_));
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    if (runner_.computed() > 0) {
      context_.reporter().note(
          fmt::format("{} points computed in {:.1f} s, {:.0f} points/s", runner_.computed(),
                      seconds.count(), static_cast<double>(runner_.computed()) / seconds.count()));
    }
    return publish(rows);
  }

  Result<int> shard(Shard shard) {
    std::vector<size_t> mine;
    for (const size_t point : all_) {
      if (point % shard.count == shard.index) mine.push_back(point);
    }
    RH_TRY(const auto rows, runner_.run(mine));
    const auto failed = std::count_if(rows.begin(), rows.end(),
                                      [](const auto& item) { return item.second.failed; });
    context_.reporter().note(fmt::format("{} points of shard {}/{} are in {}, {} failed",
                                         rows.size(), shard.index, shard.count,
                                         store_.folder().string(), failed));
    return 0;
  }

  Result<int> merge() {
    RH_TRY(const auto rows, runner_.collect(all_));
    if (rows.size() < all_.size()) {
      return fail(
          Code::kMissingInput,
          fmt::format("{} of {} points have no result yet", all_.size() - rows.size(), all_.size()),
          store_.folder().string(), "run the other shards, or `sweep` without --merge");
    }
    return publish(rows);
  }

  Result<int> searched(size_t budget, uint64_t seed) {
    std::map<size_t, Row> rows;
    const Evaluate evaluate =
        [&](std::span<const size_t> points) -> Result<std::vector<std::optional<double>>> {
      RH_TRY(const auto more, runner_.run(points));
      std::vector<std::optional<double>> costs;
      for (const size_t point : points) costs.push_back(goal_.cost(more.at(point)));
      rows.insert(more.begin(), more.end());
      return costs;
    };
    RH_TRY(const auto order, search(plan_, budget, seed, evaluate));
    (void)order;
    return publish(rows);
  }

  Result<int> submit(const ArrayJob& job, uint32_t again) {
    std::vector<size_t> left = all_;
    // What was lost may yet be computed while tasks are at work.
    const auto missing = [&](Tasks tasks) -> Result<uint64_t> {
      const bool gone = tasks == Tasks::kGone;
      RH_TRY(const auto rows,
             runner_.collect(left, gone ? Runner::Lost::kCounted : Runner::Lost::kLeftOut));
      if (gone) return left.size() - rows.size();
      std::erase_if(left, [&](size_t point) { return rows.contains(point); });
      return left.size();
    };
    if (auto done = run_array(job, all_.size(), again, missing, context_.reporter()); !done) {
      return tl::unexpected(std::move(done).error());
    }
    return merge();
  }

 private:
  // The best so far, when it becomes clearly better.
  void tell(size_t point, const Row& row) {
    const auto cost = goal_.cost(row);
    if (!cost || (best_ && *cost > *best_ - 0.01 * std::abs(*best_))) return;
    best_ = *cost;
    context_.reporter().note(fmt::format("best so far: {} {} ({})", goal_.metric(),
                                         shown_figure(goal_.metric(), std::abs(*cost)),
                                         described(plan_, point)));
  }

  Result<int> publish(const std::map<size_t, Row>& rows) {
    if (auto written = store_.publish(plan_, rows, goal_); !written) {
      return tl::unexpected(std::move(written).error());
    }
    return show(rows);
  }

  Result<int> show(const std::map<size_t, Row>& rows) {
    RH_TRY(const int64_t top, context_.number("top", 0, 1'000'000));
    const Summary summary{plan_, rows, goal_, static_cast<size_t>(top), store_.folder().string()};
    return exit_code(context_.json() ? context_.print_stdout(summary_json(summary))
                                     : context_.print_stdout(std::string_view(
                                           summary_text(summary, context_.terminal()))));
  }

  Context& context_;
  Plan plan_;
  Goal goal_;
  Store store_;
  faults::FaultCatalogue catalogue_;
  RunLimits limits_;
  Runner runner_;
  std::vector<size_t> all_;
  std::optional<double> best_;
};

bool injects_faults(const Plan& plan) {
  return std::ranges::any_of(plan.axes, [](const StudyAxis& axis) {
    return std::ranges::any_of(axis.values, [](const AxisValue& value) {
      return std::ranges::any_of(value.edits,
                                 [](const Edit& edit) { return edit.first == "fault"; });
    });
  });
}

Result<int> submit_to_slurm(Context& context, Sweep& sweep, const std::string& what,
                            const fs::path& folder, size_t points, unsigned jobs) {
  if (context.get<std::string>("submit") != "slurm") {
    return fail(Code::kUsage, "there is no such scheduler", "--submit", "slurm");
  }
  std::error_code ec;
  ArrayJob job;
  job.program = fs::read_symlink("/proc/self/exe", ec).string();
  job.study = fs::is_regular_file(what, ec) ? fs::absolute(what).string() : what;
  job.folder = fs::absolute(folder);
  job.jobs = jobs;
  if (context.has("partition")) job.partition = context.get<std::string>("partition");
  if (context.has("nodes")) {
    RH_TRY(const int64_t nodes, context.number("nodes", 1, 1'000'000));
    job.at_once = static_cast<uint32_t>(nodes);
  }
  const auto add = [&](const std::string& option, const std::string& value) {
    job.options.push_back("--" + option);
    job.options.push_back(value);
  };
  for (const char* option : {"draws", "point-time", "point-memory"}) {
    if (context.has(option)) add(option, context.get<std::string>(option));
  }
  if (context.has("patch-file")) {
    add("patch-file", fs::absolute(context.get<std::string>("patch-file")).string());
  }
  if (context.has("catalogue")) {
    for (const auto& dir : context.get<std::vector<std::string>>("catalogue")) {
      add("catalogue", fs::absolute(dir).string());
    }
  }
  RH_TRY(const int64_t each, context.number("points-per-task", 1, 1'000'000));
  const auto per_task = static_cast<size_t>(each);
  job.tasks = static_cast<uint32_t>((points + per_task - 1) / per_task);
  RH_TRY(const int64_t again, context.number("resubmit", 0, 1000));
  return sweep.submit(job, static_cast<uint32_t>(again));
}

Result<int> run_sweep(Context& context) {
  if (context.has("list")) return exit_code(list_studies(context));
  if (context.inputs().empty()) {
    return fail(Code::kUsage, "STUDY is missing: what to compute", "sweep",
                "rehearse sweep --list shows the shipped ones");
  }
  const std::string& what = context.inputs().front();
  RH_TRY(Plan plan, read_plan(what));
  RH_TRY(Goal goal, Goal::of(plan.study, what));
  if (context.has("plan")) return exit_code(show_plan(context, plan));
  for (const char* option : {"shard", "merge", "submit"}) {
    if (!context.has("search") || !context.has(option)) continue;
    return fail(Code::kUsage, fmt::format("--search and --{} exclude each other", option), "sweep",
                "a search chooses each point by those before it, on one machine; leave one out");
  }
  RH_TRY(const RunLimits limits, limits_of(context));
  faults::FaultCatalogue catalogue;
  if (injects_faults(plan)) {
    RH_TRY(catalogue, fault_catalogue(context.arguments()));
  }
  const fs::path folder = context.output().value_or(plan.study.name() + ".sweep");
  RH_TRY(Store store, Store::open(folder));
  const size_t points = plan.points.size();
  RH_TRY(Sampling sampling, sampling_of(context));
  Sweep sweep(context, std::move(plan), std::move(goal), std::move(store), std::move(catalogue),
              limits, std::move(sampling));
  if (context.has("merge")) return sweep.merge();
  if (context.has("submit")) {
    return submit_to_slurm(context, sweep, what, folder, points, limits.jobs);
  }
  RH_TRY(const std::optional<Shard> shard, shard_of(context));
  if (context.has("search")) {
    RH_TRY(const int64_t seed, context.number("seed", 0, INT64_MAX));
    int64_t budget = std::max<int64_t>(20, static_cast<int64_t>(points / 10));
    if (context.has("budget")) {
      RH_TRY(budget, context.number("budget", 1, INT64_MAX));
    }
    return sweep.searched(static_cast<size_t>(budget), static_cast<uint64_t>(seed));
  }
  return shard ? sweep.shard(*shard) : sweep.here();
}

}  // namespace

Verb sweep_verb() {
  Verb verb;
  verb.name = "sweep";
  verb.summary = "a study: many scenarios, here or on a Slurm cluster";
  verb.details =
      "STUDY is a YAML file (sim/proto/study.proto says what is in it) or the name of a shipped "
      "study. Every point is computed once, in a process of its own, and kept in the folder of -o: "
      "a study that was stopped goes on where it was, a changed one computes what is new. With "
      "--shard several machines share the points of one folder and --merge collects them; the "
      "result has the same bytes however it was computed. --submit slurm does that with a job "
      "array and waits for it.";
  verb.positionals = {{"STUDY", "what to compute", Count::kOptional, {}}};
  verb.options = [](po::options_description& options) {
    auto add = options.add_options();
    const auto text = [] { return po::value<std::string>(); };
    add("list", "the shipped studies");
    add("plan", "show the points, compute nothing");
    add("jobs,j",
        text()->value_name("N")->default_value(
            std::to_string(std::max(1u, std::thread::hardware_concurrency()))),
        "points at a time");
    add("top", text()->value_name("N")->default_value("10"), "how many of the best to show");
    add("search", "look for the best point instead of computing all");
    add("budget", text()->value_name("N"), "points that --search may compute (default a tenth)");
    add("seed", text()->value_name("N")->default_value("1"), "of --search");
    add("shard", text()->value_name("I/N"),
        "only every Nth point, from the Ith (default: from SLURM_ARRAY_TASK_ID, "
        "OMPI_COMM_WORLD_RANK, PMI_RANK or JOB_COMPLETION_INDEX)");
    add("merge", "collect what the shards computed");
    add("submit", text()->value_name("slurm"), "compute the points as a Slurm job array");
    add("partition", text()->value_name("NAME"), "partition of the job array");
    add("nodes", text()->value_name("N"), "tasks of the job array that run at a time");
    add("points-per-task", text()->value_name("N")->default_value("100"),
        "points of one task of the job array");
    add("resubmit", text()->value_name("N")->default_value("3"),
        "times the job array is submitted again when a node took points with it");
    add("point-time", text()->value_name("TIME"), "a point that takes longer fails, e.g. 60s");
    add("point-memory", text()->value_name("BYTES"), "a point that needs more fails, e.g. 4GiB");
    add("catalogue", po::value<std::vector<std::string>>()->value_name("DIR"),
        "a folder with fault files of your own; may be repeated");
    add("patch-file", text()->value_name("FILE"),
        "a calibration of the platform, such as `calibrate` writes; holds for every point");
    add_draws_option(options, 0);
  };
  verb.writes = Writes::kFolder;
  verb.examples = {
      {"./rehearse sweep --list", "what is shipped"},
      {"./rehearse sweep bucket-size --plan", "the points of a study"},
      {"./rehearse sweep bucket-size -o buckets", "compute it; again: nothing is left to do"},
      {"./rehearse sweep bucket-size --shard 0/2 -o halves", "one half of it"},
      {"./rehearse sweep bucket-size --shard 1/2 -o halves", "the other, perhaps elsewhere"},
      {"./rehearse sweep bucket-size --merge -o halves --top 3", "both together"},
      {"./rehearse sweep bucket-size --draws 4 -o ranges", "how sure each step time is"}};
  verb.run = run_sweep;
  return verb;
}

}  // namespace rehearse::cli
