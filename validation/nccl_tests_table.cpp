// SPDX-License-Identifier: Apache-2.0
#include "validation/nccl_tests_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/reporter.hpp"
#include "traces/evidence/evidence.hpp"

namespace rehearse::validation {
namespace {

// Larger sizes are not payloads of anybody.
constexpr uint64_t kMostPayload = uint64_t{1} << 46;

NcclTestRow conditions_of(const pb::MeasuredTable& table, const std::string& collective) {
  NcclTestRow row;
  row.source = table.id();
  row.collective = table.collective().empty() ? collective : table.collective();
  row.hardware = table.hardware();
  row.nodes = table.nodes();
  row.gpus = table.gpus();
  row.nccl_version = table.nccl_version();
  row.algorithm = table.forced_algorithm();
  row.protocol = table.forced_protocol();
  row.options = table.options();
  row.iterations = table.iterations();
  row.graph = table.graph() > 0;
  row.gpus_per_thread = static_cast<uint32_t>(std::max(0, table.gpus_per_thread()));
  return row;
}

double time_of(const pb::MeasuredRow& row) {
  return row.out_of_place().time_us() > 0 ? row.out_of_place().time_us() : row.in_place().time_us();
}

}  // namespace

void add_table_rows(const pb::MeasuredTable& table, const std::string& file,
                    const std::string& collective, NcclTestTables& out) {
  for (const pb::MeasuredRow& measured : table.rows()) {
    NcclTestRow row = conditions_of(table, collective);
    row.where = fmt::format("{}: {}, {} bytes", file, table.id(), measured.bytes());
    row.time_us = time_of(measured);
    if (measured.bytes() > kMostPayload || !(row.time_us > 0)) {
      out.findings.add("row-without-time", Severity::kInfo, row.where, "it is left out");
      continue;
    }
    row.ran_algorithm = measured.algorithm();
    row.ran_protocol = measured.protocol();
    row.type = measured.dtype();
    row.reduction = measured.redop();
    row.bytes = static_cast<Bytes>(measured.bytes());
    out.rows.push_back(std::move(row));
  }
}

Result<NcclTestTables> read_nccl_tests(const std::filesystem::path& file,
                                       const std::string& collective) {
  NcclTestTables out;
  SilentReporter silent;
  RH_TRY(const auto all, traces::read_evidence(file, out.findings, silent));
  for (const pb::Evidence& evidence : all) {
    for (const pb::MeasuredTable& table : evidence.measured().tables()) {
      add_table_rows(table, file.string(), collective, out);
    }
  }
  if (!out.rows.empty()) return out;
  return fail(Code::kBadInput, "no row of an nccl-tests table", file.string(),
              "give what all_reduce_perf and its like print, or a collection as CSV");
}

}  // namespace rehearse::validation
