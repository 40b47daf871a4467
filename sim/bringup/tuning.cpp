// SPDX-License-Identifier: Apache-2.0
// The last step of ncclCommInitRank: each rank reads NCCL_PROTO and NCCL_ALGO. Since 2.24 a word that NCCL does not
// know ends it with ncclInvalidUsage; before it was passed over (sim/nccl/selection.hpp).
#include <fmt/format.h>

#include "sim/bringup/states.hpp"
#include "sim/bringup/wires.hpp"
#include "sim/nccl/settings.hpp"
#include "sim/nccl/version.hpp"

namespace rehearse::sim::bringup {
namespace {

const char* error_word(SelectionSlip::Kind kind) {
  switch (kind) {
    case SelectionSlip::Kind::kFunction:
      return "prefix";
    case SelectionSlip::Kind::kNoFunction:
      return "no-prefix";
    default:
      return "element";
  }
}

std::string why(const RefusedSelection& refused) {
  const std::string& meant = refused.slip.nearest;
  return fmt::format("{}={}: NCCL does not know \"{}\"{}", refused.variable, refused.value,
                     refused.slip.token, meant.empty() ? "" : "; " + meant + " is meant");
}

}  // namespace

void tune_nccl(Job& job) {
  const auto version = parse_nccl_version(job.launch.nccl_version());
  if (!version) return;
  Wires wires(job);
  std::vector<std::pair<uint32_t, std::string>> blamed;
  for (const size_t p : wires.there()) {
    const auto refused = refused_selection(wires.process(p).env, *version);
    if (!refused) continue;
    Trouble trouble{.process = p, .state = "tuning", .error = error_word(refused->slip.kind)};
    trouble.since = trouble.gives_up = wires.process(p).clock;
    trouble.facts = {{"token", refused->slip.token}, {"value", refused->value}};
    job.add(std::move(trouble));
    blamed.emplace_back(wires.process(p).seat, why(*refused));
  }
  if (blamed.empty()) return;
  // A setting of the whole job is nobody's own.
  if (blamed.size() == wires.there().size()) {
    job.blame("configuration", 0, blamed.front().second);
  } else {
    for (const auto& [rank, text] : blamed) job.blame("rank", rank, text);
  }
  wires.rest_waits();
}

}  // namespace rehearse::sim::bringup
