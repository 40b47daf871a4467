// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "traces/evidence/evidence.hpp"
#include "traces/evidence/names.hpp"
#include "traces/import/inspector/inspector.hpp"
#include "traces/import/json_stream.hpp"
#include "traces/import/json_text.hpp"
#include "traces/import/lines.hpp"
#include "traces/import/scan.hpp"

namespace rehearse::traces::inspector {
namespace {

namespace dom = simdjson::dom;
constexpr size_t kMaxLine = size_t{4} << 20;

// An object of a record, or the error of one that is not there.
using Object = simdjson::simdjson_result<dom::element>;

std::string text_of(const Object& in, std::string_view key) {
  std::string_view value;
  return in[key].get(value) == simdjson::SUCCESS ? std::string(value) : std::string();
}

std::optional<int64_t> whole(const Object& in, std::string_view key) {
  int64_t value = 0;
  if (in[key].get(value) == simdjson::SUCCESS) return value;
  // Tools that write the records anew make 4096.0 of 4096.
  double number = 0;
  if (in[key].get(number) != simdjson::SUCCESS || std::abs(number) > 9e15 ||
      number != std::floor(number)) {
    return std::nullopt;
  }
  return static_cast<int64_t>(number);
}

std::optional<double> figure(const Object& in, std::string_view key) {
  double value = 0;
  if (in[key].get(value) != simdjson::SUCCESS || !std::isfinite(value) || value < 0) {
    return std::nullopt;
  }
  return value;
}

// One measured operation; collectives and point-to-point have the same fields under other names.
struct Record {
  std::string collective, source;
  uint64_t sequence = 0, bytes = 0;
  double time_us = 0, algbw = 0, busbw = 0;
  int32_t peer = -1;
};

std::optional<Record> record_in(const dom::element& line) {
  std::string kind = "coll";
  Object perf = line["coll_perf"];
  if (perf.error() != simdjson::SUCCESS) {
    kind = "p2p";
    perf = line["p2p_perf"];
  }
  Record out;
  out.collective = collective_name(text_of(perf, kind));
  const auto sequence = whole(perf, kind + "_sn");
  const auto bytes = whole(perf, kind + "_msg_size_bytes");
  const auto time = figure(perf, kind + "_exec_time_us");
  if (out.collective.empty() || !sequence || !bytes || *bytes < 0 || !time) return std::nullopt;
  out.sequence = static_cast<uint64_t>(*sequence);
  out.bytes = static_cast<uint64_t>(*bytes);
  out.time_us = *time;
  out.algbw = figure(perf, kind + "_algobw_gbs").value_or(0);
  out.busbw = figure(perf, kind + "_busbw_gbs").value_or(0);
  out.source = text_of(perf, kind + "_timing_source");
  if (kind == "p2p") {
    const auto peer = whole(perf, "p2p_peer");
    if (!peer || *peer < 0 || *peer > INT32_MAX) return std::nullopt;
    out.peer = static_cast<int32_t>(*peer);
  }
  return out;
}

// Records that the plugin's buffer had no room for, of the record that counts them.
std::optional<uint64_t> dropped_in(const dom::element& line) {
  dom::object counts;
  if (line["dump_stats"].get(counts) != simdjson::SUCCESS) return std::nullopt;
  uint64_t dropped = 0;
  for (const auto& [key, value] : counts) {
    uint64_t count = 0;
    if (key.find("drop") == std::string_view::npos || value.get(count) != simdjson::SUCCESS)
      continue;
    dropped += std::min<uint64_t>(count, uint64_t{1} << 48);
  }
  return dropped;
}

// A record that stands on several lines, as pretty printers write it: up to the brace at the margin.
Result<void> collect(LineReader& lines, std::string& record) {
  std::string_view line;
  while (record.size() < kMaxLine) {
    RH_TRY(const bool more, lines.next(line));
    if (!more) break;
    record += line;
    record += '\n';
    if (line.starts_with("}")) break;
  }
  if (record.ends_with(",\n")) record.resize(record.size() - 2);
  return {};
}

// The record in a line: behind what a launcher put before it ("[1,0]<stdout>:", "3: ", "worker-3 | ") and before what
// a terminal or a collector put behind. "" where the line holds none.
std::string_view record_part(std::string_view line) {
  constexpr size_t kLongestLead = 200;
  const size_t open = line.find('{');
  if (open == std::string_view::npos || open > kLongestLead ||
      line.substr(0, open).find('"') != std::string_view::npos) {
    return {};
  }
  const size_t close = line.rfind('}');
  const size_t end = close == std::string_view::npos || close < open ? line.size() : close + 1;
  return line.substr(open, end - open);
}

// "[{", rather than the "[1,0]<stdout>:" of a launcher.
bool is_array(std::string_view head) {
  const size_t open = head.find_first_not_of(" \t\r\n");
  if (open == std::string_view::npos || head[open] != '[') return false;
  const size_t inside = head.find_first_not_of(" \t\r\n", open + 1);
  return inside != std::string_view::npos && head[inside] == '{';
}

bool is_record(std::string_view text) {
  const auto has = [&](std::string_view key) { return text.find(key) != std::string_view::npos; };
  return has("\"header\"") && (has("\"coll_perf\"") || has("\"p2p_perf\""));
}

// Columns of one communicator and rank, with the names its columns point into.
class Columns {
 public:
  Columns(const Object& header, const Object& metadata) {
    facts_.set_communicator(text_of(header, "id"));
    facts_.set_name(text_of(header, "comm_name"));
    facts_.set_rank(static_cast<int32_t>(whole(header, "rank").value_or(-1)));
    facts_.set_ranks_total(static_cast<uint32_t>(whole(header, "n_ranks").value_or(0)));
    facts_.set_nodes(static_cast<uint32_t>(whole(header, "nnodes").value_or(0)));
    facts_.set_host(text_of(metadata, "hostname"));
    facts_.set_pid(whole(metadata, "pid").value_or(0));
    facts_.set_format_version(text_of(metadata, "inspector_output_format_version"));
    rows_ = facts_;
  }
  [[nodiscard]] bool full() const { return rows_.bytes_size() >= kInspectorRecordsPerMessage; }
  void add(const Record& record, int64_t dumped) {
    rows_.add_collective(index(record.collective, collectives_, *rows_.mutable_collectives()));
    rows_.add_timing_source(index(record.source, sources_, *rows_.mutable_sources()));
    rows_.add_sequence(record.sequence);
    rows_.add_bytes(record.bytes);
    rows_.add_time_us(record.time_us);
    rows_.add_algbw(record.algbw);
    rows_.add_busbw(record.busbw);
    rows_.add_peer(record.peer);
    rows_.add_dumped_us(dumped);
  }
  // The records so far; empty columns follow.
  [[nodiscard]] pb::InspectorRecords take() {
    pb::InspectorRecords out = std::move(rows_);
    rows_ = facts_;
    collectives_.clear();
    sources_.clear();
    return out;
  }
  [[nodiscard]] bool empty() const { return rows_.bytes().empty(); }

