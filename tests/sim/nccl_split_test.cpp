// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/nccl_fixture.hpp"

namespace rehearse::nccl_split_test {
using namespace rehearse::sim;
using namespace rehearse::sim::testing;

namespace {

constexpr auto kAr = Function::kAllReduce;

SplitRequest ring(const Call& call, int channels, Protocol protocol = Protocol::kSimple) {
  return {call, {Algorithm::kRing, protocol, 0, channels, 512}};
}

NcclModel plain(int channels, int ranks) {
  CommShape shape = nodes_of(1, ranks, 80);
  shape.n_channels = channels;
  return model_of(shape);
}

void check_split(const ChannelSplit& split, std::vector<std::int64_t> expected) {
  CHECK(std::vector<std::int64_t>{split.channel_lo, split.channel_hi, split.count_lo,
                                  split.count_mid, split.count_hi} == expected);
}

}  // namespace

TEST_CASE("a tiny call stays on one channel however many it may use", "[nccl][split]") {
  // Two bytes of traffic per byte: 16 KiB of traffic are 8 KiB of data, the least a channel gets.
  const SplitRequest requests[] = {ring(call_of(kAr, 2048), 16)};
  check_split(split_channels(plain(16, 8), requests)[0], {0, 0, 2048, 0, 0});
  const SplitRequest more[] = {ring(call_of(kAr, 2049), 16)};
  check_split(split_channels(plain(16, 8), more)[0], {0, 1, 2048, 0, 1});
}

TEST_CASE("the next call starts where the one before ended", "[nccl][split]") {
  // Three calls of 12 KiB on 4 channels: 72 KiB of traffic, 18 KiB fill a channel, cells are 8 KiB.
  const SplitRequest requests[] = {ring(call_of(kAr, 3072), 4), ring(call_of(kAr, 3072), 4),
                                   ring(call_of(kAr, 3072), 4)};
  const auto splits = split_channels(plain(4, 8), requests);
  check_split(splits[0], {0, 0, 3072, 0, 0});
  check_split(splits[1], {1, 1, 3072, 0, 0});
  check_split(splits[2], {2, 2, 3072, 0, 0});
  // A small call leaves room that the next one fills before it goes on.
  const SplitRequest uneven[] = {ring(call_of(kAr, 1024), 4), ring(call_of(kAr, 1 << 16), 4)};
  const auto filled = split_channels(plain(4, 8), uneven);
  check_split(filled[0], {0, 0, 1024, 0, 0});
  check_split(filled[1], {0, 3, 16384, 18432, 12288});
}

TEST_CASE("a call that would need more channels than there are spreads its rest evenly",
          "[nccl][split]") {
  // Values of an independent implementation of the same rule.
  const SplitRequest two[] = {ring(call_of(Function::kReduce, 5468, DataType::kUint64), 2),
                              ring(call_of(kAr, 1582306, DataType::kFloat8e4m3), 1)};
  const auto on_two = split_channels(plain(2, 3), two);
  check_split(on_two[0], {0, 0, 5468, 0, 0});
  check_split(on_two[1], {0, 1, 778240, 0, 804066});
  const SplitRequest six[] = {ring(call_of(Function::kReduceScatter, 4036, DataType::kUint32), 6),
                              ring(call_of(Function::kReduceScatter, 80702), 6)};
  const auto on_six = split_channels(plain(6, 100), six);
  check_split(on_six[0], {0, 0, 4036, 0, 0});
  check_split(on_six[1], {0, 5, 10076, 14124, 14130});
}

TEST_CASE("the last channel takes all that is left", "[nccl][split]") {
  const SplitRequest requests[] = {ring(call_of(kAr, 1 << 20), 1), ring(call_of(kAr, 1 << 22), 1)};
  const auto splits = split_channels(plain(1, 8), requests);
  check_split(splits[0], {0, 0, 1 << 20, 0, 0});
  check_split(splits[1], {0, 0, 1 << 22, 0, 0});
}

TEST_CASE("CollNet calls share all their channels evenly", "[nccl][split]") {
  const NcclModel model = model_of(with_collnet(nodes_of(2, 8)));
  const Choice chain = {Algorithm::kCollnetChain, Protocol::kSimple, 0, 5, 640};
  const SplitRequest requests[] = {{call_of(kAr, 12345), chain}};
  const ChannelSplit split = split_channels(model, requests)[0];
  CHECK(split.kind == ChannelKind::kCollnet);
  check_split(split, {0, 4, 12345, 0, 0});
  CHECK(kind_of(model.shape, Algorithm::kNvls) == ChannelKind::kCollnetNvls);
  CHECK(kind_of(nodes_of(1, 8), Algorithm::kNvls) == ChannelKind::kNvls);
}

TEST_CASE("an empty call uses no channel and moves nothing", "[nccl][split]") {
  const SplitRequest requests[] = {ring(call_of(kAr, 0), 4), ring(call_of(kAr, 3072), 4)};
  const auto splits = split_channels(plain(4, 8), requests);
  CHECK(splits[0].n_channels() == 0);
  CHECK(splits[1].channel_lo == 0);
  CHECK(splits[1].count_lo + splits[1].count_hi == 3072);
}

}  // namespace rehearse::nccl_split_test
