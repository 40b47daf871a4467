// SPDX-License-Identifier: Apache-2.0
// NCCL's calls of a tuner plugin: one communicator, some collectives of growing size, each with a table of costs that the
// plugin is free to change and must not.
#include <array>
#include <string>
#include <type_traits>

#include "tests/traces/capture/watched.hpp"
#include "traces/capture/nccl_profiler_layout.hpp"
#include "traces/capture/nccl_tuner_layout.hpp"

namespace rehearse::tests {
namespace {

namespace nccl = capture::nccl;

constexpr int kAlgorithms = 7, kProtocols = 3, kAllReduce = 4;
constexpr int kChannelsAsBefore = 0;

template <typename Plugin>
int tune_with(const char* symbol, int calls) {
  const auto* const tuner = static_cast<const Plugin*>(door("NCCL_TUNER_PLUGIN", symbol));
  if (tuner == nullptr) return 90;
  void* context = nullptr;
  if constexpr (std::is_same_v<decltype(tuner->init), nccl::TunerInitV3>) {
    if (tuner->init(8, 2, nullptr, &context) != 0) return 91;
  } else {
    if (tuner->init(&context, 0xabc0, 8, 2, nullptr, nullptr, nullptr) != 0) return 91;
  }
  for (int i = 0; i < calls; ++i) {
    std::array<float, kAlgorithms * kProtocols> costs;
    for (size_t c = 0; c < costs.size(); ++c) costs[c] = c == 5 ? -1 : static_cast<float>(c + i);
    const auto before = costs;
    int channels = kChannelsAsBefore;
    const size_t bytes = size_t{1024} << i;
    auto* const table = reinterpret_cast<float**>(costs.data());
    int status = 0;
    if constexpr (std::is_same_v<decltype(tuner->get_collective_info), nccl::CostsV3>) {
      status = tuner->get_collective_info(context, kAllReduce, bytes, 1, table, kAlgorithms,
                                          kProtocols, &channels);
    } else {
      status = tuner->get_collective_info(context, kAllReduce, bytes, 1, table, kAlgorithms,
                                          kProtocols, 0, &channels);
    }
    if (status != 0) return 92;
    if (costs != before || channels != kChannelsAsBefore) return 93;
  }
  return tuner->finalize(context) == 0 ? 0 : 94;
}

}  // namespace

int play_tuner(const Words& words) {
  // NCCL opens its profiler before it asks for costs.
  if (const int code = play_nccl({"4", "1", "1"}); code != 0) return code;
  const int version = std::stoi(words.at(0)), calls = std::stoi(words.at(1));
  switch (version) {
    case 3:
      return tune_with<nccl::TunerV3>("ncclTunerPlugin_v3", calls);
    case 4:
      return tune_with<nccl::TunerV4>("ncclTunerPlugin_v4", calls);
    case 5:
      return tune_with<nccl::TunerV5>("ncclTunerPlugin_v5", calls);
    default:
      return tune_with<nccl::TunerV6>("ncclTunerPlugin_v6", calls);
  }
}

}  // namespace rehearse::tests
