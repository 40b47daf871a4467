// SPDX-License-Identifier: Apache-2.0
#include "sim/timers/retries.hpp"

#include <algorithm>

#include "sim/scenario/environment.hpp"
#include "sim/timers/settings.hpp"

namespace rehearse::sim {
namespace {

bool any_transport(const std::vector<CommunicatorModel>& models, const char* name) {
  return std::any_of(models.begin(), models.end(), [&](const CommunicatorModel& model) {
    return model.transport().find(name) != std::string::npos;
  });
}

Retry infiniband(const pb::Launch& launch, uint32_t node) {
  const auto& ranks = launch.ranks();
  auto at = std::find_if(ranks.begin(), ranks.end(),
                         [&](const pb::RankLaunch& rank) { return rank.node() == node; });
  if (at == ranks.end()) at = ranks.begin();
  Findings findings;  // told by whoever reports the timers
  const RankTimers timers = timers_of(
      launch,
      at == ranks.end() ? std::map<std::string, std::string>{} : environment_of(launch, *at),
      findings);
  return {timers.network.ib_timeout, timers.network.ib_timeout, timers.network.ib_retries};
}

}  // namespace

std::map<platforms::LinkId, Retry> retries_of(const Schedule& schedule,
                                              const platforms::Links& links,
                                              const pb::Launch& launch,
                                              const std::vector<CommunicatorModel>& models) {
  using platforms::LinkKind;
  std::map<platforms::LinkId, Retry> out;
  const bool ib = any_transport(models, "NET/IB");
  const bool tcp = any_transport(models, "NET/Socket") || any_transport(models, "TCP");
  for (const CapacityChange& change : schedule.capacities) {
    if (change.capacity > 0 || out.count(change.link) > 0) continue;
    const platforms::Link& link = links[change.link];
    const bool network = link.kind == LinkKind::kNic || link.kind == LinkKind::kSwitch;
    if (network && ib) {
      const Retry retry = infiniband(launch, link.node);
      // The specification reads a timeout of 0 as none: nothing is tried again.
      out[change.link] = retry.first > 0 ? retry : Retry{0, 0, 0};
    } else if (tcp && (network || link.kind == LinkKind::kInterface)) {
      out[change.link] = kTcpRetry;
    }
  }
  return out;
}

Nanos patience_of(const Retry& retry) {
  Nanos sum = 0, wait = retry.first;
  for (int i = 0; i < retry.times; ++i) {
    sum += wait;
    wait = std::min(2 * wait, retry.longest);
  }
  return sum;
}

Nanos next_try(const Retry& retry, Nanos stands, Nanos up) {
  Nanos when = stands, wait = retry.first;
  for (int i = 0; i < retry.times; ++i) {
    when += wait;
    if (when >= up) return when;
    wait = std::min(2 * wait, retry.longest);
  }
  return -1;
}

}  // namespace rehearse::sim
