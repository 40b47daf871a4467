// SPDX-License-Identifier: Apache-2.0
#include "cli/study/runner.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <deque>
#include <nlohmann/json.hpp>

#include "base/units.hpp"
#include "cli/scenario_options.hpp"
#include "faults/world.hpp"
#include "sim/prepared.hpp"
#include "sim/simulate.hpp"
#include "sim/worker.hpp"
#include "validation/certainty/band.hpp"

namespace rehearse::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kMostLoaded = 4;  // scenarios kept in memory
constexpr int kTries = 2;

void limit_memory(uint64_t bytes) {
  const rlimit limit{bytes, bytes};
  ::setrlimit(RLIMIT_AS, &limit);
}

}  // namespace

struct Runner::Busy {
  Task task;
  sim::Child child;
  Clock::time_point since;
  bool late = false;
};

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

Result<pb::Outcome> Runner::simulated(const Base& base, sim::Scenario& scenario,
                                      const Task& task) const {
  SilentReporter silent;
  for (const auto& [option, value] : plan_.edits(task.points.front())) {
    if (auto done = apply_edit(scenario, option, value, catalogue_); !done) {
      return tl::unexpected(std::move(done).error());
    }
  }
  // Draws first: they fork from a process that has simulated nothing yet.
  std::optional<pb::Band> band;
  if (sampling_.draws > 0) {
    const pb::Calibration* own =
        sampling_.calibration ? &sampling_.calibration->calibration() : nullptr;
    RH_TRY(validation::Drawing drawing,
           validation::drawing_of(own, scenario.document, sampling_.draws));
    drawing.jobs = 1;
    if (auto drawn = validation::step_time_band(base.scenario, scenario, drawing, silent); drawn) {
      band = std::move(*drawn);
    }
  }
  RH_TRY(pb::Outcome outcome, sim::simulate_here(scenario, sim::Detail::kSummary, silent));
  if (band && outcome.verdict() == pb::COMPLETED) *outcome.mutable_step_time_band_ns() = *band;
  return outcome;
}

Result<std::string> Runner::work(const Base& base, const Task& task) const {
  if (limits_.memory > 0) limit_memory(limits_.memory);
  sim::Scenario scenario = base.scenario;
  auto outcome = simulated(base, scenario, task);
  Row row;
  if (outcome) {
    const bool differs = !plan_.edits(task.points.front()).empty();
    const bool compared = differs && base.unchanged.has_step_time_ns();
    faults::observe(scenario, *rules_, compared ? &base.unchanged.step_time_ns() : nullptr,
                    *outcome);
    row = row_of(*outcome);
  } else if (outcome.error().code == Code::kLimit) {
    return tl::unexpected(std::move(outcome).error());  // another machine may have room for it
  } else {
    row = failed_row(outcome.error());
  }
  if (auto written = store_.put(task.id, row); !written) {
    return tl::unexpected(std::move(written).error());
  }
  return row_json(row).dump();
}

void Runner::add(const Task& task, const Row& row, std::map<size_t, Row>& rows) {
  for (const size_t point : task.points) {
    rows[point] = row;
    if (seen) seen(point, row);
  }
  done_ += task.points.size();
  reporter_.progress("points", done_, wanted_);
}

// False: the child was lost and its task is to be tried again.
Result<bool> Runner::finish(Busy& busy, std::map<size_t, Row>& rows) {
  auto answer = busy.child.answer();
  if (answer) {
    RH_TRY(const Row row, parse_row(*answer, busy.task.id));
    add(busy.task, row, rows);
    return true;
  }
  Error error = std::move(answer).error();
  if (error.code == Code::kIo) return tl::unexpected(std::move(error));
  if (busy.late) {
    error = {Code::kLimit,
             fmt::format("took longer than {}", format_duration(limits_.time.count())),
             {},
             "raise --point-time"};
  } else if (++busy.task.tries < kTries) {
    return false;
  }
  const Row row = failed_row(error);
  if (auto written = store_.put_lost(busy.task.id, row); !written) {
    return tl::unexpected(std::move(written).error());
  }
  add(busy.task, row, rows);
  return true;
}

Result<void> Runner::compute(const Base& base, std::vector<Task> tasks,
                             std::map<size_t, Row>& rows) {
  std::deque<Task> waiting(std::make_move_iterator(tasks.begin()),
                           std::make_move_iterator(tasks.end()));
  std::vector<Busy> busy;
  SilentReporter silent;
  while (!waiting.empty() || !busy.empty()) {
    if (reporter_.interrupted()) return fail(Code::kInterrupted, "stopped");
    while (!waiting.empty() && busy.size() < limits_.jobs) {
      Task task = std::move(waiting.front());
      waiting.pop_front();
      RH_TRY(sim::Child child, sim::Child::start([&](Reporter&) { return work(base, task); }));
      ++computed_;
      busy.push_back({std::move(task), std::move(child), Clock::now()});
    }
    std::vector<pollfd> descriptors;
    for (const Busy& one : busy) descriptors.push_back({one.child.descriptor(), POLLIN, 0});
    ::poll(descriptors.data(), descriptors.size(), 100);
    for (size_t i = busy.size(); i-- > 0;) {
      if (limits_.time.count() > 0 && !busy[i].late &&
          Clock::now() - busy[i].since > limits_.time) {
        busy[i].late = true;
        busy[i].child.kill();
      }
      if (descriptors[i].revents == 0 || busy[i].child.read(silent)) continue;
      RH_TRY(const bool done, finish(busy[i], rows));
      if (!done) waiting.push_back(std::move(busy[i].task));
      busy.erase(busy.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  return {};
}

// What children would each do again for themselves.
void Runner::get_ready(Base& base) {
  sim::prepare(base.scenario);
  // A base that cannot be simulated leaves points without comparison; each tells what is wrong.
  SilentReporter silent;
  base.unchanged = sim::simulate(base.scenario, silent).value_or(pb::Outcome());
  // Descriptors and tables that are made when they are first used: children inherit them.
  pb::Outcome outcome = base.unchanged;
  faults::observe(base.scenario, *rules_, nullptr, outcome);
  (void)row_json(row_of(outcome)).dump();
}

Result<std::map<size_t, Row>> Runner::run(std::span<const size_t> points) {
  if (!rules_) return tl::unexpected(rules_.error());
  std::map<size_t, Row> rows;
  done_ = 0;
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
    if (!tasks.empty() && base->scenario.prepared == nullptr) get_ready(*base);
    if (auto done = compute(*base, std::move(tasks), rows); !done) {
      return tl::unexpected(std::move(done).error());
    }
  }
  return rows;
}

Result<std::map<size_t, Row>> Runner::collect(std::span<const size_t> points) {
  std::map<size_t, Row> rows;
  for (const auto& [written, members] : grouped(points)) {
    RH_TRY(const auto base, load(written));
    for (const size_t point : members) {
      const std::string id = id_of(*base, point);
      auto row = store_.find(id);
      if (!row) row = store_.find_lost(id);
      if (row) rows[point] = std::move(*row);
    }
  }
  return rows;
}

}  // namespace rehearse::cli
