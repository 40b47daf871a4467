// SPDX-License-Identifier: Apache-2.0
// What NCCL passes to a profiler plugin, version by version (NCCL 2.23 has v1, 2.30 has v6). The sizes at the
// end are those of NCCL's own headers.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace rehearse::capture::nccl {

using Logger = void (*)(int level, unsigned long flags, const char* file, int line,
                        const char* format, ...);

struct ProxyOp {
  pid_t pid;
  uint8_t channel;
  int peer;
  int steps;
  int chunk;
  int is_send;
};
struct ProxyStep {
  int step;
};
struct KernelCh {
  uint8_t channel;
  uint64_t gpu_time;
};
struct NetPlugin {
  int64_t id;
  void* data;
};

// v1: enumerations as numbers.
struct DescriptorV1 {
  uint8_t type;
  void* parent;
  int rank;
  struct Coll {
    const char* name;
    uint64_t communicator;
    uint64_t sequence;
    uint8_t function;
    const void* send;
    void* receive;
    size_t count;
    int root;
    uint8_t datatype;
    uint32_t op;
    size_t traffic;
    uint8_t channels;
    uint8_t warps;
    uint8_t algorithm;
    uint8_t protocol;
    int is_collnet;
    int is_nvls;
  };
  struct P2p {
    const char* name;
    uint64_t communicator;
    uint8_t function;
    void* buffer;
    uint8_t datatype;
    size_t count;
    int peer;
  };
  union {
    Coll coll;
    P2p p2p;
    ProxyOp proxy_op;
    ProxyStep proxy_step;
  };
};

// v2: enumerations as texts.
struct DescriptorV2 {
  uint8_t type;
  void* parent;
  int rank;
  struct Coll {
    const char* name;
    uint64_t communicator;
    uint64_t sequence;
    const char* function;
    const void* send;
    void* receive;
    size_t count;
    int root;
    const char* datatype;
    size_t traffic;
    uint8_t channels;
    uint8_t warps;
    const char* algorithm;
    const char* protocol;
  };
  struct P2p {
    const char* name;
    uint64_t communicator;
    const char* function;
    void* buffer;
    const char* datatype;
    size_t count;
    int peer;
  };
  union {
    Coll coll;
    P2p p2p;
    ProxyOp proxy_op;
    ProxyStep proxy_step;
  };
};

struct DescriptorV3 {
  uint8_t type;
  void* parent;
  int rank;
  struct Coll {
    const char* name;
    uint64_t communicator;
    uint64_t sequence;
    const char* function;
    const void* send;
    void* receive;
    size_t count;
    int root;
    const char* datatype;
    uint8_t channels;
    uint8_t warps;
    const char* algorithm;
    const char* protocol;
  };
  struct KernelChV3 {
    uint8_t channel;
  };
  union {
    Coll coll;
    DescriptorV2::P2p p2p;
    ProxyOp proxy_op;
    ProxyStep proxy_step;
    KernelChV3 kernel_ch;
    NetPlugin net_plugin;
  };
};

// v4: the communicator is told in init.
struct DescriptorV4 {
  uint8_t type;
  void* parent;
  int rank;
  struct Coll {
    uint64_t sequence;
    const char* function;
    const void* send;
    void* receive;
    size_t count;
    int root;
    const char* datatype;
    uint8_t channels;
    uint8_t warps;
    const char* algorithm;
    const char* protocol;
  };
  struct P2p {
    const char* function;
    void* buffer;
    const char* datatype;
    size_t count;
    int peer;
    uint8_t channels;
  };
  union {
    Coll coll;
    P2p p2p;
    ProxyOp proxy_op;
    ProxyStep proxy_step;
    KernelCh kernel_ch;
    NetPlugin net_plugin;
  };
};

