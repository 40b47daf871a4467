// SPDX-License-Identifier: Apache-2.0
// What can be recorded beyond the usual: the words of `rehearse capture --with` and REHEARSE_CAPTURE_WITH.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace rehearse::capture {

// Types of events of NCCL's profiler plugin (ncclProfileGroup and so on).
enum NcclEvent : uint32_t {
  kGroup = 1,
  kColl = 2,
  kP2p = 4,
  kProxyOp = 8,
  kProxyStep = 16,
  kProxyCtrl = 32,
  kKernelCh = 64,
  kNetPlugin = 128,
  kGroupApi = 256,
  kCollApi = 512,
  kP2pApi = 1024,
  kKernelLaunch = 2048,
  kCeColl = 4096,
  kCeSync = 8192,
  kCeBatch = 16384
};

struct Extra {
  enum class Kind : uint8_t { kNccl, kMemory, kGraphs, kTuner } kind;
  std::string_view word;
  std::string_view what;
  uint32_t nccl_events = 0;
};
inline constexpr std::array<Extra, 8> kExtras = {{
    {Extra::Kind::kNccl, "proxy", "operations of NCCL's proxy threads", kProxyOp},
    {Extra::Kind::kNccl, "steps", "each step of them too; many", kProxyOp | kProxyStep},
    {Extra::Kind::kNccl, "channels",
     "start and end of each channel on the GPU; costs NCCL an operation per channel", kKernelCh},
    {Extra::Kind::kNccl, "net", "what the network plugin reports",
     kProxyOp | kProxyStep | kNetPlugin},
    {Extra::Kind::kNccl, "copy-engine", "parts of collectives on copy engines (NCCL 2.29 on)",
     kCeSync | kCeBatch},
    {Extra::Kind::kMemory, "memory", "allocations on the GPU"},
    {Extra::Kind::kGraphs, "graphs", "CUDA graphs as wholes instead of their kernels; cheaper"},
    {Extra::Kind::kTuner, "tuner",
     "what NCCL predicts for every algorithm; changes how it chooses channels"},
}};

}  // namespace rehearse::capture
