// SPDX-License-Identifier: Apache-2.0
// Whatever happens to the recorder, the program's exit code and output are its own, and what was written
// imports.
#include <sys/mount.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <fstream>

#include "tests/skip.hpp"
#include "tests/traces/capture/recording.hpp"

namespace rehearse::capture_survival_test {
using namespace rehearse;
using namespace rehearse::tests;
namespace fs = std::filesystem;

namespace {

constexpr const char* kOutput = "the program's output\n";

size_t ranges_in(const std::vector<pb::CaptureRecord>& records, std::string_view name) {
  auto names = names_of(records);
  size_t n = 0;
  for (const pb::CaptureRecord& r : records) {
    n += r.has_range() && names[r.range().name()] == name ? 1 : 0;
  }
  return n;
}

// A small file system of its own; not there when the test may not mount.
class Mounted {
 public:
  Mounted(const fs::path& where, unsigned long flags, const char* options) : where_(where) {
    fs::create_directories(where);
    ok = ::mount("rehearse-test", where.c_str(), "tmpfs", flags, options) == 0;
  }
  ~Mounted() {
    if (ok) ::umount2(where_.c_str(), MNT_DETACH);
  }
  Mounted(const Mounted&) = delete;
  Mounted& operator=(const Mounted&) = delete;
  bool ok = false;

