// SPDX-License-Identifier: Apache-2.0
#include "validation/calibrate/observations.hpp"

#include <fmt/format.h>

#include <map>
#include <tuple>

namespace rehearse::validation {
namespace {

// A single iteration times warm-up and logging as well; above this size the transfer outweighs them.
constexpr Bytes kEnoughForOnce = Bytes{1} << 20;

using Conditions = std::tuple<std::string, std::string, std::string, uint32_t, uint32_t,
                              std::string, std::string, std::string, std::string, Bytes>;

// Empty when the row's time is that of the collective.
std::string useless(const NcclTestRow& row) {
  if (row.bytes <= 0) return "a call of no bytes";
  if (row.iterations == 1 && row.bytes < kEnoughForOnce) {
    return "one iteration of a small call times warm-up and logging";
  }
  return "";
}

}  // namespace

std::string group_of(const std::string& hardware, uint32_t nodes, uint32_t gpus,
                     const std::string& collective) {
  return fmt::format("{}{}{} GPUs of {} node{}, {}", hardware, hardware.empty() ? "" : ", ", gpus,
                     nodes, nodes == 1 ? "" : "s", collective);
}

std::vector<Observation> ObservedHardware::observations() const { return without(""); }

std::vector<Observation> ObservedHardware::without(const std::string& group) const {
  std::vector<Observation> out;
  for (const Observed& one : observed) {
    if (one.observation.group != group) out.push_back(one.observation);
  }
  return out;
}

std::vector<ObservedHardware> observe(const std::vector<NcclTestRow>& rows, TestMachines& machines,
                                      Findings& findings) {
  std::vector<ObservedHardware> out;
  std::map<std::string, size_t> hardware_at;
  std::map<Conditions, std::pair<size_t, size_t>> at;
  for (const NcclTestRow& row : rows) {
    if (const std::string why = useless(row); !why.empty()) {
      findings.add("row-not-used", Severity::kInfo, row.where, why);
      continue;
    }
    const auto platform = machines.platform_of(row);
    if (!platform) {
      findings.add("row-not-predicted", Severity::kDataLoss, row.where,
                   platform.error().what + "; " + platform.error().fix);
      continue;
    }
    const Conditions conditions{
        *platform,
        row.hardware,
        row.nccl_version,
        row.nodes,
        row.gpus,
        row.collective,
        fmt::format("{}/{}/{}/{}{}", row.algorithm, row.protocol, row.options, row.gpus_per_thread,
                    row.graph ? "/graph" : ""),
        row.type,
        row.reduction,
        row.bytes};
    if (const auto known = at.find(conditions); known != at.end()) {
      out[known->second.first].observed[known->second.second].repeats.push_back(row.time_us);
      continue;
    }
    auto placed = machines.place(row);
    if (!placed) {
      findings.add("row-not-predicted", Severity::kDataLoss, row.where,
                   placed.error().what + "; " + placed.error().fix);
      continue;
    }
    const auto [h, fresh] = hardware_at.emplace(row.hardware, out.size());
    if (fresh) out.push_back({row.hardware, placed->choice.assumptions, {}});
    Observed one;
    one.first = row;
    one.platform = placed->choice.id;
    one.nccl_version = placed->testbed->launch().nccl_version();
    one.generation = placed->testbed->context().platform.nodes(0).gpus(0).compute_capability();
    one.first.nodes = placed->nodes;
    one.first.gpus = placed->gpus;
    one.repeats = {row.time_us};
    one.algorithm = placed->traffic.algorithm;
    one.observation.what =
        fmt::format("{} of {} on {} GPUs of {} node{}{}{}", row.collective, format_bytes(row.bytes),
                    placed->gpus, placed->nodes, placed->nodes == 1 ? "" : "s",
                    row.algorithm.empty() ? "" : ", " + row.algorithm,
                    row.protocol.empty() ? "" : ", " + row.protocol);
    one.observation.group = group_of(row.hardware, placed->nodes, placed->gpus, row.collective);
    one.observation.bytes = row.bytes;
    one.observation.terms = sim::terms_of(placed->testbed->context(), placed->traffic);
    at.emplace(conditions, std::pair{h->second, out[h->second].observed.size()});
    out[h->second].observed.push_back(std::move(one));
  }
  for (ObservedHardware& hardware : out) {
    for (Observed& one : hardware.observed) {
      one.observation.measured_us = quantile_of(one.repeats, .5);
    }
  }
  return out;
}

}  // namespace rehearse::validation
