// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.hpp"
#include "base/units.hpp"
#include "traces/evidence/evidence.hpp"
#include "traces/inspect/evidence_view.hpp"
#include "traces/inspect/text_table.hpp"

namespace rehearse::traces {
namespace {

// Longest lists; the JSON has all.
constexpr int kMaxEvidenceRows = 12;

std::string more(int total, int shown) {
  return total > shown ? fmt::format("  and {} more\n", total - shown) : "";
}

std::string log_text(const pb::Evidence& evidence, int width) {
  const pb::NcclLog& log = evidence.nccl_log();
  std::string out = fmt::format("\nNCCL log {}: {} lines of {} by NCCL, {} processes\n",
                                printable(evidence.source()), format_count(log.nccl_lines()),
                                format_count(log.lines()), log.processes_size());
  TextTable table({"communicator", "ranks", "nodes", "NCCL", "ready", "channels", "transports",
                   "choices", "calls"});
  for (int i = 0; i < std::min(log.communicators_size(), kMaxEvidenceRows); ++i) {
    const pb::NcclCommunicator& c = log.communicators(i);
    int complete = 0;
    uint64_t calls = 0;
    for (const pb::NcclRank& rank : c.ranks()) {
      complete += rank.init_complete() ? 1 : 0;
      calls += rank.calls();
    }
    std::map<std::string, int> transports;
    for (const pb::NcclConnection& connection : c.connections()) ++transports[connection.via()];
    std::string via;
    for (const auto& [name, n] : transports) via += (via.empty() ? "" : ", ") + printable(name);
    table.add({printable(c.id()), std::to_string(c.ranks_total()),
               c.nodes() == 0 ? "-" : std::to_string(c.nodes()), printable(c.nccl_version()),
               std::to_string(complete), std::to_string(c.coll_channels()), via.empty() ? "-" : via,
               std::to_string(c.choices_size()), format_count(calls)});
  }
  out += table.render(width) + more(log.communicators_size(), kMaxEvidenceRows);
  std::map<std::string, std::string> variables;
  for (const pb::NcclProcess& process : log.processes()) {
    for (const auto& [name, value] : process.environment()) {
      const auto [it, fresh] = variables.emplace(name, value);
      if (!fresh && it->second != value) it->second = "(differs between processes)";
    }
  }
  for (const auto& [name, value] : variables) {
    out += fmt::format("  {}={}\n", printable(name), printable(value));
  }
  for (int i = 0; i < std::min(log.warnings_size(), kMaxEvidenceRows); ++i) {
    out += fmt::format("  line {}: WARN {}\n", log.warnings(i).line(),
                       printable(log.warnings(i).text()));
  }
  return out + more(log.warnings_size(), kMaxEvidenceRows);
}

std::string tables_text(const pb::Evidence& evidence, int width) {
  TextTable table(
      {"nccl-tests", "hardware", "nodes", "GPUs", "NCCL", "sizes", "rows", "peak busbw"});
  const auto& tables = evidence.measured().tables();
  for (int i = 0; i < std::min(tables.size(), kMaxEvidenceRows); ++i) {
    const pb::MeasuredTable& t = tables[i];
    double peak = 0;
    uint64_t least = UINT64_MAX, most = 0;
    for (const pb::MeasuredRow& row : t.rows()) {
      peak = std::max(peak, measured_half(row).busbw());
      least = std::min(least, row.bytes());
      most = std::max(most, row.bytes());
    }
    table.add({printable(t.id()), t.hardware().empty() ? "-" : printable(t.hardware()),
               t.nodes() == 0 ? "-" : std::to_string(t.nodes()), std::to_string(t.gpus()),
               t.nccl_version().empty() ? "-" : printable(t.nccl_version()),
               fmt::format("{} to {}", format_bytes(static_cast<Bytes>(least)),
                           format_bytes(static_cast<Bytes>(most))),
               std::to_string(t.rows_size()), fmt::format("{:.1f} GB/s", peak)});
  }
  return fmt::format("\nmeasured in {}\n", printable(evidence.source())) + table.render(width) +
         more(tables.size(), kMaxEvidenceRows);
}

std::string recorder_text(const pb::Evidence& evidence) {
  const pb::FlightRecorder& r = evidence.flight_recorder();
  int pending = 0;
  const pb::FlightEntry* first = nullptr;
  for (const pb::FlightEntry& entry : r.entries()) {
    if (entry.state() == "completed" || entry.retired()) continue;
    ++pending;
    if (first == nullptr) first = &entry;
  }
  std::string out = fmt::format("\nflight recorder {}: {}, {} groups, {} entries, {} not done\n",
                                printable(evidence.source()),
                                r.has_rank() ? fmt::format("rank {}", r.rank()) : "rank unknown",
                                r.groups_size(), format_count(r.entries_total()), pending);
  if (first != nullptr) {
    out += fmt::format("  oldest not done: {} of group {} ({}), sequence {}\n",
                       printable(first->profiling_name()), printable(first->group_name()),
                       printable(first->group_description()),
                       first->p2p() ? first->p2p_seq() : first->collective_seq());
  }
  return out;
}

std::string records_text(const pb::Evidence& evidence) {
  const pb::InspectorRecords& r = evidence.inspector();
  double total = 0;
  for (const double time : r.time_us()) total += time;
  return fmt::format("\nNCCL Inspector {}: rank {} of {} on {}, {} records, {} measured\n",
                     printable(evidence.source()), r.rank(), r.ranks_total(), printable(r.host()),
                     format_count(static_cast<uint64_t>(r.bytes_size())),
                     format_duration(static_cast<Nanos>(std::min(total, 9e15) * 1e3)));
}

std::string tuner_text(const pb::Evidence& evidence) {
  const pb::TunerTables& tuner = evidence.tuner();
  return fmt::format(
      "\nNCCL's own costs in {}: NCCL {}, {} calls, {} tables (rehearse calibrate reads them)\n",
      printable(evidence.source()),
      tuner.nccl_version().empty() ? "unknown" : printable(tuner.nccl_version()),
      format_count(tuner.calls()), format_count(static_cast<uint64_t>(tuner.tables_size())));
}

}  // namespace

std::string evidence_headline(const std::vector<pb::Evidence>& evidence) {
  std::map<pb::Evidence::WhatCase, std::pair<const char*, uint64_t>> kinds = {
      {pb::Evidence::kNcclLog, {"NCCL log", 0}},
      {pb::Evidence::kMeasured, {"nccl-tests table", 0}},
      {pb::Evidence::kInspector, {"Inspector record set", 0}},
      {pb::Evidence::kFlightRecorder, {"flight recorder", 0}},
      {pb::Evidence::kTuner, {"set of NCCL's tuner costs", 0}}};
  for (const pb::Evidence& e : evidence) {
    kinds[e.what_case()].second +=
        e.has_measured() ? static_cast<uint64_t>(e.measured().tables_size()) : 1;
  }
  std::vector<std::string> words;
  for (const auto& [kind, row] : kinds) {
    if (row.second > 0) {
      words.push_back(
          fmt::format("{} {}{}", format_count(row.second), row.first, row.second == 1 ? "" : "s"));
    }
  }
  return join_words(words);
}

std::string evidence_text(const std::vector<pb::Evidence>& evidence, int width) {
  std::string out;
  for (const pb::Evidence& e : evidence) {
    if (e.has_nccl_log()) out += log_text(e, width);
    if (e.has_measured()) out += tables_text(e, width);
    if (e.has_inspector()) out += records_text(e);
    if (e.has_flight_recorder()) out += recorder_text(e);
    if (e.has_tuner()) out += tuner_text(e);
  }
  return out;
}

}  // namespace rehearse::traces
