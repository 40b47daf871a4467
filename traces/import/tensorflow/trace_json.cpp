// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <simdjson.h>

#include <cmath>
#include <map>
#include <set>

#include "traces/import/json_stream.hpp"
#include "traces/import/json_text.hpp"
#include "traces/import/kineto/decimal.hpp"
#include "traces/import/limits.hpp"
#include "traces/import/tensorflow/planes.hpp"
#include "traces/import/tensorflow/profile.hpp"
#include "traces/import/tensorflow/session_timeline.hpp"
#include "traces/import/tensorflow/tensorflow.hpp"

namespace rehearse::traces::tensorflow {
namespace {

namespace dom = simdjson::dom;
constexpr uint64_t kProgressEvery = 1 << 16;

using Key = std::pair<int64_t, int64_t>;  // process and thread

// One number for two of any size; those that occur in files stay apart.
int64_t joined(int64_t high, int64_t low) {
  return static_cast<int64_t>((static_cast<uint64_t>(high) << 16) + static_cast<uint64_t>(low));
}

std::optional<int64_t> integer(const simdjson::simdjson_result<dom::element>& value) {
  int64_t number = 0;
  std::string_view text;
  if (value.get_int64().get(number) == simdjson::SUCCESS) return number;
  if (value.get_string().get(text) == simdjson::SUCCESS) return kineto::parse_integer(text);
  return std::nullopt;
}

// Microseconds from the start of the profile, with decimals.
std::optional<Nanos> time_of(const simdjson::simdjson_result<dom::element>& value) {
  int64_t micros = 0;
  double real = 0;
  Nanos time = 0;
  if (value.get_int64().get(micros) == simdjson::SUCCESS) {
    if (__builtin_mul_overflow(micros, int64_t{1000}, &time)) return std::nullopt;
    return time;
  }
  if (value.get_double().get(real) == simdjson::SUCCESS && real > -9e14 && real < 9e14) {
    return std::llround(real * 1000.0);
  }
  return std::nullopt;
}

std::string_view text_of(const simdjson::simdjson_result<dom::element>& value) {
  std::string_view text;
  return value.get_string().get(text) == simdjson::SUCCESS ? text : std::string_view();
}

class TraceJson {
 public:
  TraceJson(Source& source, ReadContext& context)
      : source_(source), context_(context), profile_(context, source.name()) {}
  Result<FilePart> read();

 private:
  void add(const Element& element);
  void complete(const dom::element& event, const Element& element);
  void build();
  uint64_t build_session();
  Result<void> cut(const JsonStream& stream);
  void note(const char* id, Severity severity, const Element& element, const char* advice) {
    context_.findings.add(
        id, severity,
        fmt::format("{}: byte {}, event {}", source_.name(), element.offset, element.number),
        advice);
  }

