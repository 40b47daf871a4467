// SPDX-License-Identifier: Apache-2.0
#include "traces/import/nccl_tests/conditions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "base/text.hpp"
#include "traces/evidence/evidence.hpp"
#include "traces/evidence/names.hpp"
#include "traces/import/scan.hpp"

namespace rehearse::traces::nccl_tests {
namespace {

// Bus over algorithm bandwidth where the printed digits are worth most; 0: too few digits.
double bus_factor(const pb::MeasuredTable& table) {
  double best = 0, factor = 0;
  for (const pb::MeasuredRow& row : table.rows()) {
    const pb::MeasuredHalf& half = measured_half(row);
    if (half.algbw() <= best) continue;
    best = half.algbw();
    factor = half.busbw() / best;
  }
  return best >= 5 ? factor : 0;
}

bool near(double a, double b) { return std::abs(a - b) < 0.01; }

// all_reduce moves 2(n-1)/n of the buffer over the bus, reduce_scatter (n-1)/n, rooted ones 1.
std::string collective_of_columns(const pb::MeasuredTable& table) {
  if (table.rows().empty()) return "";
  const pb::MeasuredRow& row = table.rows(0);
  const double factor = bus_factor(table);
  if (row.root() >= 0) {
    if (!row.redop().empty()) return "reduce";
    return near(factor, 1) ? "broadcast" : "";
  }
  if (row.redop().empty() || factor == 0) return "";
  const double n = table.gpus();
  if (n > 1) {
    if (near(factor, 2 * (n - 1) / n)) return "all_reduce";
    return near(factor, (n - 1) / n) ? "reduce_scatter" : "";
  }
  return factor > 1.01 ? "all_reduce" : factor < 0.99 && factor > 0.6 ? "reduce_scatter" : "";
}

uint32_t gpus_of_factor(const pb::MeasuredTable& table) {
  const double factor = bus_factor(table);
  double n = 0;
  if (table.collective() == "all_reduce" && factor > 0 && factor < 1.99) n = 2 / (2 - factor);
  const bool share = table.collective() == "all_gather" || table.collective() == "reduce_scatter" ||
                     table.collective() == "all_to_all";
  if (share && factor > 0 && factor < 0.995) n = 1 / (1 - factor);
  const double whole = std::round(n);
  return whole >= 2 && whole <= 32 && std::abs(n - whole) < 0.1 ? static_cast<uint32_t>(whole) : 0;
}

void describe_devices(pb::MeasuredTable& table) {
  if (table.devices().empty()) return;
  std::set<std::string> hosts, names;
  for (const pb::MeasuredDevice& device : table.devices()) {
    hosts.insert(device.host());
    names.insert(device.name());
  }
  table.set_gpus(static_cast<uint32_t>(table.devices_size()));
  table.set_nodes(static_cast<uint32_t>(hosts.size()));
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : " + ") + name;
  table.set_hardware(all);
}

// What NCCL logged in the same run: its version, forced choices, and what it chose per size.
void join_log(Run& run, const pb::NcclLog& log, const std::vector<uint32_t>& run_of) {
  pb::MeasuredTable& table = run.table;
  std::map<uint64_t, const pb::NcclChoice*> chosen;
  for (int i = 0; i < log.communicators_size(); ++i) {
    if (run_of[static_cast<size_t>(i)] != run.number) continue;
    const pb::NcclCommunicator& communicator = log.communicators(i);
    if (table.nccl_version().empty()) table.set_nccl_version(communicator.nccl_version());
    for (const pb::NcclRank& rank : communicator.ranks()) {
      const auto& environment = log.processes(static_cast<int>(rank.process())).environment();
      const auto algorithm = environment.find("NCCL_ALGO");
      const auto protocol = environment.find("NCCL_PROTO");
      if (algorithm != environment.end()) table.set_forced_algorithm(algorithm->second);
      if (protocol != environment.end()) table.set_forced_protocol(protocol->second);
      if (table.collective().empty() && rank.has_last_call()) {
        table.set_collective(rank.last_call().collective());
        table.set_collective_from("log");
      }
    }
    for (const pb::NcclChoice& choice : communicator.choices()) {
      if (choice.collective() != table.collective() || choice.algorithm().empty()) continue;
      const auto [it, fresh] = chosen.emplace(choice.bytes(), &choice);
      if (!fresh && it->second != nullptr &&
          (it->second->algorithm() != choice.algorithm() ||
           it->second->protocol() != choice.protocol())) {
        it->second = nullptr;  // two answers for one size are none
      }
    }
  }
  for (pb::MeasuredRow& row : *table.mutable_rows()) {
    const auto it = chosen.find(row.bytes());
    if (it == chosen.end() || it->second == nullptr) continue;
    row.set_algorithm(it->second->algorithm());
    row.set_protocol(it->second->protocol());
    if (it->second->channel_hi() >= 0) {
      row.set_channels(it->second->channel_hi() - it->second->channel_lo() + 1);
    }
    if (it->second->has_predicted_us()) row.set_predicted_us(it->second->predicted_us());
  }
}

// Rows whose results were checked and counted as wrong; older versions print a difference, which is no count.
uint64_t wrong_rows(const pb::MeasuredTable& table) {
  const auto counted = [](const pb::MeasuredHalf& half) {
    Scan scan(half.wrong());
    const auto count = scan.natural();
    return count && scan.at_end() && *count > 0;
  };
  return static_cast<uint64_t>(
      std::count_if(table.rows().begin(), table.rows().end(), [&](const pb::MeasuredRow& row) {
        return counted(row.out_of_place()) || counted(row.in_place());
      }));
}

// Everything that must be alike for two runs to be one table.
std::string conditions_of(const pb::MeasuredTable& table) {
  pb::MeasuredTable key = table;
  if (key.collective().empty()) {  // only the columns tell whether both measured the same
    key.set_options(fmt::format("{} {} {}", key.options(), key.rows(0).redop(),
                                key.rows(0).root() >= 0 ? "rooted" : ""));
  }
  key.clear_id();
  key.clear_rows();
  key.clear_average_busbw();
  key.clear_runs();
  key.clear_gpus_inferred();
  for (pb::MeasuredDevice& device : *key.mutable_devices()) device.clear_pid();
  return key.SerializeAsString();
}

void complete(pb::MeasuredTable& table, const std::string& file, Findings& findings) {
  describe_devices(table);
  if (table.collective().empty()) {
    table.set_collective(collective_of_file(file));
    table.set_collective_from("file name");
  }
  if (table.collective().empty()) {
    table.set_collective(collective_of_columns(table));
    table.set_collective_from("columns");
  }
  if (table.collective().empty()) {
    table.set_collective_from("");
    findings.add("nccl-tests-collective-unknown", Severity::kWarning, file,
                 "nothing tells which collective was measured; put it into the name of the file");
  }
  if (table.gpus() == 0) {
    table.set_gpus(gpus_of_factor(table));
    table.set_gpus_inferred(table.gpus() > 0);
  }
  if (table.gpus() == 0) {
    findings.add("nccl-tests-gpus-unknown", Severity::kWarning, file,
                 "keep the header of nccl-tests: it lists the devices");
  }
}

}  // namespace

