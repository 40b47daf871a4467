// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "sim/export/export.hpp"
#include "sim/outcome/lane_rows.hpp"
#include "traces/export/kineto_text.hpp"

namespace rehearse::sim {
namespace {

constexpr size_t kChunk = 1 << 20;

Result<void> write_chunk(AtomicFile& out, std::string& text, size_t from) {
  if (text.size() < from) return {};
  auto done = out.write(text);
  text.clear();
  return done;
}

const std::string& text_of(const google::protobuf::RepeatedPtrField<std::string>& texts,
                           uint32_t at) {
  static const std::string kNone;
  return at < static_cast<uint32_t>(texts.size()) ? texts[static_cast<int>(at)] : kNone;
}

const pb::TimelineCall* call_of(const pb::Timeline& timeline, uint32_t call) {
  return call < static_cast<uint32_t>(timeline.calls_size())
             ? &timeline.calls(static_cast<int>(call))
             : nullptr;
}

std::string cell(const std::string& text) {
  std::string out = "\"";
  if (!text.empty() && std::string_view("=+-@\t\r").find(text.front()) != std::string_view::npos) {
    out += '\'';
  }
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

}  // namespace

Result<void> write_chrome(const pb::Timeline& timeline, const pb::Outcome& outcome,
                          AtomicFile& out) {
  std::string text = fmt::format(
      "{{\"displayTimeUnit\":\"ms\",\"otherData\":{{\"scenario\":{}}},"
      "\"traceEvents\":[\n",
      traces::json_string(outcome.scenario()));
  const char* separator = "";
  std::vector<std::string> names;  // as JSON
  names.reserve(static_cast<size_t>(timeline.names_size()));
  for (int i = 0; i < timeline.names_size(); ++i) {
    const std::string& name = timeline.names(i);
    names.push_back(traces::json_string(
        name.empty() ? text_of(timeline.kinds(), static_cast<uint32_t>(i)) : name));
  }
  for (const pb::RankTimeline& rank : timeline.ranks()) {
    text += fmt::format(
        "{}{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{},\"args\":{{\"name\":\"rank {}\"}}}}",
        separator, rank.rank(), rank.rank());
    separator = ",\n";
    for (int l = 0; l < rank.lanes_size(); ++l) {
      const pb::LaneTimeline& lane = rank.lanes(l);
      text += fmt::format(
          ",\n{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{},\"tid\":{},\"args\":{{\"name\":{}}"
          "}}}",
          rank.rank(), l, traces::json_string(lane.name()));
      Result<void> done;
      each_row(lane, [&](const LaneRow& row) {
        if (!done) return;
        text += fmt::format(
            ",\n{{\"ph\":\"X\",\"pid\":{},\"tid\":{},\"ts\":{},\"dur\":{},\"name\":{},\"cat\":\"{}"
            "\"",
            rank.rank(), l, traces::kineto_time(row.start), traces::kineto_time(row.duration),
            row.name < names.size() ? names[row.name] : "\"\"",
            text_of(timeline.kinds(), row.name));
        if (const pb::TimelineCall* call = call_of(timeline, row.call)) {
          text += fmt::format(",\"args\":{{\"communicator\":{},\"sequence\":{}}}",
                              traces::json_string(call->communicator()), call->sequence());
        }
        text += '}';
        done = write_chunk(out, text, kChunk);
      });
      if (!done) return done;
    }
  }
  text += "\n]}\n";
  return write_chunk(out, text, 0);
}

Result<void> write_csv(const pb::Timeline& timeline, AtomicFile& out) {
  std::string text = "rank,lane,start_ns,duration_ns,kind,name,communicator,sequence\n";
  std::vector<std::string> names;
  names.reserve(static_cast<size_t>(timeline.names_size()));
  for (const std::string& name : timeline.names()) names.push_back(cell(name));
  for (const pb::RankTimeline& rank : timeline.ranks()) {
    for (const pb::LaneTimeline& lane : rank.lanes()) {
      const std::string lane_cell = cell(lane.name());
      Result<void> done;
      each_row(lane, [&](const LaneRow& row) {
        if (!done) return;
        text += fmt::format("{},{},{},{},{},{}", rank.rank(), lane_cell, row.start, row.duration,
                            text_of(timeline.kinds(), row.name),
                            row.name < names.size() ? names[row.name] : "\"\"");
        if (const pb::TimelineCall* call = call_of(timeline, row.call)) {
          text += fmt::format(",{},{}\n", cell(call->communicator()), call->sequence());
        } else {
          text += ",,\n";
        }
        done = write_chunk(out, text, kChunk);
      });
      if (!done) return done;
    }
  }
  return write_chunk(out, text, 0);
}

}  // namespace rehearse::sim
