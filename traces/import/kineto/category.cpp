// SPDX-License-Identifier: Apache-2.0
#include "traces/import/kineto/category.hpp"

#include <array>

namespace rehearse::traces::kineto {
namespace {

struct CategoryName {
  std::string_view name;
  Category category;
};
// By how often they occur.
constexpr std::array<CategoryName, 42> kCategories = {{
    {"cpu_op", Category::kHostOp},
    {"cuda_runtime", Category::kRuntime},
    {"ac2g", Category::kFlow},
    {"kernel", Category::kKernel},
    {"python_function", Category::kPython},
    {"cpu_instant_event", Category::kInstant},
    {"user_annotation", Category::kUserAnnotation},
    {"fwdbwd", Category::kFlow},
    {"gpu_memcpy", Category::kCopy},
    {"gpu_memset", Category::kMemset},
    {"cuda_driver", Category::kRuntime},
    {"gpu_user_annotation", Category::kGpuAnnotation},
    {"cuda_sync", Category::kCudaSync},
    {"operator", Category::kHostOp},
    {"runtime", Category::kRuntime},
    {"async", Category::kFlow},
    {"async_gpu", Category::kFlow},
    {"async_cpu_to_gpu", Category::kFlow},
    {"memcpy", Category::kCopy},
    {"memset", Category::kMemset},
    {"overhead", Category::kOverhead},
    {"cuda_profiler_range", Category::kRange},
    {"trace", Category::kSpan},
    {"critical_path", Category::kFlow},
    {"hip_runtime", Category::kRuntime},
    {"mtia_runtime", Category::kRuntime},
    {"xpu_runtime", Category::kRuntime},
    {"privateuse1_runtime", Category::kRuntime},
    {"mtia_ccp_events", Category::kKernel},
    {"forward_backward", Category::kFlow},
    {"xpu_driver", Category::kRuntime},
    {"privateuse1_driver", Category::kRuntime},
    {"hpu_op", Category::kRuntime},
    {"glow_runtime", Category::kRuntime},
    {"mtia_workloadd", Category::kRuntime},
    {"external_correlation", Category::kFlow},
    {"cuda_event", Category::kEventRecord},
    {"xpu_sync", Category::kEventRecord},
    {"mtia_insight", Category::kRange},
    {"mtia_counters", Category::kRange},
    {"gpu_pm_counter", Category::kRange},
    {"xpu_scope_profiler", Category::kRange},
}};

bool same(std::string_view text, std::string_view lower) {
  if (text.size() != lower.size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i] >= 'A' && text[i] <= 'Z' ? static_cast<char>(text[i] + 32) : text[i];
    if (c != lower[i]) return false;
  }
  return true;
}

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace

Category category_of(std::string_view cat) {
  if (cat.empty()) return Category::kNone;
  for (const CategoryName& c : kCategories) {
    if (same(cat, c.name)) return c.category;
  }
  return Category::kUnknown;
}

RuntimeCall runtime_call_of(std::string_view name) {
  // "cuda", "cu" or "hip" in front, "_v2" and "_ptsz" behind.
  for (const std::string_view prefix : {"cuda", "cu", "hip"}) {
    if (name.starts_with(prefix)) {
      name.remove_prefix(prefix.size());
      break;
    }
  }
  if (name.starts_with("GraphLaunch")) return {.kind = OpKind::kGraphLaunch};
  if (name.starts_with("Launch") || name.starts_with("ModuleLaunch") ||
      name.starts_with("ExtLaunch") || name.starts_with("ExtModuleLaunch") ||
      name.starts_with("Memcpy") || name.starts_with("Memset")) {
    return {.kind = OpKind::kLaunch};
  }
  if (name.starts_with("EventRecord")) return {OpKind::kSync, SyncKind::kRecord};
  if (name.starts_with("StreamWaitEvent")) return {OpKind::kSync, SyncKind::kWaitEvent};
  if (name.starts_with("EventSynchronize")) return {OpKind::kSync, SyncKind::kEvent};
  if (name.starts_with("StreamSynchronize")) return {OpKind::kSync, SyncKind::kStream};
  if (name.starts_with("DeviceSynchronize") || name.starts_with("CtxSynchronize") ||
      name.starts_with("ThreadSynchronize")) {
    return {OpKind::kSync, SyncKind::kDevice};
  }
  return {};
}

CopyDirection direction_of(std::string_view copy_name) {
  if (has(copy_name, "HtoD") || has(copy_name, "HostToDevice")) return CopyDirection::kHostToDevice;
  if (has(copy_name, "DtoH") || has(copy_name, "DeviceToHost")) return CopyDirection::kDeviceToHost;
  if (has(copy_name, "PtoP") || has(copy_name, "Peer")) return CopyDirection::kPeer;
  if (has(copy_name, "DtoD") || has(copy_name, "DeviceToDevice"))
    return CopyDirection::kDeviceToDevice;
  return CopyDirection::kUnknown;
}

}  // namespace rehearse::traces::kineto
