// SPDX-License-Identifier: Apache-2.0
#include "traces/capture/cupti.hpp"

#include <dlfcn.h>

#include <array>

#include "traces/capture/messages.hpp"

namespace rehearse::capture::cupti {
namespace {

constexpr std::array<const char*, 6> kLibraries = {
    "libcupti.so.13",   "libcupti.so.12",
    "libcupti.so",      "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so",
    "libcupti.so.11.8", "/usr/local/cuda/lib64/libcupti.so"};

void* find_library(const char* path) {
  if (*path != 0) return ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  // A framework may have its own; two in one process do not go together.
  for (const int flags : {RTLD_NOW | RTLD_NOLOAD, RTLD_NOW | RTLD_LOCAL}) {
    for (const char* name : kLibraries) {
      if (void* const library = ::dlopen(name, flags); library != nullptr) return library;
    }
  }
  return nullptr;
}

template <typename Function>
bool resolve(void* library, const char* name, Function& out) {
  out = reinterpret_cast<Function>(::dlsym(library, name));
  return out != nullptr;
}

}  // namespace

const char* Functions::text_of(int result) const {
  const char* text = nullptr;
  if (get_result_string(result, &text) != kSuccess || text == nullptr) text = "unknown result";
  return text;
}

bool open(const char* path, Functions& f) {
  void* const library = find_library(path);
  if (library == nullptr) {
    const char* const why = ::dlerror();
    complain("libcupti is not found (%.200s): kernels and CUDA calls are not recorded",
             why != nullptr ? why : "no reason given");
    return false;
  }
  resolve(library, "cuptiSetThreadIdType", f.set_thread_id_type);
  if (resolve(library, "cuptiGetVersion", f.get_version) &&
      resolve(library, "cuptiGetTimestamp", f.get_timestamp) &&
      resolve(library, "cuptiGetResultString", f.get_result_string) &&
      resolve(library, "cuptiGetCallbackName", f.get_callback_name) &&
      resolve(library, "cuptiSubscribe", f.subscribe) &&
      resolve(library, "cuptiActivityRegisterCallbacks", f.register_callbacks) &&
      resolve(library, "cuptiActivityEnable", f.enable) &&
      resolve(library, "cuptiActivityDisable", f.disable) &&
      resolve(library, "cuptiActivityFlushAll", f.flush_all) &&
      resolve(library, "cuptiActivityGetNextRecord", f.next_record) &&
      resolve(library, "cuptiActivityGetNumDroppedRecords", f.dropped) &&
      resolve(library, "cuptiActivityPushExternalCorrelationId", f.push_correlation) &&
      resolve(library, "cuptiActivityPopExternalCorrelationId", f.pop_correlation)) {
    return true;
  }
  complain("libcupti lacks functions (%.200s): kernels and CUDA calls are not recorded",
           ::dlerror());
  return false;
}

bool device_facts(uint32_t device, DeviceFacts& out) {
  // The program's driver; it may have been loaded where RTLD_DEFAULT does not look.
  void* driver = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (driver == nullptr) driver = RTLD_DEFAULT;
  int (*get)(int*, int) = nullptr;
  int (*name)(char*, int, int) = nullptr;
  int (*memory)(size_t*, int) = nullptr;
  int (*bus)(char*, int, int) = nullptr;
  int (*attribute)(int*, int, int) = nullptr;
  constexpr int kMultiprocessorCount = 16;  // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
  int handle = 0, multiprocessors = 0;
  size_t bytes = 0;
  if (!resolve(driver, "cuDeviceGet", get) || !resolve(driver, "cuDeviceGetName", name) ||
      !resolve(driver, "cuDeviceTotalMem_v2", memory) ||
      !resolve(driver, "cuDeviceGetPCIBusId", bus) ||
      !resolve(driver, "cuDeviceGetAttribute", attribute)) {
    return false;
  }
  if (get(&handle, static_cast<int>(device)) != 0 || name(out.name, sizeof out.name, handle) != 0 ||
      memory(&bytes, handle) != 0) {
    return false;
  }
  if (bus(out.bus, sizeof out.bus, handle) != 0) out.bus[0] = 0;
  if (attribute(&multiprocessors, kMultiprocessorCount, handle) != 0) multiprocessors = 0;
  out.memory = bytes;
  out.multiprocessors = static_cast<uint32_t>(multiprocessors);
  return true;
}

}  // namespace rehearse::capture::cupti
