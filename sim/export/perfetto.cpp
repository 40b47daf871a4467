// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "sim/export/export.hpp"
#include "sim/outcome/lane_rows.hpp"
#include "sim/proto/perfetto.pb.h"
#include "traces/export/wire_text.hpp"

namespace rehearse::sim {
namespace {

namespace pf = rehearse::perfetto;
using traces::put_bytes;
using traces::put_number;
using traces::put_varint;

constexpr uint32_t kSequence = 1;
constexpr uint32_t kNamesBegin = 1, kNamesUsed = 2;
constexpr size_t kPartBytes = 1 << 20;
// More than the begin and the end of one operation take together; each is below 128 bytes.
constexpr size_t kMostOfSlice = 256;
// Names of what is said of a call.
enum Annotation : uint64_t { kOperation = 1, kCommunicator, kCallSequence };
constexpr std::array<std::pair<uint64_t, const char*>, 3> kAnnotationNames = {
    {{kOperation, "operation"}, {kCommunicator, "communicator"}, {kCallSequence, "sequence"}}};
// Process ids of what is not a rank.
constexpr int32_t kPathProcess = 1'000'000'000, kLinksProcess = kPathProcess + 1;

// Fields one after the other at a place that has room for them.
class Pen {
 public:
  explicit Pen(char* at) : at_(at) {}
  [[nodiscard]] char* at() const { return at_; }

  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) *at_++ = static_cast<char>(value | 0x80);
    *at_++ = static_cast<char>(value);
  }
  void number(uint32_t field, uint64_t value) {
    varint(uint64_t{field} << 3);
    varint(value);
  }
  void bytes(std::string_view bytes) {
    std::memcpy(at_, bytes.data(), bytes.size());
    at_ += bytes.size();
  }
  // A message below 128 bytes: its length is known at its end.
  char* begin(uint32_t field) {
    varint((uint64_t{field} << 3) | 2);
    return at_++;
  }
  void end(char* length) { *length = static_cast<char>(at_ - length - 1); }

 private:
  char* at_;
};

class PerfettoFile {
 public:
  PerfettoFile(AtomicFile& file, const pb::Timeline& timeline) : file_(file), timeline_(timeline) {
    buffer_.reserve(kPartBytes + kMostOfSlice);
  }

  // Everything that events only refer to by number.
  [[nodiscard]] Result<void> names() {
    pf::TracePacket packet;
    packet.set_sequence_flags(kNamesBegin);
    pf::InternedData& interned = *packet.mutable_interned_data();
    std::map<std::string, uint64_t> categories;
    named_.reserve(static_cast<size_t>(timeline_.names_size()));
    for (int i = 0; i < timeline_.names_size(); ++i) {
      pf::EventName& name = *interned.add_event_names();
      name.set_iid(static_cast<uint64_t>(i) + 1);
      name.set_name(timeline_.names(i).empty() ? kind(i) : timeline_.names(i));
      const auto [at, fresh] = categories.emplace(kind(i), categories.size() + 1);
      named_.push_back(begin_of(at->second, name.iid()));
      if (!fresh) continue;
      pf::EventCategory& category = *interned.add_event_categories();
      category.set_iid(at->second);
      category.set_name(at->first);
    }
    for (const auto& [iid, text] : kAnnotationNames) {
      pf::DebugAnnotationName& name = *interned.add_debug_annotation_names();
      name.set_iid(iid);
      name.set_name(text);
    }
    name_calls(interned);
    return put(packet);
  }

  // The uuid of a new track.
  [[nodiscard]] Result<uint64_t> process(int32_t pid, const std::string& name) {
    pf::TracePacket packet = described(name);
    packet.mutable_track_descriptor()->mutable_process()->set_pid(pid);
    packet.mutable_track_descriptor()->mutable_process()->set_process_name(name);
    if (auto done = put(packet); !done) return tl::unexpected(done.error());
    return last_uuid_;
  }
  [[nodiscard]] Result<uint64_t> track(uint64_t parent, const std::string& name) {
    pf::TracePacket packet = described(name);
    packet.mutable_track_descriptor()->set_parent_uuid(parent);
    if (auto done = put(packet); !done) return tl::unexpected(done.error());
    return last_uuid_;
  }
  [[nodiscard]] Result<uint64_t> counter(uint64_t parent, const std::string& name,
                                         const pf::CounterDescriptor& what) {
    pf::TracePacket packet = described(name);
    packet.mutable_track_descriptor()->set_parent_uuid(parent);
    *packet.mutable_track_descriptor()->mutable_counter() = what;
    if (auto done = put(packet); !done) return tl::unexpected(done.error());
    return last_uuid_;
  }

  [[nodiscard]] Result<void> put(pf::TracePacket& packet) {
    packet.set_trusted_packet_sequence_id(kSequence);
    put_bytes(buffer_, 1, packet.SerializeAsString());
    return buffer_.size() < kPartBytes ? Result<void>{} : flush();
  }

