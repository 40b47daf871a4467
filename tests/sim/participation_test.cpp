// SPDX-License-Identifier: Apache-2.0
// Who may leave a call before others have come, and what members that disagree lead to.
#include <catch2/catch.hpp>

#include "sim/replay/agreement.hpp"
#include "sim/replay/replay.hpp"
#include "tests/sim/call_program.hpp"

namespace rehearse::participation_test {
using namespace rehearse;
using namespace rehearse::sim;
using rehearse::tests::CallProgram;
using traces::Call;
using traces::Collective;

namespace {

constexpr Nanos kUs = 1000;
constexpr Bytes kCredit = 1'000'000;
constexpr Nanos kLatency = 10 * kUs;

// Members sit on a chain 0 -> 1 -> 2 ...; link m leads from member m, 1 GB/s each.
CallTraffic traffic_of(const Call& call, uint32_t member, uint32_t members) {
  CallTraffic out;
  out.latency = kLatency;
  out.channels = 1;
  out.credit = kCredit;
  out.hop_bytes = std::max(call.bytes_in, call.bytes_out);
  const auto bytes = static_cast<double>(out.hop_bytes);
  const auto hop = [&](uint32_t from, uint32_t to) {
    HopLoad load;
    load.from = from;
    load.to = to;
    load.load.links = {{from, 1}};
    load.load.bytes = bytes;
    out.hops.push_back(load);
  };
  FlowLoad whole;
  whole.bytes = bytes;
  for (LinkId l = 0; l < members; ++l) whole.links.push_back({l, 1});
  out.flows.push_back(whole);
  const auto root = static_cast<uint32_t>(std::max(0, call.peer));
  switch (call.collective) {
    case Collective::kBroadcast:
      for (uint32_t i = 0; i + 1 < members; ++i)
        hop((root + i) % members, (root + i + 1) % members);
      break;
    case Collective::kReduce:
      for (uint32_t i = 1; i < members; ++i) hop((root + i) % members, (root + i + 1) % members);
      break;
    case Collective::kGather:
    case Collective::kScatter:
      for (uint32_t m = 0; m < members; ++m) {
        if (m == root) continue;
        if (call.collective == Collective::kGather) {
          hop(m, root);
        } else {
          hop(root, m);
        }
      }
      break;
    case Collective::kSend:
      out.flows.front().links = {{member, 1}};
      hop(member, static_cast<uint32_t>(call.peer));
      break;
    default:
      break;
  }
  if (call.collective == Collective::kScatter) out.flows.front().links = {{root, members - 1}};
  return out;
}

Replayed run(const CallProgram& calls) {
  const std::vector<BytesPerSec> capacity(8, 1e9);
  const auto fabric = make_reference_fabric(capacity);
  SilentReporter silent;
  ReplayOptions options;
  options.traffic = [&](const Call& call, uint32_t member) -> Result<CallTraffic> {
    const auto& members = calls.program().communicators[call.communicator].members;
    return traffic_of(call, member, static_cast<uint32_t>(members.size()));
  };
  options.capacity = capacity;
  auto out = replay(calls.program(), options, *fabric, silent);
  REQUIRE(out);
  return std::move(*out);
}

// When each rank left its first call; -1: never, or it made none.
std::vector<Nanos> ends(const Replayed& out) {
  std::vector<Nanos> list;
  for (const auto& end : out.end) list.push_back(end.size() == 0 ? -1 : end[0]);
  return list;
}

Nanos transfer(Bytes bytes) { return bytes; }  // at 1 GB/s

}  // namespace

TEST_CASE("a Reduce leaf runs ahead of a missing root", "[sim][participation]") {
  CallProgram calls(4);
  const uint32_t all = calls.communicator({0, 1, 2, 3});
  calls.collective(all, Collective::kReduce, 500'000, {0, 0, 0, -1}, 3);
  const Nanos done = kLatency + transfer(500'000);
  CHECK(ends(run(calls)) == std::vector<Nanos>{done, done, done, -1});
}

TEST_CASE("a Reduce leaf waits when the buffers on the way are full", "[sim][participation]") {
  CallProgram calls(4);
  const uint32_t all = calls.communicator({0, 1, 2, 3});
  // Two buffers are needed: rank 2 has one before the missing root, ranks 0 and 1 have more.
  calls.collective(all, Collective::kReduce, 1'500'000, {0, 0, 0, -1}, 3);
  const Nanos done = kLatency + transfer(1'500'000);
  CHECK(ends(run(calls)) == std::vector<Nanos>{done, done, -1, -1});
}

TEST_CASE("a Reduce root waits for its leaves, late ones end it", "[sim][participation]") {
  CallProgram calls(3);
  const uint32_t all = calls.communicator({0, 1, 2});
  calls.collective(all, Collective::kReduce, 100'000, {300 * kUs, 0, 0}, 2);
  const Nanos done = 300 * kUs + kLatency + transfer(100'000);
  // Rank 1 has to pass on what rank 0 sends.
  CHECK(ends(run(calls)) == std::vector<Nanos>{done, done, done});
}

TEST_CASE("a Broadcast root runs ahead, a late leaf finds the data", "[sim][participation]") {
  CallProgram calls(3);
  const uint32_t all = calls.communicator({0, 1, 2});
  calls.collective(all, Collective::kBroadcast, 200'000, {0, 0, 900 * kUs}, 0);
  const Nanos done = kLatency + transfer(200'000);
  const Replayed out = run(calls);
  CHECK(ends(out) == std::vector<Nanos>{done, done, 900 * kUs + kLatency});
  CHECK(out.completed);
  CHECK(out.meetings[0].end == 900 * kUs + kLatency);
}

TEST_CASE("nobody leaves a Broadcast before its root has come", "[sim][participation]") {
  CallProgram calls(3);
  const uint32_t all = calls.communicator({0, 1, 2});
  calls.collective(all, Collective::kBroadcast, 200'000, {700 * kUs, 0, 0}, 0);
  const Nanos done = 700 * kUs + kLatency + transfer(200'000);
  CHECK(ends(run(calls)) == std::vector<Nanos>{done, done, done});
}

TEST_CASE("a send that fits into the buffer does not wait for its recv", "[sim][participation]") {
  CallProgram calls(2);
  const uint32_t pair = calls.communicator({0, 1});
  calls.send(pair, kCredit, 0, 5000 * kUs);
  CHECK(ends(run(calls)) ==
        std::vector<Nanos>{kLatency + transfer(kCredit), 5000 * kUs + kLatency});
}

TEST_CASE("a send that does not fit waits for its recv", "[sim][participation]") {
  CallProgram calls(2);
  const uint32_t pair = calls.communicator({0, 1});
  calls.send(pair, kCredit + 1, 0, 5000 * kUs);
  const Nanos done = 5000 * kUs + kLatency + transfer(kCredit + 1);
  CHECK(ends(run(calls)) == std::vector<Nanos>{done, done});
}

TEST_CASE("a recv waits for its send", "[sim][participation]") {
  CallProgram calls(2);
  const uint32_t pair = calls.communicator({0, 1});
  calls.send(pair, 1000, 400 * kUs, 0);
  const Nanos done = 400 * kUs + kLatency + transfer(1000);
  CHECK(ends(run(calls)) == std::vector<Nanos>{done, done});
}

TEST_CASE("members of a Gather run ahead of a missing root", "[sim][participation]") {
  CallProgram calls(3);
  const uint32_t all = calls.communicator({0, 1, 2});
  calls.collective(all, Collective::kGather, 100'000, {-1, 0, 0}, 0);
  const Nanos done = kLatency + transfer(100'000);
  CHECK(ends(run(calls)) == std::vector<Nanos>{-1, done, done});
}

TEST_CASE("a Scatter root runs ahead when the parts fit, members wait for it",
          "[sim][participation]") {
  CallProgram calls(3);
  const uint32_t all = calls.communicator({0, 1, 2});
  calls.collective(all, Collective::kScatter, 100'000, {50 * kUs, 0, -1}, 0);
  // Both parts leave through the root's link.
  const Nanos done = 50 * kUs + kLatency + 2 * transfer(100'000);
  CHECK(ends(run(calls)) == std::vector<Nanos>{done, done, -1});
}

TEST_CASE("all-reduce, all-gather, reduce-scatter, all-to-all and barrier wait for all",
          "[sim][participation]") {
  for (Collective collective :
       {Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter,
        Collective::kAllToAll, Collective::kBarrier}) {
    CAPTURE(name_of(collective));
    CallProgram calls(3);
    const uint32_t all = calls.communicator({0, 1, 2});
    calls.collective(all, collective, 300, {0, 0, 900 * kUs});
    const std::vector<Nanos> left = ends(run(calls));
    CHECK(left[0] > 900 * kUs);
    CHECK(left[1] == left[0]);
    CHECK(left[2] == left[0]);
    CallProgram missing(3);
    const uint32_t same = missing.communicator({0, 1, 2});
    missing.collective(same, collective, 300, {0, 0, -1});
    CHECK(ends(run(missing)) == std::vector<Nanos>{-1, -1, -1});
  }
}

TEST_CASE("members of a call that are not in the trace are taken to be there",
          "[sim][participation]") {
  CallProgram calls(2);
  const uint32_t all = calls.communicator({0, 1, 2, 3});
  calls.collective(all, Collective::kReduce, 1000, {0, 0, -1, -1}, 3);
  const Replayed out = run(calls);
  CHECK(out.completed);
}

TEST_CASE("a call that is missing between others of a rank was made and not recorded",
          "[sim][participation]") {
  // A sample of the calls: rank 1's second and rank 2's third were left out.
  CallProgram calls(3);
  const uint32_t all = calls.communicator({0, 1, 2});
  calls.collective(all, Collective::kAllReduce, 1000);
  calls.collective(all, Collective::kAllReduce, 1000, {0, -1, 0});
  calls.collective(all, Collective::kAllReduce, 1000, {0, 0, -1});
  calls.collective(all, Collective::kAllReduce, 1000);
  const Replayed sampled = run(calls);
  CHECK(sampled.completed);
  CHECK(sampled.meetings[1].expected == 2);
  // One that was left out at the end is one that was never made.
  CallProgram missing(3);
  const uint32_t same = missing.communicator({0, 1, 2});
  missing.collective(same, Collective::kAllReduce, 1000);
  missing.collective(same, Collective::kAllReduce, 1000, {0, -1, 0});
  CHECK_FALSE(run(missing).completed);
}

TEST_CASE("NCCL's answer to members that disagree", "[sim][participation]") {
  Call a;
  a.bytes_in = a.bytes_out = 1000;
  a.dtype = traces::DType::kFp32;
  a.reduction = traces::Reduction::kSum;
  Call b = a;
  CHECK(agreement(a, b, 0) == Agreement::kAgree);
  SECTION("another size never ends") {
    b.bytes_in = b.bytes_out = 2000;
    CHECK(agreement(a, b, 0) == Agreement::kNeverEnds);
  }
  SECTION("another collective never ends") {
    b.collective = Collective::kAllGather;
    CHECK(agreement(a, b, 0) == Agreement::kNeverEnds);
  }
  SECTION("another type of the same bytes ends with wrong numbers") {
    b.dtype = traces::DType::kInt32;
    CHECK(agreement(a, b, 0) == Agreement::kCorrupts);
  }
  SECTION("another reduction ends with wrong numbers") {
    b.reduction = traces::Reduction::kMax;
    CHECK(agreement(a, b, 0) == Agreement::kCorrupts);
  }
  SECTION("a type that was not recorded agrees with any") {
    b.dtype = traces::DType::kUnknown;
    CHECK(agreement(a, b, 0) == Agreement::kAgree);
  }
  SECTION("another root never ends") {
    a.collective = b.collective = Collective::kBroadcast;
    a.peer = 0;
    b.peer = 1;
    CHECK(agreement(a, b, 0) == Agreement::kNeverEnds);
  }
  SECTION("a send longer than its recv corrupts while the rest fits into the buffer") {
    a.collective = Collective::kSend;
    b.collective = Collective::kRecv;
    a.bytes_in = a.bytes_out = 1500;
    CHECK(agreement(a, b, 500) == Agreement::kCorrupts);
    CHECK(agreement(a, b, 499) == Agreement::kNeverEnds);
    CHECK(agreement(b, a, 500) == Agreement::kCorrupts);
  }
  SECTION("a send shorter than its recv never ends") {
    a.collective = Collective::kSend;
    b.collective = Collective::kRecv;
    b.bytes_in = b.bytes_out = 1500;
    CHECK(agreement(a, b, 4000) == Agreement::kNeverEnds);
  }
}

TEST_CASE("members that disagree about the type end, and it is written down",
          "[sim][participation]") {
  CallProgram calls(2);
  const uint32_t all = calls.communicator({0, 1});
  calls.collective(all, Collective::kAllReduce, 4000);
  calls.program().ranks[1].calls[0].dtype = traces::DType::kInt32;
  const Replayed out = run(calls);
  CHECK(out.completed);
  CHECK(out.meetings[0].corrupt);
}

}  // namespace rehearse::participation_test
