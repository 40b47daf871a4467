// SPDX-License-Identifier: Apache-2.0
#include "cli/study/runner.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/scenario_options.hpp"
#include "faults/world.hpp"
#include "sim/pool.hpp"
#include "sim/prepared.hpp"
#include "sim/simulate.hpp"
#include "validation/certainty/band.hpp"

namespace rehearse::cli {
namespace {

constexpr size_t kMostLoaded = 4;  // scenarios kept in memory
constexpr unsigned kTries = 2;

void limit_memory(uint64_t bytes) {
  const rlimit limit{bytes, bytes};
  ::setrlimit(RLIMIT_AS, &limit);
}

}  // namespace

Runner::Runner(const Plan& plan, const Store& store, const faults::FaultCatalogue& catalogue,
               RunLimits limits, Reporter& reporter)
    : plan_(plan),
      store_(store),
      catalogue_(catalogue),
      limits_(limits),
      reporter_(reporter),
      rules_(faults::Rules::load_shipped()) {}

Runner::Groups Runner::grouped(std::span<const size_t> points) const {
  Groups groups;
  for (const size_t point : points) groups[plan_.written(point)].push_back(point);
  return groups;
}

Result<std::shared_ptr<Runner::Base>> Runner::load(const sim::Assignments& written) {
  if (const auto it = loaded_.find(written); it != loaded_.end()) return it->second;
  if (loaded_.size() >= kMostLoaded) loaded_.clear();
  RH_TRY(sim::Scenario scenario, sim::load_scenario(plan_.study.base(), written, reporter_));
  if (sampling_.calibration) {
    if (auto done = sim::apply(scenario, *sampling_.calibration); !done) {
      return tl::unexpected(std::move(done).error());
    }
  }
  RH_TRY(std::string identity, identity_of(scenario, catalogue_));
  auto base = std::make_shared<Base>(Base{std::move(scenario), std::move(identity), {}});
  loaded_[written] = base;
  return base;
}

std::string Runner::id_of(const Base& base, size_t point) const {
  std::vector<Edit> edits = plan_.edits(point);
  if (sampling_.draws > 0) edits.emplace_back("draws", std::to_string(sampling_.draws));
  return point_id(base.identity, edits);
}

Result<pb::Band> Runner::drawn(const sim::Scenario& base, const sim::Scenario& scenario) const {
  SilentReporter silent;
  const pb::Calibration* own =
      sampling_.calibration ? &sampling_.calibration->calibration() : nullptr;
  RH_TRY(validation::Drawing drawing,
         validation::drawing_of(own, scenario.document, sampling_.draws));
  drawing.jobs = 1;
  return validation::step_time_band(base, scenario, drawing, silent);
}

Result<sim::Scenario> Runner::edited(sim::Scenario scenario, const std::vector<Edit>& edits) const {
  for (const auto& [option, value] : edits) {
    RH_TRY(scenario, with_edit(std::move(scenario), option, value, catalogue_));
  }
  return scenario;
}

Result<Row> Runner::simulated(Base& base, const std::vector<Edit>& edits) const {
  SilentReporter silent;
  std::optional<sim::Scenario> unchanged;
  if (sampling_.draws > 0) unchanged = base.scenario;
  // In its place, and not given back: to free what the parent made would copy it first.
  RH_TRY(base.scenario, edited(std::move(base.scenario), edits));
  const sim::Scenario& scenario = base.scenario;
  // Draws first: they fork from a process that has simulated nothing yet.
  std::optional<Result<pb::Band>> band;
  if (unchanged) band = drawn(*unchanged, scenario);
  RH_TRY(pb::Outcome outcome, sim::simulate_here(scenario, sim::Detail::kFigures, silent));
  const bool completed = outcome.verdict() == pb::COMPLETED;
  if (completed && band && *band) *outcome.mutable_step_time_band_ns() = **band;
  const bool compared = !edits.empty() && base.unchanged.has_step_time_ns();
  faults::observe(scenario, *rules_, compared ? &base.unchanged.step_time_ns() : nullptr, outcome);
  Row row = row_of(outcome);
  if (completed && band && !*band) row.no_range = band->error().message();
  return row;
}

Result<std::string> Runner::work(Base& base, const Task& task) const {
  if (limits_.memory > 0) limit_memory(limits_.memory);
  auto row = simulated(base, plan_.edits(task.points.front()));
  if (!row) {
    // Another machine may have room for it.
    if (row.error().code == Code::kLimit) return tl::unexpected(std::move(row).error());
    row = failed_row(row.error());
  }
  if (auto written = store_.put(task.id, *row); !written) {
    return tl::unexpected(std::move(written).error());
  }
  return row_json(*row).dump();
}

void Runner::add(const Task& task, const Row& row, std::map<size_t, Row>& rows) {
  for (const size_t point : task.points) {
    rows[point] = row;
    if (seen) seen(point, row);
  }
  done_ += task.points.size();
  std::string what = "points";
  if (ended_ > 0) {
    const std::chrono::duration<double> since = std::chrono::steady_clock::now() - begin_;
    what += fmt::format(", {:.0f} points/s", static_cast<double>(ended_) / since.count());
  }
  reporter_.progress(what, done_, wanted_);
}

Result<void> Runner::finish(const Task& task, const Result<std::string>& answer,
                            std::map<size_t, Row>& rows) {
  ++ended_;
  if (answer) {
    RH_TRY(const Row row, parse_row(*answer, task.id));
    add(task, row, rows);
    return {};
  }
  Error error = answer.error();
  if (error.code == Code::kIo) return tl::unexpected(std::move(error));
  // Only what took too long has no advice of its own.
  if (error.fix.empty() && error.code == Code::kLimit) error.fix = "raise --point-time";
  const Row row = failed_row(error);
  if (auto written = store_.put_lost(task.id, row); !written) return written;
  add(task, row, rows);
  return {};
}

Result<void> Runner::compute(Base& base, const std::vector<Task>& tasks,
                             std::map<size_t, Row>& rows) {
  computed_ += tasks.size();
  return sim::run_pieces(
      tasks.size(), {.jobs = limits_.jobs, .time = limits_.time, .tries = kTries},
      [&](size_t which) { return work(base, tasks[which]); },
      [&](size_t which, const Result<std::string>& answer) {
        return finish(tasks[which], answer, rows);
      },
      reporter_);
}

// What children would each do again for themselves.
void Runner::get_ready(Base& base, const Task& task) {
  sim::prepare(base.scenario);
  // A base that cannot be simulated leaves points without comparison; each tells what is wrong.
  SilentReporter silent;
  base.unchanged = sim::simulate(base.scenario, silent).value_or(pb::Outcome());
  // Descriptors and tables that are made when they are first used: children inherit them.
  pb::Outcome outcome = base.unchanged;
  faults::observe(base.scenario, *rules_, nullptr, outcome);
  (void)row_json(row_of(outcome)).dump();
  (void)edited(base.scenario, plan_.edits(task.points.front()));
}

Result<std::map<size_t, Row>> Runner::run(std::span<const size_t> points) {
  if (!rules_) return tl::unexpected(rules_.error());
  std::map<size_t, Row> rows;
  done_ = ended_ = 0;
  begin_ = std::chrono::steady_clock::now();
  wanted_ = points.size();
  for (const auto& [written, members] : grouped(points)) {
    RH_TRY(const auto base, load(written));
    std::vector<Task> tasks;
    std::map<std::string, size_t> known;  // id to task
    for (const size_t point : members) {
      const std::string id = id_of(*base, point);
      if (const auto it = known.find(id); it != known.end()) {
        tasks[it->second].points.push_back(point);
      } else if (auto row = store_.find(id)) {
        add({id, {point}}, *row, rows);
      } else {
        known[id] = tasks.size();
        tasks.push_back({id, {point}});
      }
    }
    if (!tasks.empty() && base->scenario.prepared == nullptr) get_ready(*base, tasks.front());
    if (auto done = compute(*base, tasks, rows); !done) {
      return tl::unexpected(std::move(done).error());
    }
  }
  return rows;
}

Result<void> Runner::identify(std::span<const size_t> points) {
  std::vector<size_t> unknown;
  std::ranges::copy_if(points, std::back_inserter(unknown),
                       [&](size_t point) { return !ids_.contains(point); });
  for (const auto& [written, members] : grouped(unknown)) {
    RH_TRY(const auto base, load(written));
    for (const size_t point : members) ids_[point] = id_of(*base, point);
  }
  return {};
}

Result<std::map<size_t, Row>> Runner::collect(std::span<const size_t> points, Lost lost) {
  if (auto known = identify(points); !known) return tl::unexpected(std::move(known).error());
  std::map<size_t, Row> rows;
  for (const size_t point : points) {
    const std::string& id = ids_.at(point);
    auto row = store_.find(id);
    if (!row && lost == Lost::kCounted) row = store_.find_lost(id);
    if (row) rows[point] = std::move(*row);
  }
  return rows;
}

}  // namespace rehearse::cli
