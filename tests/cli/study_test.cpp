// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "base/document.hpp"
#include "base/random.hpp"
#include "cli/study/effects.hpp"
#include "cli/study/plan.hpp"
#include "cli/study/row.hpp"
#include "cli/study/search.hpp"
#include "cli/study/slurm.hpp"
#include "cli/study/store.hpp"
#include "cli/study/surrogate.hpp"
#include "tests/temporary_folder.hpp"

namespace rehearse::cli::study_test {
namespace {

Result<Plan> plan_from(const std::string& yaml) {
  pb::Study study;
  if (auto read = read_document(yaml, "s.yaml", study); !read) return tl::unexpected(read.error());
  return plan_of(study, "s.yaml");
}

Plan good_plan(const std::string& yaml) {
  auto plan = plan_from(yaml);
  if (!plan) FAIL(plan.error().message());
  return std::move(*plan);
}

// A completed row with this step time on so many GPUs.
Row row_with(double step, double gpus = 8) {
  Row row;
  row.verdict = "completed";
  row.symptom = "healthy";
  row.figures.assign(metric_names().size(), 0);
  row.figures[0] = step;
  row.figures[6] = gpus;
  return row;
}

Goal goal_of(const std::string& yaml) {
  pb::Study study;
  REQUIRE(read_document(yaml, "s.yaml", study));
  auto goal = Goal::of(study, "s.yaml");
  if (!goal) FAIL(goal.error().message());
  return std::move(*goal);
}

TEST_CASE("the points of a study are the product of its axes, the last one fastest", "[study]") {
  const Plan plan =
      good_plan("base: ddp-16\naxes:\n  - {set: a.b, values: [x, y]}\n  - seed: [1, 2, 3]\n");
  REQUIRE(plan.points.size() == 6);
  CHECK(plan.columns() == std::vector<std::string>{"b", "seed"});
  CHECK(plan.labels(1) == std::vector<std::string>{"x", "2"});
  CHECK(plan.edits(5) == std::vector<Edit>{{"set", "a.b=y"}, {"set", "seed=3"}});
}

TEST_CASE("ranges step or multiply and keep their unit", "[study]") {
  const Plan plan = good_plan(
      "base: b\naxes:\n  - {set: a, range: {from: 25Gbps, to: 200Gbps, factor: 2}}\n"
      "  - {set: c, range: {from: 0, to: 0.3, step: 0.1}}\n");
  REQUIRE(plan.axes[0].values.size() == 4);
  CHECK(plan.axes[0].values[3].labels[0] == "200Gbps");
  CHECK(plan.axes[0].ordered);
  REQUIRE(plan.axes[1].values.size() == 4);
  CHECK(plan.axes[1].values[3].labels[0] == "0.3");
}

TEST_CASE("axes that are zipped move together", "[study]") {
  const Plan plan = good_plan(
      "base: b\naxes:\n  - zip:\n      - {name: tp, written: trace.synth.tp, values: [1, 2]}\n"
      "      - {name: pp, written: trace.synth.pp, values: [8, 4]}\n");
  REQUIRE(plan.points.size() == 2);
  CHECK(plan.labels(1) == std::vector<std::string>{"2", "4"});
  CHECK(plan.written(1) == sim::Assignments{{"trace.synth.tp", "2"}, {"trace.synth.pp", "4"}});
  const auto uneven =
      plan_from("base: b\naxes:\n  - zip: [{set: a, values: [1, 2]}, {set: c, values: [1]}]\n");
  REQUIRE_FALSE(uneven);
  CHECK(uneven.error().where == "s.yaml: axes[0].zip[1]");
}

TEST_CASE("conditions leave out points, or fold an axis that does not matter", "[study]") {
  const Plan plan = good_plan(
      "base: b\naxes:\n  - {name: nodes, set: a, values: [1, 2, 4]}\n"
      "  - {name: nics, set: c, values: [1, 2], only_if: nodes > 1}\nonly_if: nodes != 4\n");
  REQUIRE(plan.points.size() == 3);
  CHECK(plan.labels(0) == std::vector<std::string>{"1", "1"});
  CHECK(plan.labels(2) == std::vector<std::string>{"2", "2"});
}

TEST_CASE("a condition that cannot be read says why", "[study]") {
  const std::vector<std::string> names = {"nodes", "algorithm"}, values = {"2", "Ring"};
  CHECK(*holds("nodes >= 2 and algorithm == Ring", names, values, "w"));
  CHECK_FALSE(*holds("nodes < 2", names, values, "w"));
  CHECK(holds("node > 1", names, values, "w").error().fix == "did you mean nodes?");
  CHECK_FALSE(holds("nodes 2", names, values, "w"));
  CHECK_FALSE(holds("algorithm < Tree", names, values, "w"));
  CHECK_FALSE(holds("nodes > 1 or nodes < 1", names, values, "w"));
}

TEST_CASE("a study that makes no sense is refused with its place", "[study]") {
  CHECK_FALSE(plan_from("axes: []\n"));
  CHECK(plan_from("base: b\naxes:\n  - {name: x}\n").error().where == "s.yaml: axes[0]");
  CHECK_FALSE(plan_from("base: b\naxes:\n  - {set: a, seed: [1], values: [2]}\n"));
  CHECK_FALSE(
      plan_from("base: b\naxes:\n  - {set: a.x, values: [1]}\n  - {set: b.x, values: [1]}\n"));
  CHECK_FALSE(plan_from("base: b\naxes:\n  - {set: a, range: {from: 1, to: 9}}\n"));
  CHECK(plan_from("base: b\naxes:\n  - {set: a, range: {from: 1, to: 100000, step: 1}}\n"
                  "  - {set: c, range: {from: 1, to: 100000, step: 1}}\n")
            .error()
            .code == Code::kLimit);
}

TEST_CASE("bounds and objective decide what is feasible and best", "[study]") {
  const Goal goal = goal_of(
      "base: b\nconstraints: [{metric: step_time_ns, at_most: 2us}, {metric: symptom, is: "
      "healthy}]\n");
  CHECK(goal.feasible(row_with(2000)));
  CHECK_FALSE(goal.feasible(row_with(2001)));
  Row sick = row_with(10);
  sick.symptom = "B3";
  CHECK_FALSE(goal.feasible(sick));
  CHECK_FALSE(goal.feasible(failed_row({Code::kLimit, "too long", "", ""})));
  const Goal most = goal_of("base: b\nobjective: {maximise: gpus}\n");
  CHECK(*most.cost(row_with(1, 8)) < *most.cost(row_with(1, 4)));
  pb::Study study;
  REQUIRE(read_document("base: b\nobjective: {minimise: step_tim_ns}\n", "s.yaml", study));
  CHECK(Goal::of(study, "s.yaml").error().fix == "did you mean step_time_ns?");
}

TEST_CASE("a row comes back from its JSON as it was", "[study]") {
  Row row = row_with(1234);
  row.no_range = "no draws";
  const auto again = parse_row(row_json(row).dump(), "x");
  REQUIRE(again);
  CHECK(again->figures == row.figures);
  CHECK(again->verdict == "completed");
  CHECK(again->no_range == "no draws");
  CHECK_FALSE(parse_row("{", "x"));
  CHECK_FALSE(parse_row(R"({"verdict":"completed","symptom":"healthy"})", "x"));
}

TEST_CASE("effects: an additive study has shares of its axes that add up to all", "[study]") {
  const Plan plan =
      good_plan("base: b\naxes:\n  - {set: a, values: [0, 1]}\n  - {set: c, values: [0, 1, 2]}\n");
  std::map<size_t, Row> rows;
  for (size_t p = 0; p < plan.points.size(); ++p) {
    rows[p] = row_with(100 + 30.0 * plan.points[p][0] + 10.0 * plan.points[p][1]);
  }
  const auto effects = effects_of(plan, rows, goal_of("base: b\n"));
  REQUIRE(effects.size() == 2);
  // Between two values 30 apart: 6 * 15^2; between three 10 apart: 4 * 10^2.
  CHECK(effects[0].share == Approx(1350.0 / 1750));
  CHECK(effects[1].share == Approx(400.0 / 1750));
  CHECK(effects[0].means == std::vector<double>{110, 140});
}

TEST_CASE("effects: what only the two together do is an interaction", "[study]") {
  const Plan plan =
      good_plan("base: b\naxes:\n  - {set: a, values: [0, 1]}\n  - {set: c, values: [0, 1]}\n");
  std::map<size_t, Row> rows;
  for (size_t p = 0; p < 4; ++p) rows[p] = row_with(p == 0 || p == 3 ? 100 : 200);
  const auto effects = effects_of(plan, rows, goal_of("base: b\n"));
  REQUIRE(effects.size() == 3);
  CHECK(effects[0].share == Approx(0).margin(1e-12));
  CHECK(effects[2].axes == std::vector<size_t>{0, 1});
  CHECK(effects[2].share == Approx(1));
}

TEST_CASE("effects: shares overlap where a combination has no feasible point", "[study]") {
  const Plan plan =
      good_plan("base: b\naxes:\n  - {set: a, values: [0, 1]}\n  - {set: c, values: [0, 1]}\n");
  const Goal goal = goal_of("base: b\n");
  std::map<size_t, Row> rows;
  for (size_t p = 0; p < 4; ++p) rows[p] = row_with(100 + static_cast<double>(p));
  CHECK(is_full_product(plan, rows, goal));
  rows[2].failed = true;
  CHECK_FALSE(is_full_product(plan, rows, goal));
  rows.erase(2);
  CHECK_FALSE(is_full_product(plan, rows, goal));
}

TEST_CASE("the front has no point that another beats in both", "[study]") {
  const std::map<size_t, Row> rows = {{0, row_with(10, 64)}, {1, row_with(20, 32)},
                                      {2, row_with(25, 32)}, {3, row_with(20, 64)},
                                      {4, row_with(50, 8)},  {5, row_with(20, 32)}};
  CHECK(pareto_front(rows, goal_of("base: b\n"), "gpus", "step_time_ns") ==
        std::vector<size_t>{4, 1, 0});
}

// The best cost found with a budget, of a study whose cost is a function of the point.
double found(const Plan& plan, size_t budget, uint64_t seed,
             const std::function<double(const std::vector<uint32_t>&)>& cost, bool at_random) {
  double best = INFINITY;
  if (at_random) {
    Random random(seed, "baseline");
    for (size_t i = 0; i < budget; ++i) {
      best = std::min(best, cost(plan.points[random.below(plan.points.size())]));
    }
    return best;
  }
  const Evaluate evaluate = [&](std::span<const size_t> points) {
    std::vector<std::optional<double>> out;
    for (const size_t p : points) out.emplace_back(cost(plan.points[p]));
    return Result<std::vector<std::optional<double>>>(std::move(out));
  };
  const auto order = search(plan, budget, seed, evaluate);
  REQUIRE(order);
  REQUIRE(order->size() == budget);
  CHECK(std::set<size_t>(order->begin(), order->end()).size() == budget);
  for (const size_t p : *order) best = std::min(best, cost(plan.points[p]));
  return best;
}

TEST_CASE("search finds a better point than the same number of random ones", "[study]") {
  const Plan plan = good_plan(
      "base: b\naxes:\n  - {set: a, range: {from: 1, to: 20, step: 1}}\n"
      "  - {set: c, range: {from: 1, to: 20, step: 1}}\n  - {set: d, values: [p, q, r, s]}\n");
  const auto valley = [](const std::vector<uint32_t>& at) {
    const double x = at[0] - 13.0, y = at[1] - 4.0;
    return 100 + x * x + y * y + 0.5 * x * y + (at[2] == 2 ? 0 : 30);
  };
  double searched = 0, random = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    searched += found(plan, 60, seed, valley, false);
    random += found(plan, 60, seed, valley, true);
  }
  CHECK(searched / 20 < 102);
  CHECK(searched < random);
}

TEST_CASE("a guess goes where known points are better, and not twice", "[study]") {
  const Plan plan = good_plan("base: b\naxes:\n  - {set: a, range: {from: 1, to: 9, step: 1}}\n");
  const std::vector<KnownPoint> known = {{0, 100.0}, {4, 50.0}, {8, std::nullopt}};
  const std::vector<size_t> left = {1, 2, 3, 5, 6, 7};
  const std::vector<size_t> next = most_promising(plan, known, left, 3);
  CHECK(std::set<size_t>(next.begin(), next.end()).size() == 3);
  CHECK((next.front() == 3 || next.front() == 5));
  // Only the order of costs counts.
  CHECK(most_promising(plan, {{0, -1.0}, {4, -1e12}, {8, 3.0}}, left, 3) == next);
  CHECK(most_promising(plan, known, left, 9).size() == left.size());
}

TEST_CASE("search of a large study stays within its budget and finds the valley", "[study]") {
  const Plan plan = good_plan(
      "base: b\naxes:\n  - {set: a, range: {from: 1, to: 30, step: 1}}\n"
      "  - {set: c, range: {from: 1, to: 30, step: 1}}\n  - {set: d, range: {from: 1, to: 30, "
      "step: 1}}\n");
  const auto valley = [](const std::vector<uint32_t>& at) {
    return std::abs(at[0] - 20.0) + std::abs(at[1] - 5.0) + std::abs(at[2] - 11.0);
  };
  CHECK(found(plan, 300, 1, valley, false) < found(plan, 300, 1, valley, true));
}

TEST_CASE("search looks at every point when the budget allows", "[study]") {
  const Plan plan =
      good_plan("base: b\naxes:\n  - {set: a, values: [1, 2, 3]}\n  - seed: [1, 2, 3]\n");
  CHECK(found(
            plan, 9, 1, [](const auto& at) { return at[0] == 1 && at[1] == 2 ? 0.0 : 1.0; },
            false) == 0);
}

TEST_CASE("points are known by what they change", "[study]") {
  const std::vector<Edit> a = {{"set", "x=1"}}, b = {{"set", "x=1"}, {"set", "y=2"}},
                          c = {{"set", "x=1\nset 3 y=2"}};
  CHECK(point_id("i", a) == point_id("i", a));
  CHECK(point_id("i", a) != point_id("j", a));
  CHECK(point_id("i", b) != point_id("i", c));
}

TEST_CASE("the batch script quotes what the user names", "[study]") {
  const std::string script =
      batch_script({"/opt/re hearse", "/tmp/it's.yaml", "/tmp/my 5% out", 4, "gpu", 2, 8});
  CHECK(script.find("#SBATCH --array=0-3%2\n") != std::string::npos);
  CHECK(script.find("#SBATCH --partition=gpu\n") != std::string::npos);
  CHECK(script.find("exec '/opt/re hearse' sweep '/tmp/it'\\''s.yaml' --shard "
                    "\"$SLURM_ARRAY_TASK_ID/4\" --jobs 8 -o '/tmp/my 5% out'\n") !=
        std::string::npos);
  CHECK(script.find("#SBATCH --output=\"/tmp/my 5%% out/log/%a.txt\"\n") != std::string::npos);
}

TEST_CASE("shipped studies can be planned", "[study]") {
  const auto studies = shipped_studies();
  REQUIRE(studies);
  CHECK(studies->size() >= 8);
  for (const ShippedStudy& study : *studies) {
    const auto plan = read_plan(study.name);
    INFO(study.name << ": " << (plan ? "" : plan.error().message()));
    REQUIRE(plan);
    CHECK(Goal::of(plan->study, study.name));
    CHECK_FALSE(study.description.empty());
  }
}

}  // namespace
}  // namespace rehearse::cli::study_test
