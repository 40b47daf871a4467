// SPDX-License-Identifier: Apache-2.0
// NCCL's profiler plugin, versions 1 to 6, played by a driver program.
#include <catch2/catch.hpp>
#include <set>

#include "tests/traces/capture/recording.hpp"

namespace rehearse::capture_nccl_test {
using namespace rehearse;
using namespace rehearse::tests;

namespace {

struct Counted {
  std::map<uint32_t, uint64_t> starts;  // by type
  uint64_t stops = 0, states = 0, dropped = 0, communicators = 0;
  std::set<uint64_t> ids;
  std::set<uint32_t> threads;
};

Counted count(const std::vector<pb::CaptureRecord>& records) {
  Counted c;
  for (const pb::CaptureRecord& r : records) {
    if (r.has_nccl_start()) {
      ++c.starts[r.nccl_start().type()];
      c.ids.insert(r.nccl_start().id());
      c.threads.insert(r.nccl_start().thread());
    }
    c.stops += r.has_nccl_stop() ? 1 : 0;
    c.states += r.has_nccl_state() ? 1 : 0;
    c.communicators += r.has_communicator() ? 1 : 0;
    if (r.has_drops() && r.drops().source() == 4) c.dropped += r.drops().records();
  }
  return c;
}

}  // namespace

TEST_CASE("every plugin version records what NCCL told it", "[capture][threads]") {
  constexpr int kThreads = 4, kCollectives = 50;
  constexpr uint64_t kEach = kThreads * kCollectives;
  for (int version = 1; version <= 6; ++version) {
    INFO("plugin v" << version);
    Recording recording;
    recording.with("REHEARSE_CAPTURE_WITH", "steps,channels");
    const Run run = recording.run(
        {"nccl", std::to_string(version), std::to_string(kThreads), std::to_string(kCollectives)});
    INFO(run.err);
    REQUIRE(run.code == 0);
    CHECK(run.err.empty());
    const auto records = recording.records();
    const Counted c = count(records);
    auto names = names_of(records);
    CHECK(c.dropped == 0);
    CHECK(c.starts.at(1) == kEach);
    CHECK(c.starts.at(2) == kEach);
    CHECK(c.starts.at(4) == kEach);
    CHECK(c.starts.at(8) == kEach);
    CHECK(c.starts.at(16) == kEach);
    CHECK(c.starts.count(64) == (version >= 3 ? 1 : 0));
    CHECK(c.starts.count(2048) == (version >= 5 ? 1 : 0));
    CHECK(c.starts.count(4096) == (version >= 6 ? 1 : 0));
    CHECK(c.communicators == (version >= 4 ? 2 : 0));
    CHECK(c.threads.size() == kThreads);
    uint64_t all = 0;
    for (const auto& [type, n] : c.starts) all += n;
    CHECK(c.ids.size() == all);
    CHECK(c.ids.count(0) == 0);
    CHECK(c.stops == all);
    std::map<uint64_t, uint32_t> type_of;
    for (const auto& r : records) {
      if (r.has_nccl_start()) type_of[r.nccl_start().id()] = r.nccl_start().type();
    }
    uint64_t foreign = 0;
    for (const auto& r : records) {
      if (!r.has_nccl_start()) continue;
      const pb::CaptureNcclStart& s = r.nccl_start();
      if (s.type() == 2) {
        CHECK(names[s.function()] == "AllReduce");
        CHECK(names[s.datatype()] == "ncclFloat32");
        CHECK(names[s.algorithm()] == "RING");
        CHECK(names[s.protocol()] == "SIMPLE");
        CHECK(s.count() == 1000);
        CHECK(s.channels() == 16);
        CHECK((s.communicator() == 0xabc0 || s.communicator() == 0xabc1));
        CHECK(type_of[s.parent()] == (version >= 5 ? 512 : 1));
      } else if (s.type() == 4) {
        CHECK(names[s.function()] == "Send");
        CHECK(s.root() == 3);
      } else if (s.type() == 8) {
        foreign += s.parent() == 0 ? 1 : 0;
        if (s.parent() != 0) CHECK(type_of[s.parent()] == 2);
        CHECK(s.steps() == 8);
        CHECK(s.send());
      } else if (s.type() == 64 && version >= 4) {
        CHECK(s.gpu_time() == 777);
      }
    }
    // Every second proxy operation was for another process.
    CHECK(foreign == kEach / 2);
  }
}

TEST_CASE("what does not fit is counted, and nothing else is lost", "[capture][threads]") {
  constexpr uint64_t kThreads = 8, kCollectives = 4000;
  Recording recording;
  // 1 MiB of buffers for 8 threads that write several.
  recording.with("REHEARSE_CAPTURE_BUFFER_MIB", "1").with("REHEARSE_CAPTURE_FLUSH_MS", "500");
  const Run run =
      recording.run({"nccl", "4", std::to_string(kThreads), std::to_string(kCollectives)});
  REQUIRE(run.code == 0);
  const Counted c = count(recording.records());
  uint64_t got = c.stops;
  for (const auto& [type, n] : c.starts) got += n;
  // Groups, collectives and point-to-point operations, each with a start and a stop.
  CHECK(got + c.dropped == kThreads * kCollectives * 6);
}

TEST_CASE("what is off by default is not asked of NCCL", "[capture]") {
  Recording recording;
  REQUIRE(recording.run({"nccl", "6", "1", "3"}).code == 0);
  const Counted c = count(recording.records());
  CHECK(c.starts.count(8) == 0);
  CHECK(c.starts.count(16) == 0);
  CHECK(c.starts.count(64) == 0);
  CHECK(c.starts.at(4096) == 3);
}

TEST_CASE("the tuner's costs are written down and left as they are", "[capture]") {
  for (int version = 3; version <= 6; ++version) {
    INFO("tuner v" << version);
    Recording recording;
    recording.with("NCCL_TUNER_PLUGIN", CAPTURE_LIBRARY).with("REHEARSE_CAPTURE_WITH", "tuner");
    // 93: the plugin changed a cost or the number of channels.
    const Run run = recording.run({"tuner", std::to_string(version), "5"});
    INFO(run.err);
    REQUIRE(run.code == 0);
    const auto records = recording.records();
    auto names = names_of(records);
    std::vector<pb::CaptureTuning> tunings;
    for (const pb::CaptureRecord& r : records) {
      if (r.has_tuning()) tunings.push_back(r.tuning());
    }
    REQUIRE(tunings.size() == 5);
    for (size_t i = 0; i < tunings.size(); ++i) {
      const pb::CaptureTuning& tuning = tunings[i];
      CHECK(tuning.communicator() == (version >= 5 ? 0xabc0 : 0));
      CHECK(names[tuning.function()] == "AllReduce");
      CHECK(tuning.bytes() == uint64_t{1024} << i);
      CHECK(tuning.algorithms() == 7);
      CHECK(tuning.protocols() == 3);
      REQUIRE(tuning.cost_size() == 21);
      CHECK(tuning.cost(0) == static_cast<float>(i));
      CHECK(tuning.cost(5) == -1);
      CHECK(tuning.cost(20) == static_cast<float>(20 + i));
      CHECK(tuning.ranks() == 8);
      CHECK(tuning.nodes() == 2);
      CHECK(tuning.operations() == 1);
    }
  }
}

}  // namespace rehearse::capture_nccl_test
