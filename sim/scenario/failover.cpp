// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario/failover.hpp"

#include <algorithm>
#include <optional>

#include "sim/scenario/environment.hpp"
#include "sim/timers/settings.hpp"

namespace rehearse::sim {
namespace {

struct Resilience {
  Nanos notices = 0;  // from the loss of a port to the take-over
  bool returns = false;
};

bool is_on(const std::map<std::string, std::string>& env, const char* name, bool otherwise) {
  const auto at = env.find(name);
  return at == env.end() || at->second.empty() ? otherwise : at->second != "0";
}

// Nothing when some rank would fail with its port.
std::optional<Resilience> resilience_of(const pb::Launch& launch) {
  Resilience out;
  out.returns = true;
  for (const pb::RankLaunch& rank : launch.ranks()) {
    const auto env = environment_of(launch, rank);
    if (!is_on(env, "NCCL_IB_RESILIENCY_PORT_FAILOVER", false)) return std::nullopt;
    if (!is_on(env, "NCCL_IB_MERGE_NICS", true)) return std::nullopt;
    out.returns &= is_on(env, "NCCL_IB_RESILIENCY_PORT_RECOVERY", false);
    Findings told_elsewhere;
    out.notices = std::max(out.notices, timers_of(launch, env, told_elsewhere).network.ib_total());
  }
  if (launch.ranks().empty() || out.notices == 0) return std::nullopt;
  return out;
}

// The link in the same direction of another port of the adapter that `link` is a port of; kNoLink
// when there is none.
platforms::LinkId other_port(const pb::Platform& platform, const platforms::Links& links,
                             platforms::LinkId link) {
  const platforms::Link& lost = links[link];
  if (lost.kind != platforms::LinkKind::kNic) return platforms::kNoLink;
  const pb::Node& node = platform.nodes(static_cast<int>(lost.node));
  const std::string way = lost.name.substr(lost.name.rfind('/'));
  const auto link_of = [&](const pb::Nic& nic) {
    return links.find(node.name() + "/" + nic.name() + way);
  };
  for (const pb::Nic& nic : node.nics()) {
    if (link_of(nic) != link) continue;
    if (nic.kind() != pb::INFINIBAND && nic.kind() != pb::ROCE) return platforms::kNoLink;
    for (const pb::Nic& other : node.nics()) {
      const bool same = !nic.adapter().empty() && other.adapter() == nic.adapter();
      if (same && other.name() != nic.name() && !other.down()) return link_of(other);
    }
  }
  return platforms::kNoLink;
}

}  // namespace

void take_over(const Scenario& scenario, const platforms::Links& links,
               const std::vector<BytesPerSec>& capacities, Schedule& schedule) {
  const auto resilience = resilience_of(scenario.document.launch());
  if (!resilience) return;
  std::vector<CapacityChange> added;
  for (Outage& outage : schedule.outages) {
    const bool noticed =
        outage.until == Outage::kForever || outage.until - outage.from > resilience->notices;
    const platforms::LinkId other =
        noticed ? other_port(scenario.document.platform(), links, outage.link) : platforms::kNoLink;
    // The other port must be alive when it is needed.
    const Nanos when = outage.from + resilience->notices;
    const bool dead =
        std::any_of(schedule.outages.begin(), schedule.outages.end(), [&](const Outage& each) {
          return each.link == other && each.from <= when && when < each.until;
        });
    // A port that was down when the job started is not used at all.
    if (other == platforms::kNoLink || dead || !(capacities[outage.link] > 0)) continue;
    added.push_back({when, outage.link, capacities[other] / 2});
    added.push_back({when, other, capacities[other] / 2});
    if (outage.until != Outage::kForever) {
      if (resilience->returns) {
        added.push_back({outage.until, other, capacities[other]});
      } else {
        std::erase_if(schedule.capacities, [&](const CapacityChange& change) {
          return change.link == outage.link && change.at == outage.until;
        });
      }
    }
    // Its retries have not run out when the other port takes over.
    outage.until = when - 1;
  }
  schedule.capacities.insert(schedule.capacities.end(), added.begin(), added.end());
  std::stable_sort(schedule.capacities.begin(), schedule.capacities.end(),
                   [](const CapacityChange& a, const CapacityChange& b) {
                     return a.at != b.at ? a.at < b.at : a.link < b.link;
                   });
}

}  // namespace rehearse::sim
