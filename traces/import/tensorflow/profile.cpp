// SPDX-License-Identifier: Apache-2.0
#include "traces/import/tensorflow/profile.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "traces/import/kineto/category.hpp"
#include "traces/import/limits.hpp"
#include "traces/import/names.hpp"
#include "traces/model/utf8.hpp"

namespace rehearse::traces::tensorflow {
namespace {

void sort_steps(std::vector<Step>& steps) {
  std::stable_sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) {
    return a.start != b.start ? a.start < b.start : a.number < b.number;
  });
  steps.erase(std::unique(steps.begin(), steps.end(),
                          [](const Step& a, const Step& b) { return a.number == b.number; }),
              steps.end());
}

}  // namespace

bool Profile::plausible(Event& event, uint64_t place) {
  if (event.start < -kLatest || event.start > kLatest || event.duration > kLatest / 2) {
    context_.findings.add("event-without-time", Severity::kDataLoss,
                          fmt::format("{}: byte {}", file_, place),
                          "events without a readable time are left out");
    return false;
  }
  if (event.duration < 0) {
    context_.findings.add("negative-duration", Severity::kWarning,
                          fmt::format("{}: byte {}", file_, place), "taken as 0 ns long");
    event.duration = 0;
  }
  return true;
}

void Profile::describe_device(int64_t device, std::string model, Bytes memory) {
  described_[device] = {std::move(model), std::clamp<Bytes>(memory, 0, Bytes{1} << 50)};
}

LaneId Profile::lane_of(Device& device, LaneKind kind, int64_t id, std::string_view name) {
  std::vector<Lane>& lanes = device.part.trace.lanes;
  const auto [found, added] =
      device.lanes.emplace(std::pair(kind, id), static_cast<LaneId>(lanes.size()));
  if (!added) return found->second;
  if (lanes.size() >= kMostLanes) {
    context_.findings.add("too-many-lanes", Severity::kWarning, file_,
                          "more threads than a trace can hold; the rest share one lane");
    found->second = static_cast<LaneId>(lanes.size() - 1);
    return found->second;
  }
  lanes.push_back({kind, id, context_.strings.intern(clipped(name, 256))});
  return found->second;
}

void Profile::add_call(Device& device, LaneId lane, const Event& event) {
  RankPart& part = device.part;
  const std::string& name = context_.strings.at(event.name);
  Call call;
  const auto collective = collective_of_kernel(name);
  if (!collective) {
    context_.findings.add("collective-unknown", Severity::kWarning, file_ + ": " + name,
                          "taken as all-reduce");
  }
  call.collective = collective.value_or(Collective::kAllReduce);
  if (is_reducing(call.collective)) call.reduction = Reduction::kSum;
  if (part.communicators.empty())
    part.communicators.push_back({"default", "all ranks", {}, "nccl"});
  part.trace.ops.add_call(lane, event.name, event.start, event.duration, event.correlation, call);
  part.sized.push_back(false);
}

void Profile::device_event(int64_t number, int64_t stream, const Event& event) {
  Device& device = devices_[number];
  Operations& ops = device.part.trace.ops;
  const LaneId lane = lane_of(device, LaneKind::kStream, stream, fmt::format("stream {}", stream));
  gpu_work_ = true;
  if (event.correlation != 0) device_of_.emplace(event.correlation, number);
  if (event.kind == OpKind::kCopy) {
    ops.add_copy(lane, event.name, event.start, event.duration, event.correlation, event.copy);
  } else if (event.kind == OpKind::kMemset) {
    ops.add(OpKind::kMemset, lane, event.name, event.start, event.duration, event.correlation);
  } else if (is_nccl_kernel(context_.strings.at(event.name))) {
    add_call(device, lane, event);
  } else {
    ops.add(OpKind::kKernel, lane, event.name, event.start, event.duration, event.correlation);
  }
}

void Profile::step(int64_t device, const Step& step) {
  devices_[device].part.trace.steps.push_back(step);
}

size_t Profile::steps(int64_t device) const {
  const auto found = devices_.find(device);
  return found == devices_.end() ? 0 : found->second.part.trace.steps.size();
}

