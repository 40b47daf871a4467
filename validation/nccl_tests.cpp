// SPDX-License-Identifier: Apache-2.0
#include "validation/nccl_tests.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

namespace rehearse::validation {
namespace {

class Checking {
 public:
  explicit Checking(const NcclTestOptions& options) : options_(options) {}

  Result<NcclTestReport> run(const std::vector<NcclTestRow>& rows) {
    RH_TRY(machines_, TestMachines::create(options_));
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
  Result<NcclTestPrediction> predict(const NcclTestRow& row) {
    RH_TRY(const PlacedCall call, machines_->place(row));
    RH_TRY(sim::AloneTime time, sim::time_alone(call.testbed->context(), call.traffic));
    // nccl-tests times a stream of calls: a rank of a rooted one goes on when its own part is done, so
    // that the pipeline of chunks fills once, not in every call.
    if (row.collective == "broadcast" || row.collective == "reduce") {
      time.latency -= std::min(time.latency, call.traffic.fill);
    }
    NcclTestPrediction out;
    out.row = row;
    out.row.nodes = call.nodes;
    out.row.gpus = call.gpus;
    out.platform = call.choice.id;
    out.predicted_us = static_cast<double>(time.total()) / 1000;
    out.error = (out.predicted_us - row.time_us) / row.time_us;
    out.algorithm = call.traffic.algorithm;
    out.channels = call.traffic.channels;
    if (time.issue > time.latency + time.transfer) {
      out.bound = "launches";
    } else if (time.latency > time.transfer) {
      out.bound = "latency";
    } else if (time.links.empty() || time.capped >= time.links.front().time) {
      out.bound = "its channels";
    } else {
      out.bound = call.testbed->links()[time.links.front().link].name;
    }
    note(row, call.choice, out);
    return out;
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
  std::optional<TestMachines> machines_;
  std::map<std::tuple<std::string, uint32_t, std::string>, size_t> reports_;
  std::vector<std::map<std::string, std::vector<size_t>>> by_report_;
  NcclTestReport out_;
};

}  // namespace

Result<NcclTestReport> check_nccl_tests(const std::vector<NcclTestRow>& rows,
                                        const NcclTestOptions& options) {
  return Checking(options).run(rows);
}

}  // namespace rehearse::validation
