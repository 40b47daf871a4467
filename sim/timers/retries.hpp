// SPDX-License-Identifier: Apache-2.0
// When a transport tries again what a dead link has swallowed. Nothing tells a sender that a link is back: its data
// moves on at its next try, which may be long after (NCCL's InfiniBand timeout is a second or more, so a port that
// flaps for a millisecond costs as much).
//
//   InfiniBand   every 4.096 us * 2^NCCL_IB_TIMEOUT, NCCL_IB_RETRY_CNT times; then the queue pair is in error
//   TCP          after 0.2 s, then twice as long each time up to 120 s, 16 times: 924.6 s (Linux, tcp_retries2 = 15
//                with the shortest retransmission timeout, ip-sysctl.rst)
#pragma once

#include <map>

#include "platforms/model/links.hpp"
#include "sim/nccl/traffic.hpp"
#include "sim/schedule.hpp"

namespace rehearse::sim {

inline constexpr Retry kTcpRetry{200'000'000, 120'000'000'000, 16};

// How long all tries take together.
[[nodiscard]] Nanos patience_of(const Retry& retry);

// By link that goes down in the schedule and that a network transport of `models` may cross; settings are those of the
// first rank on the link's node. Links that no such transport crosses are not in it: what stands on them goes on at
// once.
[[nodiscard]] std::map<platforms::LinkId, Retry> retries_of(
    const Schedule& schedule, const platforms::Links& links, const pb::Launch& launch,
    const std::vector<CommunicatorModel>& models);

// The first try at or after `up` of what has stood still since `stands`; -1: it has given up by then.
[[nodiscard]] Nanos next_try(const Retry& retry, Nanos stands, Nanos up);

}  // namespace rehearse::sim
