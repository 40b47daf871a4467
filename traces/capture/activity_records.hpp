// SPDX-License-Identifier: Apache-2.0
// One record of CUPTI becomes one record of the trace. Called by any thread that gives a buffer back.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "traces/capture/cupti.hpp"

namespace rehearse::capture::activity {

class ActivityRecords {
 public:
  // `stamp` is CUPTI's time now, 0 when it gave none.
  void start(const cupti::Functions& functions, uint32_t version, uint64_t stamp);
  void add(const cupti::Record& record);
  // Asks the driver about devices that records named since the last call; not on CUPTI's thread.
  void tell_devices();

 private:
  static constexpr size_t kCallbacks = 2048;
  static constexpr uint32_t kMostDevices = 64;
  struct Span {
    int64_t start;
    uint64_t duration;
  };
  // False when the record is not wanted: not whole, or outside the stretch that is recorded.
  [[nodiscard]] bool span(uint64_t start, uint64_t end, Span& out) const;
  [[nodiscard]] uint32_t api_name(bool driver, uint32_t callback);
  void saw(uint32_t device);
  void kernel(const cupti::KernelRecord& r);
  void copy(const cupti::MemcpyRecord& r);
  void peer_copy(const cupti::PeerMemcpyRecord& r);
  void fill(const cupti::MemsetRecord& r);
  void api(const cupti::ApiRecord& r);
  void wait(const cupti::SynchronizationRecord& r);
  void event(const cupti::EventRecord& r);
  void overhead(const cupti::OverheadRecord& r);
  void graph(const cupti::GraphRecord& r);
  void memory(const cupti::MemoryRecord& r);

  const cupti::Functions* f_ = nullptr;
  uint32_t version_ = 0;
  int64_t shift_ = 0;    // from CUPTI's clock to Unix time
  uint64_t secret_ = 0;  // turns addresses into numbers that are none
  std::array<std::array<std::atomic<uint32_t>, kCallbacks>, 2> api_names_{};
  std::atomic<uint64_t> seen_{0}, told_{0};  // a bit per device
};

}  // namespace rehearse::capture::activity
