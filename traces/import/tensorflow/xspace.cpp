// SPDX-License-Identifier: Apache-2.0
// Fields of tsl/profiler/protobuf/xplane.proto that are used, by number:
//   XSpace planes 1, hostnames 4
//   XPlane name 2, lines 3, event_metadata 4 (map), stat_metadata 5 (map), stats 6
//   XLine id 1, name 2, timestamp_ns 3, events 4, display_name 11
//   XEvent metadata_id 1, offset_ps 2, duration_ps 3, stats 4, num_occurrences 5
// Dictionaries and stats: plane_names.cpp.
#include <fmt/format.h>

#include <utility>

#include "traces/import/limits.hpp"
#include "traces/import/tensorflow/plane_names.hpp"
#include "traces/import/tensorflow/planes.hpp"
#include "traces/import/tensorflow/profile.hpp"
#include "traces/import/tensorflow/tensorflow.hpp"
#include "traces/import/wire.hpp"

namespace rehearse::traces::tensorflow {
namespace {

using Next = WireStream::Next;
constexpr size_t kMostRecord = 256 << 20;
constexpr size_t kMostMetadata = 20'000'000;           // names of events and stats in all planes
constexpr Nanos kUnixTimes = 100'000'000'000'000'000;  // in 1973; profiles last days, not years

class XSpaceReader {
 public:
  XSpaceReader(Source& source, ReadContext& context)
      : source_(source), context_(context), profile_(context, source.name()) {}
  Result<FilePart> read();

 private:
  enum class Pass { kNames, kDevices, kHosts };
  Result<void> run(Source& source, Pass pass);
  // False: the input ended inside.
  Result<bool> plane(WireStream& stream, uint64_t end, size_t index, Pass pass);
  Result<bool> line(WireStream& stream, uint64_t end, const PlaneNames& names, Pass pass);
  [[nodiscard]] bool event(std::string_view message, const PlaneNames& names, Nanos origin,
                           Event& out);
  void describe(const PlaneNames& names);
  Result<void> cut(const WireStream& stream);
  void note(const char* id, Severity severity, const std::string& where, const char* advice) {
    context_.findings.add(id, severity, where, advice);
  }

