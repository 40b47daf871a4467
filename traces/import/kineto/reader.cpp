// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "traces/import/devices.hpp"
#include "traces/import/json_stream.hpp"
#include "traces/import/json_text.hpp"
#include "traces/import/kineto/builder.hpp"
#include "traces/import/kineto/event.hpp"
#include "traces/import/kineto/kineto.hpp"
#include "traces/import/kineto/metadata.hpp"
#include "traces/import/kineto/open_spans.hpp"
#include "traces/import/nothing_used.hpp"
#include "traces/import/rank_of_name.hpp"
#include "traces/import/scan.hpp"
#include "traces/model/utf8.hpp"

namespace rehearse::traces::kineto {
namespace {

constexpr uint64_t kProgressEvery = 1 << 16;
constexpr size_t kMostMemberText = size_t{64} << 20;

bool begins_with(std::string_view head, char c) {
  const size_t first = head.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  return first != std::string_view::npos && head[first] == c;
}

// An event per line, with what Kineto puts around them on lines of its own, if at all.
bool is_event_lines(std::string_view head) {
  return begins_with(head, '{') && !has_top_key(head, "traceEvents") && has_top_key(head, "ph");
}

// Operations that a file of this size may hold; only address space until they come.
size_t expected_operations(const Source& source) {
  const uint64_t text = source.stored_bytes() * (source.encoding() == Encoding::kPlain ? 1 : 24);
  return static_cast<size_t>(std::min<uint64_t>(text / 160, 1'000'000'000));
}

Result<void> ended_early(const JsonStream& stream, Source& source, ReadContext& context) {
  // Whoever writes an array while it records may leave it open; Chrome reads it.
  if (stream.bare_array() && stream.between_elements() && stream.count() > 0 && !source.cut()) {
    context.findings.add(
        "array-not-closed", Severity::kWarning, stream.where(stream.offset()),
        "all events are whole; later ones may be missing if the recording was killed");
    return {};
  }
  const std::string place = stream.between_elements() ? "between two events" : "inside an event";
  const std::string what =
      fmt::format("the file ends {}: {} events are whole",
                  stream.saw_array() ? place : "before the events", stream.count());
  const std::string where = fmt::format("{}: byte {}, event {}", source.name(),
                                        std::max(source.offset(), stream.offset()), stream.count());
  if (context.cut_files == CutFiles::kRefuse || stream.count() == 0) {
    return fail(Code::kBadInput, what, where,
                stream.count() == 0
                    ? "copy or record it again"
                    : "copy or record it again, or take what is whole with --allow-truncated");
  }
  context.findings.add("file-cut", Severity::kDataLoss, where,
                       what + "; what came later, and the members behind the events, are missing");
  return {};
}

// Of a line: no event but rank, groups, devices or base time.
bool is_members(const Event& event) {
  return event.phase == 0 && event.name.empty() && event.category_name.empty() && !event.start;
}

void append_members(std::string_view object, std::string& members) {
  const std::string_view inside = trimmed(object.substr(1, object.size() - 2));
  if (inside.empty()) return;
  if (!members.empty()) members += ',';
  members += inside;
}

// Hands events to the builder; a begin and its end as the one event that they are.
class Events {
 public:
  Events(Builder& builder, ReadContext& context, const JsonStream& stream)
      : builder_(builder), context_(context), stream_(stream) {}

  void add(const Event& event, const Element& element) {
    const bool flow = event.category == Category::kFlow;
    if (event.phase == 'B' && !flow) {
      if (!spans_.begin(event, element)) {
        lost("too-many-open", element, "operations inside more than 16 MiB of others are left out");
      }
    } else if (event.phase == 'E' && !flow) {
      end(event, element);
    } else {
      builder_.add(event, element);
    }
  }

  void finish() {
    const auto first = spans_.first_open();
    if (!first) return;
    context_.findings.add("begin-without-end", Severity::kDataLoss, stream_.where(first->offset),
                          "operations that begin (ph B) and do not end are left out",
                          spans_.open());
  }

 private:
  void end(const Event& event, const Element& element) {
    const auto begin = spans_.end(event);
    if (!begin) {
      return lost("end-without-begin", element,
                  "ends (ph E) of operations that did not begin before in the file are left out");
    }
    Event whole;
    if (parser_.parse(begin->element(), whole) != Parsed::kOk) return;  // it was parsed before
    whole.phase = 'X';
    whole.has_duration = true;
    if (whole.start && event.start) {
      int64_t duration = 0;
      if (!__builtin_sub_overflow(*event.start, *whole.start, &duration)) whole.duration = duration;
    }
    builder_.add(whole, begin->element());
  }
  void lost(const char* id, const Element& element, const char* advice) {
    context_.findings.add(id, Severity::kDataLoss, stream_.where(element.offset), advice);
  }

  Builder& builder_;
  ReadContext& context_;
  const JsonStream& stream_;
  EventParser parser_;
  OpenSpans spans_;
};

// The element with bytes that are no UTF-8 replaced, where that is what ails it: older profilers write names and
// paths in the code page of their machine. `text` holds it.
std::optional<Element> in_utf8(const Element& element, std::string& text) {
  if (is_utf8(element.text)) return std::nullopt;
  text = to_utf8(element.text);
  const size_t size = text.size();
  text.resize(size + 64, ' ');
  return Element{std::string_view(text).substr(0, size), element.offset, element.number};
}

}  // namespace

bool sniff(std::string_view head) {
  const auto has = [&](std::string_view text) { return head.find(text) != std::string_view::npos; };
  if (begins_with(head, '{')) {
    return has("\"traceEvents\"") || has("\"baseTimeNanoseconds\"") ||
           has("\"deviceProperties\"") ||
           (has("\"schemaVersion\"") && has("\"distributedInfo\"")) || is_event_lines(head);
  }
  return begins_with(head, '[') && has("\"ph\"");
}

Result<FilePart> read(Source& source, ReadContext& context) {
  const bool lines = is_event_lines(source.head());
  JsonStream stream(source, lines ? "" : "traceEvents", {});
  std::string members;  // of documents that are no events
  EventParser parser;
  Builder builder(context, source.name());
  builder.reserve(expected_operations(source));
  Events events(builder, context, stream);
  Element element;
  Event event;
  std::string repaired;
  for (;;) {
    RH_TRY(const JsonStream::Next got, stream.next(element));
    if (got == JsonStream::Next::kCut) {
      if (auto cut = ended_early(stream, source, context); !cut) return tl::unexpected(cut.error());
      break;
    }
    if (got == JsonStream::Next::kEnd) break;
    Parsed parsed = parser.parse(element, event);
    if (parsed == Parsed::kBroken) {
      if (const auto again = in_utf8(element, repaired)) {
        context.findings.add("not-utf-8", Severity::kInfo, stream.where(element.offset),
                             "bytes of names that are no UTF-8 are replaced");
        element = *again;
        parsed = parser.parse(element, event);
      }
    }
    switch (parsed) {
      case Parsed::kOk:
        if (lines && is_members(event) && members.size() + element.text.size() < kMostMemberText) {
          append_members(element.text, members);
        } else {
          events.add(event, element);
        }
        break;
      case Parsed::kNotObject:
        context.findings.add("event-not-an-object", Severity::kDataLoss,
                             stream.where(element.offset), "left out");
        break;
      case Parsed::kBroken:
        context.findings.add(
            "event-unreadable", Severity::kDataLoss, stream.where(element.offset),
            "events that are not JSON inside are left out; the file may be damaged");
        break;
    }
    if (stream.count() % kProgressEvery == 0) {
      if (context.reporter.interrupted()) return fail(Code::kInterrupted, "interrupted");
      context.reporter.progress("events", stream.count(), 0);
    }
  }
  events.finish();
  if (!stream.saw_array()) {
    return fail(Code::kBadInput, "there is no traceEvents array", source.name(),
                "export the profile again with export_chrome_trace()");
  }
  stream.tell_trailing(context.findings);
  const Metadata metadata = parse_metadata(to_utf8(lines ? "{" + members + "}" : stream.members()),
                                           source.name(), context.findings);
  FilePart part;
  std::vector<RankPart> ranks = builder.finish(metadata);
  if (ranks.front().trace.ops.size() == 0) {
    part.unused = nothing_used(
        {Code::kBadInput, fmt::format("none of its {} events is an operation", stream.count()),
         source.name(), "record with activities switched on, and at least one step"},
        context.findings);
    return part;
  }
  const auto by_name = rank_of_name(source.name());
  if (!metadata.rank && by_name) {
    context.findings.add("rank-from-name", Severity::kInfo, source.name(),
                         "the file does not tell its rank; it is taken from the file's name");
  }
  const RankId process = metadata.rank.value_or(by_name.value_or(0));
  for (size_t i = 0; i < ranks.size(); ++i) {
    RankTrace& trace = ranks[i].trace;
    ranks[i].rank_known =
        (metadata.rank || by_name) && rank_of_gpu(process, ranks.size(), i, trace.rank);
    trace.host = metadata.host;
    ranks[i].cloned_from = metadata.cloned_from;
  }
  if (RankId last = 0;
      metadata.world_size && *metadata.world_size > 0 &&
      rank_of_gpu(*metadata.world_size - 1, ranks.size(), ranks.size() - 1, last)) {
    part.world_size = last + 1;
  }
  part.ranks = std::move(ranks);
  part.framework = "pytorch";
  part.nccl_version = metadata.nccl_version;
  part.synthetic = metadata.synthetic;
  return part;
}

}  // namespace rehearse::traces::kineto
