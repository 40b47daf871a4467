// SPDX-License-Identifier: Apache-2.0
// Files whose hashes are right and whose content lies.
#include "traces/model/rtrace_format.hpp"

#include <zstd.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "tests/traces/trace_samples.hpp"
#include "traces/model/rtrace.hpp"
#include "traces/model/rtrace_block.hpp"

namespace rehearse::rtrace_format_test {
using namespace rehearse;
using namespace rehearse::traces;

namespace {

// One rank with three lanes and one communicator of two members, and a block that the test spoils.
struct Forgery {
  pb::TraceHeader header;
  pb::CommunicatorRecord communicator;
  pb::RankRecord rank;
  pb::OperationBlock block;
  uint32_t index_count = 2;

  Forgery() {
    communicator.add_members(0);
    communicator.add_members(1);
    rank.set_operations(2);
    for (int i = 0; i < 3; ++i) rank.add_lanes();
    block.set_count(2);
    for (const int kind : {5, 6}) block.add_kind(static_cast<uint32_t>(kind));
    for (const int delta : {100, 5}) block.add_start(delta);
    for (int i = 0; i < 2; ++i) block.add_detail(1);
    block.mutable_calls()->add_peer(-1);
    block.mutable_syncs()->add_stream_lane(-1);
  }

  // "" when the file can be read.
  std::string refusal() const {
    const samples::Folder folder;
    std::string bytes(kRtraceMagic);
    bytes += static_cast<char>(kRtraceMajor);
    bytes += static_cast<char>(kRtraceMinor);
    pb::TraceIndex index;
    const auto add = [&](RecordType type, const google::protobuf::MessageLite& message,
                         uint32_t count) {
      pb::IndexEntry& entry = *index.add_entries();
      entry.set_type(static_cast<uint32_t>(type));
      entry.set_offset(bytes.size());
      entry.set_count(count);
      bytes += *pack(type, message);
    };
    add(RecordType::kHeader, header, 0);
    add(RecordType::kCommunicator, communicator, 0);
    add(RecordType::kRank, rank, 0);
    add(RecordType::kOperations, block, index_count);
    index.set_operations(index_count);
    const uint64_t at = bytes.size();
    bytes += *pack(RecordType::kIndex, index);
    bytes += trailer_bytes(at);
    std::ofstream(folder / "forged.rtrace", std::ios::binary) << bytes;
    SilentReporter silent;
    const auto trace = read_rtrace(folder / "forged.rtrace", {}, silent);
    if (trace) return {};
    CHECK(trace.error().code == Code::kBadInput);
    CHECK(trace.error().where.find("byte ") != std::string::npos);
    return trace.error().what;
  }
};

std::string refusal(const std::function<void(Forgery&)>& spoil) {
  Forgery forgery;
  spoil(forgery);
  return forgery.refusal();
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("nothing a block claims is believed", "[traces][rtrace]") {
  CHECK(refusal([](Forgery&) {}).empty());
  CHECK(contains(refusal([](Forgery& f) { f.block.add_kind(1); }), "columns of operations"));
  CHECK(contains(refusal([](Forgery& f) { f.block.add_lane(0); }), "columns of operations"));
  CHECK(contains(refusal([](Forgery& f) { f.block.set_kind(0, 10); }), "unknown kind"));
  CHECK(contains(refusal([](Forgery& f) { f.block.add_lane(0), f.block.add_lane(3); }),
                 "lane beyond"));
  CHECK(contains(refusal([](Forgery& f) { f.block.add_name(0), f.block.add_name(1); }),
                 "name beyond"));
  CHECK(contains(refusal([](Forgery& f) { f.block.set_start(1, -1); }), "order of start"));
  CHECK(contains(refusal([](Forgery& f) { f.block.set_start(1, INT64_MAX); }), "order of start"));
  CHECK(contains(
      refusal([](Forgery& f) { f.block.add_duration(0), f.block.add_duration(UINT64_MAX); }),
      "lasts longer"));
  CHECK(contains(refusal([](Forgery& f) { f.block.set_detail(0, 2); }), "neither the next row"));
  CHECK(contains(refusal([](Forgery& f) { f.block.set_kind(0, 2); }), "its kind does not have"));
  CHECK(contains(refusal([](Forgery& f) { f.block.set_count(UINT32_MAX); }),
                 "not the one of the index"));
  CHECK(
      contains(refusal([](Forgery& f) { f.index_count = 100'000; }), "block of 100000 operations"));
  CHECK(contains(refusal([](Forgery& f) { f.block.set_rank(7); }), "not the one of the index"));
}

TEST_CASE("nothing the details of a block claim is believed", "[traces][rtrace]") {
  const auto call = [](const std::function<void(pb::CallColumns&)>& spoil) {
    return refusal([&](Forgery& f) { spoil(*f.block.mutable_calls()); });
  };
  CHECK(contains(call([](auto& c) { c.add_communicator(1); }), "communicator that is not"));
  CHECK(contains(call([](auto& c) { c.add_collective(11); }), "does not exist"));
  CHECK(contains(call([](auto& c) { c.add_dtype(13); }), "does not exist"));
  CHECK(contains(call([](auto& c) { c.add_reduction(6); }), "does not exist"));
  CHECK(contains(call([](auto& c) { c.add_bytes_in(UINT64_MAX); }), "does not exist"));
  CHECK(contains(call([](auto& c) { c.set_peer(0, 2); }), "peer 2"));
  CHECK(contains(call([](auto& c) { c.set_peer(0, -2); }), "peer -2"));
  CHECK(contains(call([](auto& c) { c.add_peer(0); }), "columns of calls"));
  CHECK(contains(refusal([](Forgery& f) { f.block.mutable_syncs()->set_stream_lane(0, 3); }),
                 "stream lane 3"));
  CHECK(
      contains(refusal([](Forgery& f) { f.block.mutable_syncs()->add_sync(5); }), "unknown type"));
  CHECK(contains(refusal([](Forgery& f) { f.block.mutable_copies()->add_bytes(5); }),
                 "columns of copies"));
  CHECK(contains(refusal([](Forgery& f) { f.block.mutable_memory()->add_bytes(5); }),
                 "columns of memory"));
}

TEST_CASE("dependencies point back to operations that are there", "[traces][rtrace]") {
  const auto depends = [](uint32_t op, uint32_t back) {
    return refusal([&](Forgery& f) { f.block.add_dependent(op), f.block.add_waits_back(back); });
  };
  CHECK(depends(1, 1).empty());
  CHECK(contains(depends(1, 2), "not before it"));
  CHECK(contains(depends(1, 0), "not before it"));
  CHECK(contains(depends(2, 1), "not before it"));
  CHECK(contains(depends(0, 1), "not before it"));
  CHECK(contains(refusal([](Forgery& f) { f.block.add_dependent(1); }), "differ in length"));
}

TEST_CASE("nothing a rank claims is believed", "[traces][rtrace]") {
  CHECK(
      contains(refusal([](Forgery& f) { f.rank.set_operations(3); }), "has 2 of its 3 operations"));
  CHECK(contains(refusal([](Forgery& f) { f.rank.set_operations(1); }),
                 "more than the 1 operations"));
  CHECK(contains(refusal([](Forgery& f) { f.rank.mutable_lanes(0)->set_kind(3); }),
                 "lane of unknown kind"));
  CHECK(contains(refusal([](Forgery& f) { f.rank.mutable_lanes(0)->set_name(1); }), "name 1 of 1"));
  CHECK(contains(refusal([](Forgery& f) { f.rank.add_steps()->set_end(-1); }), "step 0"));
  CHECK(contains(refusal([](Forgery& f) { f.rank.set_clock_offset(INT64_MIN); }), "clock offset"));
  CHECK(contains(refusal([](Forgery& f) { f.rank.set_rank(1); }), "unknown rank 0"));
}

TEST_CASE("a payload that claims to grow beyond all measure is refused", "[traces][rtrace]") {
  std::string room;
  const std::string zeros(kMaxPayload + 1, '\0');
  std::string frame(ZSTD_compressBound(zeros.size()), '\0');
  frame.resize(ZSTD_compress(frame.data(), frame.size(), zeros.data(), zeros.size(), 3));
  const auto too_large = unpack({RecordType::kStrings, kCompressed, frame.size(), 0}, frame, room);
  REQUIRE_FALSE(too_large);
  CHECK(contains(too_large.error().what, "claims to grow"));
  CHECK(room.empty());
  CHECK_FALSE(unpack({RecordType::kStrings, kCompressed, 4, 0}, "none", room));
  const std::string two = frame + frame;
  CHECK_FALSE(unpack({RecordType::kStrings, kCompressed, two.size(), 0}, two, room));
}

TEST_CASE("the head of a record survives its bytes", "[traces][rtrace]") {
  const RecordHead head{RecordType::kOperations, kCompressed, 0x0102030405060708,
                        0xfffefdfcfbfaf9f8};
  const std::string bytes = to_bytes(head);
  REQUIRE(bytes.size() == kRecordHeader);
  CHECK(bytes.substr(0, 8) == std::string("\5\0\0\0\1\0\0\0", 8));
  const RecordHead back = head_from(bytes);
  CHECK(back.type == head.type);
  CHECK(back.flags == head.flags);
  CHECK(back.length == head.length);
  CHECK(back.hash == head.hash);
  CHECK(hash_of(RecordType::kRank, 0, "x") != hash_of(RecordType::kRank, 1, "x"));
  CHECK(hash_of(RecordType::kRank, 0, "x") != hash_of(RecordType::kStrings, 0, "x"));
}

}  // namespace rehearse::rtrace_format_test
