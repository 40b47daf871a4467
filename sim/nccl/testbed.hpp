// SPDX-License-Identifier: Apache-2.0
// A job that does nothing but collectives: a platform, ranks on its GPUs and their environment,
// without a trace. What nccl-tests is on a machine. For `nccl explain` and for validation.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "platforms/model/links.hpp"
#include "sim/nccl/traffic.hpp"

namespace rehearse::sim {

// A variable of some ranks.
struct RankSetting {
  std::string name;
  std::string value;            // empty: unset
  std::vector<uint32_t> ranks;  // empty: all
};

// "NCCL_ALGO=Ring", for some ranks in the words of a scenario: "ranks[8-15].env.NCCL_ALGO=Ring"
// (indices from 0, ranges inclusive, * for all; "launch." may stand before it). kUsage otherwise.
[[nodiscard]] Result<RankSetting> parse_setting(const std::string& text);

struct TestbedOptions {
  uint32_t ranks = 0;          // 0: nodes x gpus_per_node
  uint32_t nodes = 0;          // 0: as few as the ranks need; without ranks, as the platform has
  uint32_t gpus_per_node = 0;  // the first ones of every node; 0: all, or ranks / nodes
  std::string nccl_version;    // empty: 2.28.9
  pb::Backend backend = pb::NCCL;
  std::vector<RankSetting> settings;
  std::vector<pb::LaunchFile> files;  // that settings name
  // Paths of the platform with all its nodes, and their values.
  std::vector<std::pair<std::string, std::string>> assigned;
};

class Testbed {
 public:
  // `platform` is as the catalogue or a file has it; `where` names it in errors. kBadInput when
  // ranks do not fit, a setting names a rank that there is none of, or a path leads nowhere.
  [[nodiscard]] static Result<std::unique_ptr<Testbed>> make(pb::Platform platform,
                                                             const TestbedOptions& options,
                                                             const std::string& where);
  Testbed(const Testbed&) = delete;
  Testbed& operator=(const Testbed&) = delete;

  [[nodiscard]] const pb::Platform& platform() const { return platform_; }
  [[nodiscard]] const pb::Launch& launch() const { return launch_; }
  [[nodiscard]] const platforms::Links& links() const { return links_; }
  [[nodiscard]] ModelContext context() const { return {platform_, links_, launch_}; }
  // The communicator of all ranks; refers to this testbed.
  [[nodiscard]] Result<CommunicatorModel> world() const;

 private:
  Testbed(pb::Platform platform, pb::Launch launch, platforms::Links links)
      : platform_(std::move(platform)), launch_(std::move(launch)), links_(std::move(links)) {}
  pb::Platform platform_;
  pb::Launch launch_;
  platforms::Links links_;
};

// A call's time with the platform to itself.
struct AloneTime {
  Nanos latency = 0;
  Nanos transfer = 0;
  // Links that bound it, the slowest first: time that each would need for its load.
  struct Bound {
    platforms::LinkId link = platforms::kNoLink;
    double bytes = 0;
    BytesPerSec capacity = 0;  // effective
    Nanos time = 0;
  };
  std::vector<Bound> links;  // one per kind of link, the slowest of its kind
  Nanos capped = 0;          // time that the rate of its channels alone asks for; 0: no limit
  bool stalled = false;      // a link on the way is down: it never ends
  // Host time between two such calls of a process that does nothing else (Efficiency.issue).
  Nanos issue = 0;

  [[nodiscard]] Nanos total() const { return std::max(issue, latency + transfer); }
};

// Same fluid model as a replay: the flows on the reference fabric, nothing else on it.
[[nodiscard]] Result<AloneTime> time_alone(const ModelContext& context, const CallTraffic& traffic);

// The same as a closed form of the parameters that calibration changes.
[[nodiscard]] TimeTerms terms_of(const ModelContext& context, const CallTraffic& traffic);

}  // namespace rehearse::sim
