// SPDX-License-Identifier: Apache-2.0
// The hand-written encoder against libprotobuf, and the file it goes to.
#include <fcntl.h>
#include <google/protobuf/util/message_differencer.h>
#include <sys/resource.h>

#include <array>
#include <catch2/catch.hpp>
#include <csignal>
#include <limits>

#include "base/atomic_file.hpp"
#include "tests/traces/import_samples.hpp"
#include "traces/capture_file/encoder.hpp"
#include "traces/capture_file/output.hpp"
#include "traces/proto/capture.pb.h"

namespace rehearse::capture_file_test {
using namespace rehearse;
namespace cf = rehearse::capture_file;

namespace {

// One put into fresh memory, decoded by libprotobuf.
template <typename Record>
pb::CaptureRecord through(const Record& record) {
  std::vector<uint8_t> memory(64 << 10);
  cf::Encoder encoder(memory);
  REQUIRE(encoder.put(record));
  CHECK(encoder.records() == 1);
  pb::CaptureFile file;
  const auto bytes = encoder.bytes();
  REQUIRE(file.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
  REQUIRE(file.records_size() == 1);
  CHECK(bytes.size() <= cf::kLongestRecord + 3);
  CHECK(file.records(0).check() == cf::check_of(bytes.subspan(8)));
  return file.records(0);
}

void same(const google::protobuf::Message& got, const google::protobuf::Message& expected) {
  INFO(got.DebugString() << "----\n" << expected.DebugString());
  CHECK(google::protobuf::util::MessageDifferencer::Equals(got, expected));
}

constexpr uint32_t kMost32 = std::numeric_limits<uint32_t>::max();
constexpr uint64_t kMost64 = std::numeric_limits<uint64_t>::max();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();

}  // namespace

TEST_CASE("an encoded kernel is what libprotobuf reads", "[capture_file]") {
  pb::CaptureKernel expected;
  expected.set_start(-5);
  expected.set_duration(1234);
  expected.set_name(7);
  expected.set_stream(20);
  expected.set_correlation(kMost64);
  expected.set_grid_x(1);
  expected.set_grid_y(2);
  expected.set_grid_z(3);
  expected.set_block_x(4);
  expected.set_block_y(5);
  expected.set_block_z(6);
  expected.set_registers(255);
  expected.set_static_shared(kMost32);
  expected.set_dynamic_shared(9);
  expected.set_graph_node(10);
  expected.set_graph(11);
  expected.set_device(12);
  expected.set_context(13);
  same(through(cf::Kernel{.start = -5,
                          .duration = 1234,
                          .name = 7,
                          .device = 12,
                          .stream = 20,
                          .correlation = kMost64,
                          .context = 13,
                          .grid = {1, 2, 3},
                          .block = {4, 5, 6},
                          .registers = 255,
                          .static_shared = kMost32,
                          .dynamic_shared = 9,
                          .graph_node = 10,
                          .graph = 11})
           .kernel(),
       expected);
}

TEST_CASE("optional fields of zero are there, and absent ones are not", "[capture_file]") {
  pb::CaptureRange expected;
  expected.set_start(kLeast);
  expected.set_duration(0);
  expected.set_bytes(0);
  expected.set_peer(0);
  expected.set_name(1);
  const auto range =
      through(cf::Range{.start = kLeast, .duration = 0, .name = 1, .bytes = 0, .peer = 0});
  same(range.range(), expected);
  CHECK_FALSE(range.range().has_root());
  pb::CaptureSession session;
  session.set_magic("rehearse-capture");
  session.set_version(1);
  session.set_origin(1'700'000'000'000'000'000);
  session.set_rank(0);
  session.set_host("node1");
  same(through(cf::Session{.origin = 1'700'000'000'000'000'000, .host = "node1", .rank = 0})
           .session(),
       session);
}

TEST_CASE("every kind of record reaches libprotobuf with its last field", "[capture_file]") {
  const std::array<float, 3> cost = {1.5F, -1, 0};
  CHECK(through(cf::String{9, std::string_view("\xff\0x", 3)}).string().text() ==
        std::string("\xff\0x", 3));
  CHECK(through(cf::Api{.result = -2, .driver = true}).api().driver());
  CHECK(through(cf::Api{.result = -2}).api().result() == -2);
  CHECK(through(cf::Copy{.to_device = 3, .graph_node = 8}).copy().graph_node() == 8);
  CHECK(through(cf::Fill{.graph_node = 8}).fill().graph_node() == 8);
  CHECK(through(cf::Wait{.stream = 0, .event_sync = 8}).wait().has_stream());
  CHECK(through(cf::Event{.at = -8}).event().at() == -8);
  CHECK(through(cf::Correlation{5, 6, 7}).correlation().correlation() == 7);
  CHECK(through(cf::NcclStart{.id = 4, .root = 0, .sequence = 0, .step = 8}).nccl_start().step() ==
        8);
  CHECK(through(cf::NcclStart{.id = 4, .sequence = 0}).nccl_start().has_sequence());
  CHECK(through(cf::NcclState{.gpu_time = kMost64}).nccl_state().gpu_time() == kMost64);
  CHECK(through(cf::NcclStop{3, -1}).nccl_stop().at() == -1);
  CHECK(through(cf::Communicator{.name = "dp", .at = 8}).communicator().at() == 8);
  CHECK(through(cf::Graph{.context = 8}).graph().context() == 8);
  CHECK(through(cf::Overhead{.thread = 8}).overhead().thread() == 8);
  CHECK(through(cf::Memory{.bytes = -4096, .thread = 8}).memory().bytes() == -4096);
  CHECK(through(cf::Thread{1, 2}).thread().name() == 2);
  CHECK(through(cf::Device{.model = "H100", .multiprocessors = 132}).device().multiprocessors() ==
        132);
  CHECK(through(cf::Variable{"NCCL_ALGO", "Ring"}).variable().value() == "Ring");
  CHECK(through(cf::Clock{.monotonic = -1, .gpu = 8}).clock().monotonic() == -1);
  CHECK(through(cf::Drops{4, kMost64}).drops().records() == kMost64);
  CHECK(through(cf::Message{"no driver"}).message().text() == "no driver");
  const auto tuning = through(cf::Tuning{.bytes = 8, .cost = cost}).tuning();
  REQUIRE(tuning.cost_size() == 3);
  CHECK(tuning.cost(1) == -1);
  CHECK(through(cf::End{kMost64}).end().records() == kMost64);
  CHECK(through(cf::NcclStart{.gpu_time = kMost64}).nccl_start().gpu_time() == kMost64);
  CHECK(through(cf::Library{"nccl", 22809}).library().version() == 22809);
}

TEST_CASE("texts are clipped at whole characters and records stay below their bound",
          "[capture_file]") {
  std::string long_text;
  while (long_text.size() < 40'000) long_text += "\xe2\x82\xac";
  const std::string text = through(cf::String{1, long_text}).string().text();
  CHECK(text.size() <= cf::kLongestText);
  CHECK(text.size() > cf::kLongestText - 3);
  CHECK(text.size() % 3 == 0);
  CHECK(through(cf::Variable{long_text, long_text}).variable().name().size() == 255);
  CHECK(through(cf::Session{.host = long_text, .program = long_text, .library = long_text})
            .session()
            .host()
            .size() == 255);
}

TEST_CASE("a full buffer refuses a record and keeps the others whole", "[capture_file]") {
  for (size_t size = 0; size < 600; ++size) {
    std::vector<uint8_t> memory(size + 16, 0xee);
    cf::Encoder encoder(std::span<uint8_t>(memory).first(size));
    const cf::Kernel wide{.start = kLeast, .duration = kMost64, .name = kMost32};
    size_t put = 0;
    while (encoder.put(wide)) ++put;
    CHECK(encoder.records() == put);
    pb::CaptureFile file;
    REQUIRE(file.ParseFromArray(encoder.bytes().data(), static_cast<int>(encoder.bytes().size())));
    CHECK(static_cast<size_t>(file.records_size()) == put);
    for (size_t i = size; i < memory.size(); ++i) CHECK(memory[i] == 0xee);
    encoder.clear();
    CHECK(encoder.bytes().empty());
    CHECK(encoder.records() == put);
  }
}

TEST_CASE("appends go behind what is there, and a full disk leaves no half record",
          "[capture_file]") {
  const traces::samples::TempFolder folder;
  const std::string path = (folder.path() / "rank0.capture").string();
  std::vector<uint8_t> memory(4096);
  cf::Encoder encoder(memory);
  REQUIRE(encoder.put(cf::Session{}));
  for (int run = 0; run < 2; ++run) {
    cf::Output out;
    REQUIRE(out.open(path.c_str()) == 0);
    REQUIRE(out.append(encoder.bytes()) == 0);
    REQUIRE(out.sync() == 0);
  }
  CHECK(std::filesystem::file_size(path) == 2 * encoder.bytes().size());

  struct ::rlimit before {};
  ::getrlimit(RLIMIT_FSIZE, &before);
  struct ::rlimit little = before;
  little.rlim_cur = 2 * encoder.bytes().size() + 10;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &little) == 0);
  cf::Output out;
  const int opened = out.open(path.c_str());
  const int appended = out.append(encoder.bytes());
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  CHECK(opened == 0);
  CHECK(appended == EFBIG);
  CHECK(std::filesystem::file_size(path) == 2 * encoder.bytes().size());
}

TEST_CASE("an output that cannot be opened tells why", "[capture_file]") {
  cf::Output out;
  CHECK(out.open("/nowhere/rank0.capture") == ENOENT);
  CHECK_FALSE(out.is_open());
  CHECK(out.append({}) == EBADF);
  CHECK(out.sync() == EBADF);
}

}  // namespace rehearse::capture_file_test
