// SPDX-License-Identifier: Apache-2.0
// NCCL's calls of a tuner plugin: one communicator, some collectives of growing size, each with a table of costs that the
// plugin is free to change and must not. The tables are made up, or those of a file.
#include <array>
#include <fstream>
#include <string>
#include <type_traits>
#include <vector>

#include "tests/traces/capture/watched.hpp"
#include "traces/capture/nccl_profiler_layout.hpp"
#include "traces/capture/nccl_tuner_layout.hpp"

namespace rehearse::tests {
namespace {

namespace nccl = capture::nccl;

constexpr int kAlgorithms = 7, kProtocols = 3, kAllReduce = 4;
constexpr int kChannelsAsBefore = 0;

using Costs = std::array<float, kAlgorithms * kProtocols>;

struct CostedCall {
  size_t bytes = 0;
  Costs costs{};
};

struct CostedCommunicator {
  size_t ranks = 8, nodes = 2;
  std::vector<CostedCall> calls;
};

CostedCommunicator made_up(int calls) {
  CostedCommunicator out;
  for (int i = 0; i < calls; ++i) {
    CostedCall call{size_t{1024} << i, {}};
    for (size_t c = 0; c < call.costs.size(); ++c) {
      call.costs[c] = c == 5 ? -1 : static_cast<float>(c + static_cast<size_t>(i));
    }
    out.calls.push_back(call);
  }
  return out;
}

// Numbers of ranks and nodes; then for each all-reduce its bytes and costs, an algorithm's protocols beside each other, -1 for
// what NCCL has not.
CostedCommunicator read_costs(const std::string& path) {
  CostedCommunicator out;
  std::ifstream in(path);
  in >> out.ranks >> out.nodes;
  CostedCall call;
  while (in >> call.bytes) {
    for (float& cost : call.costs) in >> cost;
    if (in) out.calls.push_back(call);
  }
  return out;
}

template <typename Plugin>
int tune_with(const char* symbol, const CostedCommunicator& communicator) {
  const auto* const tuner = static_cast<const Plugin*>(door("NCCL_TUNER_PLUGIN", symbol));
  if (tuner == nullptr) return 90;
  void* context = nullptr;
  const size_t ranks = communicator.ranks, nodes = communicator.nodes;
  if constexpr (std::is_same_v<decltype(tuner->init), nccl::TunerInitV3>) {
    if (tuner->init(ranks, nodes, nullptr, &context) != 0) return 91;
  } else {
    if (tuner->init(&context, 0xabc0, ranks, nodes, nullptr, nullptr, nullptr) != 0) return 91;
  }
  for (const CostedCall& call : communicator.calls) {
    Costs costs = call.costs;
    int channels = kChannelsAsBefore;
    auto* const table = reinterpret_cast<float**>(costs.data());
    int status = 0;
    if constexpr (std::is_same_v<decltype(tuner->get_collective_info), nccl::CostsV3>) {
      status = tuner->get_collective_info(context, kAllReduce, call.bytes, 1, table, kAlgorithms,
                                          kProtocols, &channels);
    } else {
      status = tuner->get_collective_info(context, kAllReduce, call.bytes, 1, table, kAlgorithms,
                                          kProtocols, 0, &channels);
    }
    if (status != 0) return 92;
    if (costs != call.costs || channels != kChannelsAsBefore) return 93;
  }
  return tuner->finalize(context) == 0 ? 0 : 94;
}

}  // namespace

int play_tuner(const Words& words) {
  // NCCL opens its profiler before it asks for costs.
  if (const int code = play_nccl({"4", "1", "1"}); code != 0) return code;
  const int version = std::stoi(words.at(0));
  const CostedCommunicator calls =
      words.size() > 2 ? read_costs(words.at(2)) : made_up(std::stoi(words.at(1)));
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
