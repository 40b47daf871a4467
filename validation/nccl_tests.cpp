// SPDX-License-Identifier: Apache-2.0
#include "validation/nccl_tests.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "sim/nccl/explain.hpp"
#include "validation/hardware.hpp"

namespace rehearse::validation {
namespace {

double quantile(const std::vector<double>& sorted, double q) {
  if (sorted.empty()) return 0;
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (at - static_cast<double>(below));
}

// The size column is of the larger buffer of one rank, as a question's bytes are.
sim::Question question_of(const NcclTestRow& row) {
  sim::Question question;
  question.collective = row.collective;
  question.bytes = row.bytes;
  if (!row.type.empty()) question.type = row.type;
  if (!row.reduction.empty() && row.reduction != "none") question.reduction = row.reduction;
  return question;
}

struct Machine {
  std::unique_ptr<sim::Testbed> testbed;
  std::optional<sim::CommunicatorModel> world;
};

class Checking {
 public:
  explicit Checking(const NcclTestOptions& options) : options_(options) {}

  Result<NcclTestReport> run(const std::vector<NcclTestRow>& rows) {
    RH_TRY(hardware_, HardwareMap::shipped_table());
    std::optional<Error> first;
    for (const NcclTestRow& row : rows) {
      auto predicted = predict(row);
      if (predicted) {
        out_.predictions.push_back(std::move(*predicted));
        continue;
      }
      ++out_.unpredicted;
      out_.findings.add("row-not-predicted", Severity::kDataLoss, row.where,
                        predicted.error().what + "; " + predicted.error().fix);
      if (!first) first = predicted.error();
    }
    if (out_.predictions.empty()) {
      return tl::unexpected(first ? *first : Error{Code::kBadInput, "no rows", "", ""});
    }
    report();
    return std::move(out_);
  }

 private:
  Result<HardwareChoice> platform_of(const NcclTestRow& row, uint32_t per_node) {
    if (options_.platform) {
      return HardwareChoice{options_.platform_id, *options_.platform, "", "", {}, ""};
    }
    return hardware_->find(row, per_node);
  }

  Result<NcclTestPrediction> predict(const NcclTestRow& row) {
    const uint32_t nodes = row.nodes > 0 ? row.nodes : std::max(1U, options_.nodes);
    const uint32_t gpus = row.gpus > 0 ? row.gpus : options_.gpus;
    const uint32_t per_node = gpus > 0 ? (gpus + nodes - 1) / nodes : 0;
    RH_TRY(HardwareChoice choice, platform_of(row, per_node));
    std::string version = !row.nccl_version.empty()        ? row.nccl_version
                          : !options_.nccl_version.empty() ? options_.nccl_version
                                                           : choice.nccl_version;
    const auto key = std::make_tuple(choice.id, version, nodes, gpus, row.algorithm, row.protocol);
    auto at = machines_.find(key);
    if (at == machines_.end()) {
      RH_TRY(Machine machine, build(choice, version, nodes, gpus, row));
      at = machines_.emplace(key, std::move(machine)).first;
    }
    const Machine& machine = at->second;
    RH_TRY(const sim::CallTraffic traffic,
           sim::traffic_of(machine.testbed->context(), *machine.world, question_of(row)));
    RH_TRY(const sim::AloneTime time, sim::time_alone(machine.testbed->context(), traffic));

    NcclTestPrediction out;
    out.row = row;
    out.row.nodes = nodes;
    out.row.gpus = static_cast<uint32_t>(machine.testbed->launch().ranks_size());
    out.platform = choice.id;
    out.predicted_us = static_cast<double>(time.total()) / 1000;
    out.error = (out.predicted_us - row.time_us) / row.time_us;
    out.algorithm = traffic.algorithm;
    out.channels = traffic.channels;
    if (time.latency > time.transfer) {
      out.bound = "latency";
    } else if (time.links.empty() || time.capped >= time.links.front().time) {
      out.bound = "its channels";
    } else {
      out.bound = machine.testbed->links()[time.links.front().link].name;
    }
    note(row, choice, out);
    return out;
  }

