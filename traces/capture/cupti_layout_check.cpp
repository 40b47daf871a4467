// SPDX-License-Identifier: Apache-2.0
// Compiled only where CUDA's headers are: every offset that cupti_layout.hpp believes, against theirs. Each
// line is an error of the build when CUPTI moves a field.
#include <cuda.h>
#include <cupti.h>

#include <cstddef>

#include "traces/capture/cupti_layout.hpp"

namespace rehearse::capture::cupti {
namespace {

#if CUPTI_API_VERSION >= 130000
using RealKernel = CUpti_ActivityKernel10;
#else
using RealKernel = CUpti_ActivityKernel9;
#endif
using RealMemcpy = CUpti_ActivityMemcpy5;
using RealPeerMemcpy = CUpti_ActivityMemcpyPtoP4;
using RealMemset = CUpti_ActivityMemset4;
using RealMemory = CUpti_ActivityMemory3;

static_assert(offsetof(KernelRecord, registers) == offsetof(RealKernel, registersPerThread));
static_assert(offsetof(KernelRecord, start) == offsetof(RealKernel, start));
static_assert(offsetof(KernelRecord, end) == offsetof(RealKernel, end));
static_assert(offsetof(KernelRecord, device) == offsetof(RealKernel, deviceId));
static_assert(offsetof(KernelRecord, context) == offsetof(RealKernel, contextId));
static_assert(offsetof(KernelRecord, stream) == offsetof(RealKernel, streamId));
static_assert(offsetof(KernelRecord, grid_x) == offsetof(RealKernel, gridX));
static_assert(offsetof(KernelRecord, block_z) == offsetof(RealKernel, blockZ));
static_assert(offsetof(KernelRecord, static_shared) == offsetof(RealKernel, staticSharedMemory));
static_assert(offsetof(KernelRecord, dynamic_shared) == offsetof(RealKernel, dynamicSharedMemory));
static_assert(offsetof(KernelRecord, correlation) == offsetof(RealKernel, correlationId));
static_assert(offsetof(KernelRecord, name) == offsetof(RealKernel, name));
static_assert(offsetof(KernelRecord, queued) == offsetof(RealKernel, queued));
static_assert(offsetof(KernelRecord, graph_node) == offsetof(RealKernel, graphNodeId));
static_assert(offsetof(KernelRecord, graph) == offsetof(RealKernel, graphId));

static_assert(offsetof(MemcpyRecord, copy_kind) == offsetof(RealMemcpy, copyKind));
static_assert(offsetof(MemcpyRecord, bytes) == offsetof(RealMemcpy, bytes));
static_assert(offsetof(MemcpyRecord, start) == offsetof(RealMemcpy, start));
static_assert(offsetof(MemcpyRecord, end) == offsetof(RealMemcpy, end));
static_assert(offsetof(MemcpyRecord, device) == offsetof(RealMemcpy, deviceId));
static_assert(offsetof(MemcpyRecord, stream) == offsetof(RealMemcpy, streamId));
static_assert(offsetof(MemcpyRecord, correlation) == offsetof(RealMemcpy, correlationId));
static_assert(offsetof(MemcpyRecord, graph_node) == offsetof(RealMemcpy, graphNodeId));

static_assert(offsetof(PeerMemcpyRecord, bytes) == offsetof(RealPeerMemcpy, bytes));
static_assert(offsetof(PeerMemcpyRecord, start) == offsetof(RealPeerMemcpy, start));
static_assert(offsetof(PeerMemcpyRecord, stream) == offsetof(RealPeerMemcpy, streamId));
static_assert(offsetof(PeerMemcpyRecord, source_device) == offsetof(RealPeerMemcpy, srcDeviceId));
static_assert(offsetof(PeerMemcpyRecord, target_device) == offsetof(RealPeerMemcpy, dstDeviceId));
static_assert(offsetof(PeerMemcpyRecord, correlation) == offsetof(RealPeerMemcpy, correlationId));
static_assert(offsetof(PeerMemcpyRecord, graph_node) == offsetof(RealPeerMemcpy, graphNodeId));

static_assert(offsetof(MemsetRecord, bytes) == offsetof(RealMemset, bytes));
static_assert(offsetof(MemsetRecord, start) == offsetof(RealMemset, start));
static_assert(offsetof(MemsetRecord, device) == offsetof(RealMemset, deviceId));
static_assert(offsetof(MemsetRecord, stream) == offsetof(RealMemset, streamId));
static_assert(offsetof(MemsetRecord, correlation) == offsetof(RealMemset, correlationId));
static_assert(offsetof(MemsetRecord, graph_node) == offsetof(RealMemset, graphNodeId));

static_assert(offsetof(ApiRecord, callback) == offsetof(CUpti_ActivityAPI, cbid));
static_assert(offsetof(ApiRecord, start) == offsetof(CUpti_ActivityAPI, start));
static_assert(offsetof(ApiRecord, thread) == offsetof(CUpti_ActivityAPI, threadId));
static_assert(offsetof(ApiRecord, correlation) == offsetof(CUpti_ActivityAPI, correlationId));
static_assert(offsetof(ApiRecord, result) == offsetof(CUpti_ActivityAPI, returnValue));

static_assert(offsetof(SynchronizationRecord, type) ==
              offsetof(CUpti_ActivitySynchronization, type));
static_assert(offsetof(SynchronizationRecord, start) ==
              offsetof(CUpti_ActivitySynchronization, start));
static_assert(offsetof(SynchronizationRecord, correlation) ==
              offsetof(CUpti_ActivitySynchronization, correlationId));
static_assert(offsetof(SynchronizationRecord, stream) ==
              offsetof(CUpti_ActivitySynchronization, streamId));
static_assert(offsetof(SynchronizationRecord, event) ==
              offsetof(CUpti_ActivitySynchronization, cudaEventId));

static_assert(offsetof(EventRecord, correlation) ==
              offsetof(CUpti_ActivityCudaEvent, correlationId));
static_assert(offsetof(EventRecord, context) == offsetof(CUpti_ActivityCudaEvent, contextId));
static_assert(offsetof(EventRecord, stream) == offsetof(CUpti_ActivityCudaEvent, streamId));
static_assert(offsetof(EventRecord, event) == offsetof(CUpti_ActivityCudaEvent, eventId));

#if CUPTI_API_VERSION >= 26
static_assert(offsetof(SynchronizationRecord, event_sync) ==
              offsetof(CUpti_ActivitySynchronization2, cudaEventSyncId));
static_assert(offsetof(EventRecord, device) == offsetof(CUpti_ActivityCudaEvent2, deviceId));
static_assert(offsetof(EventRecord, at) == offsetof(CUpti_ActivityCudaEvent2, deviceTimestamp));
static_assert(offsetof(EventRecord, event_sync) ==
              offsetof(CUpti_ActivityCudaEvent2, cudaEventSyncId));
#endif

static_assert(offsetof(OverheadRecord, overhead_kind) ==
              offsetof(CUpti_ActivityOverhead, overheadKind));
static_assert(offsetof(OverheadRecord, object_kind) ==
              offsetof(CUpti_ActivityOverhead, objectKind));
static_assert(offsetof(OverheadRecord, object) == offsetof(CUpti_ActivityOverhead, objectId));
static_assert(offsetof(OverheadRecord, start) == offsetof(CUpti_ActivityOverhead, start));
static_assert(offsetof(OverheadRecord, end) == offsetof(CUpti_ActivityOverhead, end));

static_assert(offsetof(ExternalCorrelationRecord, external_kind) ==
              offsetof(CUpti_ActivityExternalCorrelation, externalKind));
static_assert(offsetof(ExternalCorrelationRecord, external) ==
              offsetof(CUpti_ActivityExternalCorrelation, externalId));
static_assert(offsetof(ExternalCorrelationRecord, correlation) ==
              offsetof(CUpti_ActivityExternalCorrelation, correlationId));

static_assert(offsetof(GraphRecord, correlation) ==
              offsetof(CUpti_ActivityGraphTrace, correlationId));
static_assert(offsetof(GraphRecord, start) == offsetof(CUpti_ActivityGraphTrace, start));
static_assert(offsetof(GraphRecord, device) == offsetof(CUpti_ActivityGraphTrace, deviceId));
static_assert(offsetof(GraphRecord, graph) == offsetof(CUpti_ActivityGraphTrace, graphId));
static_assert(offsetof(GraphRecord, context) == offsetof(CUpti_ActivityGraphTrace, contextId));
static_assert(offsetof(GraphRecord, stream) == offsetof(CUpti_ActivityGraphTrace, streamId));

static_assert(offsetof(MemoryRecord, operation) == offsetof(RealMemory, memoryOperationType));
static_assert(offsetof(MemoryRecord, memory_kind) == offsetof(RealMemory, memoryKind));
static_assert(offsetof(MemoryRecord, address) == offsetof(RealMemory, address));
static_assert(offsetof(MemoryRecord, bytes) == offsetof(RealMemory, bytes));
static_assert(offsetof(MemoryRecord, at) == offsetof(RealMemory, timestamp));
static_assert(offsetof(MemoryRecord, device) == offsetof(RealMemory, deviceId));
static_assert(offsetof(MemoryRecord, stream) == offsetof(RealMemory, streamId));

static_assert(kMemcpy == static_cast<uint32_t>(CUPTI_ACTIVITY_KIND_MEMCPY));
static_assert(kMemset == static_cast<uint32_t>(CUPTI_ACTIVITY_KIND_MEMSET));
static_assert(kDriver == static_cast<uint32_t>(CUPTI_ACTIVITY_KIND_DRIVER));
static_assert(kRuntime == static_cast<uint32_t>(CUPTI_ACTIVITY_KIND_RUNTIME));
static_assert(kConcurrentKernel == static_cast<uint32_t>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
static_assert(kOverhead == static_cast<uint32_t>(CUPTI_ACTIVITY_KIND_OVERHEAD));
static_assert(kMemcpy2 == static_cast<uint32_t>(CUPTI_ACTIVITY_KIND_MEMCPY2));
static_assert(kCudaEvent == static_cast<uint32_t>(CUPTI_ACTIVITY_KIND_CUDA_EVENT));
static_assert(kSynchronization == static_cast<uint32_t>(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION));
static_assert(kExternalCorrelation ==
              static_cast<uint32_t>(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION));
static_assert(kMemory2 == static_cast<uint32_t>(CUPTI_ACTIVITY_KIND_MEMORY2));
static_assert(kGraphTrace == static_cast<uint32_t>(CUPTI_ACTIVITY_KIND_GRAPH_TRACE));
static_assert(kOurCorrelation == static_cast<uint32_t>(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2));
static_assert(kEndOfBuffer == static_cast<int>(CUPTI_ERROR_MAX_LIMIT_REACHED));
static_assert(kOtherSubscriber == static_cast<int>(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED));
static_assert(kMemoryKindDevice == static_cast<uint32_t>(CUPTI_ACTIVITY_MEMORY_KIND_DEVICE));
static_assert(kObjectThread == static_cast<uint32_t>(CUPTI_ACTIVITY_OBJECT_THREAD));

}  // namespace
}  // namespace rehearse::capture::cupti
