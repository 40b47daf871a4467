// SPDX-License-Identifier: Apache-2.0
#include "traces/import/nccl_log/log_tuning.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "traces/evidence/names.hpp"
#include "traces/import/scan.hpp"

namespace rehearse::traces::nccl_log {
namespace {

constexpr size_t kMaxColumns = 64;

void add_cell(pb::NcclCommunicator& communicator, pb::NcclTuningCell cell) {
  const auto& known = communicator.tuning();
  const bool there = std::any_of(known.begin(), known.end(), [&](const pb::NcclTuningCell& c) {
    return c.collective() == cell.collective() && c.algorithm() == cell.algorithm() &&
           c.protocol() == cell.protocol();
  });
  if (!there) *communicator.add_tuning() = std::move(cell);
}

}  // namespace

TuningRow read_tuning_row(std::string_view text, TuningHeader& header,
                          pb::NcclCommunicator& communicator) {
  const size_t bar = text.find('|');
  if (bar == std::string_view::npos || bar > 24) return TuningRow::kNone;
  const std::string_view title = trimmed(text.substr(0, bar));
  std::vector<std::string> cells = split(text.substr(bar + 1), '|');
  if (!cells.empty() && trimmed(cells.back()).empty()) cells.pop_back();
  if (cells.empty() || cells.size() > kMaxColumns) return TuningRow::kNone;
  if (title == "Algorithm") {
    header = {};
    for (const std::string& cell : cells) {
      header.algorithms.push_back(algorithm_name(trimmed(cell)));
    }
    return TuningRow::kHeader;
  }
  if (title == "Protocol") {
    header.protocols.clear();
    for (const std::string& cell : cells) header.protocols.push_back(protocol_name(trimmed(cell)));
    return TuningRow::kHeader;
  }
  if (title == "Latency/AlgBw") {
    header = {};
    for (const std::string& cell : cells) {
      const size_t slash = cell.find('/');
      if (slash == std::string::npos) return TuningRow::kNone;
      header.algorithms.push_back(algorithm_name(trimmed(std::string_view(cell).substr(0, slash))));
      header.protocols.push_back(protocol_name(trimmed(std::string_view(cell).substr(slash + 1))));
    }
    return TuningRow::kHeader;
  }
  if (title == "Max NThreads") return TuningRow::kHeader;
  const std::string collective = collective_name(title);
  if (collective.empty()) return TuningRow::kNone;
  const bool per_column = header.algorithms.size() == header.protocols.size() &&
                          header.algorithms.size() >= cells.size();
  for (size_t i = 0; i < cells.size(); ++i) {
    Scan scan(cells[i]);
    const auto latency = scan.number();
    if (!latency || !scan.literal("/")) return i == 0 ? TuningRow::kNone : TuningRow::kCells;
    const auto bandwidth = scan.number();
    if (!bandwidth) return i == 0 ? TuningRow::kNone : TuningRow::kCells;
    const size_t column = per_column ? i : i / 3;
    if (column >= header.algorithms.size() || i >= header.protocols.size()) break;
    if (*latency == 0.0 && *bandwidth == 0.0) continue;
    pb::NcclTuningCell cell;
    cell.set_collective(collective);
    cell.set_algorithm(header.algorithms[column]);
    cell.set_protocol(header.protocols[i]);
    cell.set_latency_us(*latency);
    cell.set_bandwidth(*bandwidth);
    if (!cell.algorithm().empty() && !cell.protocol().empty()) {
      add_cell(communicator, std::move(cell));
    }
  }
  return TuningRow::kCells;
}

}  // namespace rehearse::traces::nccl_log
