// SPDX-License-Identifier: Apache-2.0
#include "traces/import/devices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "traces/import/limits.hpp"

namespace rehearse::traces {
namespace {

constexpr uint32_t kElsewhere = std::numeric_limits<uint32_t>::max();

// Per lane and GPU (index into `gpus`): the lane belongs to the rank of that GPU.
using Homes = std::vector<std::vector<bool>>;

struct Work {
  int64_t correlation = 0;
  size_t gpu = 0;
};

// The place of a GPU in `gpus`; those that are not in it go with the first.
size_t gpu_index(const std::vector<int64_t>& gpus, int64_t device) {
  const auto at = std::lower_bound(gpus.begin(), gpus.end(), device);
  return at != gpus.end() && *at == device ? static_cast<size_t>(at - gpus.begin()) : 0;
}

int64_t memory_device(const Operations& ops, size_t op, const ProcessDevices& devices) {
  if (ops.mem(op) == nullptr || ops.detail[op] > devices.of_memory.size()) return kNoDevice;
  return devices.of_memory[ops.detail[op] - 1];
}

// Threads follow the GPUs they launch work on: the backward pass has a thread per GPU, the main thread
// serves all of them.
Homes homes_of_lanes(const RankTrace& trace, const ProcessDevices& devices,
                     const std::vector<int64_t>& gpus) {
  const Operations& ops = trace.ops;
  Homes homes(trace.lanes.size(), std::vector<bool>(gpus.size(), false));
  std::vector<Work> work;
  for (size_t op = 0; op < ops.size(); ++op) {
    const int64_t device = devices.of_lane[ops.lane[op]];
    if (device != kNoDevice && ops.correlation[op] != 0) {
      work.push_back({ops.correlation[op], gpu_index(gpus, device)});
    }
  }
  const auto by_id = [](const Work& a, const Work& b) { return a.correlation < b.correlation; };
  std::sort(work.begin(), work.end(), by_id);
  for (size_t op = 0; op < ops.size(); ++op) {
    const LaneId lane = ops.lane[op];
    if (const int64_t device = memory_device(ops, op, devices); device != kNoDevice) {
      homes[lane][gpu_index(gpus, device)] = true;
    }
    if (devices.of_lane[lane] != kNoDevice || ops.correlation[op] == 0) continue;
    const auto [first, last] =
        std::equal_range(work.begin(), work.end(), Work{ops.correlation[op], 0}, by_id);
    for (auto w = first; w != last; ++w) homes[lane][w->gpu] = true;
  }
  for (size_t lane = 0; lane < homes.size(); ++lane) {
    if (devices.of_lane[lane] != kNoDevice) {
      homes[lane][gpu_index(gpus, devices.of_lane[lane])] = true;
    } else if (std::find(homes[lane].begin(), homes[lane].end(), true) == homes[lane].end()) {
      homes[lane].assign(gpus.size(), true);
    }
  }
  return homes;
}

// What `part` has beside its operations, for one of its ranks; members are spread over `n` GPUs each.
RankPart frame_of(const RankPart& part, int64_t gpu, size_t n) {
  RankPart out;
  out.trace.host = part.trace.host;
  out.trace.env = part.trace.env;
  out.trace.steps = part.trace.steps;
  out.trace.gpu = gpu >= 0 && gpu < (int64_t{1} << 16) ? static_cast<uint32_t>(gpu) : 0;
  out.may_continue = part.may_continue;
  out.communicators = part.communicators;
  for (Communicator& c : out.communicators) {
    std::vector<RankId> members;
    for (const RankId process : c.members) {
      for (size_t i = 0; i < n; ++i) members.push_back(static_cast<RankId>(process * n + i));
    }
    c.members = std::move(members);
  }
  out.members_unknown = part.members_unknown;
  out.places = part.places;
  for (CommunicatorPlace& place : out.places) {
    if (place.position >= 0) place.position = kUnknownPlace;  // of which GPU is not told
  }
  return out;
}

template <typename T>
void copy_entry(const std::vector<T>& from, size_t entry, std::vector<T>& to) {
  if (entry < from.size()) to.push_back(from[entry]);
}

class Division {
 public:
  Division(const RankPart& whole, const ProcessDevices& devices, const Homes& homes,
           const std::vector<int64_t>& gpus)
      : whole_(whole), devices_(devices), homes_(homes), gpus_(gpus) {}

  RankPart part(size_t gpu) {
    RankPart out = frame_of(whole_, gpus_[gpu], devices_.ranks_are_processes ? gpus_.size() : 1);
    const RankTrace& trace = whole_.trace;
    lane_of_.assign(trace.lanes.size(), kElsewhere);
    for (size_t lane = 0; lane < trace.lanes.size(); ++lane) {
      if (!homes_[lane][gpu]) continue;
      lane_of_[lane] = static_cast<uint32_t>(out.trace.lanes.size());
      out.trace.lanes.push_back(trace.lanes[lane]);
    }
    for (size_t op = 0; op < trace.ops.size(); ++op) {
      if (lane_of_[trace.ops.lane[op]] != kElsewhere) add(op, gpu, out);
    }
    return out;
  }
  // Waits of threads and streams for streams of another GPU, which are another rank's now.
  [[nodiscard]] uint64_t across() const { return across_; }

