// SPDX-License-Identifier: Apache-2.0
// NCCL's tuner plugin as an observer: writes down what NCCL predicts for every algorithm and protocol, and
// changes nothing. Off unless asked for, because its mere presence keeps NCCL from lowering channel counts.
#include <algorithm>
#include <bit>

#include "traces/capture/nccl_names.hpp"
#include "traces/capture/nccl_tuner_layout.hpp"
#include "traces/capture/nccl_version.hpp"
#include "traces/capture/recorder.hpp"

namespace rehearse::capture::nccl {
namespace {

constexpr const char* kTunerName = "rehearse-capture";

int observe(void* context, int function, size_t bytes, float** costs, int algorithms,
            int protocols) {
  Recorder& r = Recorder::instance();
  const int64_t at = now();
  if (costs == nullptr || algorithms <= 0 || protocols <= 0 || !r.on() || !r.window().holds(at)) {
    return 0;
  }
  const auto cells = std::min<size_t>(
      static_cast<size_t>(algorithms) * static_cast<size_t>(protocols), capture_file::kMostCosts);
  // The table is one piece of memory, whatever its type says.
  r.put(Lost::kNccl, capture_file::Tuning{
                         .communicator = reinterpret_cast<uintptr_t>(context),
                         .function = r.names().id(function_name(static_cast<uint32_t>(function))),
                         .bytes = bytes,
                         .algorithms = static_cast<uint32_t>(algorithms),
                         .protocols = static_cast<uint32_t>(protocols),
                         .cost = {reinterpret_cast<const float*>(costs), cells}});
  return 0;
}

int observe_v3(void* context, int function, size_t bytes, int, float** costs, int algorithms,
               int protocols, int*) {
  return observe(context, function, bytes, costs, algorithms, protocols);
}
int observe_v4(void* context, int function, size_t bytes, int, float** costs, int algorithms,
               int protocols, int, int*) {
  return observe(context, function, bytes, costs, algorithms, protocols);
}

int tuner_init_v3(size_t, size_t, Logger, void** context) {
  *context = nullptr;
  return 0;
}
int tuner_init_v5(void** context, uint64_t communicator, size_t, size_t, Logger, void*, void*) {
  *context = std::bit_cast<void*>(communicator);
  return 0;
}
int tuner_finalize(void*) { return 0; }

}  // namespace
}  // namespace rehearse::capture::nccl

namespace t = rehearse::capture::nccl;
extern "C" {
[[gnu::visibility("default")]] extern const t::TunerV3 ncclTunerPlugin_v3 = {
    t::kTunerName, t::tuner_init_v3, t::observe_v3, t::tuner_finalize};
[[gnu::visibility("default")]] extern const t::TunerV4 ncclTunerPlugin_v4 = {
    t::kTunerName, t::tuner_init_v3, t::observe_v4, t::tuner_finalize};
[[gnu::visibility("default")]] extern const t::TunerV5 ncclTunerPlugin_v5 = {
    t::kTunerName, t::tuner_init_v5, t::observe_v4, t::tuner_finalize};
[[gnu::visibility("default")]] extern const t::TunerV6 ncclTunerPlugin_v6 = {
    t::kTunerName, t::tuner_init_v5, t::observe_v4, t::tuner_finalize, nullptr};
}
