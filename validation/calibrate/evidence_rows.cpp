// SPDX-License-Identifier: Apache-2.0
#include "validation/calibrate/evidence_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "traces/import/import.hpp"
#include "validation/statistics.hpp"

namespace rehearse::validation {
namespace {

namespace fs = std::filesystem;
using traces::Collective;

// Calls that end only after all members have come: the last arriver does not wait.
bool synchronises(Collective collective) {
  switch (collective) {
    case Collective::kAllReduce:
    case Collective::kAllGather:
    case Collective::kReduceScatter:
    case Collective::kAllToAll:
      return true;
    default:
      return false;
  }
}

// The Inspector counts what a rank gives to these two; tables count the larger buffer, all ranks' parts together.
uint64_t parts_of(const std::string& collective, uint32_t ranks) {
  return collective == "all_gather" || collective == "reduce_scatter" ? std::max(1U, ranks) : 1;
}

// Larger sizes are not payloads of anybody.
constexpr uint64_t kMostPayload = uint64_t{1} << 46;

struct Meeting {
  const traces::Call* call = nullptr;
  std::set<uint32_t> ranks;
  Nanos last_start = std::numeric_limits<Nanos>::min();
  Nanos transfer = 0;  // of the last arriver
};

}  // namespace

std::vector<NcclTestRow> inspector_rows(const pb::InspectorRecords& records,
                                        const std::string& where) {
  std::map<std::pair<uint32_t, uint64_t>, std::vector<double>> times;
  for (int i = 0; i < records.time_us_size(); ++i) {
    if (records.time_us(i) > 0 && (records.peer_size() == 0 || records.peer(i) < 0)) {
      times[{records.collective(i), records.bytes(i)}].push_back(records.time_us(i));
    }
  }
  // Clocks of kernels do not see how fast the host launches.
  const bool from_kernels =
      records.sources_size() > 0 &&
      std::all_of(records.sources().begin(), records.sources().end(),
                  [](const std::string& source) { return source.starts_with("kernel"); });
  std::vector<NcclTestRow> out;
  for (const auto& [what, all] : times) {
    NcclTestRow row;
    row.collective = records.collectives(static_cast<int>(what.first));
    const uint64_t parts = parts_of(row.collective, records.ranks_total());
    if (what.second > kMostPayload / parts) continue;
    row.bytes = static_cast<Bytes>(what.second * parts);
    row.where = fmt::format("{}: {} calls of {} with {} bytes", where, all.size(), row.collective,
                            row.bytes);
    row.source = records.communicator();
    row.nodes = std::max(1U, records.nodes());
    row.gpus = records.ranks_total();
    row.graph = from_kernels;
    row.time_us = quantile_of(all, .5);
    out.push_back(std::move(row));
  }
  return out;
}

std::vector<NcclTestRow> trace_rows(const traces::Trace& trace, const std::string& where) {
  std::map<std::pair<uint32_t, int64_t>, Meeting> meetings;
  std::map<uint32_t, std::string> hosts;
  for (const traces::RankTrace& rank : trace.ranks) {
    hosts[rank.rank] = rank.host;
    for (size_t i = 0; i < rank.ops.size(); ++i) {
      const traces::Call* call = rank.ops.call(i);
      if (call == nullptr || !synchronises(call->collective)) continue;
      Meeting& meeting = meetings[{call->communicator, call->sequence}];
      meeting.call = call;
      meeting.ranks.insert(rank.rank);
      if (rank.ops.start[i] > meeting.last_start) {
        meeting.last_start = rank.ops.start[i];
        meeting.transfer = rank.ops.duration[i];
      }
    }
  }
  std::vector<NcclTestRow> out;
  for (const auto& [key, meeting] : meetings) {
    const traces::Communicator& communicator = trace.communicators[key.first];
    const traces::Call& call = *meeting.call;
    const Bytes bytes = std::max(call.bytes_in, call.bytes_out);
    // Who is missing may have been the last.
    if (meeting.ranks.size() != communicator.members.size() || bytes <= 0 ||
        meeting.transfer <= 0 || meeting.ranks.size() < 2) {
      continue;
    }
    std::set<std::string> nodes;
    for (const uint32_t member : communicator.members) nodes.insert(hosts[member]);
    NcclTestRow row;
    row.where = fmt::format("{}: {} {} of {}", where, traces::name_of(call.collective),
                            call.sequence, communicator.id);
    row.source = communicator.id;
    row.collective = traces::name_of(call.collective);
    row.nodes = static_cast<uint32_t>(nodes.size());
    row.gpus = static_cast<uint32_t>(communicator.members.size());
    row.bytes = bytes;
    row.graph = true;  // its host times are the trace's own
    row.time_us = static_cast<double>(meeting.transfer) / 1000;
    out.push_back(std::move(row));
  }
  return out;
}

namespace {

// A time is that of what ran, which NCCL's log may say, whatever we would have chosen.
void take_what_ran(NcclTestRow& row) {
  if (row.ran_algorithm.empty() || !row.algorithm.empty() || !row.protocol.empty()) return;
  row.algorithm = row.ran_algorithm;
  row.protocol = row.ran_protocol;
}

// What one file (or the files of one job) says of measured times and NCCL's costs.
class EvidenceReading {
 public:
  EvidenceReading(const std::string& collective, Reporter& reporter)
      : collective_(collective), reporter_(reporter) {}

