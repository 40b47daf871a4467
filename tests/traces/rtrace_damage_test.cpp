// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

#include "base/random.hpp"
#include "tests/traces/trace_samples.hpp"
#include "traces/model/rtrace.hpp"
#include "traces/model/rtrace_file.hpp"

namespace rehearse::rtrace_damage_test {
using namespace rehearse;
using namespace rehearse::traces;

namespace {

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

void put(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

Result<Trace> read(const std::filesystem::path& path, Truncated truncated = Truncated::kRefuse) {
  SilentReporter silent;
  return read_rtrace(path, {.truncated = truncated}, silent);
}

// The operations of `part` are the first of `whole`.
bool begins(const Trace& part, const Trace& whole) {
  for (size_t r = 0; r < part.ranks.size(); ++r) {
    const Operations& a = part.ranks[r].ops;
    const Operations& b = whole.ranks[r].ops;
    if (a.size() > b.size() || !std::equal(a.start.begin(), a.start.end(), b.start.begin()) ||
        !std::equal(a.detail.begin(), a.detail.end(), b.detail.begin())) {
      return false;
    }
  }
  return part.ranks.size() <= whole.ranks.size();
}

}  // namespace

TEST_CASE("a file cut anywhere is refused, or read up to the last whole block",
          "[traces][rtrace]") {
  const samples::Folder folder;
  const Trace trace = samples::random_trace(6, 3, 900);
  const auto path = folder / "whole.rtrace", cut = folder / "cut.rtrace";
  REQUIRE(write_rtrace(trace, path, Overwrite::kRefuse));
  const std::string bytes = bytes_of(path);
  size_t accepted = 0, most = 0;
  for (int percent = 0; percent < 100; ++percent) {
    put(cut, std::string_view(bytes).substr(0, bytes.size() * static_cast<size_t>(percent) / 100));
    const auto refused = read(cut);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == Code::kBadInput);
    CHECK(refused.error().where.find("byte ") != std::string::npos);
    CHECK_FALSE(refused.error().fix.empty());
    const auto part = read(cut, Truncated::kAccept);
    if (!part) continue;
    ++accepted;
    CHECK(part->header.findings_size() > 0);
    CHECK(begins(*part, trace));
    most = std::max(most, part->operations());
  }
  CHECK(accepted > 80);
  CHECK(most >= 1800);
}

TEST_CASE("the refusal of a cut file says what is whole, where it broke and what to do",
          "[traces][rtrace]") {
  const samples::Folder folder;
  const auto path = folder / "cut.rtrace";
  const Trace trace = samples::random_trace(6, 2, 100'000);
  REQUIRE(write_rtrace(trace, path, Overwrite::kRefuse));
  const auto file = RtraceFile::open(path, {});
  REQUIRE(file);
  const uint64_t last = file->ranks.at(3).blocks.at(1).offset;
  std::filesystem::resize_file(path, last + 1000);
  const auto refused = RtraceReader::open(path, {});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().what.find("165536 operations and 1 ranks before it are whole") !=
        std::string::npos);
  CHECK(refused.error().what.find("rank 3: 65536 of 100000 operations") != std::string::npos);
  CHECK(refused.error().where == path.string() + ": byte " + std::to_string(last));
  CHECK(refused.error().fix.find("--allow-truncated") != std::string::npos);

  const auto reader = RtraceReader::open(path, {.truncated = Truncated::kAccept});
  REQUIRE(reader);
  CHECK(reader->operations() == 165'536);
  CHECK(reader->findings().count("cut-file") == 1);
  CHECK(reader->findings().count("cut-rank") == 1);
  CHECK(reader->rank(3)->ops.size() == 65'536);
}

TEST_CASE("any changed bit of a file is detected", "[traces][rtrace]") {
  const samples::Folder folder;
  const auto path = folder / "whole.rtrace", flipped = folder / "flipped.rtrace";
  const Trace trace = samples::random_trace(6, 3, 300);
  REQUIRE(write_rtrace(trace, path, Overwrite::kRefuse));
  const std::string bytes = bytes_of(path);
  Random random(1, "bit-flips");
  for (int i = 0; i < 200; ++i) {
    std::string copy = bytes;
    // Every eighth goes to the last bytes, where the index and the end mark are.
    const size_t near_end = copy.size() - 1 - random.below(200);
    const size_t at = i % 8 == 0 ? near_end : random.below(copy.size());
    copy[at] = static_cast<char>(copy[at] ^ (1 << random.below(8)));
    put(flipped, copy);
    const auto refused = read(flipped);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == Code::kBadInput);
    CHECK(refused.error().where.find("byte ") != std::string::npos);
    const auto accepted = read(flipped, Truncated::kAccept);
    if (accepted) {
      CHECK(accepted->header.findings_size() > 0);
      CHECK(begins(*accepted, trace));
    }
  }
}

TEST_CASE("a damaged block is refused with its byte and leaves other ranks readable",
          "[traces][rtrace]") {
  const samples::Folder folder;
  const auto path = folder / "a.rtrace";
  REQUIRE(write_rtrace(samples::random_trace(6, 3, 300), path, Overwrite::kRefuse));
  const uint64_t at = RtraceFile::open(path, {})->ranks.at(3).blocks.at(0).offset;
  std::string bytes = bytes_of(path);
  bytes[at + 100] = static_cast<char>(bytes[at + 100] ^ 4);
  put(path, bytes);
  const auto reader = RtraceReader::open(path, {});
  REQUIRE(reader);
  CHECK(reader->rank(0));
  CHECK(reader->rank(6));
  const auto rank = reader->rank(3);
  REQUIRE_FALSE(rank);
  CHECK(rank.error().where == path.string() + ": byte " + std::to_string(at));
  CHECK(rank.error().what == "record whose content does not match its hash");
}

TEST_CASE("what is not a .rtrace file is refused by what it is", "[traces][rtrace]") {
  const samples::Folder folder;
  const auto path = folder / "odd.rtrace";
  const auto open = [&] { return RtraceReader::open(path, {.truncated = Truncated::kAccept}); };

  auto missing = open();
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == Code::kMissingInput);

  put(path, "");
  CHECK(open().error().what == "the file is empty");
  put(path, "{\"traceEvents\": []}");
  CHECK(open().error().what == "is not a .rtrace file");
  CHECK(open().error().fix.find("rehearse import") != std::string::npos);
  put(path, "RTRA");
  CHECK(open().error().what.find("cut inside its first bytes") != std::string::npos);
  put(path, std::string_view("RTRACE\1\0", 8));
  CHECK(open().error().what.find("nothing before it can be read") != std::string::npos);
  put(path, std::string_view("RTRACE\2\7", 8));
  CHECK(open().error().what == "is of .rtrace version 2.7; this rehearse reads 1.0");
  CHECK(open().error().fix == "read it with a newer rehearse");
  CHECK(open().error().code == Code::kBadInput);

  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  CHECK(open().error().code == Code::kBadInput);
  CHECK(open().error().what == "is a folder, not a .rtrace file");
}

TEST_CASE("a file with more operations than the limit is refused before they are read",
          "[traces][rtrace]") {
  const samples::Folder folder;
  const auto path = folder / "a.rtrace";
  REQUIRE(write_rtrace(samples::random_trace(6, 3, 300), path, Overwrite::kRefuse));
  CHECK(RtraceReader::open(path, {.max_operations = 900}));
  const auto whole = RtraceReader::open(path, {.max_operations = 899});
  REQUIRE_FALSE(whole);
  CHECK(whole.error().code == Code::kLimit);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  const auto cut =
      RtraceReader::open(path, {.truncated = Truncated::kAccept, .max_operations = 899});
  REQUIRE_FALSE(cut);
  CHECK(cut.error().code == Code::kLimit);
}

}  // namespace rehearse::rtrace_damage_test