  Source& source_;
  ReadContext& context_;
  Profile profile_;
  std::vector<PlaneNames> planes_;
  std::string host_;
  Nanos profile_start_ = 0, latest_ = 0;
  uint64_t at_ = 0;  // of the event that is read
  size_t entries_ = 0;
  uint64_t aggregated_ = 0, derived_ = 0, unnamed_ = 0, broken_ = 0;
  bool was_cut_ = false;
};

Result<void> XSpaceReader::cut(const WireStream& stream) {
  const std::string where = fmt::format("{}: byte {}", source_.name(), stream.offset());
  const std::string what = "the file ends early, inside a plane";
  if (context_.cut_files == CutFiles::kRefuse) {
    return fail(Code::kBadInput, what, where,
                "copy or record it again, or take what is whole with --allow-truncated");
  }
  if (!std::exchange(was_cut_, true)) {
    note("file-cut", Severity::kDataLoss, where,
         "what came later is missing; names that stand behind the cut are not known");
  }
  return {};
}

Result<void> XSpaceReader::run(Source& source, Pass pass) {
  WireStream stream(source, kMostRecord);
  size_t index = 0;
  for (WireField field;;) {
    RH_TRY(Next got, stream.field(field));
    if (got == Next::kEnd) return {};
    if (got == Next::kCut) return cut(stream);
    if (field.type != WireType::kBytes) continue;
    if (field.value >= (uint64_t{1} << 60)) return cut(stream);
    if (field.number == 1) {
      RH_TRY(const bool whole, plane(stream, stream.offset() + field.value, index++, pass));
      if (!whole) return cut(stream);
      if (context_.reporter.interrupted()) return fail(Code::kInterrupted, "interrupted");
      continue;
    }
    std::string_view text;
    if (field.number == 4 && pass == Pass::kNames && host_.empty() && field.value < 4096) {
      RH_TRY(got, stream.bytes(field.value, text));
      host_ = text;
    } else {
      RH_TRY(got, stream.skip(field.value));
    }
    if (got != Next::kOk) return cut(stream);
  }
}

Result<bool> XSpaceReader::plane(WireStream& stream, uint64_t end, size_t index, Pass pass) {
  if (pass == Pass::kNames) planes_.emplace_back();
  if (index >= planes_.size()) return false;
  PlaneNames& names = planes_[index];
  const bool wanted = pass == Pass::kNames ||
                      (pass == Pass::kDevices && names.plane.kind == PlaneKind::kDevice) ||
                      (pass == Pass::kHosts && names.plane.kind == PlaneKind::kHost);
  if (!wanted) {
    RH_TRY(const Next got, stream.skip(end - stream.offset()));
    return got == Next::kOk;
  }
  std::string_view bytes;
  for (WireField field; stream.offset() < end;) {
    RH_TRY(Next got, stream.field(field));
    if (got != Next::kOk) return false;
    if (field.type != WireType::kBytes) continue;
    if (field.value > end - std::min(end, stream.offset())) {
      return fail(Code::kBadInput, "a field is longer than the plane around it",
                  fmt::format("{}: byte {}", source_.name(), stream.offset()),
                  "the file is damaged; record or copy it again");
    }
    const bool dictionary_pass = pass == Pass::kNames;
    if (field.number == 3 && !dictionary_pass) {
      RH_TRY(const bool whole, line(stream, stream.offset() + field.value, names, pass));
      if (!whole) return false;
      continue;
    }
    if (!dictionary_pass || field.number == 3) {
      RH_TRY(got, stream.skip(field.value));
    } else {
      RH_TRY(got, stream.bytes(field.value, bytes));
      const bool entry = field.number == 4 || field.number == 5;
      const bool room = !entry || ++entries_ <= kMostMetadata;
      if (got == Next::kOk && room && !names.add(field.number, bytes, context_.strings)) ++broken_;
    }
    if (got != Next::kOk) return false;
  }
  if (pass == Pass::kNames) describe(names);
  return true;
}

// What a plane says of itself: the GPU, the start of the profile.
void XSpaceReader::describe(const PlaneNames& names) {
  std::string model;
  Bytes memory = 0;
  for (const std::string& bytes : names.own_stats) {
    const Stat stat = parse_stat(bytes);
    const StatUse use = names.use_of(stat);
    if (use == StatUse::kMemory) memory = stat.number.value_or(0);
    if (use == StatUse::kModel) model = stat.text;
    if (use == StatUse::kProfileStart) profile_start_ = stat.number.value_or(0);
  }
  if (names.plane.kind == PlaneKind::kDevice) {
    profile_.describe_device(names.plane.device, std::move(model), memory);
  }
}

bool XSpaceReader::event(std::string_view message, const PlaneNames& names, Nanos origin,
                         Event& out) {
  uint64_t id = 0;
  int64_t offset = 0, duration = 0;
  bool aggregated = false, copies = false, sets = false;
  std::string_view details;
  out = {};
  WireReader reader(message);
  for (WireField f; reader.next(f);) {
    if (f.number == 1) id = f.value;
    if (f.number == 2) offset = static_cast<int64_t>(f.value);
    if (f.number == 3) duration = static_cast<int64_t>(f.value);
    if (f.number == 5) aggregated = true;
    if (f.number != 4 || f.type != WireType::kBytes) continue;
    const Stat stat = parse_stat(f.bytes);
    switch (names.use_of(stat)) {
      case StatUse::kCorrelation:
        out.correlation = stat.number.value_or(0);
        break;
      case StatUse::kCopy:
        copies = true;
        details = names.text_of(stat, context_.strings);
        break;
      case StatUse::kMemset:
        sets = true;
        break;
      case StatUse::kStep:
        out.step = stat.number.value_or(-1);
        break;
      default:
        break;
    }
  }
  if (reader.broken()) {
    ++broken_;
    return false;
  }
  if (aggregated) {
    ++aggregated_;
    return false;
  }
  const auto name = names.events.find(id);
  if (name == names.events.end()) ++unnamed_;
  out.name = name == names.events.end() ? 0 : name->second;
  const std::string& shown = context_.strings.at(out.name);
  out.kind = copies || is_copy(shown)   ? OpKind::kCopy
             : sets || is_memset(shown) ? OpKind::kMemset
                                        : OpKind::kKernel;
  if (out.kind == OpKind::kCopy) out.copy = copy_of(shown, details);
  if (__builtin_add_overflow(origin, offset / 1000, &out.start)) out.start = INT64_MAX;
  out.duration = duration < 0 ? -1 : duration / 1000;
  if (!profile_.plausible(out, at_)) return false;
  latest_ = std::max(latest_, out.start);
  return true;
}

Result<bool> XSpaceReader::line(WireStream& stream, uint64_t end, const PlaneNames& names,
                                Pass pass) {
  int64_t id = 0;
  Nanos origin = 0;
  std::string name;
  DeviceLine use;
  std::vector<Event> events;
  Event parsed;
  std::string_view bytes;
  bool whole = true;
  for (WireField field; stream.offset() < end;) {
    at_ = stream.offset();
    RH_TRY(Next got, stream.field(field));
    if (got != Next::kOk) {
      whole = false;
      break;
    }
    if (field.number == 1) id = static_cast<int64_t>(field.value);
    if (field.number == 3) origin = static_cast<Nanos>(field.value);
    if (field.type != WireType::kBytes) continue;
    if (field.value > end - std::min(end, stream.offset())) {
      return fail(Code::kBadInput, "a field is longer than the line around it",
                  fmt::format("{}: byte {}", source_.name(), stream.offset()),
                  "the file is damaged; record or copy it again");
    }
    RH_TRY(got, stream.bytes(field.value, bytes));
    if (got != Next::kOk) {
      whole = false;
      break;
    }
    if (field.number == 2 || (field.number == 11 && name.empty())) {
      name = bytes.substr(0, 256);
      use = device_line_of(names.plane, name, id);
    }
    if (field.number != 4) continue;
    if (pass == Pass::kDevices && use.use == LineUse::kDerived) {
      ++derived_;
    } else if (event(bytes, names, origin, parsed)) {
      if (pass == Pass::kHosts) {
        events.push_back(parsed);
      } else if (use.use == LineUse::kStream) {
        profile_.device_event(names.plane.device, use.stream, parsed);
      } else {
        const int64_t number = parsed.step >= 0
                                   ? parsed.step
                                   : static_cast<int64_t>(profile_.steps(names.plane.device));
        profile_.step(names.plane.device, {number, parsed.start, parsed.start + parsed.duration});
      }
    }
  }
  if (pass == Pass::kHosts && !events.empty()) {
    profile_.host_line(id, name.empty() ? fmt::format("thread {}", id) : name, events);
  }
  return whole;
}

Result<FilePart> XSpaceReader::read() {
  if (auto done = run(source_, Pass::kNames); !done) return tl::unexpected(done.error());
  for (const Pass pass : {Pass::kDevices, Pass::kHosts}) {
    RH_TRY(Source again, source_.again());
    if (auto done = run(again, pass); !done) return tl::unexpected(done.error());
  }
  if (profile_.empty()) {
    return fail(Code::kBadInput,
                fmt::format("none of its {} planes holds an event", planes_.size()), source_.name(),
                "profile at least one step");
  }
  const auto say = [&](uint64_t count, const char* id, Severity severity, const char* advice) {
    if (count > 0) context_.findings.add(id, severity, source_.name(), advice, count);
  };
  say(aggregated_, "aggregated-events", Severity::kDataLoss,
      "events that were counted instead of timed are left out");
  say(derived_, "derived-events", Severity::kInfo,
      "lines that tell work again (name scopes, XLA modules and operations) are not kept");
  say(unnamed_, "event-without-name", Severity::kWarning, "their name is not in the file");
  say(broken_, "event-unreadable", Severity::kDataLoss,
      "events that cannot be parsed are left out; the file may be damaged");
  FilePart part;
  part.framework = "tensorflow";
  Nanos base = 0;
  if (latest_ < kUnixTimes && profile_start_ > kUnixTimes && profile_start_ < (Nanos{1} << 61)) {
    base = profile_start_;
  }
  part.ranks = profile_.finish(base, host_);
  return part;
}

bool printable(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e) return false;
  }
  return !text.empty();
}

}  // namespace

// A field 1 of bytes whose first fields are a number, then a name that planes have.
bool sniff_xspace(std::string_view head) {
  if (head.size() < 4 || head[0] != 0x0a) return false;
  size_t at = 1;
  while (at < head.size() && at < 11 && (static_cast<unsigned char>(head[at]) & 0x80) != 0) ++at;
  std::string_view plane = head.substr(std::min(at + 1, head.size()));
  if (!plane.empty() && plane[0] == 0x08) {  // id
    size_t skip = 1;
    while (skip < plane.size() && (static_cast<unsigned char>(plane[skip]) & 0x80) != 0) ++skip;
    plane.remove_prefix(std::min(skip + 1, plane.size()));
  }
  if (plane.size() < 2 || plane[0] != 0x12) return false;
  const auto length = static_cast<unsigned char>(plane[1]);
  const std::string_view name = plane.substr(2, length);
  return length < 0x80 && printable(name) && name.size() == length &&
         (name.starts_with("/") || name == "Task Environment");
}

Result<FilePart> read_xspace(Source& source, ReadContext& context) {
  return XSpaceReader(source, context).read();
}

}  // namespace rehearse::traces::tensorflow