  // One operation, written by hand: there are millions.
  [[nodiscard]] Result<void> slice(uint64_t track, Nanos start, Nanos end, uint32_t name,
                                   uint32_t call) {
    const size_t before = buffer_.size();
    buffer_.resize(before + kMostOfSlice);
    Pen pen(buffer_.data() + before);
    char* const packet = begin_packet(pen, start);
    char* const event = pen.begin(11);
    pen.bytes(name < named_.size() ? named_[name] : begin_of(0, uint64_t{name} + 1));
    pen.number(11, track);
    if (call < calls_.size()) pen.bytes(calls_[call]);
    pen.end(event);
    pen.number(13, kNamesUsed);
    pen.end(packet);
    // An end refers to no name.
    char* const last = begin_packet(pen, end);
    char* const ending = pen.begin(11);
    pen.number(9, pf::TrackEvent::TYPE_SLICE_END);
    pen.number(11, track);
    pen.end(ending);
    pen.end(last);
    buffer_.resize(static_cast<size_t>(pen.at() - buffer_.data()));
    return buffer_.size() < kPartBytes ? Result<void>{} : flush();
  }

  [[nodiscard]] Result<void> flush() {
    auto done = file_.write(buffer_);
    buffer_.clear();
    return done;
  }

 private:
  [[nodiscard]] std::string kind(int name) const {
    return name < timeline_.kinds_size() ? timeline_.kinds(name) : "operation";
  }

  pf::TracePacket described(const std::string& name) {
    pf::TracePacket packet;
    packet.mutable_track_descriptor()->set_uuid(++last_uuid_);
    packet.mutable_track_descriptor()->set_name(name);
    return packet;
  }

  static char* begin_packet(Pen& pen, Nanos time) {
    char* const length = pen.begin(1);
    pen.number(8, static_cast<uint64_t>(std::max<Nanos>(0, time)));
    pen.number(10, kSequence);
    return length;
  }

  // What the beginnings of all operations of a name say; category 0: none.
  static std::string begin_of(uint64_t category, uint64_t name) {
    std::string out;
    if (category != 0) put_number(out, 3, category);
    put_number(out, 9, pf::TrackEvent::TYPE_SLICE_BEGIN);
    put_number(out, 10, name);
    return out;
  }

  // What the members of a call say of it, once for all of them. Its texts are numbered: thousands of calls share them.
  void name_calls(pf::InternedData& interned) {
    std::map<std::string, uint64_t> known;
    const auto number = [&](const std::string& text) {
      const auto [at, fresh] = known.emplace(text, known.size() + 1);
      if (fresh) {
        pf::InternedString& value = *interned.add_debug_annotation_string_values();
        value.set_iid(at->second);
        value.set_str(text);
      }
      return at->second;
    };
    calls_.reserve(static_cast<size_t>(timeline_.calls_size()));
    std::string annotation;
    for (const pb::TimelineCall& call : timeline_.calls()) {
      std::string& said = calls_.emplace_back();
      const auto put = [&](uint64_t name, uint32_t field, uint64_t value) {
        annotation.clear();
        put_number(annotation, 1, name);
        put_number(annotation, field, value);
        put_bytes(said, 4, annotation);
      };
      put(kOperation, 17, number(call.operation()));
      put(kCommunicator, 17, number(call.communicator()));
      put(kCallSequence, 4, static_cast<uint64_t>(call.sequence()));
      put_varint(said, 47 << 3 | 1);
      // fixed64, little-endian
      for (int byte = 0; byte < 8; ++byte)
        said += static_cast<char>((calls_.size() >> (8 * byte)) & 255);
    }
  }

  AtomicFile& file_;
  const pb::Timeline& timeline_;
  std::string buffer_;
  std::vector<std::string> named_;  // by name: begin_of it
  std::vector<std::string> calls_;  // by call: its annotations and its flow
  uint64_t last_uuid_ = 0;
};

// When culprits are pointed at: at the first failure, or from the start.
Nanos time_of_blame(const pb::Outcome& outcome) {
  return outcome.last_progress_ns() > 0 ? outcome.last_progress_ns() : 0;
}

Result<void> instant(PerfettoFile& file, uint64_t track, Nanos time, const std::string& name,
                     const std::string& why) {
  pf::TracePacket packet;
  packet.set_timestamp(static_cast<uint64_t>(time));
  pf::TrackEvent& event = *packet.mutable_track_event();
  event.set_type(pf::TrackEvent::TYPE_INSTANT);
  event.set_track_uuid(track);
  event.set_name(name);
  pf::DebugAnnotation& annotation = *event.add_debug_annotations();
  annotation.set_name("why");
  annotation.set_string_value(why);
  return file.put(packet);
}

