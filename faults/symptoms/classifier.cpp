// SPDX-License-Identifier: Apache-2.0
#include "faults/symptoms/classifier.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "base/units.hpp"
#include "faults/symptoms/crash_texts.hpp"

namespace rehearse::faults {
namespace {

struct Label {
  std::string_view id, label;
};

// The labels of categories.yaml; a test compares the two.
constexpr Label kLabels[] = {
    {"A1", "installation & build failure"},
    {"A2", "import error"},
    {"B1", "setup failure"},
    {"B2", "hang & timeout"},
    {"B3", "unexpected protocol"},
    {"C1", "model loading failure"},
    {"C2", "data loading failure"},
    {"C3", "communication error"},
    {"C4", "hang & timeout"},
    {"C5", "device error"},
    {"C6", "iteration failure"},
    {"D1.1", "communication error"},
    {"D1.2", "device error"},
    {"D1.3", "graph execution error"},
    {"D1.4", "tensor mismatch"},
    {"D1.5", "out of memory"},
    {"D1.6", "checkpoint unfunctioning"},
    {"D1.7", "segmentation fault"},
    {"D1.8", "attribute not found"},
    {"D1.9", "memory issue"},
    {"D1.10", "path error"},
    {"D1.11", "not implemented error"},
    {"D1.12", "others"},
    {"D2.1", "hang"},
    {"D2.2", "low efficiency"},
    {"D2.3", "unexpected parallelization"},
    {"D2.4", "unexpected intermediate result"},
    {"D2.5", "non-convergence"},
    {"D2.6", "unexpected device"},
    {"D2.7", "others"},
    {kHealthy, "healthy"},
};

pb::Symptom symptom(std::string_view id, std::vector<std::string> reasons) {
  pb::Symptom out;
  out.set_id(std::string(id));
  out.set_label(std::string(symptom_label(id)));
  for (std::string& reason : reasons) out.add_reasons(std::move(reason));
  return out;
}

const pb::OutcomeFinding* finding(const pb::Outcome& outcome, std::string_view id) {
  for (const pb::OutcomeFinding& f : outcome.findings()) {
    if (f.id() == id) return &f;
  }
  return nullptr;
}

// What a finding means, and where it was seen first as far as it says so.
std::string with_first(const std::string& what, const pb::OutcomeFinding& finding) {
  return finding.first().empty() ? what : what + ": " + finding.first();
}

std::string in_words(pb::Phase phase) {
  constexpr std::array<const char*, 7> kWords = {
      "", "start", "rendezvous", "communicator set-up", "preparation", "training", "checkpointing"};
  const auto i = static_cast<size_t>(phase);
  return i < kWords.size() ? kWords[i] : "";
}

// A rule of the static check that speaks of this run names its category.
std::optional<pb::Symptom> of_rules(const pb::Outcome& outcome) {
  for (const pb::OutcomeFinding& f : outcome.findings()) {
    if (!f.category().empty()) return symptom(f.category(), {with_first(f.id(), f)});
  }
  return std::nullopt;
}

bool in_setup(pb::Phase phase) {
  return phase == pb::STARTING || phase == pb::RENDEZVOUS || phase == pb::BOOTSTRAP;
}

pb::Symptom of_semantics(const pb::Outcome& outcome) {
  if (finding(outcome, "effective-world-size")) {
    return symptom("D2.3", {"the groups in which ranks work together are not those intended"});
  }
  for (const char* id : {"learning-rate", "effective-batch"}) {
    if (finding(outcome, id)) return symptom("D2.5", {fmt::format("finding {}", id)});
  }
  return symptom("D2.4", {"the run completes, but not with the result intended"});
}

bool over_dead_link(const pb::Outcome& outcome) {
  return std::any_of(outcome.culprits().begin(), outcome.culprits().end(),
                     [](const pb::Culprit& culprit) { return culprit.kind() == "link"; });
}

pb::Symptom of_hang(const pb::Outcome& outcome) {
  const pb::Failure& failure = outcome.first_failure();
  std::vector<std::string> reasons;
  if (outcome.waits_size() > 0) {
    const pb::Wait& wait = outcome.waits(0);
    const std::vector<uint32_t> missing(wait.for_ranks().begin(), wait.for_ranks().end());
    std::set<uint32_t> waiting;
    for (const pb::Wait& each : outcome.waits()) waiting.insert(each.rank());
    // Before there are communicators, ranks wait in a state of bring-up.
    const std::string where =
        wait.communicator().empty()
            ? ""
            : fmt::format(" (communicator {}, sequence {})", wait.communicator(), wait.sequence());
    reasons.push_back(fmt::format("{} ranks wait; rank {} in {}{} {}", waiting.size(), wait.rank(),
                                  wait.operation(), where,
                                  !missing.empty()          ? "for rank " + format_ranks(missing)
                                  : over_dead_link(outcome) ? "over a link that is down"
                                  : where.empty()           ? "and nobody comes"
                                                            : "whose members disagree"));
  } else {
    reasons.emplace_back("no rank makes progress");
  }
  if (failure.phase() != pb::PHASE_UNSPECIFIED) {
    reasons.push_back(fmt::format("it happened in {}", in_words(failure.phase())));
  }
  if (in_setup(failure.phase())) return symptom("B2", std::move(reasons));
  if (failure.phase() == pb::PREPARATION) return symptom("C4", std::move(reasons));
  if (const auto* uneven = finding(outcome, "uneven-steps")) {
    reasons.push_back(with_first("ranks differ in their number of steps", *uneven));
    return symptom("C6", std::move(reasons));
  }
  return symptom("D2.1", std::move(reasons));
}

pb::Symptom of_crash(const pb::Outcome& outcome) {
  const pb::Failure& failure = outcome.first_failure();
  std::vector<std::string> reasons;
  if (outcome.has_first_failure()) {
    reasons.push_back(fmt::format(
        "rank {} failed first{}{}", failure.rank(),
        failure.operation().empty() ? "" : " in " + failure.operation(),
        failure.phase() == pb::PHASE_UNSPECIFIED ? "" : " during " + in_words(failure.phase())));
  }
  for (const pb::ErrorText& error : outcome.error_text()) {
    const CrashText* row = match_crash_text(error.text());
    const std::string_view id = row ? category_in(*row, failure.phase()) : "";
    if (id.empty()) continue;
    reasons.push_back(fmt::format("rank {} says '{}'", error.rank(), row->text));
    if (const auto* grows = id == "D1.5" ? finding(outcome, "memory-grows") : nullptr) {
      reasons.push_back(with_first("its memory grew from step to step", *grows));
      return symptom("D1.9", std::move(reasons));
    }
    return symptom(id, std::move(reasons));
  }
  for (const pb::RankMemory& memory : outcome.memory().ranks()) {
    if (memory.capacity() <= 0 || memory.peak() <= memory.capacity()) continue;
    reasons.push_back(fmt::format("rank {} needs {} of {}", memory.rank(),
                                  format_bytes(memory.peak()), format_bytes(memory.capacity())));
    return symptom("D1.5", std::move(reasons));
  }
  const bool collective = !failure.communicator().empty();
  switch (failure.phase()) {
    case pb::STARTING:
      return symptom("A1", std::move(reasons));
    case pb::RENDEZVOUS:
    case pb::BOOTSTRAP:
      return symptom("B1", std::move(reasons));
    case pb::PREPARATION:
      return symptom(collective ? "C3" : "C1", std::move(reasons));
    case pb::CHECKPOINTING:
      return symptom("D1.6", std::move(reasons));
    default:
      return symptom(collective ? "D1.1" : "D1.12", std::move(reasons));
  }
}

std::optional<pb::Symptom> of_transport(const pb::Outcome& outcome) {
  std::vector<std::string> reasons;
  for (const pb::CommunicatorUse& use : outcome.communicators()) {
    const TransportClass used = transport_class(use.transport());
    const TransportClass offered = transport_class(use.offered());
    if (used.rank < 0 || offered.rank < 0) continue;
    // A communicator inside one node that goes over the network is slower than any path inside.
    const bool slower =
        used.between_nodes == offered.between_nodes ? used.rank < offered.rank : used.between_nodes;
    if (!slower) continue;
    reasons.push_back(fmt::format("communicator {} uses {} where the platform offers {}", use.id(),
                                  use.transport(), use.offered()));
  }
  if (const auto* fallback = finding(outcome, "transport-fallback")) {
    reasons.push_back(with_first("NCCL fell back to a slower transport", *fallback));
  }
  if (reasons.empty()) return std::nullopt;
  return symptom("B3", std::move(reasons));
}

// The ranks that keep the others waiting, when they are few enough to stand out.
std::vector<uint32_t> stragglers(const pb::Outcome& outcome) {
  std::vector<int64_t> busy;
  for (const pb::RankBreakdown& rank : outcome.breakdown())
    busy.push_back(rank.compute() + rank.host());
  if (busy.size() < 3) return {};
  std::vector<int64_t> sorted = busy;
  std::sort(sorted.begin(), sorted.end());
  const int64_t median = sorted[sorted.size() / 2];
  std::vector<uint32_t> late;
  for (int i = 0; i < outcome.breakdown_size(); ++i) {
    const pb::RankBreakdown& rank = outcome.breakdown(i);
    const double excess = static_cast<double>(busy[static_cast<size_t>(i)] - median);
    if (excess > kStandsOut * static_cast<double>(rank.step())) late.push_back(rank.rank());
  }
  if (late.size() * 4 > busy.size()) late.clear();
  return late;
}

pb::Symptom of_completed(const pb::Outcome& outcome) {
  if (const auto* device = finding(outcome, "unexpected-device")) {
    return symptom("D2.6", {with_first("work runs on another device than intended", *device)});
  }
  if (auto transport = of_transport(outcome)) return *transport;
  const int64_t step = outcome.step_time_ns().mean();
  const int64_t baseline = outcome.baseline_step_time_ns().mean();
  if (baseline > 0 && step > 0) {
    const double slower = static_cast<double>(step) / static_cast<double>(baseline) - 1;
    std::string reason =
        fmt::format("a step takes {} instead of {} ({:+.1f} %)", format_duration(step),
                    format_duration(baseline), 100 * slower);
    const bool slow = static_cast<double>(step) > (1 + kSlowerThan) * static_cast<double>(baseline);
    return symptom(slow ? "D2.2" : kHealthy, {std::move(reason)});
  }
  if (const auto late = stragglers(outcome); !late.empty()) {
    return symptom("D2.2", {fmt::format("rank {} keeps the others waiting", format_ranks(late))});
  }
  return symptom(kHealthy, {"the run completes and no rank, link or transport stands out"});
}

}  // namespace

std::string_view symptom_label(std::string_view id) {
  for (const Label& label : kLabels) {
    if (label.id == id) return label.label;
  }
  return {};
}

TransportClass transport_class(std::string_view transport) {
  const auto starts = [&](std::string_view prefix) { return transport.starts_with(prefix); };
  if (starts("NET/Socket")) return {.between_nodes = true, .rank = 0};
  if (starts("NET/")) {
    return {.between_nodes = true, .rank = transport.find("GDRDMA") != transport.npos ? 2 : 1};
  }
  if (starts("SHM")) return {.between_nodes = false, .rank = 0};
  if (starts("P2P/NVL") || starts("NVLS")) return {.between_nodes = false, .rank = 2};
  if (starts("P2P")) return {.between_nodes = false, .rank = 1};
  return {};
}

pb::Symptom classify(const pb::Outcome& outcome) {
  switch (outcome.verdict()) {
    case pb::HANG:
      return of_hang(outcome);
    case pb::CRASH:
      return of_crash(outcome);
    case pb::REJECTED:
      return of_rules(outcome).value_or(of_crash(outcome));
    case pb::WRONG_SEMANTICS:
      return of_rules(outcome).value_or(of_semantics(outcome));
    default:
      return of_completed(outcome);
  }
}

}  // namespace rehearse::faults
