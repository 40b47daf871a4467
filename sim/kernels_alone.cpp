// SPDX-License-Identifier: Apache-2.0
#include "sim/kernels_alone.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "platforms/model/links.hpp"
#include "sim/efficiency.hpp"
#include "sim/nccl/node_graphs.hpp"
#include "sim/nccl/traffic.hpp"
#include "sim/prepared.hpp"
#include "sim/replay/contention.hpp"

namespace rehearse::sim {
namespace {

constexpr double kFullShare = 65535;  // of RankProgram::overlap

// What the calls of a rank take of its kernels, by communicator, kind and size.
class CallShares {
 public:
  CallShares(const ModelContext& context, const traces::Program& program)
      : context_(context),
        program_(program),
        capacity_(effective_capacities(context.platform, context.links)) {}

  Result<double> rate(const traces::RankProgram& rank, const GpuShare& gpu) {
    double sum = 0;
    size_t counted = 0;
    for (const traces::Call& call : rank.calls) {
      // Pairs hold a channel or two; whom they take it from is not worth a model of each.
      if (traces::is_point_to_point(call.collective)) continue;
      RH_TRY(const double share, share_of(call, gpu));
      sum += share;
      ++counted;
    }
    return counted == 0 ? 1.0 : rate_beside(sum / static_cast<double>(counted));
  }

 private:
  Result<double> share_of(const traces::Call& call, const GpuShare& gpu) {
    const auto key = std::make_tuple(call.communicator, call.collective, call.bytes_in,
                                     call.bytes_out, call.dtype, gpu.sms, gpu.memory_bandwidth);
    const auto known = shares_.find(key);
    if (known != shares_.end()) return known->second;
    auto model = models_.find(call.communicator);
    if (model == models_.end()) {
      RH_TRY(CommunicatorModel made,
             CommunicatorModel::create(context_, program_.communicators[call.communicator]));
      model = models_.emplace(call.communicator, std::move(made)).first;
    }
    RH_TRY(const CallTraffic traffic, model->second.traffic(call, 0));
    return shares_[key] = share_of_kernels(traffic, capacity_, gpu);
  }

  const ModelContext& context_;
  const traces::Program& program_;
  std::vector<BytesPerSec> capacity_;
  std::map<uint32_t, CommunicatorModel> models_;
  std::map<
      std::tuple<uint32_t, traces::Collective, Bytes, Bytes, traces::DType, uint32_t, BytesPerSec>,
      double>
      shares_;
};

void speed_up(traces::RankProgram& rank, double rate) {
  if (rate >= 1 || rank.overlap.empty()) return;
  const traces::Column<uint16_t> overlap = rank.overlap;
  for (size_t op = 0; op < overlap.size(); ++op) {
    const double share = static_cast<double>(std::as_const(overlap)[op]) / kFullShare;
    if (share == 0) continue;
    Nanos& duration = rank.duration[op];
    duration = std::llround(static_cast<double>(duration) * (1 - share * (1 - rate)));
  }
  rank.overlap.clear();
}

}  // namespace

Result<void> free_kernels(const Scenario& scenario, traces::Program& program) {
  const pb::Scenario& document = scenario.document;
  RH_TRY(const platforms::Links links, platforms::Links::build(document.platform()));
  NodeGraphCache cache(document.platform(), scenario.prepared != nullptr ? scenario.prepared->graphs
                                                                         : NodeGraphCache::Known{});
  const ModelContext context{document.platform(), links, document.launch(), &cache};
  CallShares shares(context, program);
  for (const pb::RankLaunch& launch : document.launch().ranks()) {
    const int at = program.find(launch.rank());
    if (at < 0) continue;
    const pb::Gpu& gpu = document.platform()
                             .nodes(static_cast<int>(launch.node()))
                             .gpus(static_cast<int>(launch.gpu()));
    traces::RankProgram& rank = program.ranks[static_cast<size_t>(at)];
    RH_TRY(const double rate, shares.rate(rank, {gpu.sms(), gpu.memory_bandwidth(),
                                                 document.platform().efficiency().beside()}));
    speed_up(rank, rate);
  }
  return {};
}

}  // namespace rehearse::sim
