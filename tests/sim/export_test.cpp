// SPDX-License-Identifier: Apache-2.0
#include "sim/export/export.hpp"

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "sim/outcome/pictures.hpp"
#include "sim/proto/perfetto.pb.h"
#include "tests/sim/job16.hpp"

namespace rehearse::tests::export_test {
namespace {

namespace pf = rehearse::perfetto;

struct Exported {
  pb::Outcome outcome;
  pb::Pictures pictures;
  size_t operations = 0, calls = 0;
};

Exported exported(const std::vector<std::string>& changes) {
  Exported out;
  sim::Scenario scenario = job16();
  for (const std::string& text : changes) REQUIRE(change(scenario, text));
  SilentReporter silent;
  auto outcome = sim::simulate(scenario, sim::Detail::kTimeline | sim::Detail::kPictures, silent);
  REQUIRE(outcome);
  out.outcome = std::move(*outcome);
  out.pictures = *sim::unpacked_pictures(out.outcome.pictures(), "test");
  for (const auto& rank : out.outcome.timeline().ranks()) {
    for (const auto& lane : rank.lanes()) {
      out.operations += static_cast<size_t>(lane.start_size()) + (lane.has_open() ? 1 : 0);
      out.calls += static_cast<size_t>(lane.call_size()) + (lane.has_open() ? 1 : 0);
    }
  }
  return out;
}

template <typename Write>
std::string written(const Write& write) {
  const TemporaryFolder folder;
  const auto path = folder.path / "out";
  auto file = AtomicFile::create(path, Overwrite::kRefuse);
  REQUIRE(file);
  REQUIRE(write(*file));
  REQUIRE(file->commit());
  return *read_file(path, 1u << 30);
}

pf::Trace perfetto_of(const Exported& run) {
  const std::string bytes = written([&](AtomicFile& file) {
    return sim::write_perfetto(run.outcome.timeline(), run.outcome, run.pictures, file);
  });
  pf::Trace trace;
  REQUIRE(trace.ParseFromString(bytes));
  // Nothing that the schema does not name.
  CHECK(trace.unknown_fields().empty());
  return trace;
}

}  // namespace

TEST_CASE("a Perfetto trace has every operation once, on the track of its lane", "[sim][export]") {
  const Exported run = exported({"slow-rank: {rank: 6, slowdown: 2.0}"});
  const pf::Trace trace = perfetto_of(run);
  std::map<uint64_t, pf::TrackDescriptor> tracks;
  std::map<uint64_t, int> open;  // slices begun and not ended, by track
  std::map<uint64_t, std::string> names;
  size_t begins = 0, ends = 0, on_path = 0, counters = 0, instants = 0, flows = 0;
  std::set<uint64_t> flow_ids;
  for (const pf::TracePacket& packet : trace.packet()) {
    CHECK(packet.trusted_packet_sequence_id() == 1);
    CHECK(packet.unknown_fields().empty());
    for (const auto& name : packet.interned_data().event_names()) names[name.iid()] = name.name();
    if (packet.has_track_descriptor()) {
      tracks[packet.track_descriptor().uuid()] = packet.track_descriptor();
    }
    if (!packet.has_track_event()) continue;
    const pf::TrackEvent& event = packet.track_event();
    REQUIRE(tracks.count(event.track_uuid()) == 1);
    const bool path = tracks[event.track_uuid()].name() == "critical path";
    if (event.type() == pf::TrackEvent::TYPE_SLICE_BEGIN) {
      (path ? on_path : begins) += 1;
      CHECK(names.count(event.name_iid()) == 1);
      CHECK(++open[event.track_uuid()] == 1);
      flows += static_cast<size_t>(event.flow_ids_size());
      for (const uint64_t id : event.flow_ids()) flow_ids.insert(id);
    } else if (event.type() == pf::TrackEvent::TYPE_SLICE_END) {
      ends += path ? 0 : 1;
      CHECK(--open[event.track_uuid()] == 0);
    }
    counters += event.type() == pf::TrackEvent::TYPE_COUNTER ? 1 : 0;
    instants += event.type() == pf::TrackEvent::TYPE_INSTANT ? 1 : 0;
  }
  CHECK(begins == run.operations);
  CHECK(ends == run.operations);
  CHECK(flows == run.calls);
  CHECK(flow_ids.size() * 2 <= flows);
  CHECK(on_path == static_cast<size_t>(run.outcome.timeline().critical_path_size()));
  CHECK(counters > 0);
  CHECK(instants >= 1);  // what was changed
  size_t processes = 0;
  for (const auto& [uuid, track] : tracks) processes += track.has_process() ? 1 : 0;
  CHECK(processes == 16 + 2);
}

TEST_CASE("a Perfetto trace says of every member what call it is in", "[sim][export]") {
  const Exported run = exported({});
  std::map<uint64_t, std::string> names, values;
  size_t calls = 0;
  std::set<std::tuple<std::string, std::string, int64_t>> said;
  const pf::Trace trace = perfetto_of(run);
  for (const pf::TracePacket& packet : trace.packet()) {
    const pf::InternedData& interned = packet.interned_data();
    for (const auto& name : interned.debug_annotation_names()) names[name.iid()] = name.name();
    for (const auto& value : interned.debug_annotation_string_values()) {
      CHECK(values.emplace(value.iid(), value.str()).second);
    }
    const pf::TrackEvent& event = packet.track_event();
    const bool refers =
        event.has_name_iid() || event.category_iids_size() > 0 || event.flow_ids_size() > 0;
    CHECK((packet.sequence_flags() == 2) == refers);
    if (event.flow_ids_size() == 0) continue;
    ++calls;
    REQUIRE(event.debug_annotations_size() == 3);
    std::map<std::string, const pf::DebugAnnotation*> by_name;
    for (const auto& annotation : event.debug_annotations()) {
      by_name[names.at(annotation.name_iid())] = &annotation;
    }
    said.emplace(values.at(by_name.at("operation")->string_value_iid()),
                 values.at(by_name.at("communicator")->string_value_iid()),
                 by_name.at("sequence")->int_value());
  }
  CHECK(calls == run.calls);
  std::set<std::tuple<std::string, std::string, int64_t>> expected;
  for (const pb::TimelineCall& call : run.outcome.timeline().calls()) {
    expected.emplace(call.operation(), call.communicator(), call.sequence());
  }
  CHECK(said == expected);
}

TEST_CASE("a culprit stands on the track of its rank", "[sim][export]") {
  const Exported run = exported({"skip-collective: {rank: 5, nth: 3}"});
  REQUIRE(blamed(run.outcome) == std::vector<uint32_t>{5});
  const pf::Trace trace = perfetto_of(run);
  std::map<uint64_t, std::string> processes;
  std::vector<std::string> blamed_tracks;
  for (const pf::TracePacket& packet : trace.packet()) {
    if (packet.has_track_descriptor()) {
      processes[packet.track_descriptor().uuid()] =
          packet.track_descriptor().process().process_name();
    }
    if (packet.track_event().name() == "culprit") {
      blamed_tracks.push_back(processes[packet.track_event().track_uuid()]);
      CHECK(packet.track_event().debug_annotations_size() == 1);
    }
  }
  CHECK(blamed_tracks == std::vector<std::string>{"rank 5"});
}

TEST_CASE("Chrome's JSON and CSV have a row per operation", "[sim][export]") {
  Exported run = exported({});
  // Names as they may come.
  *run.outcome.mutable_timeline()->mutable_names(0) = "=cmd|' /C calc'!A0 \"quoted\"\n</script>";
  const auto json = nlohmann::json::parse(written([&](AtomicFile& file) {
    return sim::write_chrome(run.outcome.timeline(), run.outcome, file);
  }));
  size_t slices = 0;
  for (const auto& event : json["traceEvents"]) slices += event["ph"] == "X" ? 1 : 0;
  CHECK(slices == run.operations);
  const std::string csv =
      written([&](AtomicFile& file) { return sim::write_csv(run.outcome.timeline(), file); });
  CHECK(csv.starts_with("rank,lane,start_ns,duration_ns,kind,name,communicator,sequence\n"));
  // A spreadsheet must not compute it.
  CHECK(csv.find("\"'=cmd|' /C calc'!A0 \"\"quoted\"\"\n</script>\"") != std::string::npos);
  CHECK(csv.find(",\"=") == std::string::npos);
}

}  // namespace rehearse::tests::export_test
