// SPDX-License-Identifier: Apache-2.0
#include "validation/calibrate/recorded_costs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

namespace rehearse::validation {
namespace {

std::optional<sim::Variant> variant_of(const std::string& collective, const std::string& algorithm,
                                       const std::string& protocol) {
  static const std::map<std::string, sim::Function> kFunctions = {
      {"all_reduce", sim::Function::kAllReduce},
      {"all_gather", sim::Function::kAllGather},
      {"reduce_scatter", sim::Function::kReduceScatter},
      {"broadcast", sim::Function::kBroadcast},
      {"reduce", sim::Function::kReduce}};
  const auto function = kFunctions.find(collective);
  if (function == kFunctions.end()) return std::nullopt;
  for (const sim::Algorithm a : sim::kAlgorithms) {
    for (const sim::Protocol p : sim::kProtocols) {
      if (sim::environment_name_of(a) == algorithm &&
          sim::equal_ignoring_case(sim::name_of(p), protocol)) {
        return sim::Variant{function->second, a, p};
      }
    }
  }
  return std::nullopt;
}

std::vector<RecordedCosts> of_tuner(const pb::Evidence& evidence, size_t& unplaced) {
  std::map<std::string, RecordedCosts> by_communicator;
  for (const pb::TunerTable& table : evidence.tuner().tables()) {
    if (table.ranks() < 2 || table.nodes() == 0) {
      ++unplaced;
      continue;
    }
    RecordedCosts& out = by_communicator[fmt::format("{} {} {}", table.communicator(),
                                                     table.ranks(), table.nodes())];
    out.where = fmt::format("{}, communicator {}", evidence.source(), table.communicator());
    out.ranks = table.ranks();
    out.nodes = table.nodes();
    out.nccl_version = evidence.tuner().nccl_version();
    out.env.insert(evidence.tuner().environment().begin(), evidence.tuner().environment().end());
    for (const pb::TunerCost& cost : table.costs()) {
      const auto variant = variant_of(table.collective(), cost.algorithm(), cost.protocol());
      if (!variant || !(cost.us() >= 0)) continue;
      out.costs.push_back(
          {*variant, static_cast<int64_t>(std::min<uint64_t>(table.bytes(), uint64_t{1} << 48)),
           static_cast<int>(std::max(1U, table.operations())), cost.us(), 0});
    }
  }
  std::vector<RecordedCosts> out;
  for (auto& [key, one] : by_communicator) {
    if (!one.costs.empty()) out.push_back(std::move(one));
  }
  return out;
}

std::vector<RecordedCosts> of_log(const pb::Evidence& evidence, size_t& unplaced) {
  std::vector<RecordedCosts> out;
  const pb::NcclLog& log = evidence.nccl_log();
  for (const pb::NcclCommunicator& communicator : log.communicators()) {
    if (communicator.tuning().empty()) continue;
    std::set<std::string> hosts;
    for (const pb::NcclRank& rank : communicator.ranks()) {
      hosts.insert(log.processes(static_cast<int>(rank.process())).host());
    }
    const auto nodes = std::max(communicator.nodes(), static_cast<uint32_t>(hosts.size()));
    if (communicator.ranks_total() < 2 || nodes == 0) {
      ++unplaced;
      continue;
    }
    RecordedCosts one;
    one.where = fmt::format("{}, communicator {}", evidence.source(), communicator.id());
    one.ranks = communicator.ranks_total();
    one.nodes = nodes;
    one.nccl_version = communicator.nccl_version();
    for (const pb::NcclProcess& process : log.processes()) {
      one.env.insert(process.environment().begin(), process.environment().end());
      if (one.nccl_version.empty()) one.nccl_version = process.nccl_version();
    }
    for (const pb::NcclTuningCell& cell : communicator.tuning()) {
      const auto variant = variant_of(cell.collective(), cell.algorithm(), cell.protocol());
      if (!variant || !(cell.bandwidth() > 0)) continue;
      one.costs.push_back({*variant, 0, 1, cell.latency_us(), cell.bandwidth()});
    }
    if (!one.costs.empty()) out.push_back(std::move(one));
  }
  return out;
}

}  // namespace

std::vector<RecordedCosts> recorded_costs(const pb::Evidence& evidence, size_t& unplaced) {
  if (evidence.has_tuner()) return of_tuner(evidence, unplaced);
  if (evidence.has_nccl_log()) return of_log(evidence, unplaced);
  return {};
}

}  // namespace rehearse::validation
