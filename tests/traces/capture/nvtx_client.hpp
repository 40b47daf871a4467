// SPDX-License-Identifier: Apache-2.0
// A program's side of NVTX without its headers: a table of function pointers that a tool fills in, and the
// calls through it.
#pragma once

#include <array>
#include <cstring>

#include "traces/capture/nvtx_layout.hpp"

namespace rehearse::tests {

class NvtxClient {
 public:
  // `initialize` is the tool's InitializeInjectionNvtx2.
  explicit NvtxClient(void* initialize) {
    namespace nvtx = capture::nvtx;
    for (size_t i = 0; i < kCount; ++i) {
      tables_[0][i] = &functions_[0][i];
      tables_[1][i] = &functions_[1][i];
    }
    using Initialize = int (*)(nvtx::GetExportTable);
    attached = reinterpret_cast<Initialize>(initialize)(&NvtxClient::export_table);
    // As NVTX does with what a tool leaves alone.
    for (auto& table : functions_) {
      for (auto& function : table) {
        if (function == nullptr) function = reinterpret_cast<nvtx::Function>(&nothing);
      }
    }
  }
  int attached = 0;

  static int push(const char* text) {
    return call<int (*)(const char*)>(0, capture::nvtx::kRangePushA)(text);
  }
  static int pop() { return call<int (*)()>(0, capture::nvtx::kRangePop)(); }
  static void mark(const char* text) {
    call<void (*)(const char*)>(0, capture::nvtx::kMarkA)(text);
  }
  static uint64_t start(const char* text) {
    return call<uint64_t (*)(const char*)>(0, capture::nvtx::kRangeStartA)(text);
  }
  static void end(uint64_t id) { call<void (*)(uint64_t)>(0, capture::nvtx::kRangeEnd)(id); }
  static void* domain(const char* name) {
    return call<void* (*)(const char*)>(1, capture::nvtx::kDomainCreateA)(name);
  }
  static void* string(void* domain, const char* text) {
    return call<void* (*)(void*, const char*)>(1, capture::nvtx::kDomainRegisterStringA)(domain,
                                                                                         text);
  }
  static int push(void* domain, const capture::nvtx::EventAttributes& attributes) {
    using Push = int (*)(void*, const capture::nvtx::EventAttributes*);
    return call<Push>(1, capture::nvtx::kDomainRangePushEx)(domain, &attributes);
  }
  static int pop(void* domain) {
    return call<int (*)(void*)>(1, capture::nvtx::kDomainRangePop)(domain);
  }

 private:
  static constexpr size_t kCount = 16;
  static int nothing() { return 0; }
  template <typename F>
  static F call(size_t table, size_t function) {
    return reinterpret_cast<F>(functions_[table][function]);
  }
  static int module_functions(int module, capture::nvtx::Function*** table, unsigned* size) {
    const size_t i = module == capture::nvtx::kCore2 ? 1 : 0;
    *table = tables_[i].data();
    *size = kCount;
    return 1;
  }
  static const void* export_table(uint32_t) {
    static const capture::nvtx::CallbacksTable table{sizeof table, &module_functions};
    return &table;
  }
  static inline std::array<std::array<capture::nvtx::Function, kCount>, 2> functions_{};
  static inline std::array<std::array<capture::nvtx::Function*, kCount>, 2> tables_{};
};

}  // namespace rehearse::tests
