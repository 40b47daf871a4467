// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "tests/traces/import_samples.hpp"
#include "traces/capture_file/encoder.hpp"

namespace rehearse::import_capture_test {
using namespace rehearse;
using namespace rehearse::traces;
using namespace rehearse::traces::samples;
namespace cf = rehearse::capture_file;

namespace {

constexpr Nanos kOrigin = 1'700'000'000'000'000'000;

// Records one after the other, as text of a file; remembers where each begins.
class Writer {
 public:
  template <typename Record>
  Writer& operator<<(const Record& record) {
    std::vector<uint8_t> memory(64 << 10);
    cf::Encoder encoder(memory);
    REQUIRE(encoder.put(record));
    begins.push_back(text.size());
    text.append(encoder.bytes().begin(), encoder.bytes().end());
    return *this;
  }
  std::string text;
  std::vector<size_t> begins;
};

enum Name : uint32_t {
  kGemm = 1,
  kLaunch,
  kAllReduceKernel,
  kAllReduceRange,
  kFloat32,
  kAllReduce,
  kRing
};

void names(Writer& w) {
  w << cf::String{kGemm, "gemm"} << cf::String{kLaunch, "cudaLaunchKernel"}
    << cf::String{kAllReduceKernel,
                  "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"}
    << cf::String{kAllReduceRange, "ncclAllReduce"} << cf::String{kFloat32, "ncclFloat32"}
    << cf::String{kAllReduce, "AllReduce"};
}

// One rank with a kernel and an all-reduce that NVTX describes.
Writer sample(int rank, int world = 2) {
  Writer w;
  w << cf::Session{.origin = kOrigin,
                   .process = uint32_t(100 + rank),
                   .host = "n1",
                   .rank = rank,
                   .world_size = world,
                   .nccl_version = 22809};
  names(w);
  w << cf::Device{.device = 3, .model = "H100", .memory = uint64_t{80} << 30}
    << cf::Variable{"NCCL_ALGO", "Ring\xff"}
    << cf::Range{.start = 0,
                 .duration = 10,
                 .thread = 7,
                 .name = kAllReduceRange,
                 .communicator = 9,
                 .ranks = world,
                 .rank = rank}
    << cf::Api{.start = 20, .duration = 5, .name = kLaunch, .thread = 7, .correlation = 1}
    << cf::Kernel{.start = 30,
                  .duration = 20,
                  .name = kGemm,
                  .device = 3,
                  .stream = 7,
                  .correlation = 1}
    << cf::Range{.start = 40,
                 .duration = 30,
                 .thread = 7,
                 .name = kAllReduceRange,
                 .communicator = 9,
                 .bytes = 1 << 20,
                 .reduction = 4}
    << cf::Api{.start = 50, .duration = 5, .name = kLaunch, .thread = 7, .correlation = 2}
    << cf::Kernel{.start = 80 + rank,
                  .duration = 40,
                  .name = kAllReduceKernel,
                  .device = 3,
                  .stream = 20,
                  .correlation = 2}
    << cf::Copy{.start = 90, .duration = 4, .bytes = 64, .kind = 1, .device = 3, .stream = 7}
    << cf::Fill{.start = 95, .duration = 4, .bytes = 64, .device = 3, .stream = 7}
    << cf::Memory{.at = 3, .bytes = 4096, .block = 1} << cf::Clock{.at = 100};
  const size_t records = w.begins.size();
  w << cf::End{records};
  return w;
}

Imported imported(const std::string& text) {
  auto got = import_text(text, {}, "x.capture");
  if (!got) FAIL(got.error().message());
  return std::move(*got);
}

}  // namespace

TEST_CASE("capture files of two ranks become one trace with matched collectives",
          "[import][capture]") {
  const TempFolder folder;
  SilentReporter silent;
  const auto a = folder.write("a", sample(0).text), b = folder.write("b", sample(1).text);
  const auto got = import_files({a, b}, {}, silent);
  if (!got) FAIL(got.error().message());
  const Trace& trace = got->trace;
  REQUIRE(trace.ranks.size() == 2);
  CHECK(trace.header.world_size() == 2);
  CHECK(trace.header.nccl_version() == "2.28.9");
  REQUIRE(trace.communicators.size() == 1);
  CHECK(trace.communicators[0].members == std::vector<RankId>{0, 1});
  for (const RankTrace& r : trace.ranks) {
    CHECK(r.host == "n1");
    CHECK(r.gpu == 3);
    CHECK(r.gpu_model == "H100");
    CHECK(r.env.at("NCCL_ALGO").starts_with("Ring"));
    CHECK(count_of(r, OpKind::kKernel) == 1);
    CHECK(count_of(r, OpKind::kCopy) == 1);
    CHECK(count_of(r, OpKind::kMemset) == 1);
    CHECK(count_of(r, OpKind::kMemory) == 1);
    CHECK(count_of(r, OpKind::kLaunch) == 2);
    REQUIRE(r.ops.calls.size() == 1);
    CHECK(r.ops.calls[0].collective == Collective::kAllReduce);
    CHECK(r.ops.calls[0].bytes_in == 1 << 20);
    CHECK(r.ops.calls[0].reduction == Reduction::kAverage);
    CHECK(r.ops.calls[0].dtype == DType::kFp32);
  }
  CHECK(got->findings.count("capture-not-ended") == 0);
  CHECK(got->findings.count("collective-without-size") == 0);
}

TEST_CASE("a capture file cut anywhere gives every record before the cut", "[import][capture]") {
  const Writer w = sample(0);
  size_t whole = 0;
  for (size_t size = 0; size < w.text.size(); ++size) {
    INFO(size);
    while (whole < w.begins.size() && w.begins[whole] <= size) ++whole;
    const auto got = import_text(w.text.substr(0, size), {}, "x.capture");
    if (!got) {
      CHECK(got.error().code == Code::kBadInput);
      CHECK_FALSE(got.error().fix.empty());
      continue;
    }
    const bool between = std::find(w.begins.begin(), w.begins.end(), size) != w.begins.end();
    CHECK(got->findings.count("file-cut") == (between ? 0 : 1));
    CHECK(got->findings.count("capture-not-ended") == 1);
    // The kernel and all before it are there as soon as the record behind it begins.
    const bool has_kernel = size >= w.begins[12];
    CHECK(count_of(got->trace.ranks[0], OpKind::kKernel) == (has_kernel ? 1 : 0));
  }
}

TEST_CASE("a damaged byte costs one record, wherever it is", "[import][capture]") {
  const Writer w = sample(0);
  const Imported whole = imported(w.text);
  for (size_t at = w.begins[1]; at < w.begins.back(); at += 2) {
    INFO(at);
    std::string damaged = w.text;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 8)));
    const auto got = import_text(damaged, {}, "x.capture");
    REQUIRE(got);
    CHECK(got->findings.count("record-damaged") == 1);
    CHECK(got->trace.operations() + 1 >= whole.trace.operations());
  }
}

