// SPDX-License-Identifier: Apache-2.0
#include <zlib.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "synth_sample.hpp"
#include "tests/temporary_folder.hpp"
#include "traces/export/kineto.hpp"
#include "traces/export/kineto_text.hpp"

namespace rehearse::traces::synth_kineto_test {
namespace {

Trace sample() {
  pb::Synth options = synth::small_gpt();
  options.set_tp(2);
  options.set_pp(2);
  auto trace = synth::synthesize(options, synth::sample_gpu());
  REQUIRE(trace);
  return std::move(*trace);
}

nlohmann::json exported(const Trace& trace, size_t rank) {
  return nlohmann::json::parse(
      kineto_json(trace.ranks[rank], {trace.header, trace.communicators, trace.strings}));
}

}  // namespace

TEST_CASE("times are written in decimal microseconds", "[traces][export]") {
  CHECK(kineto_time(0) == "0.000");
  CHECK(kineto_time(1'234'567) == "1234.567");
  CHECK(kineto_time(1'700'000'000'000'000'001) == "1700000000000000.001");
  CHECK(kineto_time(-5) == "-0.005");
  CHECK(kineto_time(INT64_MIN) == "-9223372036854775.808");
}

TEST_CASE("names with quotes and broken UTF-8 become valid JSON", "[traces][export]") {
  CHECK(json_string("a\"b\\\n") == R"("a\"b\\\n")");
  CHECK(nlohmann::json::parse(json_string("\xff")).is_string());
}

TEST_CASE("a generated rank is marked synthetic and lists its own process groups",
          "[traces][export]") {
  const Trace trace = sample();
  const auto json = exported(trace, 1);
  CHECK(json["synthetic"] == true);
  CHECK(json["traceName"].get<std::string>().find("synthetic") != std::string::npos);
  const auto& info = json["distributedInfo"];
  CHECK(info["rank"] == 1);
  CHECK(info["world_size"] == 4);
  CHECK(info["pg_config"].size() == info["pg_count"]);
  for (const auto& group : info["pg_config"]) {
    const std::vector<RankId> ranks = group["ranks"];
    CHECK(std::find(ranks.begin(), ranks.end(), 1u) != ranks.end());
    CHECK(group["pg_size"] == ranks.size());
  }
}

TEST_CASE("every operation is exported once in its category", "[traces][export]") {
  const Trace trace = sample();
  const auto& ops = trace.ranks[2].ops;
  std::map<std::string, size_t> expected, found;
  for (size_t i = 0; i < ops.size(); ++i) {
    switch (ops.kind[i]) {
      case OpKind::kHost:
        ++expected["cpu_op"];
        break;
      case OpKind::kLaunch:
        ++expected["cuda_runtime"], ++expected["ac2g s"];
        break;
      case OpKind::kKernel:
      case OpKind::kCall:
        ++expected["kernel"], ++expected["ac2g f"];
        break;
      case OpKind::kCopy:
        ++expected["gpu_memcpy"], ++expected["ac2g f"];
        break;
      case OpKind::kSync:
        ++expected["cuda_runtime"];
        if (ops.sync(i)->sync != SyncKind::kRecord) ++expected["cuda_sync"];
        break;
      case OpKind::kMemory:
        ++expected["cpu_instant_event"];
        break;
      case OpKind::kAnnotation:
        ++expected["user_annotation"];
        break;
      default:
        FAIL("unexpected kind");
    }
  }
  const auto json = exported(trace, 2);
  for (const auto& event : json["traceEvents"]) {
    if (event["ph"] == "M") continue;
    std::string category = event["cat"];
    if (category == "ac2g") category += " " + event["ph"].get<std::string>();
    ++found[category];
  }
  CHECK(found == expected);
}

TEST_CASE("collective kernels carry sizes in elements, their group, sequence and peer",
          "[traces][export]") {
  const Trace trace = sample();
  const auto& ops = trace.ranks[0].ops;
  const auto json = exported(trace, 0);
  std::map<int64_t, const nlohmann::json*> by_correlation;
  for (const auto& event : json["traceEvents"])
    if (event.contains("cat") && event["cat"] == "kernel")
      by_correlation[event["args"]["correlation"]] = &event;
  size_t sends = 0;
  for (size_t i = 0; i < ops.size(); ++i) {
    const Call* call = ops.call(i);
    if (!call) continue;
    REQUIRE(by_correlation.count(ops.correlation[i]) == 1);
    const auto& args = (*by_correlation[ops.correlation[i]])["args"];
    CHECK(args["In msg nelems"] == call->bytes_in / size_of(call->dtype));
    CHECK(args["Process Group Name"] == trace.communicators[call->communicator].id);
    CHECK(args["Seq"] == call->sequence);
    CHECK(args["Collective name"] == kineto_name(call->collective));
    if (call->collective == Collective::kSend) {
      ++sends;
      CHECK(args["Dst Rank"] == 2);  // first rank of the second stage
    }
  }
  CHECK(sends > 0);
}

TEST_CASE("a stream wait names the correlation of the record it waits for", "[traces][export]") {
  const Trace trace = sample();
  const auto json = exported(trace, 0);
  std::map<int64_t, std::string> calls;
  for (const auto& event : json["traceEvents"])
    if (event.contains("cat") && event["cat"] == "cuda_runtime")
      calls[event["args"]["correlation"]] = event["name"];
  size_t waits = 0;
  for (const auto& event : json["traceEvents"]) {
    if (event["name"] != "Stream Wait Event") continue;
    ++waits;
    const auto& args = event["args"];
    CHECK(calls[args["wait_on_cuda_event_record_corr_id"]] == "cudaEventRecord");
    CHECK(args["wait_on_stream"] != args["stream"]);
    CHECK(calls[args["correlation"]] == "cudaStreamWaitEvent");
  }
  CHECK(waits > 0);
}

TEST_CASE("a compressed file holds the same text and is the same every time", "[traces][export]") {
  const rehearse::tests::TemporaryFolder temporary;
  const std::filesystem::path& folder = temporary.path;
  const Trace trace = sample();
  const KinetoContext context{trace.header, trace.communicators, trace.strings};
  const auto plain =
      write_kineto(trace.ranks[3], context, folder, Compression::kNone, Overwrite::kRefuse);
  const auto packed =
      write_kineto(trace.ranks[3], context, folder, Compression::kGzip, Overwrite::kRefuse);
  REQUIRE(plain);
  REQUIRE(packed);
  CHECK(plain->filename() == "rank3.json");
  CHECK(packed->filename() == "rank3.json.gz");
  const std::string text = *read_file(*plain, 1 << 30);
  std::string unpacked(text.size() + 1, '\0');
  gzFile file = gzopen(packed->c_str(), "rb");
  REQUIRE(file);
  unpacked.resize(static_cast<size_t>(
      std::max(0, gzread(file, unpacked.data(), static_cast<unsigned>(unpacked.size())))));
  gzclose(file);
  CHECK(unpacked == text);
  const std::string bytes = *read_file(*packed, 1 << 30);
  CHECK_FALSE(
      write_kineto(trace.ranks[3], context, folder, Compression::kGzip, Overwrite::kRefuse));
  REQUIRE(write_kineto(trace.ranks[3], context, folder, Compression::kGzip, Overwrite::kReplace));
  CHECK(*read_file(*packed, 1 << 30) == bytes);
  CHECK_FALSE(write_kineto(trace.ranks[3], context, folder / "absent", Compression::kNone,
                           Overwrite::kRefuse));
}

}  // namespace rehearse::traces::synth_kineto_test
