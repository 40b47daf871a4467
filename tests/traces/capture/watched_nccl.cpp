// SPDX-License-Identifier: Apache-2.0
// NCCL's calls of a profiler plugin, in NCCL's order: children start after their parents stopped, proxies
// name parents of other processes, threads share communicators.
#include <unistd.h>

#include <cstdio>
#include <thread>
#include <type_traits>

#include "tests/traces/capture/watched.hpp"
#include "traces/capture/nccl_profiler_layout.hpp"

namespace rehearse::tests {
namespace {

namespace nccl = capture::nccl;

enum Type {
  kGroup = 1,
  kColl = 2,
  kP2p = 4,
  kProxyOp = 8,
  kProxyStep = 16,
  kKernelCh = 64,
  kGroupApi = 256,
  kCollApi = 512,
  kP2pApi = 1024,
  kKernelLaunch = 2048,
  kCeColl = 4096
};

template <typename Plugin>
struct Traits;
template <typename D, typename S, typename I>
struct Traits<nccl::Plugin<D, S, I>> {
  using Descriptor = D;
  using State = S;
  using Init = I;
};

template <typename Plugin>
class Player {
  using Descriptor = typename Traits<Plugin>::Descriptor;
  using State = typename Traits<Plugin>::State;
  using Init = typename Traits<Plugin>::Init;

 public:
  explicit Player(const Plugin& plugin) : plugin_(plugin) {}

  // Two communicators.
  bool init() {
    for (int i = 0; i < 2; ++i) {
      const uint64_t id = 0xabc0 + static_cast<uint64_t>(i);
      if constexpr (std::is_same_v<Init, nccl::InitV1>) {
        if (plugin_.init(&contexts_[i], &mask_) != 0) return false;
      } else if constexpr (std::is_same_v<Init, nccl::InitV4>) {
        if (plugin_.init(&contexts_[i], &mask_, "dp", id, 2, 4, i, nullptr) != 0) return false;
      } else {
        if (plugin_.init(&contexts_[i], id, &mask_, "dp", 2, 4, i, nullptr) != 0) return false;
      }
    }
    return true;
  }

  void play(int thread, int collectives) {
    for (int i = 0; i < collectives; ++i) collective(thread, i);
  }

  void finalize() {
    for (void* context : contexts_) plugin_.finalize(context);
  }

 private:
  void* start(int context, Descriptor& d) {
    void* handle = nullptr;
    const auto type = static_cast<uint32_t>(d.type);
    if ((static_cast<uint32_t>(mask_) & type) == 0) return nullptr;
    plugin_.start_event(contexts_[context], &handle, &d);
    return handle;
  }
  void stop(void* handle) {
    if (handle != nullptr) plugin_.stop_event(handle);
  }
  void state(void* handle, int number) {
    State arguments{};
    if (handle != nullptr) plugin_.record_event_state(handle, number, &arguments);
  }

