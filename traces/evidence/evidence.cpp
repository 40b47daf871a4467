// SPDX-License-Identifier: Apache-2.0
#include "traces/evidence/evidence.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "traces/import/format.hpp"

namespace rehearse::traces {
namespace {

std::string complaint_about(const pb::NcclLog& log) {
  const auto known = [&](uint32_t process) {
    return process < static_cast<uint32_t>(log.processes_size());
  };
  for (const pb::NcclCommunicator& communicator : log.communicators()) {
    for (const pb::NcclRank& rank : communicator.ranks()) {
      if (!known(rank.process())) return "NCCL log with a rank of an unknown process";
    }
  }
  for (const pb::NcclWarning& warning : log.warnings()) {
    if (!known(warning.process())) return "NCCL log with a warning of an unknown process";
  }
  return "";
}

std::string complaint_about(const pb::InspectorRecords& records) {
  const int n = records.bytes_size();
  for (const int length :
       {records.collective_size(), records.sequence_size(), records.time_us_size(),
        records.algbw_size(), records.busbw_size(), records.timing_source_size(),
        records.peer_size(), records.dumped_us_size()}) {
    if (length != n) return "Inspector records whose columns differ in length";
  }
  const auto inside = [](const auto& column, int limit) {
    return std::all_of(column.begin(), column.end(),
                       [&](uint32_t i) { return i < static_cast<uint32_t>(limit); });
  };
  if (!inside(records.collective(), records.collectives_size()) ||
      !inside(records.timing_source(), records.sources_size())) {
    return "Inspector records that name what is not there";
  }
  return "";
}

}  // namespace

std::string complaint_about(const pb::Evidence& evidence) {
  switch (evidence.what_case()) {
    case pb::Evidence::kNcclLog:
      return complaint_about(evidence.nccl_log());
    case pb::Evidence::kInspector:
      return complaint_about(evidence.inspector());
    case pb::Evidence::kMeasured:
    case pb::Evidence::kFlightRecorder:
    case pb::Evidence::kTuner:
      return "";
    case pb::Evidence::WHAT_NOT_SET:
      return "evidence of an unknown kind";
  }
  return "evidence of an unknown kind";
}

namespace {

Result<std::vector<pb::Evidence>> read_source(Source& source, Findings& findings,
                                              Reporter& reporter) {
  const Format* format = format_of(source.head());
  if (format == nullptr) {
    return fail(Code::kBadInput, "no known format: it is " + describe(source.head()), source.name(),
                "give an NCCL log, nccl-tests output, Inspector records or a dump");
  }
  Strings strings;
  ReadContext context{strings, findings, reporter, CutFiles::kRefuse};
  RH_TRY(FilePart part, format->read(source, context));
  std::vector<pb::Evidence> evidence =
      part.whole ? std::move(part.whole->evidence) : std::move(part.evidence);
  if (evidence.empty()) {
    return fail(Code::kBadInput,
                fmt::format("it is a {}, which carries no evidence", format->title), source.name(),
                "give an NCCL log, nccl-tests output, Inspector records or a dump");
  }
  return evidence;
}

}  // namespace

Result<std::vector<pb::Evidence>> read_evidence(const std::filesystem::path& path,
                                                Findings& findings, Reporter& reporter) {
  RH_TRY(Source source, Source::open(path, SourceOptions{}));
  return read_source(source, findings, reporter);
}

Result<std::vector<pb::Evidence>> read_evidence(std::string_view bytes, const std::string& name,
                                                Findings& findings, Reporter& reporter) {
  RH_TRY(Source source, Source::over(bytes, name, SourceOptions{}));
  return read_source(source, findings, reporter);
}

}  // namespace rehearse::traces