TEST_CASE("a file that was appended to after a cut goes on behind it", "[import][capture]") {
  const Writer w = sample(0);
  Writer again;
  again << cf::Session{.origin = kOrigin + 1000, .process = 100, .rank = 0}
        << cf::String{1, "later"}
        << cf::Kernel{.start = 5, .duration = 6, .name = 1, .device = 3, .stream = 7} << cf::End{3};
  const Imported got = imported(w.text.substr(0, w.begins.back() - 3) + again.text);
  REQUIRE(got.trace.ranks.size() == 1);
  const auto later = find_op(got, "later");
  REQUIRE(later);
  CHECK(got.trace.ranks[0].ops.start[*later] == kOrigin + 1005);
  CHECK(find_op(got, "gemm"));
  CHECK(got.findings.count("record-damaged") == 1);
  CHECK(got.findings.count("capture-not-ended") == 1);
}

TEST_CASE("names may come after their use, and are empty when they were lost",
          "[import][capture]") {
  Writer w;
  w << cf::Session{.origin = kOrigin, .rank = 0}
    << cf::Kernel{.start = 1, .duration = 2, .name = 5, .stream = 7}
    << cf::Kernel{.start = 4, .name = 6} << cf::String{5, "late"} << cf::End{4};
  const Imported got = imported(w.text);
  CHECK(find_op(got, "late"));
  CHECK(find_op(got, ""));
  CHECK(got.findings.count("name-missing") == 1);
}