  Result<Machine> build(const HardwareChoice& choice, const std::string& version, uint32_t nodes,
                        uint32_t gpus, const NcclTestRow& row) {
    sim::TestbedOptions options;
    options.nodes = nodes;
    options.ranks = gpus;
    options.nccl_version = version;
    for (const auto& [name, value] : options_.env) options.settings.push_back({name, value, {}});
    if (!row.algorithm.empty()) options.settings.push_back({"NCCL_ALGO", row.algorithm, {}});
    if (!row.protocol.empty()) options.settings.push_back({"NCCL_PROTO", row.protocol, {}});
    Machine machine;
    RH_TRY(machine.testbed, sim::Testbed::make(choice.platform, options, choice.id));
    RH_TRY(sim::CommunicatorModel world, machine.testbed->world());
    machine.world.emplace(std::move(world));
    return machine;
  }

  void note(const NcclTestRow& row, const HardwareChoice& choice, const NcclTestPrediction& p) {
    const auto key = std::make_tuple(row.hardware, choice.from_nodes, choice.id);
    auto [at, fresh] = reports_.emplace(key, out_.hardware.size());
    if (fresh) {
      out_.hardware.push_back({row.hardware,
                               choice.from_nodes,
                               choice.id,
                               choice.assumptions,
                               0,
                               {},
                               {},
                               choice.known});
      by_report_.emplace_back();
    }
    ++out_.hardware[at->second].rows;
    if (row.bytes < options_.from_bytes) return;
    const char* size = row.bytes < (Bytes{16} << 20)    ? "1 MiB to 16 MiB"
                       : row.bytes < (Bytes{256} << 20) ? "16 MiB to 256 MiB"
                                                        : "256 MiB and more";
    std::string what =
        fmt::format("{} on {} GPUs of {}, {}", row.collective, p.row.gpus,
                    p.row.nodes == 1 ? "one node" : fmt::format("{} nodes", p.row.nodes), size);
    if (!row.algorithm.empty()) what += ", " + row.algorithm;
    if (!row.protocol.empty()) what += ", " + row.protocol;
    if (row.options == "-R 2") what += ", symmetric memory";
    by_report_[at->second][what].push_back(out_.predictions.size());
  }

  void report() {
    std::vector<double> all;
    for (size_t h = 0; h < out_.hardware.size(); ++h) {
      HardwareReport& hardware = out_.hardware[h];
      std::vector<double> errors;
      for (const auto& [what, rows] : by_report_[h]) {
        std::vector<double> own;
        std::map<std::string, size_t> algorithms, bounds;
        for (size_t i : rows) {
          own.push_back(out_.predictions[i].error);
          ++algorithms[out_.predictions[i].algorithm];
          ++bounds[out_.predictions[i].bound];
        }
        errors.insert(errors.end(), own.begin(), own.end());
        const auto most = [](const std::map<std::string, size_t>& counts) {
          return std::max_element(counts.begin(), counts.end(),
                                  [](const auto& a, const auto& b) { return a.second < b.second; })
              ->first;
        };
        hardware.parts.push_back({what, summarise(own), most(algorithms), most(bounds)});
      }
      std::stable_sort(
          hardware.parts.begin(), hardware.parts.end(),
          [](const auto& a, const auto& b) { return a.errors.median > b.errors.median; });
      hardware.judged = summarise(errors);
      all.insert(all.end(), errors.begin(), errors.end());
    }
    out_.judged = summarise(all);
  }

  const NcclTestOptions& options_;
  std::optional<HardwareMap> hardware_;
  std::map<std::tuple<std::string, std::string, uint32_t, uint32_t, std::string, std::string>,
           Machine>
      machines_;
  std::map<std::tuple<std::string, uint32_t, std::string>, size_t> reports_;
  std::vector<std::map<std::string, std::vector<size_t>>> by_report_;
  NcclTestReport out_;
};

}  // namespace

ErrorSummary summarise(std::vector<double> signed_errors) {
  ErrorSummary out;
  out.rows = signed_errors.size();
  std::sort(signed_errors.begin(), signed_errors.end());
  out.bias = quantile(signed_errors, .5);
  for (double& error : signed_errors) error = std::abs(error);
  std::sort(signed_errors.begin(), signed_errors.end());
  out.median = quantile(signed_errors, .5);
  out.p90 = quantile(signed_errors, .9);
  return out;
}

Result<NcclTestReport> check_nccl_tests(const std::vector<NcclTestRow>& rows,
                                        const NcclTestOptions& options) {
  return Checking(options).run(rows);
}

}  // namespace rehearse::validation
