// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/choice.hpp"

#include <algorithm>
#include <string>

#include "sim/nccl/rounding.hpp"
#include "sim/nccl/threads.hpp"

namespace rehearse::sim {

namespace {

constexpr float kUnavailable = -1.0F;
constexpr int kBatchCollectives = 10;  // collectives one kernel batch pipelines

// Trees keep less than the model's bandwidth at middle sizes. Index ⌊log2(bytes/64)⌋. TREE reads
// the first 23 entries, NVLS_TREE (since 2.30) all 24.
constexpr std::size_t kTreeCorrections = 23;
constexpr std::array<std::array<float, 24>, kProtocolCount> kCorrection = {{
    {1.0F, 1.0F, 1.0F, 1.0F, .9F, .8F, .7F, .7F, .7F, .7F, .6F, .5F,
     .4F,  .4F,  .5F,  .6F,  .7F, .8F, .9F, 1.F, 1.F, 1.F, 1.F, 1.F},
    {1.0F, 1.0F, 1.0F, 1.0F, 1.F, .9F, .8F, .8F, .8F, .7F, .6F, .6F,
     .6F,  .6F,  .6F,  .6F,  .8F, .9F, .9F, .9F, .9F, 1.F, 1.F, 1.F},
    {.9F, .9F, .9F, .9F, .9F, .9F, .9F, .8F, .7F, .6F, .6F, .5F,
     .5F, .5F, .5F, .6F, .7F, .8F, .7F, .7F, .8F, .9F, .9F, .9F},
}};

std::size_t corrected_sizes(const NcclModel& model, Function function, Algorithm algorithm) {
  if (function != Function::kAllReduce) return 0;
  if (algorithm == Algorithm::kTree) return kTreeCorrections;
  const bool nvls_tree = algorithm == Algorithm::kNvlsTree &&
                         model.version.constants.nvls_tree_corrected && model.shape.cc_min >= 100 &&
                         model.shape.cpu_arch == CpuArch::kX86;
  return nvls_tree ? kCorrection[0].size() : 0;
}

// A ring AllReduce between nodes loses latency once every rank has 64 bytes on every channel.
bool on_ring_plateau(const NcclModel& model, const Call& call, Algorithm algorithm,
                     Protocol protocol) {
  const CommShape& shape = model.shape;
  return algorithm == Algorithm::kRing && protocol == Protocol::kSimple &&
         call.function == Function::kAllReduce && shape.n_nodes > 1 &&
         total_bytes(call, shape.n_ranks) /
                 (std::int64_t{shape.n_channels} * std::int64_t{shape.n_ranks}) >=
             64;
}

bool call_can_use(const NcclModel& model, const Call& call, Algorithm algorithm) {
  return call_refusal(model, call, algorithm).empty();
}

tl::unexpected<Error> nothing_available(const NcclModel& model, const Call& call) {
  std::string fix = "give the communicator a ring graph";
  if (model.settings.selection_given) {
    fix = "NCCL_ALGO and NCCL_PROTO leave nothing; allow at least Ring with LL or Simple";
  }
  return fail(Code::kBadInput,
              "no algorithm and protocol available for " + std::string(name_of(call.function)) +
                  " of " + std::string(name_of(call.type)),
              {}, fix);
}

// NCCL_CTA_POLICY=1: with registered buffers NVLS needs fewer channels (NCCL model §4.4).
void prefer_registered_nvls(const NcclModel& model, const Call& call, Choice& choice) {
  const CommShape& shape = model.shape;
  const int channels = shape.nvls_registered_channels;
  if (!model.settings.prefer_few_channels || model.settings.selection_given) return;
  if (!call.nvls_registered || !is_gather(call.function) || channels == 0) return;
  if (!call_can_use(model, call, Algorithm::kNvls) || channels > choice.max_channels) return;
  choice.algorithm = Algorithm::kNvls;
  choice.protocol = Protocol::kSimple;
  choice.max_channels = channels;
  choice.n_threads = max_threads(model, choice.algorithm, choice.protocol);
}

}  // namespace

std::string_view call_refusal(const NcclModel& model, const Call& call, Algorithm algorithm) {
  const CommShape& shape = model.shape;
  if (is_collnet(algorithm)) {
    if (!shape.collnet) return "CollNet is not enabled (NCCL_COLLNET_ENABLE=1 and a plugin)";
    return shape.ranks_per_node <= kMaxDirectRanks ? "" : "CollNet serves eight ranks of a node";
  }
  if (is_nvls(algorithm)) {
    if (!shape.nvls_support) return "no NVLink SHARP (NVSwitch, Hopper or newer, NCCL_NVLS_ENABLE)";
    if (call.function != Function::kAllGather && !nvls_can_reduce(call.op, call.type)) {
      return "NVLink SHARP cannot reduce this type";
    }
    if (call.function != Function::kAllReduce && shape.ranks_per_node > kMaxNvlsRanks) {
      return "NVLink SHARP serves 32 ranks of a node";
    }
    const bool between = algorithm == Algorithm::kNvls && shape.n_nodes > 1 && !shape.collnet;
    return between ? "between nodes it needs CollNet (NCCL_COLLNET_ENABLE=1)" : "";
  }
  if (algorithm == Algorithm::kPat && call.function == Function::kReduceScatter) {
    const DeviceOp op = device_op(call.op, call.type);
    if (op == DeviceOp::kPreMulSum || op == DeviceOp::kSumPostDiv) {
      return "PAT cannot scale while it reduces";
    }
  }
  return "";
}

float predicted_time_us(const NcclModel& model, const Call& call, Algorithm algorithm,
                        Protocol protocol) {
  const Cost& cost = model.table.at({call.function, algorithm, protocol});
  if (!cost.available()) return kUnavailable;
  const std::int64_t bytes = total_bytes(call, model.shape.n_ranks);

  float bandwidth = cost.bandwidth_gbps;
  const int size_class = floor_log2(bytes / 64);
  if (size_class >= 0 &&
      static_cast<std::size_t>(size_class) < corrected_sizes(model, call.function, algorithm)) {
    bandwidth *= kCorrection[index_of(protocol)][static_cast<std::size_t>(size_class)];
  }
  float latency = cost.latency_us;
  if (on_ring_plateau(model, call, algorithm, protocol)) {
    latency = static_cast<float>(
        latency * (model.shape.cc_min < 80 ? 1.9 : model.version.constants.ring_plateau));
  }
  const int latencies = algorithm == Algorithm::kRing
                            ? call.pipe_ops
                            : (call.pipe_ops + kBatchCollectives - 1) / kBatchCollectives;
  const float time =
      latency * static_cast<float>(latencies) + static_cast<float>(bytes) / (1000 * bandwidth);
  // Long rings of float8 lose precision: last resort.
  const bool lossy = is_float8(call.type) && call.function != Function::kAllGather &&
                     call.function != Function::kBroadcast;
  if (lossy && algorithm == Algorithm::kRing && model.shape.n_ranks > 8) return time * 1024.0F;
  return time;
}

Result<CostTable> cost_table(const NcclModel& model, const Call& call) {
  if (auto ok = check_call(call, model.shape.n_ranks); !ok) return tl::unexpected(ok.error());
  CostTable costs;
  for (auto& row : costs) row.fill(kUnavailable);
  if (model.shape.n_ranks == 1) {
    costs[index_of(Algorithm::kRing)][index_of(Protocol::kSimple)] = 0;
    return costs;
  }
  for (const Algorithm algorithm : kAlgorithms) {
    if (!call_can_use(model, call, algorithm)) continue;
    for (const Protocol protocol : kProtocols) {
      costs[index_of(algorithm)][index_of(protocol)] =
          predicted_time_us(model, call, algorithm, protocol);
    }
  }
  return costs;
}

Result<Choice> choose(const NcclModel& model, const Call& call) {
  RH_TRY(const CostTable costs, cost_table(model, call));
  RH_TRY(Choice choice, choose_tuned(model, call, costs, std::nullopt));
  prefer_registered_nvls(model, call, choice);
  return choice;
}

Result<Choice> choose_tuned(const NcclModel& model, const Call& call, const CostTable& costs,
                            std::optional<int> tuner_channels) {
  if (auto ok = check_call(call, model.shape.n_ranks); !ok) return tl::unexpected(ok.error());
  std::optional<Choice> best;
  for (const Algorithm algorithm : kAlgorithms) {
    for (const Protocol protocol : kProtocols) {
      const float time = costs[index_of(algorithm)][index_of(protocol)];
      if (!(time >= 0) || (best && time >= best->time_us)) continue;
      best = Choice{algorithm, protocol, time, 0, 0};
    }
  }
  if (!best) return nothing_available(model, call);
  const Launch launch = launch_for(model, call, best->algorithm, best->protocol);
  best->max_channels = launch.channels;
  best->n_threads = launch.threads;
  if (tuner_channels && *tuner_channels > 0) {
    best->max_channels = std::min(*tuner_channels, kMaxChannels);
  }
  return *best;
}

}  // namespace rehearse::sim
