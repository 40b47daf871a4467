// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
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
// Names of what is said of a call.
enum Annotation : uint64_t { kOperation = 1, kCommunicator, kCallSequence };
constexpr std::array<std::pair<uint64_t, const char*>, 3> kAnnotationNames = {
    {{kOperation, "operation"}, {kCommunicator, "communicator"}, {kCallSequence, "sequence"}}};
// Process ids of what is not a rank.
constexpr int32_t kPathProcess = 1'000'000'000, kLinksProcess = kPathProcess + 1;

class PerfettoFile {
 public:
  PerfettoFile(AtomicFile& file, const pb::Timeline& timeline) : file_(file), timeline_(timeline) {}

  // Everything that events only refer to by number.
  [[nodiscard]] Result<void> names() {
    pf::TracePacket packet;
    packet.set_sequence_flags(kNamesBegin);
    pf::InternedData& interned = *packet.mutable_interned_data();
    std::map<std::string, uint64_t> categories;
    category_.reserve(static_cast<size_t>(timeline_.names_size()));
    for (int i = 0; i < timeline_.names_size(); ++i) {
      pf::EventName& name = *interned.add_event_names();
      name.set_iid(static_cast<uint64_t>(i) + 1);
      name.set_name(timeline_.names(i).empty() ? kind(i) : timeline_.names(i));
      const auto [at, fresh] = categories.emplace(kind(i), categories.size() + 1);
      category_.push_back(at->second);
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
    event_.clear();
    if (name < category_.size()) put_number(event_, 3, category_[name]);
    put_number(event_, 9, pf::TrackEvent::TYPE_SLICE_BEGIN);
    put_number(event_, 10, static_cast<uint64_t>(name) + 1);
    put_number(event_, 11, track);
    if (call != kNoTimelineCall) {
      annotate(call);
      put_varint(event_, 47 << 3 | 1);
      const uint64_t flow = static_cast<uint64_t>(call) + 1;  // fixed64, little-endian
      for (int byte = 0; byte < 8; ++byte) event_ += static_cast<char>((flow >> (8 * byte)) & 255);
    }
    begin_event(start);
    put_number(packet_, 13, kNamesUsed);
    put_bytes(buffer_, 1, packet_);
    // An end refers to no name.
    event_.clear();
    put_number(event_, 9, pf::TrackEvent::TYPE_SLICE_END);
    put_number(event_, 11, track);
    begin_event(end);
    put_bytes(buffer_, 1, packet_);
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

  void begin_event(Nanos time) {
    packet_.clear();
    put_number(packet_, 8, static_cast<uint64_t>(std::max<Nanos>(0, time)));
    put_number(packet_, 10, kSequence);
    put_bytes(packet_, 11, event_);
  }

  // What calls are said to be: thousands of ranks say the same.
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
    for (const pb::TimelineCall& call : timeline_.calls()) {
      const uint64_t operation = number(call.operation());
      calls_.push_back({operation, number(call.communicator())});
    }
  }

  void annotate(uint32_t call) {
    if (call >= calls_.size()) return;
    const auto put = [&](uint64_t name, uint32_t field, uint64_t value) {
      annotation_.clear();
      put_number(annotation_, 1, name);
      put_number(annotation_, field, value);
      put_bytes(event_, 4, annotation_);
    };
    put(kOperation, 17, calls_[call].operation);
    put(kCommunicator, 17, calls_[call].communicator);
    put(kCallSequence, 4,
        static_cast<uint64_t>(timeline_.calls(static_cast<int>(call)).sequence()));
  }

  struct NamedCall {  // numbers of texts
    uint64_t operation = 0, communicator = 0;
  };

  AtomicFile& file_;
  const pb::Timeline& timeline_;
  std::string buffer_, packet_, event_, annotation_;  // kept, so that they are not allocated anew
  std::vector<uint64_t> category_;                    // by name
  std::vector<NamedCall> calls_;
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
