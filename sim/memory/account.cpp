// SPDX-License-Identifier: Apache-2.0
#include "sim/memory/account.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <unordered_map>

#include "sim/memory/fixed_memory.hpp"
#include "sim/scenario/rebuild.hpp"

namespace rehearse::sim {
namespace {

// Which step of a rank a recorded time is in, and how far.
std::pair<uint32_t, double> place(const traces::RankTrace& rank, uint32_t steps, Nanos when) {
  for (uint32_t s = 0; s < steps; ++s) {
    const traces::Step& step = rank.steps[s];
    if (when < step.start) return {s, 1.0};
    if (when < step.end || s + 1 == steps) {
      const auto length = static_cast<double>(std::max<Nanos>(1, step.end - step.start));
      return {s + 1, std::clamp(static_cast<double>(when - step.start) / length, 0.0, 1.0)};
    }
  }
  return {0, 1.0};
}

// What patches make of a rank's allocations.
struct Changes {
  std::vector<std::pair<std::string, double>> scale;  // part of the name, factor
  Bytes leak = 0;                                     // per step

  [[nodiscard]] Bytes size(std::string_view name, Bytes bytes) const {
    for (const auto& [part, factor] : scale) {
      if (name.find(part) == name.npos) continue;
      const double scaled = static_cast<double>(bytes) * factor;
      bytes = static_cast<Bytes>(std::nearbyint(std::clamp(scaled, -1e18, 1e18)));
    }
    return bytes;
  }
};

Changes changes_for(const Scenario& scenario, uint32_t rank) {
  Changes out;
  for (const pb::Patch& patch : scenario.transforms) {
    const pb::ScaleMemory& scale = patch.scale_memory();
    if (patch.has_scale_memory() && (!scale.has_rank() || scale.rank() == rank)) {
      out.scale.emplace_back(scale.part(), scale.has_factor() ? scale.factor() : 1);
    }
    const pb::LeakMemory& leak = patch.leak_memory();
    if (patch.has_leak_memory() && (!leak.has_rank() || leak.rank() == rank)) {
      out.leak += std::min(leak.bytes(), Bytes{1} << 50);
    }
  }
  return out;
}

// Walks the allocations of one rank in recorded order; `see` hears of each: its index and the bytes in use after it.
template <typename See>
void walk(const traces::RankTrace& rank, const traces::Strings& names, uint32_t steps, Bytes fixed,
          const Changes& changes, MemoryAccount& out, const See& see) {
  std::map<uint32_t, Bytes> held;                                 // by name
  std::unordered_map<uint64_t, std::pair<uint32_t, Bytes>> open;  // by address
  std::map<uint32_t, Bytes> at_peak;
  Bytes now = fixed;
  out.peak = fixed;
  const traces::Operations& ops = rank.ops;
  uint32_t leaked = 0;  // steps
  for (size_t i = 0; i < ops.size(); ++i) {
    const traces::Memory* recorded = ops.mem(i);
    if (recorded == nullptr) continue;
    for (; changes.leak > 0 && leaked < steps && ops.start[i] >= rank.steps[leaked].start;
         ++leaked) {
      now += changes.leak;
      out.leaked += changes.leak;
    }
    uint32_t name = ops.name[i];
    traces::Memory changed = *recorded;
    changed.bytes = changes.size(names.at(name), recorded->bytes);
    const traces::Memory* event = &changed;
    if (event->bytes < 0) {
      // A free belongs to what was allocated there.
      if (const auto at = open.find(event->address); at != open.end()) {
        name = at->second.first;
        open.erase(at);
      }
    } else {
      open[event->address] = {name, event->bytes};
    }
    held[name] += event->bytes;
    if (event->bytes > 0 && out.refused == 0 && out.capacity > 0 &&
        now > out.capacity - std::min(out.capacity, event->bytes)) {
      out.refused = event->bytes;
      out.in_use = now;
      std::tie(out.refused_step, out.refused_part) = place(rank, steps, ops.start[i]);
    }
    now += event->bytes;
    see(i, now);
    if (now <= out.peak) continue;
    out.peak = now;
    at_peak = held;
    std::tie(out.peak_step, out.peak_part) = place(rank, steps, ops.start[i]);
  }
  for (const auto& [name, bytes] : at_peak) {
    if (bytes > 0) out.parts.emplace_back(names.at(name), bytes);
  }
}

// Operations of the main thread that were recorded in each part of a run (before the first step, each step, behind the
// last), and for each allocation how many came before it in its part.
struct Recorded {
  struct Event {
    size_t op = 0;
    size_t part = 0;
    uint64_t before = 0;
  };
  std::vector<uint64_t> operations;
  std::vector<Event> events;
};

Recorded recorded(const traces::RankTrace& rank, size_t main, uint32_t steps) {
  Recorded out;
  out.operations.assign(steps + 2, 0);
  size_t part = 0;
  for (size_t i = 0; i < rank.ops.size(); ++i) {
    const Nanos when = rank.ops.start[i];
    while (part < steps && when >= rank.steps[part].start) ++part;
    if (part == steps && steps > 0 && when >= rank.steps[steps - 1].end) ++part;
    const traces::OpKind kind = rank.ops.kind[i];
    if (kind == traces::OpKind::kMemory) {
      out.events.push_back({i, part, out.operations[part]});
    } else if (rank.ops.lane[i] == main && kind != traces::OpKind::kHost &&
               kind != traces::OpKind::kAnnotation) {
      ++out.operations[part];
    }
  }
  return out;
}

// The thread that works in the steps; without host threads the lane that has most to do.
size_t main_lane(const traces::RankProgram& rank, uint32_t steps) {
  if (const int thread = main_thread(rank, steps); thread >= 0) return static_cast<size_t>(thread);
  size_t best = 0;
  for (size_t l = 1; l < rank.lanes.size(); ++l) {
    const auto length = [&](size_t lane) {
      return rank.lane_begin[lane + 1] - rank.lane_begin[lane];
    };
    if (length(l) > length(best)) best = l;
  }
  return best;
}

Bytes capacity_of(const Scenario& scenario, const pb::RankLaunch& launch) {
  return scenario.document.platform()
      .nodes(static_cast<int>(launch.node()))
      .gpus(static_cast<int>(launch.gpu()))
      .memory();
}

uint32_t steps_of(const Evidence& evidence, const traces::RankTrace& rank) {
  return static_cast<uint32_t>(std::min<size_t>(evidence.program.steps, rank.steps.size()));
}

// Of many samples the first and the highest of each of `most` equal parts.
void thin_out(std::vector<std::pair<Nanos, Bytes>>& samples, size_t most) {
  if (samples.size() <= 2 * most) return;
  std::vector<std::pair<Nanos, Bytes>> out;
  for (size_t part = 0; part < most; ++part) {
    const size_t first = part * samples.size() / most, last = (part + 1) * samples.size() / most;
    size_t highest = first;
    for (size_t i = first; i < last; ++i) {
      if (samples[i].second > samples[highest].second) highest = i;
    }
    out.push_back(samples[first]);
    if (highest != first) out.push_back(samples[highest]);
  }
  samples = std::move(out);
}

}  // namespace

std::vector<MemoryAccount> memory_accounts(const Scenario& scenario, const Evidence& evidence,
                                           Findings& findings) {
  std::vector<MemoryAccount> out;
  FixedMemory fixed(scenario, evidence);
  for (const pb::RankLaunch& launch : scenario.document.launch().ranks()) {
    const int r = evidence.program.find(launch.rank());
    if (r < 0) continue;
    const traces::RankTrace& rank = scenario.trace->ranks[static_cast<size_t>(r)];
    if (rank.ops.memory.empty()) {
      findings.add("memory-unknown", Severity::kInfo, fmt::format("rank {}", launch.rank()),
                   "the trace has no allocations; record with profile_memory=True");
      continue;
    }
    MemoryAccount account;
    account.rank = static_cast<uint32_t>(r);
    account.capacity = capacity_of(scenario, launch);
    const FixedParts parts = fixed.of(launch);
    account.fixed = parts.sum();
    walk(rank, evidence.names, steps_of(evidence, rank), parts.sum(),
         changes_for(scenario, launch.rank()), account, [](size_t, Bytes) {});
    account.parts.emplace_back("NCCL buffers", parts.nccl);
    account.parts.emplace_back("CUDA context", parts.context);
    if (parts.fusion > 0) {
      account.parts.emplace_back("Horovod's fusion buffers", parts.fusion);
    }
    if (parts.foreign > 0) {
      account.parts.emplace_back("contexts of other ranks", parts.foreign);
      findings.add("unexpected-device", Severity::kWarning,
                   fmt::format("other ranks hold contexts on the GPU of rank {}", launch.rank()),
                   "let every process take its device before anything else uses CUDA");
    }
    if (account.leaked > 0) {
      account.parts.emplace_back("leaked", account.leaked);
      findings.add("memory-grows", Severity::kWarning, fmt::format("rank {}", launch.rank()),
                   "memory in use grows from step to step; look for tensors that are kept");
    }
    std::stable_sort(account.parts.begin(), account.parts.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    out.push_back(std::move(account));
  }
  return out;
}

std::vector<pb::MemoryCurve> memory_curves(const Scenario& scenario, const Evidence& evidence,
                                           size_t most) {
  constexpr size_t kSamples = 300;
  Findings ignored;
  std::vector<MemoryAccount> accounts = memory_accounts(scenario, evidence, ignored);
  std::stable_sort(accounts.begin(), accounts.end(), [](const auto& a, const auto& b) {
    return static_cast<double>(a.peak) * static_cast<double>(b.capacity) >
           static_cast<double>(b.peak) * static_cast<double>(a.capacity);
  });
  if (accounts.size() > most) accounts.resize(most);
  const std::vector<Nanos> ends = step_ends(evidence);
  FixedMemory fixed(scenario, evidence);
  std::vector<pb::MemoryCurve> out;
  for (const MemoryAccount& account : accounts) {
    const traces::RankTrace& rank = scenario.trace->ranks[account.rank];
    const auto& launches = scenario.document.launch().ranks();
    const auto launch = std::find_if(launches.begin(), launches.end(),
                                     [&](const auto& entry) { return entry.rank() == rank.rank; });
    if (launch == launches.end()) continue;
    const Bytes before = fixed.of(*launch).sum();
    const uint32_t steps = steps_of(evidence, rank);
    std::vector<std::pair<Nanos, Bytes>> samples = {{0, before}};
    MemoryAccount again;
    again.capacity = account.capacity;
    walk(rank, evidence.names, steps, before, changes_for(scenario, rank.rank), again,
         [&](size_t i, Bytes now) { samples.emplace_back(rank.ops.start[i], now); });
    thin_out(samples, kSamples);
    pb::MemoryCurve& curve = out.emplace_back();
    curve.set_rank(rank.rank);
    curve.set_capacity(account.capacity);
    Nanos at = 0;
    for (size_t i = 0; i < samples.size(); ++i) {
      const auto [step, part] =
          i == 0 ? std::pair<uint32_t, double>{0, 0.0} : place(rank, steps, samples[i].first);
      const Nanos when = time_of(ends, step, part);
      if (when < 0) break;  // the run did not come there
      curve.add_time(std::max<Nanos>(0, when - at));
      curve.add_bytes(samples[i].second);
      at = std::max(at, when);
    }
  }
  return out;
}

StepPlace place_in_steps(const Evidence& past, size_t r) {
  const traces::RankProgram& rank = past.program.ranks[r];
  const uint32_t steps = past.program.steps;
  if (rank.lanes.empty()) return {};
  const size_t lane = main_lane(rank, steps);
  OpId at = rank.lane_begin[lane];
  while (at < rank.lane_begin[lane + 1] && past.replayed.end[r][at] >= 0) ++at;
  StepPlace out;
  OpId from = rank.lane_begin[lane];
  for (uint32_t s = 0; s <= steps; ++s) {
    const OpId next = rank.step_begin[lane * (steps + 1) + s];
    if (at < next) {
      out.done = at - from;
      out.operations = next - from;
      return out;
    }
    out.step = static_cast<int>(s);
    from = next;
  }
  out.done = at - from;
  out.operations = rank.lane_begin[lane + 1] - from;
  return out;
}

std::vector<MemoryNow> memory_in_use(const Scenario& scenario, const Evidence& past) {
  std::vector<MemoryNow> out;
  Findings findings;
  for (const MemoryAccount& account : memory_accounts(scenario, past, findings)) {
    const traces::RankTrace& rank = scenario.trace->ranks[account.rank];
    const traces::RankProgram& program = past.program.ranks[account.rank];
    const auto steps =
        static_cast<uint32_t>(std::min<size_t>(past.program.steps, rank.steps.size()));
    const Recorded all = recorded(rank, main_lane(program, past.program.steps), steps);
    const StepPlace place = place_in_steps(past, account.rank);
    const size_t now = place.step < 0 ? 0 : static_cast<size_t>(place.step) + 1;
    const Changes changes = changes_for(scenario, rank.rank);
    MemoryNow row{account.rank, account.fixed, account.capacity};
    row.in_use += changes.leak * std::min<Bytes>(static_cast<Bytes>(now), steps);
    for (const Recorded::Event& event : all.events) {
      const bool done =
          event.part < now || (event.part == now && event.before * place.operations <=
                                                        place.done * all.operations[event.part]);
      if (!done) continue;
      row.in_use +=
          changes.size(past.names.at(rank.ops.name[event.op]), rank.ops.mem(event.op)->bytes);
    }
    out.push_back(row);
  }
  return out;
}

std::string out_of_memory_text(const MemoryAccount& account, pb::Framework framework,
                               uint32_t device) {
  const auto mib = [](Bytes bytes) { return static_cast<double>(bytes) / (1 << 20); };
  const Bytes free = std::max<Bytes>(0, account.capacity - account.in_use);
  if (framework == pb::TENSORFLOW || framework == pb::KERAS) {
    return fmt::format(
        "ResourceExhaustedError: OOM when allocating tensor of {} bytes on /device:GPU:{} by "
        "allocator GPU_{}_bfc",
        account.refused, device, device);
  }
  return fmt::format(
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {:.2f} MiB. GPU {} has a "
      "total "
      "capacity of {:.2f} GiB of which {:.2f} MiB is free.",
      mib(account.refused), device, mib(account.capacity) / 1024, mib(free));
}

}  // namespace rehearse::sim
