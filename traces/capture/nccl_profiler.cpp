// SPDX-License-Identifier: Apache-2.0
// NCCL's profiler plugin, versions 1 to 6: one template over the descriptors. A handle is an id, the context
// of a communicator is its hash, and start, state and stop are records of their own, because children start
// after their parents stopped and events of another process may be named as parents.
#include <unistd.h>

#include <bit>
#include <type_traits>

#include "traces/capture/activity.hpp"
#include "traces/capture/nccl_names.hpp"
#include "traces/capture/nccl_profiler_layout.hpp"
#include "traces/capture/nccl_version.hpp"
#include "traces/capture/recorder.hpp"

namespace rehearse::capture::nccl {
namespace {

namespace cf = capture_file;
constexpr const char* kName = "rehearse-capture";
// Handles of launches carry a mark, so that their stop takes the correlation back.
constexpr uintptr_t kLaunchMark = uintptr_t{1} << 62;

Recorder& recorder() { return Recorder::instance(); }
uint32_t name(const char* text) { return recorder().names().id(text); }

uint64_t id_of(const void* handle) { return reinterpret_cast<uintptr_t>(handle) & ~kLaunchMark; }

// Texts from v2 on, numbers in v1.
template <typename Field>
uint32_t name_of(Field value, const char* (*text_of)(uint32_t)) {
  if constexpr (std::is_pointer_v<Field>) {
    return name(value);
  } else {
    return name(text_of(value));
  }
}

template <typename Coll>
void fill_collective(const Coll& c, cf::NcclStart& out) {
  if constexpr (requires { c.communicator; }) out.communicator = c.communicator;
  out.function = name_of(c.function, function_name);
  out.count = c.count;
  out.datatype = name_of(c.datatype, datatype_name);
  out.root = c.root;
  out.sequence = static_cast<int64_t>(c.sequence);
  if constexpr (requires { c.channels; }) {
    out.channels = c.channels;
    out.warps = c.warps;
    out.algorithm = name_of(c.algorithm, algorithm_name);
    out.protocol = name_of(c.protocol, protocol_name);
  }
}

template <typename P2p>
void fill_point_to_point(const P2p& p, cf::NcclStart& out) {
  if constexpr (requires { p.communicator; }) out.communicator = p.communicator;
  out.function = name_of(p.function, function_name);
  out.count = p.count;
  out.datatype = name_of(p.datatype, datatype_name);
  out.root = p.peer;
  if constexpr (requires { p.channels; }) out.channels = p.channels;
}

template <typename Descriptor>
void fill(const Descriptor& d, cf::NcclStart& out) {
  switch (out.type) {
    case kColl:
      return fill_collective(d.coll, out);
    case kP2p:
      return fill_point_to_point(d.p2p, out);
    case kProxyOp:
      // A proxy of another process names parents of that process.
      if (d.proxy_op.pid != ::getpid()) out.parent = 0;
      out.channel = d.proxy_op.channel;
      out.root = d.proxy_op.peer;
      out.steps = static_cast<uint32_t>(d.proxy_op.steps);
      out.chunk = static_cast<uint64_t>(d.proxy_op.chunk);
      out.send = d.proxy_op.is_send != 0;
      return;
    case kProxyStep:
      out.step = static_cast<uint32_t>(d.proxy_step.step);
      return;
    default:
      break;
  }
  if constexpr (requires { d.kernel_ch; }) {
    if (out.type == kKernelCh) {
      out.channel = d.kernel_ch.channel;
      if constexpr (requires { d.kernel_ch.gpu_time; }) out.gpu_time = d.kernel_ch.gpu_time;
    }
  }
  if constexpr (requires { d.group_api; }) {
    if (out.type == kGroupApi) out.graph_captured = d.group_api.graph_captured;
    if (out.type == kCollApi) {
      out.function = name(d.coll_api.function);
      out.count = d.coll_api.count;
      out.datatype = name(d.coll_api.datatype);
      out.root = d.coll_api.root;
      out.graph_captured = d.coll_api.graph_captured;
    }
    if (out.type == kP2pApi) {
      out.function = name(d.p2p_api.function);
      out.count = d.p2p_api.count;
      out.datatype = name(d.p2p_api.datatype);
      out.graph_captured = d.p2p_api.graph_captured;
    }
  }
  if constexpr (requires { d.ce_coll; }) {
    if (out.type == kCeColl) fill_collective(d.ce_coll, out);
  }
}

template <typename Descriptor>
int start_event(void* context, void** handle, Descriptor* d) {
  *handle = nullptr;
  Recorder& r = recorder();
  const int64_t at = now();
  if (!r.on() || !r.window().holds(at)) return 0;
  Thread* const t = r.thread();
  if (t == nullptr) {
    r.lose(Lost::kNccl, 1);
    return 0;
  }
  cf::NcclStart start;
  start.id = r.event_id(*t);
  start.type = static_cast<uint32_t>(d->type);
  start.parent = id_of(d->parent);
  start.at = r.since_origin(at);
  start.thread = t->id;
  start.communicator = reinterpret_cast<uintptr_t>(context);
  fill(*d, start);
  r.put(Lost::kNccl, start);
  uintptr_t value = start.id;
  if (start.type == kKernelLaunch) {
    value |= kLaunchMark;
    activity::begin_launch(start.id);
  }
  *handle = std::bit_cast<void*>(value);
  return 0;
}

int stop_event(void* handle) {
  if (handle == nullptr) return 0;
  if ((reinterpret_cast<uintptr_t>(handle) & kLaunchMark) != 0) activity::end_launch();
  Recorder& r = recorder();
  if (r.is_on()) r.put(Lost::kNccl, cf::NcclStop{id_of(handle), r.since_origin(now())});
  return 0;
}

template <typename State>
int record_event_state(void* handle, int state, State* arguments) {
  Recorder& r = recorder();
  if (handle == nullptr || !r.is_on()) return 0;
  cf::NcclState out{
      .id = id_of(handle), .state = static_cast<uint32_t>(state), .at = r.since_origin(now())};
  if (arguments != nullptr) {
    if constexpr (std::is_same_v<State, StateV1>) {
      if (state < kFirstStepState) out.bytes = arguments->proxy_op.bytes;
    } else if (state == kKernelChStop) {
      out.gpu_time = arguments->gpu_time;
    } else if ((state >= kFirstStepState && state <= kLastStepState) || state == kSendPeerWait) {
      out.bytes = arguments->bytes;
    }
  }
  r.put(Lost::kNccl, out);
  return 0;
}

int finalize(void*) { return 0; }

// Success whatever happens: an error would make NCCL complain to the program.
int init_v1(void** context, int* mask) {
  Recorder& r = recorder();
  *context = nullptr;
  *mask = r.on() ? static_cast<int>(r.settings().nccl_events) : 0;
  return 0;
}

int init(void** context, uint64_t communicator, int* mask, const char* text, int nodes, int ranks,
         int rank, Logger logger) {
  Recorder& r = recorder();
  *context = std::bit_cast<void*>(communicator);
  *mask = 0;
  if (!r.on()) return 0;
  nccl_in_object_of(reinterpret_cast<const void*>(logger));
  *mask = static_cast<int>(r.settings().nccl_events);
  r.put(Lost::kNccl, cf::Communicator{.id = communicator,
                                      .name = text != nullptr ? text : "",
                                      .nodes = static_cast<uint32_t>(nodes),
                                      .ranks = static_cast<uint32_t>(ranks),
                                      .rank = static_cast<uint32_t>(rank),
                                      .at = r.since_origin(now())});
  return 0;
}

int init_v4(void** context, int* mask, const char* text, uint64_t communicator, int nodes,
            int ranks, int rank, Logger logger) {
  return init(context, communicator, mask, text, nodes, ranks, rank, logger);
}

}  // namespace
}  // namespace rehearse::capture::nccl