  Source& source_;
  ReadContext& context_;
  Profile profile_;
  dom::parser parser_;
  std::map<int64_t, std::string> processes_;
  std::map<Key, std::string> threads_;
  std::map<Key, std::vector<Event>> events_;
  uint64_t held_ = 0;  // events in events_
};

void TraceJson::complete(const dom::element& event, const Element& element) {
  const auto start = time_of(event["ts"]);
  const auto duration = time_of(event["dur"]);
  if (!start) {
    return note("event-without-time", Severity::kDataLoss, element,
                "events without a readable ts are left out");
  }
  Event out;
  const std::string_view name = text_of(event["name"]);
  out.name = context_.strings.intern(name.substr(0, kLongestName));
  out.start = *start;
  out.duration = duration.value_or(0);
  if (!profile_.plausible(out, element.offset)) return;
  const auto args = event["args"];
  out.correlation = integer(args["correlation_id"]).value_or(0);
  out.step = integer(args["step_num"]).value_or(-1);
  const std::string_view details = text_of(args["memcpy_details"]);
  out.kind = !details.empty() || is_copy(name)                             ? OpKind::kCopy
             : !text_of(args["memset_details"]).empty() || is_memset(name) ? OpKind::kMemset
                                                                           : OpKind::kKernel;
  if (out.kind == OpKind::kCopy) out.copy = copy_of(name, details);
  events_[{integer(event["pid"]).value_or(0), integer(event["tid"]).value_or(0)}].push_back(out);
  ++held_;
}

void TraceJson::add(const Element& element) {
  dom::element event;
  if (parse_json(parser_, element, event) != simdjson::SUCCESS || !event.is_object()) {
    return note("event-unreadable", Severity::kDataLoss, element,
                "events that are not JSON inside are left out; the file may be damaged");
  }
  const std::string_view phase = text_of(event["ph"]);
  if (phase == "X") return complete(event, element);
  if (phase == "M") {
    const std::string_view name = text_of(event["name"]), label = text_of(event["args"]["name"]);
    const int64_t pid = integer(event["pid"]).value_or(0);
    if (label.empty()) return;
    if (name == "process_name") processes_[pid] = label.substr(0, 256);
    if (name == "thread_name")
      threads_[{pid, integer(event["tid"]).value_or(0)}] = label.substr(0, 256);
    return;
  }
  // The writer ends the list with an empty object.
  if (event.get_object().size() == 0) return;
  note("unused-phase", Severity::kInfo, element, "only complete events (ph X) are used");
}

// Takes the events of a session's timeline out of `events_`; how many tell work again that others tell.
uint64_t TraceJson::build_session() {
  std::map<int64_t, SessionProcess> found;
  std::set<int64_t> by_stream;  // devices whose streams are there one by one
  for (const auto& [pid, name] : processes_) {
    const SessionProcess process = session_process_of(name);
    if (process.use == SessionUse::kStream) by_stream.insert(process.device);
    if (process.use != SessionUse::kNone) found.emplace(pid, process);
  }
  uint64_t derived = 0;
  for (const bool devices : {true, false}) {
    for (auto& [key, events] : events_) {
      const auto process = found.find(key.first);
      if (process == found.end()) continue;
      const auto& [use, device, stream] = process->second;
      if ((use != SessionUse::kHost) != devices) continue;
      if (use == SessionUse::kHost) {
        profile_.host_line(joined(key.first, key.second), processes_.at(key.first), events);
      } else if (use != SessionUse::kStream && by_stream.contains(device)) {
        derived += events.size();
      } else {
        // What all streams share lies behind the streams that have a number.
        const bool copies = use == SessionUse::kAllCopies;
        const int64_t lane =
            use == SessionUse::kStream ? stream : joined(copies ? 2 : 1, key.second);
        for (Event& e : events) {
          if (copies && e.kind == OpKind::kKernel) {
            e.kind = OpKind::kCopy;
            e.copy = copy_of(context_.strings.at(e.name), "");
          }
          profile_.device_event(device, lane, e);
        }
      }
      events = {};
    }
  }
  return derived;
}

// Devices first, so that launches find their work.
void TraceJson::build() {
  uint64_t derived = build_session();
  for (const bool devices : {true, false}) {
    for (auto& [key, events] : events_) {
      const auto process = processes_.find(key.first);
      const auto thread = threads_.find(key);
      const Plane plane = process == processes_.end() ? Plane{} : plane_of(process->second);
      if ((plane.kind == PlaneKind::kDevice) != devices) continue;
      const std::string name =
          thread == threads_.end() ? fmt::format("thread {}", key.second) : thread->second;
      if (!devices) {
        profile_.host_line(key.second, name, events);
        continue;
      }
      const DeviceLine line = device_line_of(plane, name, key.second);
      for (const Event& e : events) {
        if (line.use == LineUse::kStream) profile_.device_event(plane.device, line.stream, e);
        if (line.use == LineUse::kDerived) ++derived;
        if (line.use != LineUse::kSteps) continue;
        const auto number = kineto::parse_integer(context_.strings.at(e.name));
        const auto next = static_cast<int64_t>(profile_.steps(plane.device));
        profile_.step(plane.device, {number.value_or(next), e.start, e.start + e.duration});
      }
      events = {};
    }
  }
  if (derived > 0) {
    context_.findings.add(
        "derived-events", Severity::kInfo, source_.name(),
        "lines that tell work again (name scopes, XLA modules and operations) are "
        "not kept",
        derived);
  }
}

Result<void> TraceJson::cut(const JsonStream& stream) {
  const std::string what = fmt::format("the file ends early: {} events are whole", stream.count());
  const std::string where = stream.where(stream.offset());
  if (context_.cut_files == CutFiles::kRefuse || stream.count() == 0) {
    return fail(Code::kBadInput, what, where,
                stream.count() == 0
                    ? "copy or record it again"
                    : "copy or record it again, or take what is whole with --allow-truncated");
  }
  context_.findings.add("file-cut", Severity::kDataLoss, where, what);
  return {};
}

Result<FilePart> TraceJson::read() {
  JsonStream stream(source_, "traceEvents", {});
  Element element;
  for (;;) {
    RH_TRY(const JsonStream::Next got, stream.next(element));
    if (got == JsonStream::Next::kEnd) break;
    if (got == JsonStream::Next::kCut) {
      if (auto accepted = cut(stream); !accepted) return tl::unexpected(accepted.error());
      break;
    }
    add(element);
    if (held_ * sizeof(Event) > context_.most_held) {
      return fail(Code::kLimit,
                  fmt::format("its events need more than {} MiB to be told apart by device",
                              context_.most_held >> 20),
                  stream.where(element.offset),
                  "profile fewer steps, or import the .xplane.pb of the same profile");
    }
    if (stream.count() % kProgressEvery == 0) {
      if (context_.reporter.interrupted()) return fail(Code::kInterrupted, "interrupted");
      context_.reporter.progress("events", stream.count(), 0);
    }
  }
  if (!stream.saw_array()) {
    return fail(Code::kBadInput, "there is no traceEvents array", source_.name(),
                "profile again with TensorBoard's profiler");
  }
  stream.tell_trailing(context_.findings);
  build();
  if (profile_.empty()) {
    return fail(Code::kBadInput,
                fmt::format("none of its {} events is an operation", stream.count()),
                source_.name(), "profile at least one step");
  }
  FilePart part;
  part.framework = "tensorflow";
  part.ranks = profile_.finish(0, {});
  return part;
}

}  // namespace

// Kineto writes traceEvents too, but never planes or high-resolution ticks.
bool sniff_trace_json(std::string_view head) {
  const size_t first = head.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (first == std::string_view::npos || head[first] != '{') return false;
  const auto has = [&](std::string_view text) { return head.find(text) != std::string_view::npos; };
  if (!has("\"traceEvents\"") || has("\"deviceProperties\"") || has("\"schemaVersion\"") ||
      has("\"baseTimeNanoseconds\"")) {
    return false;
  }
  return has("\"highres-ticks\"") || has("\"/host:CPU\"") || has("\"/device:GPU:") ||
         has("\"/device:TPU:") || is_session_timeline(head);
}

Result<FilePart> read_trace_json(Source& source, ReadContext& context) {
  return TraceJson(source, context).read();
}

}  // namespace rehearse::traces::tensorflow
