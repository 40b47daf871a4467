// SPDX-License-Identifier: Apache-2.0
// NCCL's tuner plugin as an observer: writes down what NCCL predicts for every algorithm and protocol, and
// changes nothing. Off unless asked for, because its mere presence keeps NCCL from lowering channel counts.
#include <algorithm>
#include <array>
#include <atomic>

#include "traces/capture/nccl_names.hpp"
#include "traces/capture/nccl_tuner_layout.hpp"
#include "traces/capture/nccl_version.hpp"
#include "traces/capture/recorder.hpp"

namespace rehearse::capture::nccl {
namespace {

constexpr const char* kTunerName = "rehearse-capture";

// Whose costs are shown. NCCL hands back the pointer that init gave it; entries are never freed, and a program that makes
// more communicators than there are entries has the rest of them recorded without a size.
struct Tuned {
  uint64_t communicator = 0;
  uint32_t ranks = 0, nodes = 0;
};
constexpr size_t kMostTuned = 1024;
std::array<Tuned, kMostTuned> all_tuned;
std::atomic<size_t> tuned_used = 0;

void* remember(uint64_t communicator, size_t ranks, size_t nodes) {
  const size_t at = tuned_used.fetch_add(1, std::memory_order_relaxed);
  if (at >= kMostTuned) {
    tuned_used.store(kMostTuned, std::memory_order_relaxed);
    return nullptr;
  }
  all_tuned[at] = {communicator, static_cast<uint32_t>(ranks), static_cast<uint32_t>(nodes)};
  return &all_tuned[at];
}

int observe(void* context, int function, size_t bytes, int operations, float** costs,
            int algorithms, int protocols) {
  Recorder& r = Recorder::instance();
  const int64_t at = now();
  if (costs == nullptr || algorithms <= 0 || protocols <= 0 || !r.on() || !r.window().holds(at)) {
    return 0;
  }
  const auto cells = std::min<size_t>(
      static_cast<size_t>(algorithms) * static_cast<size_t>(protocols), capture_file::kMostCosts);
  // The table is one piece of memory, whatever its type says.
  const Tuned tuned = context == nullptr ? Tuned{} : *static_cast<const Tuned*>(context);
  r.put(Lost::kNccl, capture_file::Tuning{
                         .communicator = tuned.communicator,
                         .function = r.names().id(function_name(static_cast<uint32_t>(function))),
                         .bytes = bytes,
                         .algorithms = static_cast<uint32_t>(algorithms),
                         .protocols = static_cast<uint32_t>(protocols),
                         .cost = {reinterpret_cast<const float*>(costs), cells},
                         .ranks = tuned.ranks,
                         .nodes = tuned.nodes,
                         .operations = static_cast<uint32_t>(std::max(0, operations))});
  return 0;
}

int observe_v3(void* context, int function, size_t bytes, int operations, float** costs,
               int algorithms, int protocols, int*) {
  return observe(context, function, bytes, operations, costs, algorithms, protocols);
}
int observe_v4(void* context, int function, size_t bytes, int operations, float** costs,
               int algorithms, int protocols, int, int*) {
  return observe(context, function, bytes, operations, costs, algorithms, protocols);
}

int tuner_init_v3(size_t ranks, size_t nodes, Logger, void** context) {
  *context = remember(0, ranks, nodes);
  return 0;
}
int tuner_init_v5(void** context, uint64_t communicator, size_t ranks, size_t nodes, Logger, void*,
                  void*) {
  *context = remember(communicator, ranks, nodes);
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
