// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <fstream>
#include <random>
#include <sstream>
#include <utility>

#include "tests/project.hpp"
#include "tests/traces/evidence_samples.hpp"
#include "tests/traces/import_samples.hpp"
#include "traces/import/format.hpp"
#include "traces/import/json_scan.hpp"
#include "traces/import/json_stream.hpp"
#include "traces/import/kineto/decimal.hpp"
#include "traces/import/names.hpp"
#include "traces/import/rank_of_name.hpp"
#include "traces/import/source.hpp"

namespace rehearse::import_source_test {
using namespace rehearse;
using namespace rehearse::traces;

namespace {

std::string text_of(size_t bytes) {
  std::string text;
  for (size_t i = 0; text.size() < bytes; ++i) text += std::to_string(i * 7919) + " line\n";
  return text;
}

Result<std::string> drain(Source& source, size_t step = 70'001) {
  std::string all, block(step, '\0');
  for (;;) {
    auto got = source.read(block);
    if (!got) return tl::unexpected(got.error());
    if (*got == 0) return all;
    all.append(block.data(), *got);
  }
}

Result<std::string> read_all(const std::string& bytes, const SourceOptions& options = {}) {
  auto source = Source::over(bytes, "memory", options);
  if (!source) return tl::unexpected(source.error());
  return drain(*source);
}

}  // namespace

TEST_CASE("the documentation lists every format", "[import]") {
  std::ifstream in(tests::project() / "docs/import.md");
  std::ostringstream text;
  text << in.rdbuf();
  for (const Format& format : formats()) {
    CHECK_THAT(text.str(), Catch::Contains("`" + std::string(format.name) + "`"));
  }
}

TEST_CASE("a byte order mark is no content", "[import][source]") {
  const auto read = samples::read_bytes(std::string("\xef\xbb\xbf") + samples::kInspector);
  REQUIRE(read);
  CHECK(read->format == "inspector");
  const auto table = samples::read_bytes(std::string("\xef\xbb\xbf") + samples::kTable);
  REQUIRE(table);
  CHECK(samples::tables_of(*table).tables(0).nccl_tests_version() == "2.17.8");
  // Offsets count it: they are those of the file.
  auto source = Source::over("\xef\xbb\xbf\"a\"", "memory", {});
  REQUIRE(source);
  CHECK(source->head() == "\"a\"");
  CHECK(source->offset() == 3);
  CHECK(drain(*source).value() == "\"a\"");
  CHECK(source->offset() == 6);
}

TEST_CASE("plain, gzip and zstd give the same bytes", "[import][source]") {
  const std::string text = text_of(3'000'000);
  CHECK(read_all(text).value() == text);
  CHECK(read_all(samples::gzip(text)).value() == text);
  CHECK(read_all(samples::zstd(text)).value() == text);
}

TEST_CASE("a gzip file of several members is read as one", "[import][source]") {
  const std::string a = text_of(400'000), b = text_of(10), padding(100, '\0');
  CHECK(read_all(samples::gzip(a) + samples::gzip(b) + padding).value() == a + b);
  const auto garbage = read_all(samples::gzip(a) + "garbage");
  REQUIRE_FALSE(garbage);
  CHECK(garbage.error().code == Code::kBadInput);
}

TEST_CASE("a zstd file of several frames, some to be skipped, is read as one", "[import][source]") {
  const std::string a = text_of(400'000), b = text_of(10);
  const std::string skipped("\x5f\x2a\x4d\x18\x04\x00\x00\x00text", 12);
  CHECK(read_all(samples::zstd(a) + samples::zstd(b)).value() == a + b);
  CHECK(read_all(skipped + samples::zstd(a) + skipped + samples::zstd(b)).value() == a + b);
}

TEST_CASE("the head can be looked at without consuming it", "[import][source]") {
  const std::string text = text_of(600'000);
  const std::string packed = samples::gzip(text);
  Source source = Source::over(packed, "memory", {}).value();
  CHECK(source.head() == std::string_view(text).substr(0, 256 << 10));
  CHECK(source.encoding() == Encoding::kGzip);
  CHECK(drain(source).value() == text);
  CHECK(source.offset() == text.size());
}

TEST_CASE("a compressed stream cut anywhere is told, never taken for whole", "[import][source]") {
  const std::string text = text_of(200'000);
  for (const std::string& packed : {samples::gzip(text), samples::zstd(text)}) {
    for (size_t keep = 5; keep < packed.size(); keep += packed.size() / 37) {
      const std::string part = packed.substr(0, keep);
      Source source = Source::over(part, "cut", {}).value();
      const auto all = drain(source);
      INFO(keep << " of " << packed.size());
      REQUIRE_FALSE(all);
      CHECK(all.error().code == Code::kBadInput);
      CHECK(source.cut());
    }
  }
}

TEST_CASE("a flipped bit in a gzip stream is found", "[import][source]") {
  const std::string packed = samples::gzip(text_of(300'000));
  for (size_t at = 30; at < packed.size(); at += packed.size() / 23) {
    std::string damaged = packed;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    const auto all = read_all(damaged);
    INFO("byte " << at);
    CHECK_FALSE(all);
  }
}

TEST_CASE("a decompression bomb stops at the limit", "[import][source]") {
  const std::string bomb = samples::gzip(std::string(200 << 20, ' '));
  const auto all = read_all(bomb);
  REQUIRE_FALSE(all);
  CHECK(all.error().code == Code::kLimit);
  const auto large = read_all(samples::gzip(text_of(2'000'000)), {.max_bytes = 1'000'000});
  REQUIRE_FALSE(large);
  CHECK(large.error().code == Code::kLimit);
}

TEST_CASE("missing files and folders are refused by name", "[import][source]") {
  const auto missing = Source::open("/nowhere/trace.json", {});
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == Code::kMissingInput);
  CHECK(missing.error().where == "/nowhere/trace.json");
  CHECK_FALSE(Source::open("/tmp", {}));
}

TEST_CASE("decimal microseconds become exact nanoseconds", "[import][kineto]") {
  using kineto::parse_decimal;
  CHECK(parse_decimal("1694128201425808", 3) == 1694128201425808000);
  CHECK(parse_decimal("4458677009853.422", 3) == 4458677009853422);
  CHECK(parse_decimal("1711964646123456.789 ", 3) == 1711964646123456789);
  CHECK(parse_decimal("9007199254740993.001", 3) == 9007199254740993001);
  CHECK(parse_decimal("9223372036854775.807", 3) == 9223372036854775807);
  CHECK_FALSE(parse_decimal("9223372036854775.808", 3));
  CHECK(parse_decimal("9223372036854775807", 0) == 9223372036854775807);
  CHECK_FALSE(parse_decimal("9223372036854775808", 0));
  CHECK_FALSE(parse_decimal("18446744073709551617", 0));
  CHECK_FALSE(parse_decimal(".", 3));
  CHECK_FALSE(parse_decimal("1.2.3", 3));
  CHECK(parse_decimal("0.0004", 3) == 0);
  CHECK(parse_decimal("0.0005", 3) == 1);
  CHECK(parse_decimal("-12.5", 3) == -12500);
  CHECK(parse_decimal("1.5e3", 3) == 1500000);
  CHECK(parse_decimal("15e-1", 3) == 1500);
  CHECK(parse_decimal("\"42.25\"", 3) == 42250);
  CHECK_FALSE(parse_decimal("", 3));
  CHECK_FALSE(parse_decimal("nan", 3));
  CHECK_FALSE(parse_decimal("12x", 3));
  CHECK_FALSE(parse_decimal("1e", 3));
  CHECK_FALSE(parse_decimal("99999999999999999999", 3));
  CHECK_FALSE(parse_decimal("1e400", 3));
  CHECK(parse_decimal("1e-400", 3) == 0);
}

TEST_CASE("collectives and element types are known by all their names", "[import][names]") {
  CHECK(collective_of("_allgather_base") == Collective::kAllGather);
  CHECK(collective_of("nccl:all_reduce") == Collective::kAllReduce);
  CHECK(collective_of("reduce_scatter_tensor_coalesced") == Collective::kReduceScatter);
  CHECK(collective_of("all_to_allv") == Collective::kAllToAll);
  CHECK(collective_of("nccl:send 0->3") == Collective::kSend);
  CHECK(collective_of("barrier") == Collective::kBarrier);
  CHECK_FALSE(collective_of("wait"));
  CHECK(collective_of_kernel("ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(args)") ==
        Collective::kReduceScatter);
  CHECK_FALSE(collective_of_kernel("ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)"));
  CHECK(is_nccl_kernel("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)"));
  CHECK_FALSE(is_nccl_kernel("void at::native::reduce_kernel<512>"));
  CHECK(dtype_of("c10::BFloat16") == DType::kBf16);
  CHECK(dtype_of("long int") == DType::kInt64);
  CHECK(dtype_of("GenericList[Tensor(float)]") == DType::kFp32);
  CHECK(dtype_of("Float8_e4m3fn") == DType::kFp8);
  CHECK(dtype_of("quaternion") == DType::kUnknown);
}

TEST_CASE("the rank is read from file names", "[import][names]") {
  CHECK(rank_of_name("/a/rank5/sampled_rank-1.json.gz") == 1u);
  CHECK(rank_of_name("worker12_step_4.1694128201545.pt.trace.json") == 12u);
  CHECK(rank_of_name("resnet50_num_workers_0.worker3.16231.pt.trace.json") == 3u);
  CHECK_FALSE(rank_of_name("resnet_1gpu_et_1.0.3.json.gz"));
  CHECK_FALSE(rank_of_name("rank99999999999.json"));
}

TEST_CASE("elements are found across any block boundary", "[import][json]") {
  std::string events;
  for (int i = 0; i < 400; ++i) {
    events += (i > 0 ? ",\n" : "") +
              std::string(R"({"name": "a \" ] } \\", "list": [[1], {"x": "}"}], "n": )") +
              std::to_string(i) + std::string(static_cast<size_t>(i % 71), ' ') + "}";
  }
  const std::string text =
      R"({"before": {"a": [1, 2]}, "nodes": [)" + events + R"(], "behind": "x]"})";
  Source source = Source::over(text, "memory", {}).value();
  JsonStream stream(source, "nodes", {});
  Element element;
  size_t seen = 0;
  for (;;) {
    const auto got = stream.next(element);
    REQUIRE(got);
    if (*got != JsonStream::Next::kElement) {
      CHECK(*got == JsonStream::Next::kEnd);
      break;
    }
    CHECK(element.text.front() == '{');
    CHECK(element.text.back() == '}');
    CHECK(text.substr(element.offset, element.text.size()) == element.text);
    CHECK(element.number == seen++);
  }
  CHECK(seen == 400);
  CHECK(stream.members() == R"({"before":{"a": [1, 2]},"behind":"x]"})");
}

TEST_CASE("the end of a JSON value is found as reading byte by byte finds it", "[import]") {
  const auto plainly = [](const std::string& text) -> std::ptrdiff_t {
    uint32_t depth = 0;
    bool in_string = false, escaped = false;
    for (size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      const bool taken = std::exchange(escaped, c == '\\' && !escaped);
      if (c == '"' && !taken) in_string = !in_string;
      if (in_string) continue;
      if (c == '{' || c == '[') ++depth;
      if ((c == '}' || c == ']') && --depth == 0) return static_cast<std::ptrdiff_t>(i + 1);
    }
    return -1;
  };
  std::mt19937_64 random(5);
  constexpr std::string_view kLetters = "{}[]\"\\x, :";
  for (int round = 0; round < 20'000; ++round) {
    std::string text = "{";
    for (size_t n = random() % 300; n > 0; --n) {
      text += random() % 3 != 0 ? 'x' : kLetters[random() % kLetters.size()];
    }
    // Read in two pieces; what stands behind the end must not count.
    const size_t cut = random() % (text.size() + 1);
    const std::string padded = text + std::string(kScanPadding, '}');
    const char* const begin = padded.data();
    ScanState state;
    const char* end = scan_value(begin, begin + cut, state);
    if (end == nullptr) end = scan_value(begin + cut, begin + text.size(), state);
    INFO(text << " cut at " << cut);
    REQUIRE((end == nullptr ? -1 : end - begin) == plainly(text));
  }
}

}  // namespace rehearse::import_source_test
