// SPDX-License-Identifier: Apache-2.0
#include "faults/diagnose/observable.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace rehearse::faults {
namespace {

// Findings that a person would make with nvidia-smi, the framework's log or NCCL's.
constexpr std::array<std::string_view, 6> kSeen = {"uneven-steps",         "memory-grows",
                                                   "unexpected-device",    "transport-fallback",
                                                   "effective-world-size", "in-logs"};

// Fields of the launch that describe what happens, not what is written.
constexpr std::array<std::string_view, 4> kBehaviour = {"context", "contexts_on", "absent",
                                                        "computes_wrong"};

// "rank 4" where a rule names a rank, else its place: "job".
std::string where_of(const std::string& text) {
  for (const std::string_view word : {"rank ", "ranks "}) {
    for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
      size_t end = at + word.size();
      while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
      if (end > at + word.size()) {
        return "rank " + text.substr(at + word.size(), end - at - word.size());
      }
    }
  }
  return text.substr(0, text.find(':'));
}

void keep_seen_findings(pb::Outcome& outcome) {
  google::protobuf::RepeatedPtrField<pb::OutcomeFinding> kept;
  for (const pb::OutcomeFinding& finding : outcome.findings()) {
    if (std::find(kSeen.begin(), kSeen.end(), finding.id()) != kSeen.end()) {
      pb::OutcomeFinding& row = *kept.Add();
      row.set_id(finding.id());
      row.set_count(finding.count());
      row.set_first(finding.first());
    } else if (!finding.category().empty()) {
      pb::OutcomeFinding& row = *kept.Add();
      row.set_id("wrong-result");
      row.set_category(finding.category());
      row.set_first(where_of(finding.first()));
    }
  }
  *outcome.mutable_findings() = std::move(kept);
}

void keep_named_nodes(pb::Outcome& outcome) {
  google::protobuf::RepeatedPtrField<pb::Culprit> kept;
  for (const pb::Culprit& culprit : outcome.culprits()) {
    if (culprit.kind() != "node") continue;
    pb::Culprit& row = *kept.Add();
    row.set_kind(culprit.kind());
    row.set_node(culprit.node());
  }
  *outcome.mutable_culprits() = std::move(kept);
}

}  // namespace

pb::Outcome observable(const pb::Outcome& outcome) {
  pb::Outcome out = outcome;
  out.clear_patches();
  out.clear_seed();
  out.clear_symptom();
  out.clear_critical_path();
  out.clear_timeline();
  out.clear_platform();
  out.clear_command();
  out.clear_origin();
  out.clear_pictures();
  out.clear_step_time_band_ns();
  keep_seen_findings(out);
  keep_named_nodes(out);
  return out;
}

bool readable(std::string_view path) {
  if (!path.starts_with("launch.")) return false;
  const std::string_view last = path.substr(path.rfind('.') + 1);
  return std::find(kBehaviour.begin(), kBehaviour.end(), last) == kBehaviour.end();
}

pb::Launch readable_launch(const pb::Launch& launch) {
  pb::Launch out = launch;
  out.clear_context();
  for (pb::RankLaunch& rank : *out.mutable_ranks()) {
    rank.clear_contexts_on();
    rank.clear_absent();
    rank.clear_computes_wrong();
  }
  return out;
}

}  // namespace rehearse::faults
