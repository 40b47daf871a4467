// SPDX-License-Identifier: Apache-2.0
// The functions that the CUDA driver and NVTX call when their variables name this library. They always
// report success: a tool that fails is no reason for a program to.
#include "traces/capture/activity.hpp"
#include "traces/capture/nvtx.hpp"
#include "traces/capture/recorder.hpp"

extern "C" {

// CUDA_INJECTION64_PATH, inside cuInit.
[[gnu::visibility("default")]] int InitializeInjection() {
  if (rehearse::capture::Recorder::instance().on()) {
    static_cast<void>(rehearse::capture::activity::start());
  }
  return 1;
}

// NVTX_INJECTION64_PATH, at the first call of NVTX in each library of the program.
[[gnu::visibility("default")]] int InitializeInjectionNvtx2(
    rehearse::capture::nvtx::GetExportTable get_export_table) {
  return rehearse::capture::nvtx::attach(get_export_table);
}

[[gnu::visibility("default")]] int InitializeInjectionNvtxExtension(
    rehearse::capture::nvtx::ModuleInfo* info) {
  return rehearse::capture::nvtx::attach_extension(info);
}
}
