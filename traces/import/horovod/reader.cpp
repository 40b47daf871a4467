// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <simdjson.h>

#include "traces/import/horovod/fuse.hpp"
#include "traces/import/horovod/horovod.hpp"
#include "traces/import/horovod/timeline.hpp"
#include "traces/import/json_stream.hpp"
#include "traces/import/json_text.hpp"
#include "traces/import/kineto/decimal.hpp"

namespace rehearse::traces::horovod {
namespace {

namespace dom = simdjson::dom;
constexpr uint64_t kProgressEvery = 1 << 16;

std::optional<int64_t> integer(const dom::element& value) {
  int64_t number = 0;
  std::string_view text;
  if (value.get_int64().get(number) == simdjson::SUCCESS) return number;
  if (value.get_string().get(text) == simdjson::SUCCESS) return kineto::parse_integer(text);
  return std::nullopt;
}

// Microseconds, nearly always whole.
std::optional<Nanos> time_of(const dom::element& value) {
  int64_t micros = 0;
  double real = 0;
  Nanos time = 0;
  if (value.get_int64().get(micros) == simdjson::SUCCESS) {
    if (__builtin_mul_overflow(micros, int64_t{1000}, &time)) return std::nullopt;
    return time;
  }
  if (value.get_double().get(real) == simdjson::SUCCESS && real > -9e14 && real < 9e14) {
    return static_cast<Nanos>(real * 1000.0);
  }
  return std::nullopt;
}

bool parse(dom::parser& parser, const Element& element, Event& event) {
  event = {};
  dom::element document;
  dom::object fields;
  if (parse_json(parser, element, document) != simdjson::SUCCESS ||
      document.get_object().get(fields) != simdjson::SUCCESS) {
    return false;
  }
  for (const auto& [key, value] : fields) {
    std::string_view text;
    const bool is_text = value.get_string().get(text) == simdjson::SUCCESS;
    if (key == "ph" && is_text && !text.empty()) event.phase = text[0];
    if (key == "name" && is_text) event.name = text;
    if (key == "pid") event.pid = integer(value).value_or(-1);
    if (key == "ts") event.time = time_of(value);
    if (key != "args" || !value.is_object()) continue;
    if (value["dtype"].get_string().get(text) == simdjson::SUCCESS) event.dtype = text;
    if (value["shape"].get_string().get(text) == simdjson::SUCCESS) event.shape = text;
    if (value["name"].get_string().get(text) == simdjson::SUCCESS) event.label = text;
    dom::element epoch;
    if (value["start_time_since_epoch_in_micros"].get(epoch) == simdjson::SUCCESS) {
      event.epoch_micros = integer(epoch).value_or(-1);
    }
  }
  return true;
}

// Old versions never close the array; a job that is killed cannot.
Result<void> ended_early(const JsonStream& stream, ReadContext& context) {
  const std::string where = stream.where(stream.offset());
  if (stream.between_elements() && stream.count() > 0) {
    context.findings.add("array-not-closed", Severity::kInfo, where,
                         "the job was still writing, or Horovod is old; all events are whole");
    return {};
  }
  const std::string what =
      fmt::format("the file ends inside an event: {} events are whole", stream.count());
  if (context.cut_files == CutFiles::kRefuse || stream.count() == 0) {
    return fail(Code::kBadInput, what, where,
                stream.count() == 0
                    ? "copy or record it again"
                    : "copy or record it again, or take what is whole with --allow-truncated");
  }
  context.findings.add("file-cut", Severity::kDataLoss, where, what);
  return {};
}

}  // namespace

bool sniff(std::string_view head) {
  const size_t first = head.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (first == std::string_view::npos) return false;
  const auto has = [&](std::string_view text) { return head.find(text) != std::string_view::npos; };
  // Horovod writes an array; tools that cut timelines put it into an object. Profiles of a job with Horovod hold the same
  // names, with categories.
  if (head[first] == '{') {
    return has("\"traceEvents\"") && has("\"NEGOTIATE_") && !has("\"cat\"");
  }
  return head[first] == '[' && has("\"ph\"") &&
         (has("\"NEGOTIATE_") || has("\"CYCLE_START\"") ||
          has("\"start_time_since_epoch_in_micros\""));
}

Result<FilePart> read(Source& source, ReadContext& context) {
  JsonStream stream(source, "traceEvents", {});
  Timeline timeline(context.findings, source.name());
  dom::parser parser;
  Element element;
  Event event;
  for (;;) {
    RH_TRY(const JsonStream::Next got, stream.next(element));
    if (got == JsonStream::Next::kEnd) break;
    if (got == JsonStream::Next::kCut) {
      if (auto cut = ended_early(stream, context); !cut) return tl::unexpected(cut.error());
      break;
    }
    if (element.text == "{}") continue;
    if (parse(parser, element, event)) {
      timeline.add(event, {element.offset, element.number});
    } else {
      context.findings.add("event-unreadable", Severity::kDataLoss, stream.where(element.offset),
                           "events that are not JSON inside are left out; the file may be damaged");
    }
    if (stream.count() % kProgressEvery == 0) {
      if (context.reporter.interrupted()) return fail(Code::kInterrupted, "interrupted");
      context.reporter.progress("events", stream.count(), 0);
    }
  }
  stream.tell_trailing(context.findings);
  timeline.finish();
  FilePart part;
  part.framework = "horovod";
  part.ranks = ranks_of(timeline, source.name(), context);
  if (part.ranks.empty()) {
    return fail(Code::kBadInput,
                fmt::format("none of its {} events is a phase of a tensor", stream.count()),
                source.name(), "record at least one step with HOROVOD_TIMELINE");
  }
  bool calls = false;
  for (RankPart& rank : part.ranks) {
    rank.may_continue = true;
    calls = calls || !rank.trace.ops.calls.empty();
  }
  if (!calls) {
    context.findings.add("no-collectives", Severity::kWarning, source.name(),
                         "the recording ended while tensors were still negotiated; record longer");
  }
  return part;
}

}  // namespace rehearse::traces::horovod
