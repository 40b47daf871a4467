// SPDX-License-Identifier: Apache-2.0
// CUPTI's activity records as far as we read them: the part in front that has kept its place from CUDA 11.8
// on. cupti_layout_check.cpp compares every offset with the real headers where they are installed; the
// library itself needs no CUDA to build. Records are stepped through by CUPTI, never by these sizes.
#pragma once

#include <cstdint>

namespace rehearse::capture::cupti {

enum Kind : uint32_t {
  kMemcpy = 1,
  kMemset = 2,
  kKernel = 3,
  kDriver = 4,
  kRuntime = 5,
  kConcurrentKernel = 10,
  kOverhead = 17,
  kMemcpy2 = 22,
  kCudaEvent = 36,
  kSynchronization = 38,
  kExternalCorrelation = 39,
  kMemory2 = 49,
  kGraphTrace = 51
};

// Results of CUPTI's functions.
constexpr int kSuccess = 0, kEndOfBuffer = 12, kOtherSubscriber = 39;
constexpr uint32_t kOurCorrelation = 5;  // CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2
constexpr uint32_t kInvalidStream = 0xffffffff;

struct [[gnu::packed, gnu::aligned(8)]] Record {
  uint32_t kind;
};

struct [[gnu::packed, gnu::aligned(8)]] KernelRecord {
  uint32_t kind;
  uint16_t cache_config;
  uint16_t registers;
  uint32_t partitioned[2];
  uint64_t start, end, completed;
  uint32_t device, context, stream;
  int32_t grid_x, grid_y, grid_z, block_x, block_y, block_z;
  int32_t static_shared, dynamic_shared;
  uint32_t local_per_thread, local_total;
  uint32_t correlation;
  int64_t grid_id;
  const char* name;
  void* reserved;
  uint64_t queued, submitted;
  uint8_t launch_type, shared_requested, shared_carveout, padding;
  uint32_t shared_executed;
  uint64_t graph_node;
  uint32_t shared_limit;
  uint32_t graph;
};

struct [[gnu::packed, gnu::aligned(8)]] MemcpyRecord {
  uint32_t kind;
  uint8_t copy_kind, source_kind, target_kind, flags;
  uint64_t bytes;
  uint64_t start, end;
  uint32_t device, context, stream, correlation, runtime_correlation, padding;
  void* reserved;
  uint64_t graph_node;
  uint32_t graph;
};

struct [[gnu::packed, gnu::aligned(8)]] PeerMemcpyRecord {
  uint32_t kind;
  uint8_t copy_kind, source_kind, target_kind, flags;
  uint64_t bytes;
  uint64_t start, end;
  uint32_t device, context, stream, source_device, source_context, target_device, target_context,
      correlation;
  void* reserved;
  uint64_t graph_node;
};

struct [[gnu::packed, gnu::aligned(8)]] MemsetRecord {
  uint32_t kind;
  uint32_t value;
  uint64_t bytes;
  uint64_t start, end;
  uint32_t device, context, stream, correlation;
  uint16_t flags, memory_kind;
  uint32_t padding;
  void* reserved;
  uint64_t graph_node;
};

struct [[gnu::packed, gnu::aligned(8)]] ApiRecord {
  uint32_t kind;
  uint32_t callback;
  uint64_t start, end;
  uint32_t process, thread, correlation, result;
};

struct [[gnu::packed, gnu::aligned(8)]] SynchronizationRecord {
  uint32_t kind;
  uint32_t type;
  uint64_t start, end;
  uint32_t correlation, context, stream, event;
  uint64_t event_sync;  // from version 26 (CUDA 12.8) on
};

struct [[gnu::packed, gnu::aligned(8)]] EventRecord {
  uint32_t kind;
  uint32_t correlation, context, stream, event;
  uint32_t padding;
  // From version 26 on:
  uint32_t device, padding2;
  uint64_t reserved, at, event_sync;
};

struct [[gnu::packed, gnu::aligned(8)]] OverheadRecord {
  uint32_t kind;
  uint32_t overhead_kind;
  uint32_t object_kind;
  uint32_t object[3];  // of a thread: process, thread
  uint64_t start, end;
};

struct [[gnu::packed, gnu::aligned(8)]] ExternalCorrelationRecord {
  uint32_t kind;
  uint32_t external_kind;
  uint64_t external;
  uint32_t correlation;
};

struct [[gnu::packed, gnu::aligned(8)]] GraphRecord {
  uint32_t kind;
  uint32_t correlation;
  uint64_t start, end;
  uint32_t device, graph, context, stream;
};

struct [[gnu::packed, gnu::aligned(8)]] MemoryRecord {
  uint32_t kind;
  uint32_t operation;  // 1 allocate, 2 release
  uint32_t memory_kind;
  uint32_t correlation;
  uint64_t address, bytes, at, counter;
  uint32_t process, device, context, stream;
};

// Fields that a CUPTI older than this does not write.
constexpr uint32_t kHasEventSync = 26;
constexpr uint32_t kMemoryKindDevice = 3;
constexpr uint32_t kObjectThread = 2;

}  // namespace rehearse::capture::cupti