struct GroupApi {
  bool graph_captured;
  int depth;
};
struct CollApi {
  const char* function;
  size_t count;
  const char* datatype;
  int root;
  void* stream;
  bool graph_captured;
};
struct P2pApi {
  const char* function;
  size_t count;
  const char* datatype;
  void* stream;
  bool graph_captured;
};
struct CollV5 {
  uint64_t sequence;
  const char* function;
  const void* send;
  void* receive;
  size_t count;
  int root;
  const char* datatype;
  uint8_t channels;
  uint8_t warps;
  const char* algorithm;
  const char* protocol;
  void* parent_group;
};
struct P2pV5 {
  const char* function;
  void* buffer;
  const char* datatype;
  size_t count;
  int peer;
  uint8_t channels;
  void* parent_group;
};
struct CeColl {
  uint64_t sequence;
  const char* function;
  const void* send;
  void* receive;
  size_t count;
  int root;
  const char* datatype;
  const char* strategy;
  bool intra_batch_sync;
  uint32_t batch;
  uint32_t batches;
  uint32_t number;
  void* stream;
};

// v5: calls of the API and launches are events too.
struct DescriptorV5 {
  uint64_t type;
  void* parent;
  int rank;
  union {
    GroupApi group_api;
    CollApi coll_api;
    P2pApi p2p_api;
    CollV5 coll;
    P2pV5 p2p;
    ProxyOp proxy_op;
    ProxyStep proxy_step;
    KernelCh kernel_ch;
    NetPlugin net_plugin;
  };
};

// v6: copy engines.
struct DescriptorV6 {
  uint64_t type;
  void* parent;
  int rank;
  union {
    GroupApi group_api;
    CollApi coll_api;
    P2pApi p2p_api;
    CollV5 coll;
    P2pV5 p2p;
    ProxyOp proxy_op;
    ProxyStep proxy_step;
    KernelCh kernel_ch;
    NetPlugin net_plugin;
    CeColl ce_coll;
  };
};

struct ProxyOpState {
  size_t bytes;
  int steps;
};
union StateV1 {  // to v3
  ProxyOpState proxy_op;
  int appended;
};
union StateV4 {  // and on
  size_t bytes;
  int appended;
  void* data;
  uint64_t gpu_time;
};

// States whose argument is known (ncclProfilerEventState).
constexpr int kLastStepState = 12, kFirstStepState = 8, kSendPeerWait = 20, kKernelChStop = 22;

template <typename Descriptor, typename State, typename Init>
struct Plugin {
  const char* name;
  Init init;
  int (*start_event)(void* context, void** handle, Descriptor* descriptor);
  int (*stop_event)(void* handle);
  int (*record_event_state)(void* handle, int state, State* arguments);
  int (*finalize)(void* context);
};
using InitV1 = int (*)(void** context, int* mask);
using InitV4 = int (*)(void** context, int* mask, const char* name, uint64_t communicator,
                       int nodes, int ranks, int rank, Logger logger);
using InitV5 = int (*)(void** context, uint64_t communicator, int* mask, const char* name,
                       int nodes, int ranks, int rank, Logger logger);
using PluginV1 = Plugin<DescriptorV1, StateV1, InitV1>;
using PluginV2 = Plugin<DescriptorV2, StateV1, InitV1>;
using PluginV3 = Plugin<DescriptorV3, StateV1, InitV1>;
using PluginV4 = Plugin<DescriptorV4, StateV4, InitV4>;
using PluginV5 = Plugin<DescriptorV5, StateV4, InitV5>;
using PluginV6 = Plugin<DescriptorV6, StateV4, InitV5>;

static_assert(sizeof(DescriptorV1) == 120 && sizeof(DescriptorV2) == 128);
static_assert(sizeof(DescriptorV3) == 120 && sizeof(DescriptorV4) == 104);
static_assert(sizeof(DescriptorV5) == 112 && sizeof(DescriptorV6) == 112);
static_assert(sizeof(StateV1) == 16 && sizeof(StateV4) == 8);
static_assert(sizeof(PluginV1) == 48 && sizeof(PluginV6) == 48);

}  // namespace rehearse::capture::nccl