  void collective(int thread, int i) {
    const int which = (thread + i) % 2;
    void* api = nullptr;
    void* call = nullptr;
    if constexpr (requires(Descriptor d) { d.group_api; }) {
      Descriptor g{};
      g.type = kGroupApi;
      g.group_api.graph_captured = i % 5 == 0;
      api = start(which, g);
      state(api, 23);
      Descriptor c{};
      c.type = kCollApi;
      c.parent = api;
      c.coll_api.function = "AllReduce";
      c.coll_api.count = 1000;
      c.coll_api.datatype = "ncclFloat32";
      c.coll_api.graph_captured = i % 5 == 0;
      call = start(which, c);
      stop(call);
      state(api, 24);
      Descriptor l{};
      l.type = kKernelLaunch;
      l.parent = api;
      stop(start(which, l));
    }
    Descriptor g{};
    g.type = kGroup;
    g.parent = api;
    void* const group = start(which, g);
    Descriptor c{};
    c.type = kColl;
    c.parent = call != nullptr ? call : group;
    fill(c, which, i);
    void* const coll = start(which, c);
    stop(coll);
    Descriptor p{};
    p.type = kP2p;
    p.parent = group;
    fill_p2p(p, which);
    void* const p2p = start(which, p);
    stop(p2p);
    stop(group);
    stop(api);
    // The proxy comes later, and may work for another process.
    Descriptor o{};
    o.type = kProxyOp;
    o.parent = coll;
    o.proxy_op.pid = i % 2 == 0 ? ::getpid() : ::getpid() + 1;
    o.proxy_op.channel = 3;
    o.proxy_op.peer = 1;
    o.proxy_op.steps = 8;
    o.proxy_op.chunk = 131072;
    o.proxy_op.is_send = 1;
    void* const op = start(which, o);
    Descriptor s{};
    s.type = kProxyStep;
    s.parent = op;
    s.proxy_step.step = i;
    void* const step = start(which, s);
    state(step, 9);
    stop(step);
    stop(op);
    if constexpr (requires { o.kernel_ch; }) {
      Descriptor k{};
      k.type = kKernelCh;
      k.parent = coll;
      k.kernel_ch.channel = 5;
      if constexpr (requires { k.kernel_ch.gpu_time; }) k.kernel_ch.gpu_time = 777;
      void* const channel = start(which, k);
      state(channel, 22);
      stop(channel);
    }
    if constexpr (requires { o.ce_coll; }) {
      Descriptor e{};
      e.type = kCeColl;
      e.parent = call;
      e.ce_coll.function = "AllGather";
      e.ce_coll.datatype = "ncclInt8";
      e.ce_coll.count = 64;
      stop(start(which, e));
    }
  }

  static void fill(Descriptor& d, int which, int i) {
    d.coll.sequence = static_cast<uint64_t>(i);
    d.coll.count = 1000;
    d.coll.root = 0;
    d.coll.channels = 16;
    d.coll.warps = 16;
    if constexpr (requires { d.coll.communicator; }) {
      d.coll.communicator = 0xabc0 + static_cast<uint64_t>(which);
    }
    if constexpr (std::is_pointer_v<decltype(d.coll.function)>) {
      d.coll.function = "AllReduce";
      d.coll.datatype = "ncclFloat32";
      d.coll.algorithm = "RING";
      d.coll.protocol = "SIMPLE";
    } else {
      d.coll.function = 4;
      d.coll.datatype = 7;
      d.coll.algorithm = 1;
      d.coll.protocol = 2;
    }
  }
  static void fill_p2p(Descriptor& d, int which) {
    d.p2p.count = 10;
    d.p2p.peer = 3;
    if constexpr (requires { d.p2p.communicator; }) {
      d.p2p.communicator = 0xabc0 + static_cast<uint64_t>(which);
    }
    if constexpr (std::is_pointer_v<decltype(d.p2p.function)>) {
      d.p2p.function = "Send";
      d.p2p.datatype = "ncclFloat16";
    } else {
      d.p2p.function = 6;
      d.p2p.datatype = 6;
    }
  }

  const Plugin& plugin_;
  void* contexts_[2] = {};
  int mask_ = 0;
};

template <typename Plugin>
int play_with(const char* symbol, int threads, int collectives) {
  const auto* const plugin = static_cast<const Plugin*>(door("NCCL_PROFILER_PLUGIN", symbol));
  if (plugin == nullptr) return 90;
  Player<Plugin> player(*plugin);
  if (!player.init()) return 91;
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t) {
    running.emplace_back([&player, t, collectives] { player.play(t, collectives); });
  }
  for (std::thread& t : running) t.join();
  player.finalize();
  return 0;
}

}  // namespace

int play_nccl(const Words& words) {
  const int version = std::stoi(words.at(0)), threads = std::stoi(words.at(1)),
            collectives = std::stoi(words.at(2));
  switch (version) {
    case 1:
      return play_with<nccl::PluginV1>("ncclProfiler_v1", threads, collectives);
    case 2:
      return play_with<nccl::PluginV2>("ncclProfiler_v2", threads, collectives);
    case 3:
      return play_with<nccl::PluginV3>("ncclProfiler_v3", threads, collectives);
    case 4:
      return play_with<nccl::PluginV4>("ncclProfiler_v4", threads, collectives);
    case 5:
      return play_with<nccl::PluginV5>("ncclProfiler_v5", threads, collectives);
    default:
      return play_with<nccl::PluginV6>("ncclProfiler_v6", threads, collectives);
  }
}

}  // namespace rehearse::tests