  enum class Wanted : uint8_t { kTimes, kAnything };

  // Whether anything that is wanted is in them.
  Result<bool> add(const std::vector<fs::path>& files, Wanted wanted) {
    const std::string where = files.front().string();
    RH_TRY(const traces::Imported imported, traces::import_files(files, {}, reporter_));
    NcclTestTables tables;
    std::vector<RecordedCosts> recorded;
    size_t unplaced = 0;
    for (const pb::Evidence& one : imported.trace.evidence) {
      for (RecordedCosts& costs : recorded_costs(one, unplaced)) {
        recorded.push_back(std::move(costs));
      }
      for (const auto& table : one.measured().tables()) {
        add_table_rows(table, where, collective_, tables);
      }
      for (NcclTestRow& row : tables.rows) take_what_ran(row);
      if (!one.has_inspector()) continue;
      const auto records = inspector_rows(one.inspector(), where);
      tables.rows.insert(tables.rows.end(), records.begin(), records.end());
    }
    const auto calls = trace_rows(imported.trace, where);
    tables.rows.insert(tables.rows.end(), calls.begin(), calls.end());
    const bool traced = out.costs.empty() && !imported.trace.ranks.empty();
    Interference beside = traced ? interference(imported.trace) : Interference{};
    const bool use = wanted == Wanted::kAnything && beside.determined;
    if (tables.rows.empty() && recorded.empty() && !use) return false;
    if (unplaced > 0) {
      out.findings.add(
          "costs-not-placed", Severity::kDataLoss, where,
          "tables of NCCL's costs that do not say how many ranks and nodes they are of", unplaced);
    }
    if (traced) {
      out.costs = trace_costs(imported.trace);
      out.interference = std::move(beside);
    }
    out.findings.merge(imported.findings);
    out.findings.merge(tables.findings);
    out.rows.insert(out.rows.end(), tables.rows.begin(), tables.rows.end());
    out.recorded.insert(out.recorded.end(), std::make_move_iterator(recorded.begin()),
                        std::make_move_iterator(recorded.end()));
    for (const fs::path& file : files) out.files.push_back(file.filename().string());
    return true;
  }

  EvidenceRows out;

 private:
  const std::string& collective_;
  Reporter& reporter_;
};

}  // namespace

Result<EvidenceRows> read_measured(const std::vector<fs::path>& files,
                                   const std::string& collective, Reporter& reporter) {
  using Wanted = EvidenceReading::Wanted;
  EvidenceReading reading(collective, reporter);
  std::vector<fs::path> rest;
  for (const fs::path& file : files) {
    RH_TRY(const bool used, reading.add({file}, Wanted::kTimes));
    if (!used) rest.push_back(file);
  }
  // One rank alone tells no transfer: what says nothing file by file may be the ranks of a job.
  if (rest.size() > 1) {
    if (const auto used = reading.add(rest, Wanted::kAnything); used && *used) rest.clear();
  }
  for (const fs::path& file : rest) {
    RH_TRY(const bool used, reading.add({file}, Wanted::kAnything));
    if (!used) {
      return fail(Code::kBadInput,
                  "it holds neither a measured time of a collective nor NCCL's own costs",
                  file.string(),
                  "give what nccl-tests prints, records of NCCL Inspector, a trace of all ranks, a "
                  "capture `--with tuner` or a log with NCCL_DEBUG_SUBSYS=TUNING");
    }
  }
  return std::move(reading.out);
}

}  // namespace rehearse::validation
