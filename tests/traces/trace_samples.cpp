// SPDX-License-Identifier: Apache-2.0
#include "tests/traces/trace_samples.hpp"

#include <fmt/format.h>
#include <stdlib.h>

#include <tuple>

#include "base/random.hpp"

namespace rehearse::traces::samples {
namespace {

constexpr int64_t kOdd[] = {0, 1, -1, INT64_MAX, INT64_MIN, 1'700'000'000'000'000'000};

int64_t odd_or_small(Random& random) {
  return random.below(20) == 0 ? kOdd[random.below(std::size(kOdd))]
                               : static_cast<int64_t>(random.below(1000));
}

Call random_call(Random& random, size_t communicators) {
  Call call;
  call.communicator = static_cast<uint32_t>(random.below(communicators));
  call.sequence = odd_or_small(random);
  call.collective = static_cast<Collective>(random.below(kCollectives));
  call.bytes_in = static_cast<Bytes>(random.below(uint64_t{1} << 40));
  call.bytes_out = random.below(9) == 0 ? INT64_MAX : 4096;
  call.dtype = static_cast<DType>(random.below(13));
  call.reduction = static_cast<Reduction>(random.below(6));
  call.peer = static_cast<int32_t>(random.below(3)) - 1;
  call.group = random.below(4) == 0 ? random.next() : 0;
  return call;
}

void add_random(Random& random, Operations& ops, Nanos at, size_t lanes, size_t strings) {
  const auto lane = static_cast<LaneId>(random.below(lanes));
  const auto name = static_cast<uint32_t>(random.below(strings));
  const auto length = static_cast<Nanos>(random.below(100'000));
  const int64_t correlation = odd_or_small(random);
  const auto kind = static_cast<OpKind>(random.below(kOpKinds));
  const bool with_detail = random.below(10) > 0;
  if (kind == OpKind::kCall && with_detail) {
    ops.add_call(lane, name, at, length, correlation, random_call(random, 2));
  } else if (kind == OpKind::kCopy && with_detail) {
    ops.add_copy(
        lane, name, at, length, correlation,
        {static_cast<CopyDirection>(random.below(5)), static_cast<Bytes>(random.below(1 << 30))});
  } else if (kind == OpKind::kSync && with_detail) {
    ops.add_sync(lane, name, at, length, correlation,
                 {static_cast<SyncKind>(random.below(5)),
                  static_cast<int32_t>(random.below(lanes + 1)) - 1, random.next()});
  } else if (kind == OpKind::kMemory && with_detail) {
    ops.add_memory(lane, name, at, {odd_or_small(random), random.next()});
  } else {
    ops.add(kind, lane, name, at, length, correlation);
  }
}

auto fields(const Call& c) {
  return std::tie(c.communicator, c.sequence, c.collective, c.bytes_in, c.bytes_out, c.dtype,
                  c.reduction, c.peer, c.group);
}
auto fields(const Copy& c) { return std::tie(c.direction, c.bytes); }
auto fields(const Sync& s) { return std::tie(s.sync, s.stream_lane, s.event); }
auto fields(const Memory& m) { return std::tie(m.bytes, m.address); }
auto fields(const Lane& l) { return std::tie(l.kind, l.id, l.name); }
auto fields(const Step& s) { return std::tie(s.number, s.start, s.end); }
auto fields(const Communicator& c) { return std::tie(c.id, c.description, c.members, c.backend); }

template <typename T>
bool same_rows(const std::vector<T>& a, const std::vector<T>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const T& x, const T& y) { return fields(x) == fields(y); });
}

}  // namespace

Trace random_trace(uint64_t seed, uint32_t ranks, size_t operations_per_rank) {
  Trace trace;
  Random random(seed, "random-trace");
  trace.header.set_job("a job");
  trace.header.set_producer("test");
  trace.header.set_world_size(ranks);
  (*trace.header.mutable_cloned_from())[1] = 0;
  for (int i = 0; i < 50; ++i)
    trace.strings.intern(fmt::format("name {} \xff {}", i, random.below(1000)));
  trace.communicators = {{"world", "all", {0, 1, 2}, "nccl"}, {"pair", "", {0, 1}, "gloo"}};
  for (uint32_t r = 0; r < ranks; ++r) {
    RankTrace rank;
    rank.rank = r * 3;
    rank.host = fmt::format("node{}", r / 2);
    rank.gpu = r % 2;
    rank.gpu_model = "H100";
    rank.gpu_memory = Bytes{80} << 30;
    for (int i = 0; i < 9; ++i) rank.env[fmt::format("KEY_{}", random.below(100))] = "value";
    rank.clock_offset = -17;
    rank.lanes = {
        {LaneKind::kHostThread, -5, 1}, {LaneKind::kStream, 7, 2}, {LaneKind::kProxy, 9, 0}};
    rank.steps = {{3, -10, 20}, {4, 20, 20}};
    Nanos at = r % 2 == 0 ? -1000 : 1'700'000'000'000'000'000;
    for (size_t i = 0; i < operations_per_rank; ++i) {
      at += static_cast<Nanos>(random.below(5) * random.below(1000));
      add_random(random, rank.ops, at, rank.lanes.size(), trace.strings.size());
      if (i > 0 && random.below(7) == 0) {
        const auto op = static_cast<uint32_t>(i);
        rank.ops.dependencies.push_back({op, static_cast<uint32_t>(random.below(i))});
      }
    }
    trace.ranks.push_back(std::move(rank));
  }
  return trace;
}

Trace training_frame(const TrainingRun& run) {
  Trace trace;
  trace.header.set_producer("sample");
  trace.header.set_synthetic(true);
  trace.header.set_framework("pytorch");
  trace.header.set_world_size(run.ranks);
  for (uint32_t i = 1; i < 120; ++i) trace.strings.intern(fmt::format("operator_or_kernel_{}", i));
  for (uint32_t first = 0; first < run.ranks; first += 8) {
    Communicator tensor{fmt::format("tp/{}", first), "tensor parallel", {}, "nccl"};
    for (uint32_t r = first; r < std::min(run.ranks, first + 8); ++r) tensor.members.push_back(r);
    trace.communicators.push_back(std::move(tensor));
  }
  for (uint32_t local = 0; local < std::min(8u, run.ranks); ++local) {
    Communicator data{fmt::format("dp/{}", local), "data parallel", {}, "nccl"};
    for (uint32_t r = local; r < run.ranks; r += 8) data.members.push_back(r);
    trace.communicators.push_back(std::move(data));
  }
  return trace;
}

RankTrace training_rank(const TrainingRun& run, RankId id) {
  Random random(run.seed, "training", id);
  RankTrace rank;
  rank.rank = id;
  rank.host = fmt::format("node{:03}", id / 8);
  rank.gpu = id % 8;
  rank.gpu_model = "NVIDIA H100 80GB HBM3";
  rank.gpu_memory = Bytes{80} << 30;
  rank.env = {{"RANK", std::to_string(id)}, {"NCCL_DEBUG", "INFO"}};
  rank.lanes = {
      {LaneKind::kHostThread, 4711, 1}, {LaneKind::kStream, 7, 2}, {LaneKind::kStream, 20, 3}};
  Operations& ops = rank.ops;
  const auto tensor = id / 8;
  const auto data = static_cast<uint32_t>((run.ranks + 7) / 8 + id % 8);
  int64_t correlation = 1, tensor_sequence = 0, data_sequence = 0;
  Nanos host = 1'000'000, gpu = host, network = host;
  for (uint32_t s = 0; s < run.steps; ++s) {
    const Nanos begin = std::max({host, gpu, network});
    host = begin;
    for (uint32_t layer = 0; layer < 2 * run.layers; ++layer) {
      for (uint32_t k = 0; k < 12; ++k) {
        const auto name = static_cast<uint32_t>(4 + 2 * k + (layer < run.layers ? 0 : 40));
        const auto launch = static_cast<Nanos>(4500 + 600 * random.normal());
        ops.add(OpKind::kHost, 0, name, host, launch + 3000);
        ops.add(OpKind::kLaunch, 0, 2, host + 2000, launch, correlation);
        const double mean = 20'000.0 + 9'000.0 * k;
        const auto length =
            static_cast<Nanos>(std::max(1000.0, mean * (1 + 0.02 * random.normal())));
        gpu = std::max(gpu + 900 + static_cast<Nanos>(random.below(200)), host + 2000 + launch);
        ops.add(OpKind::kKernel, 1, name + 1, gpu, length, correlation++);
        gpu += length;
        host += launch + 4000 + static_cast<Nanos>(random.below(1500));
      }
      network = std::max(network, gpu + 2500);
      const auto transfer = static_cast<Nanos>(90'000 + 2'500 * std::abs(random.normal()));
      ops.add_call(2, 110, network, transfer, correlation++,
                   {.communicator = tensor,
                    .sequence = tensor_sequence++,
                    .bytes_in = 33'554'432,
                    .bytes_out = 33'554'432,
                    .dtype = DType::kBf16,
                    .reduction = Reduction::kSum});
      network += transfer;
      gpu = std::max(gpu, network);
    }
    ops.add_call(2, 111, network + 1000, 400'000, correlation++,
                 {.communicator = data,
                  .sequence = data_sequence++,
                  .bytes_in = Bytes{1} << 28,
                  .bytes_out = Bytes{1} << 28,
                  .dtype = DType::kBf16,
                  .reduction = Reduction::kAverage});
    network += 401'000;
    rank.steps.push_back({s, begin, std::max({host, gpu, network})});
  }
  ops.sort();
  return rank;
}

bool same(const RankTrace& a, const RankTrace& b) {
  return std::tie(a.rank, a.host, a.gpu, a.gpu_model, a.gpu_memory, a.env, a.clock_offset) ==
             std::tie(b.rank, b.host, b.gpu, b.gpu_model, b.gpu_memory, b.env, b.clock_offset) &&
         same_rows(a.lanes, b.lanes) && same_rows(a.steps, b.steps) &&
         std::tie(a.ops.kind, a.ops.lane, a.ops.name, a.ops.start, a.ops.duration,
                  a.ops.correlation, a.ops.detail) == std::tie(b.ops.kind, b.ops.lane, b.ops.name,
                                                               b.ops.start, b.ops.duration,
                                                               b.ops.correlation, b.ops.detail) &&
         a.ops.dependencies == b.ops.dependencies && same_rows(a.ops.calls, b.ops.calls) &&
         same_rows(a.ops.copies, b.ops.copies) && same_rows(a.ops.syncs, b.ops.syncs) &&
         same_rows(a.ops.memory, b.ops.memory);
}

bool same(const Trace& a, const Trace& b) {
  if (a.header.SerializeAsString() != b.header.SerializeAsString()) return false;
  if (a.strings.size() != b.strings.size()) return false;
  for (uint32_t i = 0; i < a.strings.size(); ++i) {
    if (a.strings.at(i) != b.strings.at(i)) return false;
  }
  return same_rows(a.communicators, b.communicators) &&
         std::equal(a.ranks.begin(), a.ranks.end(), b.ranks.begin(), b.ranks.end(),
                    [](const RankTrace& x, const RankTrace& y) { return same(x, y); });
}

Folder::Folder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "rehearse-test-XXXXXX").string();
  if (::mkdtemp(pattern.data()) != nullptr) path_ = pattern;
}

Folder::~Folder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace rehearse::traces::samples
