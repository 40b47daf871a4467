// SPDX-License-Identifier: Apache-2.0
#include "sim/compare/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/version.hpp"
#include "sim/simulate.hpp"
#include "sim/worker.hpp"

namespace rehearse::sim {
namespace {

using Rows = google::protobuf::RepeatedPtrField<pb::Blame>;

void summarise(const pb::Outcome& outcome, pb::ComparedRun& out) {
  out.set_name(outcome.scenario());
  out.set_verdict(outcome.verdict());
  out.set_symptom(outcome.symptom().id());
  out.set_length_ns(outcome.critical_path().length_ns());
  out.set_step_ns(outcome.step_time_ns().mean());
  out.set_steps(static_cast<uint32_t>(outcome.step_time_ns().each_size()));
  *out.mutable_patches() = outcome.patches();
}

// What a run rests on besides recordings: differences of ranks that were not recorded are no result.
std::vector<std::string> assumptions_of(const pb::Outcome& outcome) {
  std::vector<std::string> out;
  for (const pb::OutcomeFinding& f : outcome.findings()) {
    if (f.id() != "symmetric-assumed" && f.id() != "variance-unknown" &&
        f.id() != "exogenous-wait") {
      continue;
    }
    out.push_back(fmt::format("{}: {}", f.first(), f.advice()));
  }
  return out;
}

void add_assumptions(const pb::Outcome& a, const pb::Outcome& b, pb::Comparison& out) {
  const std::vector<std::string> of_a = assumptions_of(a), of_b = assumptions_of(b);
  if (of_a == of_b) {
    for (const std::string& note : of_a) out.add_notes(note);
    return;
  }
  for (const std::string& note : of_a) out.add_notes("A: " + note);
  for (const std::string& note : of_b) out.add_notes("B: " + note);
}

struct Sides {
  int64_t a = 0, b = 0;
};

void add_row(const std::string& name, const Sides& sides,
             google::protobuf::RepeatedPtrField<pb::Difference>& out) {
  pb::Difference& row = *out.Add();
  row.set_name(name);
  row.set_a_ns(sides.a);
  row.set_b_ns(sides.b);
  row.set_difference_ns(sides.b - sides.a);
}

// What the rows leave of the path is the rest.
void divide(const Rows& a, const Rows& b, const Sides& length, const char* rest,
            google::protobuf::RepeatedPtrField<pb::Difference>& out) {
  std::map<std::string, Sides> parts;
  Sides left = length;
  for (const pb::Blame& row : a) {
    parts[row.name()].a += row.ns();
    left.a -= row.ns();
  }
  for (const pb::Blame& row : b) {
    parts[row.name()].b += row.ns();
    left.b -= row.ns();
  }
  std::vector<std::pair<std::string, Sides>> order(parts.begin(), parts.end());
  std::stable_sort(order.begin(), order.end(), [](const auto& x, const auto& y) {
    return std::abs(x.second.b - x.second.a) > std::abs(y.second.b - y.second.a);
  });
  for (const auto& [name, sides] : order) add_row(name, sides, out);
  if (left.a == 0 && left.b == 0) return;
  add_row(rest, left, out);
  out.rbegin()->set_rest(true);
}

}  // namespace

Result<pb::Outcome> simulate_blamed(const Scenario& written, Reporter& reporter) {
  RH_TRY(const std::string bytes,
         in_child(
             [&](Reporter& inner) -> Result<std::string> {
               RH_TRY(Start start, come_up(written));
               if (start.up.failed) return encoded(start.up.outcome);
               const Scenario& scenario = start.of(written);
               pb::Outcome outcome;
               auto done = replay_here(scenario, inner, [&](const Evidence& evidence) {
                 outcome = make_outcome(scenario, evidence);
                 outcome.MergeFrom(start.up.outcome);
                 if (!outcome.has_critical_path()) return;
                 outcome.clear_critical_path();
                 fill_critical_path(evidence, SIZE_MAX, *outcome.mutable_critical_path());
               });
               if (!done) return tl::unexpected(done.error());
               return encoded(outcome);
             },
             reporter));
  pb::Outcome outcome;
  if (!outcome.ParseFromString(bytes)) {
    return fail(Code::kInternal, "the simulation's answer could not be read");
  }
  return outcome;
}

pb::Comparison compare(const pb::Outcome& a, const pb::Outcome& b) {
  pb::Comparison out;
  out.set_schema("rehearse.compare/1");
  out.set_version(version());
  summarise(a, *out.mutable_a());
  summarise(b, *out.mutable_b());
  add_assumptions(a, b, out);
  if (out.a().steps() > 0 && out.b().steps() > 0) {
    out.set_step_difference_ns(out.b().step_ns() - out.a().step_ns());
    if (out.a().steps() != out.b().steps()) {
      out.add_notes(fmt::format(
          "one run has {} whole steps, the other {}: compare their steps, not their lengths",
          out.a().steps(), out.b().steps()));
    }
  }
  if (!a.has_critical_path() || !b.has_critical_path()) {
    out.add_notes("a run that does not complete has no critical path to compare");
    return out;
  }
  const Sides length{a.critical_path().length_ns(), b.critical_path().length_ns()};
  out.set_difference_ns(length.b - length.a);
  divide(a.critical_path().operations(), b.critical_path().operations(), length, "other operations",
         *out.mutable_operations());
  divide(a.critical_path().ranks(), b.critical_path().ranks(), length, "in calls",
         *out.mutable_ranks());
  divide(a.critical_path().links(), b.critical_path().links(), length, "not on links",
         *out.mutable_links());
  return out;
}

}  // namespace rehearse::sim