TEST_CASE("events of the NCCL plugin tell the calls of kernels, with and without launch events",
          "[import][capture]") {
  for (const bool launches : {false, true}) {
    INFO(launches);
    Writer w;
    w << cf::Session{.origin = kOrigin, .rank = 1, .world_size = 4};
    names(w);
    w << cf::Communicator{.id = 77, .name = "dp", .ranks = 2, .rank = 0};
    w << cf::Api{.start = 100, .duration = 5, .name = kLaunch, .thread = 7, .correlation = 1};
    const auto call = [&](uint64_t id, uint64_t parent, int64_t at, uint64_t count) {
      w << cf::NcclStart{.id = id,
                         .type = 2,
                         .parent = parent,
                         .at = at,
                         .thread = 7,
                         .communicator = 77,
                         .function = kAllReduce,
                         .count = count,
                         .datatype = kFloat32,
                         .root = 0,
                         .sequence = 3};
    };
    if (launches) {
      w << cf::NcclStart{.id = 1, .type = 256, .at = 90, .thread = 7}
        << cf::NcclStart{.id = 2, .type = 512, .parent = 1, .at = 91, .thread = 7}
        << cf::NcclStart{.id = 3, .type = 2048, .parent = 1, .at = 99, .thread = 7}
        << cf::NcclStop{3, 106} << cf::Correlation{.kind = 5, .external = 3, .correlation = 1};
      call(4, 2, 110, 1000);
      w << cf::NcclStop{1, 120} << cf::NcclStart{.id = 5, .type = 8, .parent = 4, .at = 130};
    } else {
      w << cf::NcclStart{.id = 1, .type = 1, .at = 110, .thread = 7};
      call(2, 1, 111, 1000);
    }
    w << cf::Kernel{.start = 150,
                    .duration = 40,
                    .name = kAllReduceKernel,
                    .stream = 20,
                    .correlation = 1}
      << cf::End{1};
    const Imported got = imported(w.text);
    REQUIRE(got.trace.ranks[0].ops.calls.size() == 1);
    const Call& c = got.trace.ranks[0].ops.calls[0];
    CHECK(c.bytes_in == 4000);
    CHECK(c.dtype == DType::kFp32);
    REQUIRE(got.trace.communicators.size() == 1);
    CHECK(got.trace.communicators[0].members.size() == 2);
    CHECK(got.findings.count("collective-without-size") == 0);
    CHECK(got.findings.count("nccl-proxy-events") == (launches ? 1 : 0));
  }
}

TEST_CASE("drops, messages and newer records are told, newer versions refused",
          "[import][capture]") {
  Writer w = sample(0);
  w << cf::Drops{2, 17} << cf::Message{"another CUPTI client is active"};
  const Imported got = imported(w.text);
  CHECK(got.findings.count("records-dropped") == 17);
  CHECK(got.findings.count("capture-message") == 1);
  const auto empty = import_text(Writer{}.text + [] {
    Writer s;
    s << cf::Session{.rank = 0} << cf::End{1};
    return s.text;
  }());
  REQUIRE_FALSE(empty);
  CHECK_THAT(empty.error().message(), Catch::Contains("none of its 2 records"));
}

TEST_CASE("what NCCL's tuner was shown is kept as evidence, equal tables once",
          "[import][capture]") {
  Writer w = sample(0);
  const std::vector<float> costs = {1, 2, 3, 4, -1, 6};  // two algorithms of three protocols
  for (const uint64_t bytes : {1024U, 1024U, 4096U}) {
    w << cf::Tuning{.communicator = 0xabc0,
                    .function = kAllReduce,
                    .bytes = bytes,
                    .algorithms = 2,
                    .protocols = 3,
                    .cost = costs,
                    .ranks = 16,
                    .nodes = 2,
                    .operations = 1};
  }
  const Imported got = imported(w.text);
  REQUIRE(got.trace.evidence.size() == 1);
  const pb::TunerTables& tuner = got.trace.evidence[0].tuner();
  CHECK(tuner.nccl_version() == "2.28.9");
  CHECK(tuner.environment().count("NCCL_ALGO") == 1);
  CHECK(tuner.calls() == 3);
  REQUIRE(tuner.tables_size() == 2);
  CHECK(tuner.tables(0).communicator() == "0xabc0");
  CHECK(tuner.tables(0).collective() == "all_reduce");
  CHECK(tuner.tables(0).ranks() == 16);
  CHECK(tuner.tables(0).nodes() == 2);
  REQUIRE(tuner.tables(0).costs_size() == 5);
  CHECK(tuner.tables(0).costs(0).algorithm() == "Tree");
  CHECK(tuner.tables(0).costs(0).protocol() == "LL");
  CHECK(tuner.tables(0).costs(4).algorithm() == "Ring");
  CHECK(tuner.tables(0).costs(4).protocol() == "Simple");
  CHECK(tuner.tables(0).costs(4).us() == 6);
}

TEST_CASE("a rank captured twice and a compressed capture are read", "[import][capture]") {
  const TempFolder folder;
  SilentReporter silent;
  const auto a = folder.write("a", sample(0).text), b = folder.write("b", gzip(sample(0).text));
  const auto got = import_files({a, b}, {}, silent);
  REQUIRE(got);
  CHECK(got->findings.count("rank-twice") == 1);
  const std::string packed = gzip(sample(0).text);
  const auto cut = import_text(packed.substr(0, packed.size() - 20), {}, "x");
  REQUIRE(cut);
  CHECK(cut->findings.count("file-cut") == 1);
}

TEST_CASE("garbage between records is skipped in time that does not explode", "[import][capture]") {
  // Looks like the head of a record at every third byte.
  std::string garbage;
  while (garbage.size() < 300'000) garbage += std::string("\x0a\xff\x7f\x0d", 4);
  const Writer w = sample(0);
  const Imported got = imported(w.text + garbage);
  CHECK(find_op(got, "gemm"));
  CHECK(got.findings.count("file-cut") == 1);
}

}  // namespace rehearse::import_capture_test