Result<void> put_rank(PerfettoFile& file, const pb::RankTimeline& rank, const pb::Outcome& outcome,
                      const pb::Pictures& pictures) {
  RH_TRY(const uint64_t process,
         file.process(static_cast<int32_t>(rank.rank()) + 1, fmt::format("rank {}", rank.rank())));
  for (const pb::Culprit& culprit : outcome.culprits()) {
    if (!culprit.has_rank() || culprit.rank() != rank.rank()) continue;
    if (auto done = instant(file, process, time_of_blame(outcome), "culprit", culprit.why());
        !done) {
      return done;
    }
  }
  for (const pb::LaneTimeline& lane : rank.lanes()) {
    RH_TRY(const uint64_t track, file.track(process, lane.name()));
    Nanos free = 0;
    Result<void> done;
    each_row(lane, [&](const LaneRow& row) {
      if (!done) return;
      const Nanos start = std::max(row.start, free),
                  end = std::max(start, row.start + row.duration);
      free = end;
      done = file.slice(track, start, end, row.name, row.call);
    });
    if (!done) return done;
    if (!lane.has_open()) continue;
    const Nanos start = std::max(lane.open().start_ns(), free);
    const uint32_t call = lane.open().has_call() ? lane.open().call() : kNoTimelineCall;
    done = file.slice(track, start, std::max(start, outcome.end_ns()), lane.open().name_id(), call);
    if (!done) return done;
  }
  for (const pb::MemoryCurve& curve : pictures.memory()) {
    if (curve.rank() != rank.rank()) continue;
    pf::CounterDescriptor unit;
    unit.set_unit(pf::CounterDescriptor::UNIT_SIZE_BYTES);
    RH_TRY(const uint64_t track, file.counter(process, "memory in use", unit));
    Nanos at = 0;
    for (int i = 0; i < std::min(curve.time_size(), curve.bytes_size()); ++i) {
      at += curve.time(i);
      pf::TracePacket packet;
      packet.set_timestamp(static_cast<uint64_t>(at));
      packet.mutable_track_event()->set_type(pf::TrackEvent::TYPE_COUNTER);
      packet.mutable_track_event()->set_track_uuid(track);
      packet.mutable_track_event()->set_counter_value(curve.bytes(i));
      if (auto done = file.put(packet); !done) return done;
    }
  }
  return {};
}

Result<void> put_job(PerfettoFile& file, const pb::Timeline& timeline, const pb::Outcome& outcome) {
  RH_TRY(const uint64_t process, file.process(kPathProcess, "critical path"));
  for (const std::string& patch : outcome.patches()) {
    if (auto done = instant(file, process, 0, "changed", patch); !done) return done;
  }
  for (const pb::Culprit& culprit : outcome.culprits()) {
    if (culprit.has_rank()) continue;
    const std::string name = culprit.has_node() ? fmt::format("culprit: node {}", culprit.node())
                                                : "culprit: " + culprit.link();
    if (auto done = instant(file, process, time_of_blame(outcome), name, culprit.why()); !done) {
      return done;
    }
  }
  if (timeline.critical_path().empty()) return {};
  RH_TRY(const uint64_t track, file.track(process, "critical path"));
  for (const pb::PathPart& part : timeline.critical_path()) {
    if (auto done =
            file.slice(track, part.from_ns(), part.to_ns(), part.name_id(), kNoTimelineCall);
        !done) {
      return done;
    }
  }
  return {};
}

Result<void> put_links(PerfettoFile& file, const pb::Outcome& outcome) {
  if (outcome.links().empty()) return {};
  RH_TRY(const uint64_t process, file.process(kLinksProcess, "links"));
  for (const pb::LinkUse& link : outcome.links()) {
    if (link.over_time().empty()) continue;
    pf::CounterDescriptor unit;
    unit.set_unit_name("%");
    RH_TRY(const uint64_t track, file.counter(process, link.name(), unit));
    for (int i = 0; i <= link.over_time_size(); ++i) {
      pf::TracePacket packet;
      packet.set_timestamp(static_cast<uint64_t>(outcome.end_ns()) * static_cast<uint64_t>(i) /
                           static_cast<uint64_t>(link.over_time_size()));
      packet.mutable_track_event()->set_type(pf::TrackEvent::TYPE_COUNTER);
      packet.mutable_track_event()->set_track_uuid(track);
      packet.mutable_track_event()->set_double_counter_value(
          i < link.over_time_size() ? 100 * link.over_time(i) : 0);
      if (auto done = file.put(packet); !done) return done;
    }
  }
  return {};
}

}  // namespace

Result<void> write_perfetto(const pb::Timeline& timeline, const pb::Outcome& outcome,
                            const pb::Pictures& pictures, AtomicFile& out) {
  PerfettoFile file(out, timeline);
  if (auto done = file.names(); !done) return done;
  if (auto done = put_job(file, timeline, outcome); !done) return done;
  for (const pb::RankTimeline& rank : timeline.ranks()) {
    if (auto done = put_rank(file, rank, outcome, pictures); !done) return done;
  }
  if (auto done = put_links(file, outcome); !done) return done;
  return file.flush();
}

}  // namespace rehearse::sim