 private:
  fs::path where_;
};

}  // namespace

TEST_CASE("a recorded program keeps its output and exit code", "[capture]") {
  Recording recording;
  const Run run = recording.run({"ranges", "1000", "7"});
  CHECK(run.code == 7);
  CHECK(run.out == kOutput);
  CHECK(run.err.empty());
  const auto got = recording.import();
  if (!got) FAIL(got.error().message());
  CHECK(got->findings.count("capture-not-ended") == 0);
  CHECK(ranges_in(recording.records(), "inner") == 1000);
}

TEST_CASE("a program that is killed leaves what was flushed", "[capture]") {
  Recording recording;
  const Run run = recording.run_and_kill({"for-ever"}, 200'000);
  CHECK(run.signal == SIGKILL);
  const auto got = recording.import();
  if (!got) FAIL(got.error().message());
  CHECK(got->findings.count("capture-not-ended") == 1);
  CHECK(got->findings.count("record-damaged") == 0);
  CHECK(ranges_in(recording.records(), "again") > 1000);
}

TEST_CASE("a program that a signal ends keeps its signal, and its file up to the last flush",
          "[capture]") {
  for (const int number : {SIGTERM, SIGINT, SIGUSR1, SIGPIPE, SIGKILL}) {
    INFO("signal " << number);
    Recording recording;
    const Run run = recording.run({"signal", std::to_string(number)});
    CHECK(run.signal == number);
    CHECK(run.out == kOutput);
    CHECK(run.err.empty());
    const auto got = recording.import();
    if (!got) FAIL(got.error().message());
    CHECK(got->findings.count("capture-not-ended") == 1);
    CHECK(got->findings.count("record-damaged") == 0);
    CHECK(ranges_in(recording.records(), "before") == 100);
  }
}

TEST_CASE("a disk that fills up costs records and one line", "[capture]") {
  Recording recording;
  const fs::path small = recording.temporary.path / "small";
  const Mounted disk(small, 0, "size=256k");
  if (!disk.ok) {
    rehearse::tests::skip("this test may not mount a small tmpfs");
    return;
  }
  const Run run =
      recording.with("REHEARSE_CAPTURE_FOLDER", small.string()).run({"ranges", "50000", "5"});
  CHECK(run.code == 5);
  CHECK(run.out == kOutput);
  CHECK(lines_of(run.err) == 1);
  CHECK(run.err.find("No space left on device") != std::string::npos);
  const auto got = recording.import();
  if (!got) FAIL(got.error().message());
  CHECK(ranges_in(recording.records(), "inner") > 100);
}

TEST_CASE("a limit on the size of files is no signal to the program", "[capture]") {
  Recording recording;
  const Run run = recording.with("WATCHED_FILE_LIMIT", "100000").run({"ranges", "50000", "5"});
  CHECK(run.code == 5);
  CHECK(run.out == kOutput);
  CHECK(lines_of(run.err) == 1);
  const auto got = recording.import();
  if (!got) FAIL(got.error().message());
}

TEST_CASE("a folder that cannot be written costs the recording and one line", "[capture]") {
  Recording recording;
  const fs::path folder = recording.temporary.path / "fixed";
  const Mounted disk(folder, MS_RDONLY, "size=64k");
  if (!disk.ok) {
    fs::permissions(folder, fs::perms::owner_read | fs::perms::owner_exec);
    if (::geteuid() == 0) {
      rehearse::tests::skip("this test may neither mount a read-only tmpfs nor be refused by one");
      return;
    }
  }
  const Run run =
      recording.with("REHEARSE_CAPTURE_FOLDER", folder.string()).run({"ranges", "100", "6"});
  CHECK(run.code == 6);
  CHECK(run.out == kOutput);
  CHECK(lines_of(run.err) == 1);
  CHECK(run.err.find("nothing is recorded") != std::string::npos);
  if (!disk.ok) fs::permissions(folder, fs::perms::owner_all);
}

TEST_CASE("a folder that is a file costs the recording and one line", "[capture]") {
  Recording recording;
  const fs::path file = recording.temporary.path / "file";
  std::ofstream(file) << "mine";
  const Run run =
      recording.with("REHEARSE_CAPTURE_FOLDER", file.string()).run({"ranges", "100", "0"});
  CHECK(run.code == 0);
  CHECK(lines_of(run.err) == 1);
  CHECK(fs::file_size(file) == 4);
}

TEST_CASE("a child that is forked but not executed has a file of its own", "[capture]") {
#ifdef __SANITIZE_THREAD__
  rehearse::tests::skip(
      "the thread sanitizer knows no threads in the child of a process with threads");
  return;
#endif
  Recording recording;
  const Run run = recording.run({"fork"});
  CHECK(run.code == 43);
  INFO(run.err);
  CHECK(run.err.empty());
  REQUIRE(recording.files().size() == 2);
  const auto got = recording.import();
  if (!got) FAIL(got.error().message());
  const auto records = recording.records();
  size_t sessions = 0;
  for (const pb::CaptureRecord& r : records) sessions += r.has_session() ? 1 : 0;
  CHECK(sessions == 2);
  CHECK(ranges_in(records, "parent") == 20200);
  CHECK(ranges_in(records, "child") == 100);
}

TEST_CASE("a process that becomes another program goes on in its file", "[capture]") {
  Recording recording;
  const Run run = recording.run({"exec", "4"});
  CHECK(run.code == 4);
  REQUIRE(recording.files().size() == 1);
  const auto got = recording.import();
  if (!got) FAIL(got.error().message());
  size_t sessions = 0;
  for (const pb::CaptureRecord& r : recording.records()) sessions += r.has_session() ? 1 : 0;
  CHECK(sessions == 2);
}

TEST_CASE("descriptors that the program closed and used again are not written to", "[capture]") {
  // Up to 256 it does not meet ours, up to 2048 it does.
  for (const char* below : {"256", "2048"}) {
    INFO("closes descriptors below " << below);
    Recording recording;
    const fs::path mine = recording.temporary.path / "mine";
    const Run run = recording.run({"close", mine.string(), below});
    CHECK(run.code == 0);
    CHECK(run.err.empty());
    CHECK(fs::file_size(mine) == 0);
    CHECK(ranges_in(recording.records(), "before") == 10);
    CHECK(ranges_in(recording.records(), "after") == 10);
  }
}

TEST_CASE("a program may change its environment while it is recorded", "[capture][threads]") {
  Recording recording;
  recording.with("NCCL_ALGO", "Ring").with("REHEARSE_CAPTURE_FLUSH_MS", "1");
  for (int i = 0; i < 5; ++i) {
    const Run run = recording.run({"environment"});
    INFO(run.err);
    CHECK(run.code == 0);
  }
  size_t sessions = 0, told = 0;
  for (const pb::CaptureRecord& r : recording.records()) {
    sessions += r.has_session() ? 1 : 0;
    if (r.has_variable() && r.variable().name() == "NCCL_ALGO") {
      CHECK(r.variable().value() == "Ring");
      ++told;
    }
  }
  CHECK(sessions == 5);
  CHECK(told == 5);
}

TEST_CASE("unloading the library changes nothing", "[capture]") {
  Recording recording;
  const Run run = recording.run({"dlclose"});
  CHECK(run.code == 0);
  CHECK(run.err.empty());
  const auto records = recording.records();
  REQUIRE_FALSE(records.empty());
  CHECK(records.back().has_end());
}

TEST_CASE("a second copy of the library stays aside with one line", "[capture]") {
  Recording recording;
  const fs::path copy = recording.temporary.path / "copy.so";
  fs::copy_file(CAPTURE_LIBRARY, copy);
  const Run run = recording.run({"two", copy.string()});
  CHECK(run.code == 0);
  CHECK(lines_of(run.err) == 1);
  CHECK(run.err.find("another capture library") != std::string::npos);
  CHECK(recording.files().size() == 1);
  const auto got = recording.import();
  if (!got) FAIL(got.error().message());
}

TEST_CASE("ranges that are deep, unbalanced, open or without names do no harm", "[capture]") {
  Recording recording;
  const Run run = recording.run({"odd"});
  CHECK(run.code == 0);
  CHECK(run.err.empty());
  const auto records = recording.records();
  CHECK(ranges_in(records, "deep") == 4 * 128);
  CHECK(ranges_in(records, "open at the end") == 1);
  uint64_t dropped = 0;
  for (const pb::CaptureRecord& r : records) dropped += r.has_drops() ? r.drops().records() : 0;
  CHECK(dropped == 4 * (300 - 128));
  const auto got = recording.import();
  if (!got) FAIL(got.error().message());
}

TEST_CASE("settings that make no sense are told and left out", "[capture]") {
  Recording recording;
  const Run run = recording.with("REHEARSE_CAPTURE_FLUSH_MS", "soon")
                      .with("REHEARSE_CAPTURE_WITH", "memory,everything")
                      .with("REHEARSE_CAPTURE_STEPS", "5-3")
                      .run({"ranges", "10", "0"});
  CHECK(run.code == 0);
  CHECK(lines_of(run.err) == 3);
  const auto got = recording.import();
  if (!got) FAIL(got.error().message());
  CHECK(got->findings.count("capture-message") == 3);
}

}  // namespace rehearse::capture_survival_test
