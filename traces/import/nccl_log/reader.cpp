// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "traces/import/lines.hpp"
#include "traces/import/nccl_log/log_builder.hpp"
#include "traces/import/nccl_log/nccl_log.hpp"
#include "traces/import/nccl_tests/conditions.hpp"
#include "traces/import/nccl_tests/nccl_tests.hpp"
#include "traces/import/nccl_tests/table_builder.hpp"
#include "traces/import/scan.hpp"
#include "traces/model/utf8.hpp"

namespace rehearse::traces::nccl_log {
namespace {

constexpr size_t kMaxLine = size_t{1} << 20;

// Takes lines one after another and deals them out.
class TextReader {
 public:
  void add(std::string_view raw, uint64_t number) {
    const bool colored = raw.find('\x1b') != std::string_view::npos;
    if (colored) plain_ = without_colors(raw);
    const std::string_view line = without_launcher_prefix(colored ? plain_ : raw);
    const LogLine parts = split_line(line, hosts_);
    for (const Message& message : parts.messages) log_.add(message, number);
    messages_ += parts.messages.size();
    // Between messages that tell their process, one that does not is torn.
    if (messages_ == unplaced_) {
      if (const auto message = unplaced_message(colored ? plain_ : raw)) {
        if (unplaced_++ == 0) first_unplaced_ = number;
        ++messages_;
        log_.add(*message, number);
        return;
      }
    }
    if (const auto version = version_in(parts.other)) {
      log_.tell_version(version->first);
      tables_.tell_version(version->first);
      banner_ = true;
      return;
    }
    const auto said = tables_.add(parts.other, number);
    log_.set_run(tables_.runs());
    if (said.device) {
      hosts_.emplace(said.device->host());
      log_.tell_rank(said.device->host(), said.device->pid(), said.device->device(),
                     static_cast<int>(said.device->rank()));
    }
  }
  // Messages that did not tell their process, and the line of the first.
  [[nodiscard]] std::pair<uint64_t, uint64_t> unplaced() const {
    return {unplaced_, first_unplaced_};
  }
  [[nodiscard]] bool has_log() const { return messages_ > 0 || banner_; }
  LogBuilder& log() { return log_; }
  nccl_tests::TableBuilder& tables() { return tables_; }

 private:
  Hosts hosts_;
  LogBuilder log_;
  nccl_tests::TableBuilder tables_;
  std::string plain_;  // the line without its colors
  uint64_t messages_ = 0, unplaced_ = 0, first_unplaced_ = 0;
  bool banner_ = false;
};

// Rather than JSON, whose lines would all be looked at in vain.
bool may_be_lines(std::string_view head) {
  const size_t first = head.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || head[first] == '{') return false;
  const size_t second = head.find_first_not_of(" \t\r\n", first + 1);
  return head[first] != '[' || second == std::string_view::npos || head[second] != '{';
}

}  // namespace

bool sniff(std::string_view head) {
  if (!may_be_lines(head)) return false;
  Hosts hosts;
  for (size_t at = 0; at < head.size();) {
    const size_t end = std::min(head.find('\n', at), head.size());
    const std::string plain = without_colors(head.substr(at, end - at));
    const std::string_view line = without_launcher_prefix(plain);
    if (version_in(line) || !split_line(line, hosts).messages.empty() || unplaced_message(plain)) {
      return true;
    }
    at = end + 1;
  }
  return false;
}

Result<FilePart> read(Source& source, ReadContext& context) {
  LineReader lines(source, kMaxLine);
  TextReader text;
  std::string_view line;
  while (true) {
    if (lines.number() % 65'536 == 0 && context.reporter.interrupted()) {
      return fail(Code::kInterrupted, "interrupted");
    }
    RH_TRY(const bool more, lines.next(line));
    if (!more) break;
    if (is_utf8(line)) {
      text.add(line, lines.number());
    } else {
      context.findings.add("text-not-utf8", Severity::kWarning, lines.where(),
                           "bytes that are no UTF-8 are replaced");
      text.add(to_utf8(line), lines.number());
    }
  }
  const std::string& file = source.name();
  if (lines.cut_lines() > 0) {
    context.findings.add("line-cut", Severity::kWarning, file,
                         "lines of more than 1 MiB are read up to there", lines.cut_lines());
  }
  if (const auto [count, first] = text.unplaced(); count > 0) {
    context.findings.add("nccl-process-not-told", Severity::kWarning,
                         fmt::format("{}: line {}", file, first),
                         "NCCL begins its lines with host:pid:thread [device]; without it lines of "
                         "several processes are "
                         "told apart by the launcher's label and the communicator's address only",
                         count);
  }
  LogBuilder::Finished finished = text.log().finish(context.findings, file);
  finished.log.set_lines(lines.number());
  const bool has_log = text.has_log();
  const std::string failure = text.tables().failure();
  pb::MeasuredTables tables = nccl_tests::to_tables(text.tables().finish(context.findings, file),
                                                    has_log ? &finished.log : nullptr,
                                                    finished.run_of, file, context.findings);
  FilePart part;
  const std::string name = file.substr(file.rfind('/') + 1);
  for (const pb::NcclCommunicator& communicator : finished.log.communicators()) {
    if (part.nccl_version.empty()) part.nccl_version = communicator.nccl_version();
  }
  if (finished.log.warnings_size() > 0) {
    context.findings.add("nccl-warning", Severity::kWarning,
                         fmt::format("{}: line {}: {}", file, finished.log.warnings(0).line(),
                                     finished.log.warnings(0).text()),
                         "NCCL warned; `rehearse inspect` lists all",
                         static_cast<uint64_t>(finished.log.warnings_size()));
  }
  if (has_log && finished.log.nccl_lines() > 0) {
    pb::Evidence evidence;
    evidence.set_source(name);
    *evidence.mutable_nccl_log() = std::move(finished.log);
    part.evidence.push_back(std::move(evidence));
  }
  if (!tables.tables().empty()) {
    pb::Evidence evidence;
    evidence.set_source(name);
    *evidence.mutable_measured() = std::move(tables);
    part.evidence.push_back(std::move(evidence));
  }
  if (part.evidence.empty() && !failure.empty()) {
    return fail(Code::kBadInput, "nccl-tests failed before its first row: " + failure, file,
                "run it again with NCCL_DEBUG=INFO, which says why");
  }
  if (part.evidence.empty()) {
    return fail(Code::kBadInput, "neither a message of NCCL nor a row of nccl-tests is in it", file,
                "record with NCCL_DEBUG=INFO and keep whole lines, \"NCCL INFO\" included");
  }
  return part;
}

}  // namespace rehearse::traces::nccl_log

namespace rehearse::traces::nccl_tests {

bool sniff(std::string_view head) {
  if (!nccl_log::may_be_lines(head)) return false;
  TableBuilder builder;
  uint64_t number = 0;
  for (size_t at = 0; at < head.size();) {
    const size_t end = std::min(head.find('\n', at), head.size());
    const std::string plain = nccl_log::without_colors(head.substr(at, end - at));
    const std::string_view line = nccl_log::without_launcher_prefix(plain);
    const auto said = builder.add(line, ++number);
    const std::string_view text = trimmed(line);
    if (said.device || (text.starts_with("#") && text.find("algbw") != std::string_view::npos)) {
      return true;
    }
    at = end + 1;
  }
  Findings none;
  for (const Run& run : builder.finish(none, "")) {
    if (!run.table.rows().empty()) return true;
  }
  return false;
}

}  // namespace rehearse::traces::nccl_tests