// A thread belongs to the GPU that most of its launches are for; launches for others go there.
void Profile::host_line(int64_t id, std::string_view name, const std::vector<Event>& events) {
  std::map<int64_t, uint64_t> launches;
  for (const Event& e : events) {
    const auto device = e.correlation == 0 ? device_of_.end() : device_of_.find(e.correlation);
    if (device != device_of_.end()) ++launches[device->second];
  }
  int64_t home = devices_.empty() ? 0 : devices_.begin()->first;
  uint64_t most = 0;
  for (const auto& [device, count] : launches) {
    if (count > most) {
      most = count;
      home = device;
    }
  }
  for (const Event& e : events) {
    const auto found = e.correlation == 0 ? device_of_.end() : device_of_.find(e.correlation);
    const bool launches_work = found != device_of_.end();
    Device& device = devices_[launches_work ? found->second : home];
    const LaneId lane = lane_of(device, LaneKind::kHostThread, id, name);
    Operations& ops = device.part.trace.ops;
    const kineto::RuntimeCall call = kineto::runtime_call_of(context_.strings.at(e.name));
    const int64_t correlation = launches_work ? e.correlation : 0;
    if (call.kind == OpKind::kSync && !launches_work) {
      ops.add_sync(lane, e.name, e.start, e.duration, 0, {.sync = call.sync});
    } else {
      const OpKind kind = !launches_work                      ? OpKind::kHost
                          : call.kind == OpKind::kGraphLaunch ? OpKind::kGraphLaunch
                                                              : OpKind::kLaunch;
      ops.add(kind, lane, e.name, e.start, e.duration, correlation);
    }
    if (e.step >= 0) host_steps_.push_back({e.step, e.start, e.start + e.duration});
  }
}

bool Profile::empty() const {
  return std::all_of(devices_.begin(), devices_.end(),
                     [](const auto& d) { return d.second.part.trace.ops.size() == 0; });
}

std::vector<RankPart> Profile::finish(Nanos base, const std::string& host) {
  std::vector<RankPart> out;
  sort_steps(host_steps_);
  uint64_t orphans = 0;
  for (auto& [number, device] : devices_) {
    RankTrace& rank = device.part.trace;
    if (rank.ops.size() == 0) continue;
    rank.gpu = static_cast<uint32_t>(number);
    rank.host = host;
    if (const auto facts = described_.find(number); facts != described_.end()) {
      rank.gpu_model = facts->second.first;
      rank.gpu_memory = facts->second.second;
    }
    if (rank.steps.empty()) rank.steps = host_steps_;
    sort_steps(rank.steps);
    std::unordered_map<int64_t, Nanos> launches;
    for (size_t op = 0; op < rank.ops.size(); ++op) {
      if (rank.ops.correlation[op] != 0 && rank.lanes[rank.ops.lane[op]].kind != LaneKind::kStream)
        launches.emplace(rank.ops.correlation[op], rank.ops.start[op]);
    }
    device.part.launched.assign(rank.ops.calls.size(), 0);
    for (size_t op = 0; op < rank.ops.size(); ++op) {
      if (rank.lanes[rank.ops.lane[op]].kind != LaneKind::kStream) continue;
      const auto launch = launches.find(rank.ops.correlation[op]);
      if (launch == launches.end()) ++orphans;
      if (rank.ops.kind[op] == OpKind::kCall) {
        device.part.launched[rank.ops.detail[op] - 1] =
            base + (launch == launches.end() ? rank.ops.start[op] : launch->second);
      }
    }
    for (Nanos& start : rank.ops.start) start += base;
    for (Step& s : rank.steps) s = {s.number, s.start + base, s.end + base};
    rank.ops.sort();
    device.part.rank_known = false;
    out.push_back(std::move(device.part));
  }
  if (orphans > 0) {
    context_.findings.add("gpu-work-without-launch", Severity::kInfo, file_,
                          "their launch is not in the profile; they start as recorded", orphans);
  }
  if (!gpu_work_ && !out.empty()) {
    context_.findings.add("no-gpu-work", Severity::kWarning, file_,
                          "the profile holds host work only; profile on a machine with GPUs");
  }
  return out;
}

}  // namespace rehearse::traces::tensorflow