std::string version_of_number(int number) {
  const int major = number >= 10'000 ? number / 10'000 : number / 1000;
  const int minor = number >= 10'000 ? number % 10'000 / 100 : number % 1000 / 100;
  return fmt::format("{}.{}.{}", major, minor, number % 100);
}

std::string collective_of_file(std::string_view name) {
  std::string lower = lower_case(name.substr(name.rfind('/') + 1));
  std::replace(lower.begin(), lower.end(), '-', '_');
  // Longer words first: "reduce" is in "all_reduce".
  constexpr std::array<std::string_view, 16> kWords = {
      "all_reduce", "allreduce", "all_gather", "allgather", "reduce_scatter", "reducescatter",
      "all_to_all", "alltoall",  "sendrecv",   "send_recv", "hypercube",      "broadcast",
      "bcast",      "reduce",    "gather",     "scatter"};
  for (const std::string_view word : kWords) {
    if (lower.find(word) != std::string::npos) return collective_name(word);
  }
  return "";
}

pb::MeasuredTables to_tables(std::vector<Run> runs, const pb::NcclLog* log,
                             const std::vector<uint32_t>& run_of, const std::string& file,
                             Findings& findings) {
  pb::MeasuredTables out;
  std::map<std::string, int> by_conditions, numbers;
  for (Run& run : runs) {
    if (log != nullptr) join_log(run, *log, run_of);
    if (run.table.rows().empty()) {
      if (run.configured) {
        findings.add("nccl-tests-run-empty", Severity::kWarning,
                     fmt::format("{}: run {}", file, run.number), "the run printed no whole row");
      }
      continue;
    }
    complete(run.table, file, findings);
    if (const uint64_t rows = wrong_rows(run.table); rows > 0 || run.wrong) {
      findings.add(
          "nccl-tests-wrong-values", Severity::kWarning,
          fmt::format("{}: run {}", file, run.number),
          "the calls gave wrong results: a fault of memory, a link or the library; find it "
          "before the times are used",
          std::max<uint64_t>(rows, 1));
    }
    if (run.cpu_time) {
      findings.add(
          "nccl-tests-cpu-time", Severity::kWarning, fmt::format("{}: run {}", file, run.number),
          "times are of the host (-C), shorter than the calls take where these are not waited "
          "for; measure without -C to calibrate");
    }
    const auto [it, fresh] = by_conditions.emplace(conditions_of(run.table), out.tables_size());
    if (fresh) {
      const int n = ++numbers[run.table.collective()];
      const std::string& name = run.table.collective();
      run.table.set_id(fmt::format("{}#{}", name.empty() ? "unknown" : name, n));
      *out.add_tables() = std::move(run.table);
      continue;
    }
    pb::MeasuredTable& table = *out.mutable_tables(it->second);
    table.set_runs(table.runs() + 1);
    table.clear_average_busbw();
    for (pb::MeasuredRow& row : *run.table.mutable_rows()) *table.add_rows() = std::move(row);
  }
  return out;
}

}  // namespace rehearse::traces::nccl_tests
