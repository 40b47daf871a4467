// SPDX-License-Identifier: Apache-2.0
#include "sim/outcome/outcome.hpp"

#include <fmt/format.h>

#include <set>

#include "base/text.hpp"
#include "base/version.hpp"

namespace rehearse::sim {
namespace {

// Of why a run takes so long: all, how busy links are, nothing.
enum class Reasons : uint8_t { kTold, kLinks, kLeftOut };

// Settings and parts that keep a communicator from its best transport, and whose they are.
void add_fallbacks(const Evidence& evidence, pb::Outcome& out) {
  Findings findings;
  std::set<std::pair<uint32_t, std::string>> blamed;
  for (size_t c = 0; c < evidence.models.size(); ++c) {
    for (const Fallback& fallback : evidence.models[c].fallbacks()) {
      findings.add("transport-fallback", Severity::kWarning,
                   fmt::format("{}: {} instead of {} ({})", evidence.program.communicators[c].id,
                               fallback.to, fallback.from, fallback.why),
                   "see the transport of each communicator; restore the setting or part named");
      if (!blamed.emplace(fallback.node, fallback.why).second) continue;
      pb::Culprit& culprit = *out.add_culprits();
      culprit.set_kind("node");
      culprit.set_node(fallback.node);
      culprit.set_why(fallback.why);
    }
    findings.merge(evidence.models[c].findings());
  }
  add_findings(findings, *out.mutable_findings());
}

pb::Outcome made(const Scenario& scenario, const Evidence& whole, Reasons reasons) {
  pb::Outcome out;
  out.set_schema("rehearse.outcome/1");
  out.set_scenario(scenario.document.name());
  out.set_synthetic(scenario.trace->header.synthetic());
  out.set_platform(platform_line(scenario.document.platform()));
  out.set_seed(scenario.document.seed());
  out.set_ranks(static_cast<uint32_t>(whole.program.ranks.size() * scenario.replicas));
  out.set_version(version());
  for (const std::string& patch : scenario.applied) out.add_patches(patch);
  const Ending ending = fill_ending(scenario, whole, out);
  const Evidence cut{whole.program, whole.names,   ending.replayed, whole.models,
                     whole.links,   whole.options, whole.schedule};
  const Evidence& evidence = ending.ended ? cut : whole;
  out.set_end_ns(ending.ended ? ending.when : evidence.replayed.end_time);
  const std::vector<Nanos> ends = step_ends(evidence);
  fill_step_times(ends, *out.mutable_step_time_ns());
  fill_breakdown(evidence, ends, out);
  fill_communicators(evidence, out);
  if (reasons != Reasons::kLeftOut) fill_links(evidence, out);
  if (out.verdict() == pb::COMPLETED) {
    if (reasons == Reasons::kTold) {
      fill_critical_path(evidence, out);
      fill_stragglers(evidence, out);
    }
    fill_goodput(scenario.document, evidence, ends, out);
  }
  fill_disagreement(evidence, scenario.document.launch(), out);
  add_findings(scenario.findings, *out.mutable_findings());
  add_findings(evidence.program.findings, *out.mutable_findings());
  add_fallbacks(evidence, out);
  return out;
}

}  // namespace

void add_findings(const Findings& findings,
                  google::protobuf::RepeatedPtrField<pb::OutcomeFinding>& out) {
  for (const Finding& finding : findings.rows()) {
    pb::OutcomeFinding& row = *out.Add();
    row.set_id(finding.id);
    row.set_severity(name_of(finding.severity));
    row.set_count(finding.count);
    row.set_first(finding.first);
    row.set_advice(finding.advice);
  }
}

std::string platform_line(const pb::Platform& platform) {
  const auto nodes = platform.nodes_size();
  return fmt::format("{}: {} node{}", platform.name(), nodes, nodes == 1 ? "" : "s");
}

pb::Outcome make_outcome(const Scenario& scenario, const Evidence& evidence) {
  return made(scenario, evidence, Reasons::kTold);
}

pb::Outcome make_observed(const Scenario& scenario, const Evidence& evidence) {
  return made(scenario, evidence, Reasons::kLinks);
}

pb::Outcome make_figures(const Scenario& scenario, const Evidence& evidence) {
  return made(scenario, evidence, Reasons::kLeftOut);
}

}  // namespace rehearse::sim
