// SPDX-License-Identifier: Apache-2.0
#include "traces/import/kineto/builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "traces/capture_file/step_names.hpp"
#include "traces/import/kineto/decimal.hpp"
#include "traces/import/limits.hpp"
#include "traces/import/names.hpp"
#include "traces/model/utf8.hpp"

namespace rehearse::traces::kineto {
namespace {

constexpr size_t kMostLabels = 65536;
constexpr size_t kNameCache = 8192;
// pid and tid may be numbers, quoted numbers, "stream 7" or words; words get a number of their own.
int64_t id_of(std::string_view token) {
  if (const auto number = parse_integer(token)) return *number;
  while (!token.empty() && (token.back() == ' ' || token.back() == '"')) token.remove_suffix(1);
  if (!token.empty() && token.front() == '"') token.remove_prefix(1);
  if (token.starts_with("stream ")) {
    if (const auto number = parse_integer(token.substr(7))) return *number;
  }
  uint64_t hash = 1469598103934665603ULL;
  for (const char c : token) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return static_cast<int64_t>(hash >> 1);
}

LaneKey thread_key(const Event& e) {
  return {LaneKind::kHostThread, id_of(e.pid), 0, id_of(e.tid)};
}

}  // namespace

Builder::Builder(ReadContext& context, const std::string& file)
    : context_(context), file_(file), notes_(context.findings, file), name_cache_(kNameCache) {}

std::string Builder::at(const Element& element) const {
  return fmt::format("{}: byte {}, event {}", file_, element.offset, element.number);
}

void Builder::note(const char* id, Severity severity, const Element& element, const char* advice) {
  notes_.add(id, severity, advice, [&] { return at(element); });
}

bool Builder::times(const Event& e, const Element& element, Nanos& start, Nanos& duration) {
  if (!e.start || *e.start > kLatest || *e.start < -kLatest) {
    note("event-without-time", Severity::kDataLoss, element,
         "events without a readable ts are left out");
    return false;
  }
  start = *e.start;
  duration = e.duration.value_or(0);
  if (!e.duration) {
    note("event-without-duration", Severity::kWarning, element, "taken as 0 ns long");
  } else if (duration < 0) {
    note("negative-duration", Severity::kWarning, element,
         "taken as 0 ns long; the recording clock went backwards");
    duration = 0;
  } else if (duration >= kLatest - std::max<Nanos>(start, 0)) {
    note("event-without-time", Severity::kDataLoss, element,
         "events without a readable ts are left out");
    return false;
  }
  return true;
}

bool Builder::lane_of(const LaneKey& key, const Element& element, LaneId& lane) {
  const auto found = lanes_.of(key, part_.trace.lanes);
  if (!found) {
    note("too-many-lanes", Severity::kDataLoss, element,
         "more threads and streams than a trace can hold; record fewer processes per file");
    return false;
  }
  lane = *found;
  return true;
}

// Events of one thread come one after the other: its ids are mostly written as they just were.
bool Builder::host_lane(const Event& e, const Element& element, LaneId& lane) {
  if (thread_.lane >= 0 && e.tid == thread_.tid && e.pid == thread_.pid) {
    lane = static_cast<LaneId>(thread_.lane);
    return true;
  }
  if (!lane_of(thread_key(e), element, lane)) return false;
  if (e.pid.size() + e.tid.size() < 64) thread_ = {std::string(e.pid), std::string(e.tid), lane};
  return true;
}

// Names repeat: a small table answers most of them without hashing the whole name.
uint32_t Builder::name_of(std::string_view name, const Element& element) {
  if (name.size() > kLongestName) {
    note("name-shortened", Severity::kWarning, element, "names are kept up to 16 KiB");
    name = clipped(name, kLongestName);
  }
  uint64_t head = 0, tail = 0;
  const size_t n = std::min<size_t>(name.size(), 8);
  if (n > 0) {
    std::memcpy(&head, name.data(), n);
    std::memcpy(&tail, name.data() + name.size() - n, n);
  }
  uint64_t middle = 0;
  if (name.size() > 24) std::memcpy(&middle, name.data() + name.size() / 2, 8);
  const uint64_t mix = (head ^ (tail << 7) ^ (middle * 31) ^ name.size()) * 0x9e3779b97f4a7c15ULL;
  uint32_t& cached = name_cache_[(mix >> 40) % kNameCache];
  if (cached != 0 && context_.strings.at(cached) == name) return cached;
  cached = context_.strings.intern(name);
  return cached;
}

void Builder::add(const Event& e, const Element& element) {
  switch (e.category) {
    case Category::kFlow:
      // Launch flows repeat the correlation ids.
      if (e.category_name == "fwdbwd" || e.category_name == "forward_backward") {
        note(
            "forward-backward-links", Severity::kInfo, element,
            "not kept: the hand-over to the backward thread is found from the order of operations");
      }
      return;
    case Category::kKernel:
    case Category::kCopy:
    case Category::kMemset:
      return e.phase == 'X' ? gpu(e, element) : instant(e, element);
    case Category::kRuntime:
      return e.phase == 'X' ? runtime(e, element) : instant(e, element);
    case Category::kHostOp:
    case Category::kPython:
      return e.phase == 'X' ? host(e, element, OpKind::kHost) : instant(e, element);
    case Category::kUserAnnotation:
      return e.phase == 'X' ? annotation(e, element) : instant(e, element);
    case Category::kOverhead:
      return e.phase == 'X' ? host(e, element, OpKind::kAnnotation) : instant(e, element);
    case Category::kCudaSync:
      sync_details_.push_back(
          {e.correlation, e.wait_record, e.wait_event, e.device, e.stream, e.wait_stream});
      return;
    case Category::kGpuAnnotation:
      return note("gpu-annotations", Severity::kInfo, element,
                  "not kept: they repeat host annotations over GPU work");
    case Category::kRange:
      return note("profiler-ranges", Severity::kInfo, element,
                  "counters and ranges of hardware profilers are not operations");
    case Category::kEventRecord:
      return note("event-records", Severity::kInfo, element,
                  "not kept: the host calls that record events and wait for them tell the same");
    case Category::kSpan:
      return;
    case Category::kNone:
    case Category::kInstant:
    case Category::kUnknown:
      return instant(e, element);
  }
}

// Everything that is not a complete event of a known category.
void Builder::instant(const Event& e, const Element& element) {
  if (e.phase == 'M') return label(e);
  if (e.name == "[memory]") return memory(e, element);
  if (e.phase == 'i' || e.phase == 'I') {
    if (e.name.starts_with("Iteration Start") || e.name == "Record Window End") return;
    return note("instant-events", Severity::kInfo, element,
                "marks without a duration are not kept");
  }
  if (e.phase == 'X' && e.category == Category::kUnknown) {
    context_.findings.add("unknown-category", Severity::kDataLoss,
                          fmt::format("{}: {}", at(element), clipped(e.category_name, 64)),
                          "events of categories that are not known are left out");
    return;
  }
  if (e.phase == 'X' && before_kineto(e, element)) return;
  if (e.phase == 'X') {
    return note(
        "event-without-category", Severity::kDataLoss, element,
        "events without a category (cat) are left out: kernel, cpu_op, cuda_runtime and the like "
        "tell what an event is");
  }
  if (e.phase == 0) {
    return note("event-without-phase", Severity::kDataLoss, element,
                "events without ph are left out");
  }
  note("unused-phase", Severity::kInfo, element,
       "only complete events (ph X), memory marks and metadata are used");
}

// torch.autograd.profiler without Kineto tells host and GPU apart by the process only; the thread of a kernel is its GPU.
bool Builder::before_kineto(const Event& e, const Element& element) {
  const bool host_side =
      e.pid.starts_with("\"CPU functions\"") || e.pid.starts_with("\"CPU Functions\"");
  if (!host_side && !e.pid.starts_with("\"CUDA functions\"")) return false;
  note("profile-without-kineto", Severity::kWarning, element,
       "streams, launches and sizes are not recorded; profile with torch.profiler");
  if (host_side) {
    host(e, element, OpKind::kHost);
    return true;
  }
  Event kernel = e;
  kernel.category = Category::kKernel;
  kernel.device = id_of(e.tid);
  kernel.stream = 0;
  gpu(kernel, element);
  return true;
}

void Builder::gpu(const Event& e, const Element& element) {
  Nanos start = 0, duration = 0;
  LaneId lane = 0;
  const int64_t device = e.device >= 0 ? e.device : id_of(e.pid);
  const int64_t stream = e.stream >= 0 ? e.stream : id_of(e.tid);
  if (!times(e, element, start, duration)) return;
  if (!lane_of({LaneKind::kStream, device, 0, stream}, element, lane)) return;
  ++device_work_[device];
  const uint32_t name = name_of(e.name, element);
  Operations& ops = part_.trace.ops;
  if (e.category == Category::kCopy) {
    ops.add_copy(lane, name, start, duration, e.correlation,
                 {direction_of(e.name), std::max<Bytes>(e.bytes, 0)});
  } else if (e.category == Category::kMemset) {
    ops.add(OpKind::kMemset, lane, name, start, duration, e.correlation);
  } else if (is_nccl_kernel(e.name)) {
    const size_t op = ops.add_call(lane, name, start, duration, e.correlation, Call{});
    communication_.kernel(op, static_cast<uint32_t>(ops.calls.size() - 1), e.external, facts_of(e));
  } else {
    ops.add(OpKind::kKernel, lane, name, start, duration, e.correlation);
  }
}

void Builder::runtime(const Event& e, const Element& element) {
  Nanos start = 0, duration = 0;
  LaneId lane = 0;
  if (!times(e, element, start, duration) || !host_lane(e, element, lane)) return;
  const uint32_t name = name_of(e.name, element);
  Operations& ops = part_.trace.ops;
  const RuntimeCall call = runtime_call_of(e.name);
  if (call.kind == OpKind::kSync) {
    ops.add_sync(lane, name, start, duration, e.correlation, {.sync = call.sync});
  } else {
    ops.add(call.kind, lane, name, start, duration, e.correlation);
  }
}

void Builder::host(const Event& e, const Element& element, OpKind kind) {
  Nanos start = 0, duration = 0;
  LaneId lane = 0;
  if (!times(e, element, start, duration) || !host_lane(e, element, lane)) return;
  part_.trace.ops.add(kind, lane, name_of(e.name, element), start, duration);
  if (kind == OpKind::kHost && e.has_call) {
    communication_.span(lane, start, duration, e.external, facts_of(e));
  }
}

void Builder::annotation(const Event& e, const Element& element) {
  Nanos start = 0, duration = 0;
  LaneId lane = 0;
  if (!times(e, element, start, duration) || !host_lane(e, element, lane)) return;
  part_.trace.ops.add(OpKind::kAnnotation, lane, name_of(e.name, element), start, duration);
  if (e.name.starts_with("nccl:"))
    communication_.span(lane, start, duration, e.external, facts_of(e));
  if (e.name.starts_with("gloo:") || e.name.starts_with("mpi:")) {
    note("host-collectives", Severity::kWarning, element,
         "collectives of Gloo and MPI are kept as ranges of host threads that take the recorded "
         "time, not as communication");
  }
  constexpr std::string_view kStep = "ProfilerStep#";
  if (e.name.starts_with(kStep)) {
    if (const auto number = parse_integer(e.name.substr(kStep.size()))) {
      part_.trace.steps.push_back({*number, start, start + duration});
    }
  } else if (const auto step = capture_file::step_of(e.name)) {
    named_steps_.push_back({step->family, {step->number, start, start + duration}});
  }
}

void Builder::memory(const Event& e, const Element& element) {
  if (e.device_type == 0) {
    return note("host-memory-events", Severity::kInfo, element, "only GPU memory is kept");
  }
  LaneId lane = 0;
  if (!e.start || *e.start > kLatest || *e.start < -kLatest) {
    return note("event-without-time", Severity::kDataLoss, element,
                "events without a readable ts are left out");
  }
  if (!host_lane(e, element, lane)) return;
  uint64_t id = 0;
  if (e.address != 0) id = addresses_.emplace(e.address, addresses_.size() + 1).first->second;
  part_.trace.ops.add_memory(lane, name_of(e.name, element), *e.start, {e.bytes, id});
  memory_devices_.push_back(e.device);
}

void Builder::label(const Event& e) {
  if (e.name != "thread_name" || lanes_.labels() >= kMostLabels) return;
  lanes_.label(thread_key(e), context_.strings.intern(clipped(e.label, 256)));
}

}  // namespace rehearse::traces::kineto
