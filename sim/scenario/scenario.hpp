// SPDX-License-Identifier: Apache-2.0
// One run to simulate, ready: the expanded document and the trace it replays. Everything that changes a
// run goes through apply(); there is no other way in.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/finding.hpp"
#include "base/reporter.hpp"
#include "sim/proto/outcome.pb.h"
#include "sim/proto/scenario.pb.h"
#include "traces/model/trace.hpp"

namespace rehearse::sim {

struct Prepared;  // sim/prepared.hpp

struct Scenario {
  pb::Scenario document;                       // expanded: one entry per node, GPU, NIC, rank
  std::shared_ptr<const traces::Trace> trace;  // shared by all variants of a study, never changed
  std::string trace_file;                      // it was read from; empty: made in memory
  std::shared_ptr<const Prepared> prepared;    // null: every run does all of it itself
  std::shared_ptr<const traces::Trace> recorded;  // as loaded, once it was generated anew
  std::vector<pb::Patch> transforms;              // patches that act on the program, in order
  std::vector<pb::Patch> timed;                   // patches that hold for an interval, in order
  std::vector<std::string> applied;               // every patch as text, in order
  pb::Origin origin;                              // what it was made from, edits included
  Findings findings;
  // For patches that add nodes: the platform as it was before expansion, and what was assigned since.
  pb::Platform written;
  std::vector<std::pair<std::string, std::string>> assigned;
  // grow-data-parallel: how many times the recorded ranks are there, the distance between copies of
  // a rank, and the communicators named to grow.
  uint32_t replicas = 1;
  uint32_t replica_ranks = 0;
  std::vector<std::string> growing;
  // Every process takes itself for the whole job (found by bring-up): calls meet nobody.
  bool alone = false;
};

struct ShippedScenario {
  std::string name;
  std::string description;
};

// The scenarios of sim/scenarios, by name.
[[nodiscard]] Result<std::vector<ShippedScenario>> shipped_scenarios();

// `what` is the name of a shipped scenario, a YAML file, or a trace (defaults around it): a .rtrace, or
// any file or folder that traces/import reads. Reads,
// expands and checks it; a shipped or `synth` trace is generated on first use and cached. The document's
// own patches are applied.
[[nodiscard]] Result<Scenario> load_scenario(const std::string& what, Reporter& reporter);

// The same with assignments to the document as it is written, before it is expanded and its trace is read
// or made: {"trace.synth.tp", "4"}, {"platform", "{like: dgx-h100, scale: 4}"}.
using Assignments = std::vector<std::pair<std::string, std::string>>;
// Those of a document in order of their paths: protobuf's own order is another one in each run.
[[nodiscard]] Assignments sorted_assignments(
    const google::protobuf::Map<std::string, std::string>& set);
[[nodiscard]] Result<Scenario> load_scenario(const std::string& what, const Assignments& written,
                                             Reporter& reporter);

// The document of a scenario file as it is written, with the files that it names (platform, environments) read in;
// not expanded. load_scenario takes it the rest of the way; `file` is where relative names start from.
[[nodiscard]] Result<pb::Scenario> read_scenario(const std::filesystem::path& file);
[[nodiscard]] Result<Scenario> load_scenario(pb::Scenario written,
                                             const std::filesystem::path& file, Reporter& reporter);

// The scenario that an outcome was simulated from (Outcome.origin). Files are looked for as they were named, then in
// `folder`. kBadInput when the outcome does not tell.
[[nodiscard]] Result<Scenario> load_origin(const pb::Origin& origin, const std::string& folder,
                                           Reporter& reporter);

// A trace with defaults around it. `where` names it in errors and gives the scenario its name.
[[nodiscard]] Result<Scenario> scenario_of(std::shared_ptr<const traces::Trace> trace,
                                           const std::string& where);

// Applies one patch: assignments edit the document at once, transforms are remembered for the replay. All or nothing: a
// patch that fails half-way leaves the scenario as it was.
[[nodiscard]] Result<void> apply(Scenario& scenario, const pb::Patch& patch);
// The same for who needs the scenario in no other state: nothing is copied.
[[nodiscard]] Result<Scenario> applied(Scenario scenario, const pb::Patch& patch);

// `path=value` as a patch, and YAML text (`slow-rank: {rank: 6, slowdown: 2.0}`) as one.
[[nodiscard]] Result<pb::Patch> parse_assignment(std::string_view text);
[[nodiscard]] Result<pb::Patch> parse_patch(std::string_view yaml, const std::string& where);

}  // namespace rehearse::sim