 private:
  template <typename Names>
  static uint32_t index(const std::string& name, std::map<std::string, uint32_t>& known,
                        Names& names) {
    const auto [it, fresh] = known.emplace(name, static_cast<uint32_t>(names.size()));
    if (fresh) *names.Add() = name;
    return it->second;
  }
  pb::InspectorRecords facts_, rows_;
  std::map<std::string, uint32_t> collectives_, sources_;
};

// Takes records one after the other, whatever stands between them in the file.
class Records {
 public:
  Records(FilePart& part, std::string name, Findings& findings)
      : part_(part), name_(std::move(name)), findings_(findings) {}

  void add(std::string_view text, const std::string& where) {
    dom::element document;
    const bool parsed = parse_json(parser_, text, document) == simdjson::SUCCESS;
    if (const auto dropped = parsed ? dropped_in(document) : std::nullopt) {
      if (*dropped > 0) {
        findings_.add("inspector-records-dropped", Severity::kDataLoss, where,
                      "the plugin had no room for them; dump more often", *dropped);
      }
      return;
    }
    const auto record = parsed ? record_in(document) : std::nullopt;
    // Plugins that followed Inspector's write no metadata.
    const Object header = parsed ? document["header"] : Object(simdjson::NO_SUCH_FIELD);
    if (!record || header.error() != simdjson::SUCCESS) {
      findings_.add("inspector-line-unused", Severity::kDataLoss, where,
                    parsed ? "it lacks a field of a measured operation"
                           : "it is no JSON; was the file cut or written by two processes?");
      return;
    }
    if (!text_of(document["coll_perf"], "coll_algo").empty()) {
      findings_.add("inspector-choices-unused", Severity::kInfo, where,
                    "algorithm and protocol of each call, which v4.2 tells, are not kept");
    }
    const Object metadata = document["metadata"];
    const std::pair key(text_of(header, "id"), whole(header, "rank").value_or(-1));
    auto [it, fresh] = columns_.try_emplace(key, header, metadata);
    if (it->second.full()) flush(it->second);
    it->second.add(*record, whole(metadata, "dump_timestamp_us").value_or(0));
  }

