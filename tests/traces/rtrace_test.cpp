// SPDX-License-Identifier: Apache-2.0
#include "traces/model/rtrace.hpp"

#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>
#include <thread>

#include "tests/traces/trace_samples.hpp"

namespace rehearse::rtrace_test {
using namespace rehearse;
using namespace rehearse::traces;

namespace {

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

class StoppingReporter final : public Reporter {
 public:
  void progress(std::string_view, uint64_t, uint64_t) override {}
  void note(std::string_view) override {}
  [[nodiscard]] bool interrupted() const override { return true; }
};

}  // namespace

TEST_CASE("a trace with every kind of operation reads back as it was written", "[traces][rtrace]") {
  const samples::Folder folder;
  SilentReporter silent;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Trace trace = samples::random_trace(seed, 1 + seed % 4, seed * 37);
    const auto path = folder / "random.rtrace";
    REQUIRE(write_rtrace(trace, path, Overwrite::kReplace));
    const auto back = read_rtrace(path, {}, silent);
    REQUIRE(back);
    CHECK(samples::same(trace, *back));
    CHECK(back->header.findings_size() == 0);
  }
}

TEST_CASE("a rank of several blocks reads back as it was written", "[traces][rtrace]") {
  const samples::Folder folder;
  SilentReporter silent;
  const Trace trace = samples::random_trace(5, 1, 150'000);
  REQUIRE(write_rtrace(trace, folder / "long.rtrace", Overwrite::kRefuse));
  const auto back = read_rtrace(folder / "long.rtrace", {}, silent);
  REQUIRE(back);
  CHECK(samples::same(trace, *back));
}

TEST_CASE("a rank without operations and a trace without ranks are whole", "[traces][rtrace]") {
  const samples::Folder folder;
  SilentReporter silent;
  for (const uint32_t ranks : {0u, 1u}) {
    const Trace trace = samples::random_trace(1, ranks, 0);
    REQUIRE(write_rtrace(trace, folder / "empty.rtrace", Overwrite::kReplace));
    const auto back = read_rtrace(folder / "empty.rtrace", {}, silent);
    REQUIRE(back);
    CHECK(back->ranks.size() == ranks);
    CHECK(back->operations() == 0);
  }
}

TEST_CASE("the same trace gives the same bytes", "[traces][rtrace]") {
  const samples::Folder folder;
  REQUIRE(write_rtrace(samples::random_trace(9, 3, 500), folder / "a.rtrace", Overwrite::kRefuse));
  REQUIRE(write_rtrace(samples::random_trace(9, 3, 500), folder / "b.rtrace", Overwrite::kRefuse));
  CHECK(bytes_of(folder / "a.rtrace") == bytes_of(folder / "b.rtrace"));
}

TEST_CASE("reading and writing again gives the same bytes", "[traces][rtrace]") {
  const samples::Folder folder;
  SilentReporter silent;
  REQUIRE(write_rtrace(samples::random_trace(9, 3, 500), folder / "a.rtrace", Overwrite::kRefuse));
  const auto back = read_rtrace(folder / "a.rtrace", {}, silent);
  REQUIRE(back);
  REQUIRE(write_rtrace(*back, folder / "b.rtrace", Overwrite::kRefuse));
  CHECK(bytes_of(folder / "a.rtrace") == bytes_of(folder / "b.rtrace"));
}

TEST_CASE("a training run with jitter takes at most 8 bytes per operation", "[traces][rtrace]") {
  const samples::Folder folder;
  const samples::TrainingRun run{.ranks = 2, .steps = 4};
  Trace trace = samples::training_frame(run);
  for (RankId r = 0; r < run.ranks; ++r) trace.ranks.push_back(samples::training_rank(run, r));
  REQUIRE(write_rtrace(trace, folder / "run.rtrace", Overwrite::kRefuse));
  CHECK(std::filesystem::file_size(folder / "run.rtrace") <= 8 * trace.operations());
}

TEST_CASE("ranks read in any order from two threads equal a sequential read",
          "[traces][rtrace][threads]") {
  const samples::Folder folder;
  const Trace trace = samples::random_trace(3, 12, 700);
  REQUIRE(write_rtrace(trace, folder / "ranks.rtrace", Overwrite::kRefuse));
  const auto reader = RtraceReader::open(folder / "ranks.rtrace", {});
  REQUIRE(reader);
  REQUIRE(reader->ranks().size() == 12);
  CHECK(reader->ranks()[11] == 33);
  CHECK(reader->operations() == 12 * 700);
  std::vector<int> equal(12, 0);
  const auto read = [&](size_t first) {
    for (size_t i = first; i < first + 6; ++i) {
      const size_t at = 11 - i;
      const auto rank = reader->rank(trace.ranks[at].rank);
      equal[at] = rank && samples::same(*rank, trace.ranks[at]) ? 1 : 0;
    }
  };
  std::thread other(read, 0);
  read(6);
  other.join();
  CHECK(equal == std::vector<int>(12, 1));
}

TEST_CASE("ranks are visited in ascending order with any number of threads",
          "[traces][rtrace][threads]") {
  const samples::Folder folder;
  SilentReporter silent;
  Trace trace = samples::random_trace(3, 9, 300);
  std::swap(trace.ranks[0], trace.ranks[7]);
  REQUIRE(write_rtrace(trace, folder / "ranks.rtrace", Overwrite::kRefuse));
  for (const int threads : {-1, 1, 2, 16}) {
    const auto reader = RtraceReader::open(folder / "ranks.rtrace", {.threads = threads});
    REQUIRE(reader);
    std::vector<RankId> seen;
    REQUIRE(reader->for_each_rank(
        [&](RankTrace&& rank) -> Result<void> {
          seen.push_back(rank.rank);
          return {};
        },
        silent));
    CHECK(seen == std::vector<RankId>{0, 3, 6, 9, 12, 15, 18, 21, 24});
  }
}

TEST_CASE("a visit that fails, or an interrupt, ends the reading", "[traces][rtrace][threads]") {
  const samples::Folder folder;
  SilentReporter silent;
  REQUIRE(
      write_rtrace(samples::random_trace(3, 9, 300), folder / "ranks.rtrace", Overwrite::kRefuse));
  const auto reader = RtraceReader::open(folder / "ranks.rtrace", {});
  REQUIRE(reader);
  int visits = 0;
  const auto failed = reader->for_each_rank(
      [&](RankTrace&&) -> Result<void> {
        return ++visits == 2 ? Result<void>(fail(Code::kFinding, "enough")) : Result<void>();
      },
      silent);
  REQUIRE_FALSE(failed);
  CHECK(failed.error().what == "enough");
  CHECK(visits == 2);
  StoppingReporter stopping;
  const auto stopped = reader->for_each_rank([](RankTrace&&) { return Result<void>(); }, stopping);
  REQUIRE_FALSE(stopped);
  CHECK(stopped.error().code == Code::kInterrupted);
}

TEST_CASE("a rank that is not in the file is refused by name", "[traces][rtrace]") {
  const samples::Folder folder;
  REQUIRE(
      write_rtrace(samples::random_trace(3, 2, 5), folder / "ranks.rtrace", Overwrite::kRefuse));
  const auto reader = RtraceReader::open(folder / "ranks.rtrace", {});
  REQUIRE(reader);
  const auto rank = reader->rank(1);
  REQUIRE_FALSE(rank);
  CHECK(rank.error().code == Code::kUsage);
  CHECK(rank.error().what == "rank 1 is not in this file");
}

TEST_CASE("appended ranks, strings and communicators join those of the file", "[traces][rtrace]") {
  const samples::Folder folder;
  SilentReporter silent;
  const auto path = folder / "grown.rtrace";
  Trace whole = samples::random_trace(4, 3, 400);
  Trace part = whole;
  part.ranks.resize(2);
  REQUIRE(write_rtrace(part, path, Overwrite::kRefuse));
  const std::string before = bytes_of(path);
  {
    auto dropped = RtraceWriter::append(path);
    REQUIRE(dropped);
    REQUIRE(dropped->rank(whole.ranks[2], whole.strings));
  }
  CHECK(bytes_of(path) == before);

  const uint32_t added = whole.strings.intern("added later");
  whole.communicators.push_back({"late", "", {0, 6}, "nccl"});
  whole.ranks[2].ops.name.back() = added;
  auto writer = RtraceWriter::append(path);
  REQUIRE(writer);
  CHECK(writer->operations() == 800);
  REQUIRE(writer->communicator(whole.communicators.back()));
  REQUIRE(writer->rank(whole.ranks[2], whole.strings));
  REQUIRE(writer->commit());
  const auto back = read_rtrace(path, {}, silent);
  REQUIRE(back);
  CHECK(samples::same(whole, *back));
}

TEST_CASE("appending refuses a rank twice, other strings and a cut file", "[traces][rtrace]") {
  const samples::Folder folder;
  const auto path = folder / "a.rtrace";
  const Trace trace = samples::random_trace(4, 2, 400);
  REQUIRE(write_rtrace(trace, path, Overwrite::kRefuse));
  auto twice = RtraceWriter::append(path);
  REQUIRE(twice);
  CHECK_FALSE(twice->rank(trace.ranks[1], trace.strings));
  auto other = RtraceWriter::append(path);
  REQUIRE(other);
  RankTrace rank = trace.ranks[1];
  rank.rank = 99;
  CHECK_FALSE(other->rank(rank, samples::random_trace(5, 1, 1).strings));
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  const auto cut = RtraceWriter::append(path);
  REQUIRE_FALSE(cut);
  CHECK(cut.error().code == Code::kBadInput);
}

TEST_CASE("what a reader could not index is never written", "[traces][rtrace]") {
  const samples::Folder folder;
  const auto refused = [&](const std::function<void(Trace&)>& spoil) {
    Trace trace = samples::random_trace(4, 1, 50);
    trace.ranks[0].ops = {};
    Operations& ops = trace.ranks[0].ops;
    ops.add_call(1, 1, 10, 5, 0, {});
    ops.add_sync(0, 1, 20, 5, 0, {});
    ops.add_copy(1, 1, 30, 5, 0, {});
    spoil(trace);
    const auto done = write_rtrace(trace, folder / "spoilt.rtrace", Overwrite::kReplace);
    return !done && done.error().code == Code::kInternal &&
           !std::filesystem::exists(folder / "spoilt.rtrace");
  };
  CHECK_FALSE(refused([](Trace&) {}));
  std::filesystem::remove(folder / "spoilt.rtrace");
  CHECK(refused([](Trace& t) { t.ranks[0].ops.lane[0] = 3; }));
  CHECK(refused([](Trace& t) { t.ranks[0].ops.name[0] = 1000; }));
  CHECK(refused([](Trace& t) { t.ranks[0].ops.start[0] = 25; }));
  CHECK(refused([](Trace& t) { t.ranks[0].ops.start[2] = INT64_MAX; }));
  CHECK(refused([](Trace& t) { t.ranks[0].ops.duration[0] = -1; }));
  CHECK(refused([](Trace& t) { t.ranks[0].ops.detail[0] = 2; }));
  CHECK(refused([](Trace& t) { t.ranks[0].ops.kind[0] = OpKind::kHost; }));
  CHECK(refused([](Trace& t) { t.ranks[0].ops.name.pop_back(); }));
  CHECK(refused([](Trace& t) { t.ranks[0].ops.calls[0].communicator = 2; }));
  CHECK(refused([](Trace& t) { t.ranks[0].ops.calls[0].peer = 3; }));
  CHECK(refused([](Trace& t) { t.ranks[0].ops.calls[0].bytes_in = -1; }));
  CHECK(refused([](Trace& t) { t.ranks[0].ops.copies[0].bytes = -1; }));
  CHECK(refused([](Trace& t) { t.ranks[0].ops.syncs[0].stream_lane = 3; }));
  CHECK(refused([](Trace& t) { t.ranks[0].steps = {{0, 5, 4}}; }));
  CHECK(refused([](Trace& t) { t.ranks[0].lanes[0].name = 1000; }));
  CHECK(refused([](Trace& t) { t.ranks[0].clock_offset = INT64_MAX; }));
  CHECK(refused([](Trace& t) { t.ranks.push_back(t.ranks[0]); }));
}

TEST_CASE("text that is not UTF-8 is repaired outside of names and kept in names",
          "[traces][rtrace]") {
  const samples::Folder folder;
  SilentReporter silent;
  Trace trace = samples::random_trace(4, 1, 5);
  trace.header.set_job("j\xffob \xc3\xa9");
  trace.header.add_inputs()->set_name("\xe2\x82");
  trace.ranks[0].env = {{"PATH", "/home/\xe9"}};
  trace.communicators[0].description = "\xed\xa0\x80";
  trace.strings.intern("\xf0\x80");
  REQUIRE(write_rtrace(trace, folder / "text.rtrace", Overwrite::kRefuse));
  const auto back = read_rtrace(folder / "text.rtrace", {}, silent);
  REQUIRE(back);
  CHECK(back->header.job() == "j\xef\xbf\xbdob \xc3\xa9");
  CHECK(back->ranks[0].env.at("PATH") == "/home/\xef\xbf\xbd");
  CHECK(back->strings.at(static_cast<uint32_t>(back->strings.size() - 1)) == "\xf0\x80");
}

}  // namespace rehearse::rtrace_test
