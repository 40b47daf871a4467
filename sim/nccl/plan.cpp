// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/plan.hpp"

#include <algorithm>
#include <array>
#include <tuple>

#include "sim/nccl/rounding.hpp"
#include "sim/nccl/threads.hpp"

namespace rehearse::sim {

namespace {

constexpr std::int64_t kManyElements = std::int64_t{1} << 60;  // keeps sums from overflowing

ChunkPlan chunks_of(const NcclModel& model, const SplitRequest& request, std::int64_t count,
                    int channels) {
  if (count == 0) return {};
  Call part = request.call;
  part.count = count;
  return plan_chunks(
      model, {request.call, request.choice, total_bytes(part, model.shape.n_ranks), channels});
}

PlannedCall finish(const NcclModel& model, const SplitRequest& request, const ChannelSplit& split) {
  PlannedCall planned;
  planned.choice = request.choice;
  planned.split = split;
  const int sharing = shares_evenly(split.kind) ? std::max(1, split.n_channels()) : 1;
  planned.lo = chunks_of(model, request, split.count_lo, sharing);
  planned.mid = chunks_of(model, request, split.count_mid, 1);
  planned.hi = chunks_of(model, request, split.count_hi, 1);
  return planned;
}

// A call on its way through the group.
struct Task {
  std::size_t call = 0;
  Call bytes;  // AllGather and Broadcast move bytes whatever their type
  std::int64_t traffic = 0;
  Choice choice;
};

// NCCL sorts by classes of size, four per power of two of KiB up to 1 GiB: within a class calls
// keep their order.
int size_class(std::int64_t traffic) {
  const std::int64_t kib = std::min(traffic, std::int64_t{1} << 30) >> 10;
  const int log2 = floor_log2(kib | 1);
  if (log2 < 2) return static_cast<int>(kib);
  return (log2 - 1) * 4 + static_cast<int>((kib >> (log2 - 2)) & 3);
}

std::tuple<Function, DeviceOp, DataType> bin_of(const Task& task) {
  const bool moves =
      task.bytes.function == Function::kAllGather || task.bytes.function == Function::kBroadcast;
  return {task.bytes.function, moves ? DeviceOp::kSum : device_op(task.bytes.op, task.bytes.type),
          task.bytes.type};
}

std::vector<Task> tasks_of(const NcclModel& model, std::span<const Call> calls) {
  std::vector<Task> tasks;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (calls[i].count == 0) continue;
    Task task{i, calls[i], 0, {}};
    if (calls[i].function == Function::kAllGather || calls[i].function == Function::kBroadcast) {
      task.bytes.count = payload_bytes(calls[i]);
      task.bytes.type = DataType::kInt8;
    }
    task.traffic =
        payload_bytes(calls[i]) * traffic_per_byte(calls[i].function, model.shape.n_ranks);
    tasks.push_back(task);
  }
  const auto channels = static_cast<std::size_t>(model.shape.n_channels);
  const std::size_t pipe_ops = (tasks.size() + channels - 1) / channels;
  for (Task& task : tasks) task.bytes.pipe_ops = static_cast<int>(pipe_ops);
  return tasks;
}

// Bins by function, reduction and type; the bin with the largest call first, in each bin ascending.
std::vector<std::vector<Task>> bins_of(std::vector<Task> tasks) {
  std::stable_sort(tasks.begin(), tasks.end(), [](const Task& a, const Task& b) {
    return size_class(a.traffic) < size_class(b.traffic);
  });
  std::vector<std::vector<Task>> bins;
  for (auto task = tasks.rbegin(); task != tasks.rend(); ++task) {
    const auto bin = std::find_if(bins.begin(), bins.end(), [&](const std::vector<Task>& b) {
      return bin_of(b.front()) == bin_of(*task);
    });
    if (bin == bins.end()) {
      bins.push_back({*task});
    } else {
      bin->push_back(*task);
    }
  }
  for (auto& bin : bins) std::reverse(bin.begin(), bin.end());
  return bins;
}

// Runs whose traffic stays below four times their first member's are decided as one call.
Result<void> choose_bin(const NcclModel& model, std::span<Task> bin) {
  while (!bin.empty()) {
    std::size_t end = 1;
    Call sum = bin.front().bytes;
    while (end < bin.size() && bin[end].traffic < 4 * bin.front().traffic) {
      sum.count = std::min(sum.count + bin[end].bytes.count, kManyElements);
      ++end;
    }
    auto choice = choose(model, sum);
    if (!choice) return tl::unexpected(std::move(choice).error());
    for (Task& task : bin.first(end)) task.choice = *choice;
    bin = bin.subspan(end);
  }
  return {};
}

}  // namespace

Result<PlannedCall> plan_call(const NcclModel& model, const Call& call) {
  RH_TRY(const Choice choice, choose(model, call));
  return plan_choice(model, call, choice);
}

PlannedCall plan_choice(const NcclModel& model, const Call& call, const Choice& choice) {
  const std::array<SplitRequest, 1> request = {SplitRequest{call, choice}};
  return finish(model, request[0], split_channels(model, request).front());
}

Result<GroupPlan> plan_group(const NcclModel& model, std::span<const Call> calls) {
  for (const Call& call : calls) {
    if (auto ok = check_call(call, model.shape.n_ranks); !ok) return tl::unexpected(ok.error());
  }
  std::vector<Task> order;
  for (std::vector<Task>& bin : bins_of(tasks_of(model, calls))) {
    if (auto ok = choose_bin(model, bin); !ok) return tl::unexpected(std::move(ok).error());
    order.insert(order.end(), bin.begin(), bin.end());
  }
  std::stable_sort(order.begin(), order.end(), [&](const Task& a, const Task& b) {
    return kind_of(model.shape, a.choice.algorithm) < kind_of(model.shape, b.choice.algorithm);
  });

  std::vector<SplitRequest> requests;
  requests.reserve(order.size());
  for (const Task& task : order) requests.push_back({calls[task.call], task.choice});
  const std::vector<ChannelSplit> splits = split_channels(model, requests);

  GroupPlan plan;
  for (std::size_t i = 0; i < order.size(); ++i) {
    plan.calls.push_back(finish(model, requests[i], splits[i]));
    plan.calls.back().call = order[i].call;
    plan.block_threads =
        std::max(plan.block_threads, block_threads(plan.calls.back().choice.n_threads));
  }
  return plan;
}

}  // namespace rehearse::sim
