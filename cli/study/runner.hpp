// SPDX-License-Identifier: Apache-2.0
// Computes points of a study: each in a forked child that shares the loaded trace and platform, several at a
// time. What is in the store already is not computed again; a child that dies is tried once more and then
// becomes a lost row with its reason.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/reporter.hpp"
#include "cli/study/plan.hpp"
#include "cli/study/row.hpp"
#include "cli/study/store.hpp"
#include "faults/check/rules.hpp"
#include "faults/fault_catalogue.hpp"

namespace rehearse::cli {

struct RunLimits {
  unsigned jobs = 1;
  std::chrono::nanoseconds time{0};  // per point; 0: none
  uint64_t memory = 0;               // bytes of address space per point; 0: none
};

// Ranges of step times: draws per point (0: none) from a calibration of the platform, which holds for every point, or from
// the model's priors.
struct Sampling {
  uint32_t draws = 0;
  std::optional<pb::Patch> calibration = std::nullopt;
};

class Runner {
 public:
  // All must outlive the runner.
  Runner(const Plan& plan, const Store& store, const faults::FaultCatalogue& catalogue,
         RunLimits limits, Reporter& reporter);

  // Rows of these points by their number in the plan. An error is one of the study (its base cannot
  // be loaded, the folder cannot be written), not of a point.
  [[nodiscard]] Result<std::map<size_t, Row>> run(std::span<const size_t> points);
  // Those in the store already; a point without a row is left out, and one that was lost where it may yet be computed.
  enum class Lost { kCounted, kLeftOut };
  [[nodiscard]] Result<std::map<size_t, Row>> collect(std::span<const size_t> points,
                                                      Lost lost = Lost::kCounted);
  // Points computed so far, those that were there already left out.
  [[nodiscard]] uint64_t computed() const { return computed_; }
  // Before run() and collect().
  void sample(Sampling sampling) { sampling_ = std::move(sampling); }
  // Called after each point that ended, with its row.
  std::function<void(size_t point, const Row& row)> seen;

 private:
  struct Base {
    sim::Scenario scenario;
    std::string identity;
    pb::Outcome unchanged;  // what points are compared with
  };
  struct Task {
    std::string id;
    std::vector<size_t> points;  // alike
  };
  using Groups = std::map<sim::Assignments, std::vector<size_t>>;

  [[nodiscard]] Groups grouped(std::span<const size_t> points) const;
  [[nodiscard]] Result<std::shared_ptr<Base>> load(const sim::Assignments& written);
  void get_ready(Base& base, const Task& task);
  [[nodiscard]] Result<void> compute(Base& base, const std::vector<Task>& tasks,
                                     std::map<size_t, Row>& rows);
  // In a child: what it changes of the base is its own.
  [[nodiscard]] Result<std::string> work(Base& base, const Task& task) const;
  [[nodiscard]] Result<sim::Scenario> edited(sim::Scenario scenario,
                                             const std::vector<Edit>& edits) const;
  [[nodiscard]] Result<Row> simulated(Base& base, const std::vector<Edit>& edits) const;
  [[nodiscard]] Result<pb::Band> drawn(const sim::Scenario& base,
                                       const sim::Scenario& scenario) const;
  // The name of a point's file, its draws included.
  [[nodiscard]] std::string id_of(const Base& base, size_t point) const;
  // Fills ids_ of these points.
  [[nodiscard]] Result<void> identify(std::span<const size_t> points);
  [[nodiscard]] Result<void> finish(const Task& task, const Result<std::string>& answer,
                                    std::map<size_t, Row>& rows);
  void add(const Task& task, const Row& row, std::map<size_t, Row>& rows);

  const Plan& plan_;
  const Store& store_;
  const faults::FaultCatalogue& catalogue_;
  RunLimits limits_;
  Sampling sampling_;
  Reporter& reporter_;
  Result<faults::Rules> rules_;
  std::map<sim::Assignments, std::shared_ptr<Base>> loaded_;
  std::map<size_t, std::string>
      ids_;  // of points that were collected, which may be asked for again
  uint64_t computed_ = 0;
  // Of one run: points with a row, those computed among them, and all.
  uint64_t done_ = 0, ended_ = 0, wanted_ = 0;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace rehearse::cli