 private:
  void add(size_t op, size_t gpu, RankPart& out) {
    const Operations& from = whole_.trace.ops;
    Operations& to = out.trace.ops;
    const LaneId lane = lane_of_[from.lane[op]];
    const Nanos start = from.start[op], duration = from.duration[op];
    const int64_t correlation = from.correlation[op];
    const uint32_t name = from.name[op];
    if (const Call* call = from.call(op)) {
      Call mine = *call;
      if (devices_.ranks_are_processes && mine.peer > 0) {  // the first GPU of that process
        const int64_t peer = int64_t{mine.peer} * static_cast<int64_t>(gpus_.size());
        mine.peer = peer < kMostRank ? static_cast<int32_t>(peer) : -1;
      }
      to.add_call(lane, name, start, duration, correlation, mine);
      const size_t entry = from.detail[op] - 1;
      copy_entry(whole_.recorded_sequence, entry, out.recorded_sequence);
      copy_entry(whole_.launched, entry, out.launched);
      copy_entry(whole_.sized, entry, out.sized);
      copy_entry(whole_.grouped, entry, out.grouped);
      copy_entry(whole_.message_only, entry, out.message_only);
    } else if (const Copy* copy = from.copy(op)) {
      to.add_copy(lane, name, start, duration, correlation, *copy);
    } else if (const Memory* memory = from.mem(op)) {
      const int64_t device = memory_device(from, op, devices_);
      const std::vector<bool>& homes = homes_[from.lane[op]];
      const auto first =
          static_cast<size_t>(std::find(homes.begin(), homes.end(), true) - homes.begin());
      if (gpu == (device == kNoDevice ? first : gpu_index(gpus_, device))) {
        to.add_memory(lane, name, start, *memory);
      }
    } else if (const Sync* sync = from.sync(op)) {
      Sync mine = *sync;
      if (mine.stream_lane >= 0) {
        const uint32_t stream = lane_of_[static_cast<size_t>(mine.stream_lane)];
        if (stream == kElsewhere) {
          ++across_;
          to.add(OpKind::kHost, lane, name, start, duration, correlation);
          return;
        }
        mine.stream_lane = static_cast<int32_t>(stream);
      }
      to.add_sync(lane, name, start, duration, correlation, mine);
    } else {
      to.add(from.kind[op], lane, name, start, duration, correlation);
    }
  }

  const RankPart& whole_;
  const ProcessDevices& devices_;
  const Homes& homes_;
  const std::vector<int64_t>& gpus_;
  std::vector<uint32_t> lane_of_;
  uint64_t across_ = 0;
};

}  // namespace

int64_t busiest_gpu(const std::map<int64_t, uint64_t>& work) {
  std::pair<int64_t, uint64_t> most{kNoDevice, 0};
  for (const auto& [device, count] : work) {
    if (count > most.second) most = {device, count};
  }
  return most.first;
}

void choose_gpu(RankTrace& trace, const std::map<int64_t, uint64_t>& work, size_t communicating,
                const std::string& where, Findings& findings) {
  if (work.empty()) {
    findings.add("no-gpu-work", Severity::kWarning, where,
                 "the trace holds host work only; record with the CUDA activity switched on");
    return;
  }
  if (work.size() > 1 && communicating < 2) {
    findings.add("several-devices", Severity::kWarning, where,
                 "the rank is taken to own the GPU with most work; the others' streams are kept",
                 work.size() - 1);
  }
  const int64_t most = busiest_gpu(work);
  if (most >= 0 && most < (int64_t{1} << 16)) trace.gpu = static_cast<uint32_t>(most);
}

std::vector<int64_t> communicating_gpus(const RankPart& part, const ProcessDevices& devices) {
  std::set<int64_t> gpus;
  const Operations& ops = part.trace.ops;
  for (size_t op = 0; op < ops.size(); ++op) {
    if (ops.kind[op] != OpKind::kCall) continue;
    if (const int64_t device = devices.of_lane[ops.lane[op]]; device != kNoDevice) {
      gpus.insert(device);
    }
  }
  if (gpus.size() > kMostGpusOfProcess) return {};
  for (const Communicator& c : part.communicators) {
    for (const RankId member : c.members) {
      if (uint64_t{member} * gpus.size() >= uint64_t{kMostRank}) return {};
    }
  }
  return {gpus.begin(), gpus.end()};
}

bool rank_of_gpu(RankId process, size_t gpus, size_t i, RankId& rank) {
  const uint64_t number = uint64_t{process} * gpus + i;
  if (number >= uint64_t{kMostRank}) return false;
  rank = static_cast<RankId>(number);
  return true;
}

std::vector<RankPart> ranks_of_process(RankPart part, const ProcessDevices& devices,
                                       const std::string& where, Findings& findings) {
  const std::vector<int64_t> gpus = communicating_gpus(part, devices);
  std::vector<RankPart> out;
  if (gpus.size() < 2) {
    out.push_back(std::move(part));
    return out;
  }
  const Homes homes = homes_of_lanes(part.trace, devices, gpus);
  Division division(part, devices, homes, gpus);
  for (size_t gpu = 0; gpu < gpus.size(); ++gpu) out.push_back(division.part(gpu));
  findings.add("process-with-several-gpus", Severity::kInfo,
               fmt::format("{}: {} GPUs", where, gpus.size()),
               "one process drives them: each GPU that communicates is a rank of its own, and host "
               "threads that launch work on several stand in each of those ranks",
               gpus.size());
  if (division.across() > 0) {
    findings.add("waits-across-gpus", Severity::kInfo, where,
                 "waits of one process for streams of another GPU take their recorded time: the "
                 "GPUs are different ranks here",
                 division.across());
  }
  return out;
}

}  // namespace rehearse::traces