// What NCCL looks for, the newest that it knows first.
namespace n = rehearse::capture::nccl;
extern "C" {
[[gnu::visibility("default")]] extern const n::PluginV1 ncclProfiler_v1 = {
    n::kName,
    n::init_v1,
    n::start_event<n::DescriptorV1>,
    n::stop_event,
    n::record_event_state<n::StateV1>,
    n::finalize};
[[gnu::visibility("default")]] extern const n::PluginV2 ncclProfiler_v2 = {
    n::kName,
    n::init_v1,
    n::start_event<n::DescriptorV2>,
    n::stop_event,
    n::record_event_state<n::StateV1>,
    n::finalize};
[[gnu::visibility("default")]] extern const n::PluginV3 ncclProfiler_v3 = {
    n::kName,
    n::init_v1,
    n::start_event<n::DescriptorV3>,
    n::stop_event,
    n::record_event_state<n::StateV1>,
    n::finalize};
[[gnu::visibility("default")]] extern const n::PluginV4 ncclProfiler_v4 = {
    n::kName,
    n::init_v4,
    n::start_event<n::DescriptorV4>,
    n::stop_event,
    n::record_event_state<n::StateV4>,
    n::finalize};
[[gnu::visibility("default")]] extern const n::PluginV5 ncclProfiler_v5 = {
    n::kName,
    n::init,
    n::start_event<n::DescriptorV5>,
    n::stop_event,
    n::record_event_state<n::StateV4>,
    n::finalize};
[[gnu::visibility("default")]] extern const n::PluginV6 ncclProfiler_v6 = {
    n::kName,
    n::init,
    n::start_event<n::DescriptorV6>,
    n::stop_event,
    n::record_event_state<n::StateV4>,
    n::finalize};
}
