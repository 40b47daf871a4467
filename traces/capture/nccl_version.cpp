// SPDX-License-Identifier: Apache-2.0
#include "traces/capture/nccl_version.hpp"

#include <dlfcn.h>

#include <cstdint>

#include "traces/capture/recorder.hpp"

namespace rehearse::capture {

void nccl_in_object_of(const void* address) {
  Dl_info about{};
  if (address == nullptr || ::dladdr(address, &about) == 0 || about.dli_fname == nullptr) return;
  void* const object = ::dlopen(about.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (object == nullptr) return;
  using GetVersion = int (*)(int*);
  const auto get = reinterpret_cast<GetVersion>(::dlsym(object, "ncclGetVersion"));
  // dlsym looks into what the object depends on too.
  Dl_info of_function{};
  int version = 0;
  if (get != nullptr && ::dladdr(reinterpret_cast<const void*>(get), &of_function) != 0 &&
      of_function.dli_fbase == about.dli_fbase && get(&version) == 0 && version > 0) {
    Recorder::instance().found_nccl(static_cast<uint32_t>(version));
  }
  ::dlclose(object);
}

}  // namespace rehearse::capture