  void finish() {
    for (auto& [key, rest] : columns_) {
      if (!rest.empty()) flush(rest);
    }
  }

 private:
  void flush(Columns& full) {
    pb::Evidence evidence;
    evidence.set_source(name_);
    *evidence.mutable_inspector() = full.take();
    part_.evidence.push_back(std::move(evidence));
  }

  FilePart& part_;
  std::string name_;
  Findings& findings_;
  dom::parser parser_{kMaxLine + simdjson::SIMDJSON_PADDING};
  std::map<std::pair<std::string, int64_t>, Columns> columns_;
};

Result<void> read_lines(Source& source, ReadContext& context, Records& records) {
  LineReader lines(source, kMaxLine);
  std::string_view line;
  std::string spread;
  while (true) {
    if (lines.number() % 65'536 == 0 && context.reporter.interrupted()) {
      return fail(Code::kInterrupted, "interrupted");
    }
    auto more = lines.next(line);
    if (!more && source.cut() && context.cut_files == CutFiles::kAccept) return {};
    if (!more) return tl::unexpected(more.error());
    if (!*more) return {};
    if (trimmed(line).empty()) continue;
    const std::string_view record = record_part(line);
    if (record.empty() && line.find_first_of("{}") == std::string_view::npos) {
      context.findings.add(
          "text-between-records", Severity::kInfo, lines.where(),
          "lines without a record, of the program or its launcher, are passed over");
      continue;
    }
    if (!record.empty()) line = record;
    if (trimmed(line) == "{") {
      spread = "{\n";
      auto whole = collect(lines, spread);
      if (!whole && !(source.cut() && context.cut_files == CutFiles::kAccept)) {
        return tl::unexpected(whole.error());
      }
      line = spread;
    }
    records.add(line, lines.where());
  }
}

// All records as one array, on one line or many: tools that collect the files write it.
Result<void> read_array(Source& source, ReadContext& context, Records& records) {
  JsonStream stream(source, "records", {.max_element = kMaxLine});
  Element element;
  while (true) {
    if (stream.count() % 65'536 == 0 && context.reporter.interrupted()) {
      return fail(Code::kInterrupted, "interrupted");
    }
    RH_TRY(const JsonStream::Next got, stream.next(element));
    if (got == JsonStream::Next::kEnd) break;
    if (got == JsonStream::Next::kElement) {
      records.add(element.text, stream.where(element.offset));
      continue;
    }
    const std::string what =
        fmt::format("the array ends early: {} records are whole", stream.count());
    const std::string where = stream.where(stream.offset());
    if (context.cut_files == CutFiles::kRefuse) {
      return fail(Code::kBadInput, what, where,
                  "copy the file again, or take what is whole with --allow-truncated");
    }
    context.findings.add("file-cut", Severity::kDataLoss, where, what + "; the rest is missing");
    break;
  }
  stream.tell_trailing(context.findings);
  return {};
}

}  // namespace

bool sniff(std::string_view head) {
  if (is_array(head) || head.substr(0, head.find('{')).find_first_not_of(" \t\r\n") == head.npos) {
    // The first record may be one that only counts (dump_stats, since v4.1), or stand on several lines.
    if (head.find("\"inspector_output_format_version\"") != std::string_view::npos) return true;
    return is_record(head.substr(0, head.find('\n', head.find('{'))));
  }
  // What a launcher collected. Between messages of NCCL it is NCCL's log.
  if (head.find("NCCL INFO ") != std::string_view::npos) return false;
  while (!head.empty()) {
    const size_t end = std::min(head.find('\n'), head.size());
    if (is_record(record_part(head.substr(0, end)))) return true;
    head.remove_prefix(std::min(end + 1, head.size()));
  }
  return false;
}

Result<FilePart> read(Source& source, ReadContext& context) {
  FilePart part;
  Records records(part, source.name().substr(source.name().rfind('/') + 1), context.findings);
  const auto done = is_array(source.head()) ? read_array(source, context, records)
                                            : read_lines(source, context, records);
  if (!done) return tl::unexpected(done.error());
  records.finish();
  if (part.evidence.empty()) {
    return fail(
        Code::kBadInput, "no line is a record of NCCL Inspector", source.name(),
        "give a file that the Inspector plugin wrote: a record per line, or an array of them");
  }
  return part;
}

}  // namespace rehearse::traces::inspector
