// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/traces/trace_samples.hpp"
#include "traces/inspect/inspection.hpp"
#include "traces/inspect/text_table.hpp"
#include "traces/model/utf8.hpp"

namespace rehearse::inspect_text_test {
using namespace rehearse;
using namespace rehearse::traces;

namespace {

Inspection of_run(uint32_t ranks, const InspectOptions& options = {}) {
  const samples::TrainingRun run{.ranks = ranks, .steps = 2, .layers = 2};
  Trace trace = samples::training_frame(run);
  trace.header.mutable_synth()->set_model("gpt");
  trace.header.mutable_synth()->set_layers(2);
  for (RankId r = 0; r < ranks; ++r) trace.ranks.push_back(samples::training_rank(run, r));
  auto in = inspect(trace, options);
  REQUIRE(in);
  return std::move(*in);
}

}  // namespace

TEST_CASE("the inspect document has the keys of its schema", "[traces][inspect]") {
  const nlohmann::ordered_json json = to_json(of_run(16, {.list_collectives = true}));
  CHECK(json.begin().key() == "schema");
  CHECK(json["schema"] == "rehearse.inspect/1");
  CHECK(json["ranks"] == 16);
  CHECK(json["operations"] == 16 * 2 * (4 * (12 * 3 + 1) + 1));
  // Per step: 4 tensor-parallel calls in each of 2 groups, 1 data-parallel call in each of 8.
  CHECK(json["collectives"] == 2 * (4 * 2 + 8));
  CHECK(json["nccl_kernels"] == 16 * 2 * (4 + 1));
  CHECK(json["steps"] == 2);
  CHECK(json["step_time_ns"]["mean"] > 0);
  CHECK(json["communicators"].size() == 10);
  CHECK(json["communicators"][0]["by_type"]["all_reduce"]["collectives"] == 8);
  CHECK(json["gpus"][0]["count"] == 16);
  CHECK(json["source"]["generator"]["model"] == "gpt");
  CHECK(json["breakdown"].size() == 16);
  CHECK(json["matched"].size() == json["collectives"]);
  CHECK(json["findings"].empty());
}

TEST_CASE("names that are not UTF-8 do not break the document", "[traces][inspect]") {
  Inspection in = of_run(1);
  in.kernels[0].name = "gemm\xff";
  in.findings.add("odd", Severity::kInfo, "\xc0", "none");
  CHECK_NOTHROW(to_json(in).dump());
  CHECK(to_utf8("a\xffz") == "a\xef\xbf\xbdz");
  CHECK(is_utf8("gr\xc3\xbc\xc3\x9f"));
  CHECK_FALSE(is_utf8("\xc3"));
  CHECK_FALSE(is_utf8("\xc0\x80"));
  CHECK_FALSE(is_utf8("\xf4\x90\x80\x80"));
}

TEST_CASE("the first line of an inspection says what the trace is", "[traces][inspect]") {
  const std::string text = to_text(of_run(16), 100);
  const std::string first = text.substr(0, text.find('\n'));
  CHECK(first.find(
            "synthetic pytorch trace: 16 ranks, 4,768 operations, 32 collectives, 2 steps of ") ==
        0);
  const std::string many = to_text(of_run(24), 100);
  CHECK(many.find("(waits most)") != std::string::npos);
  CHECK(text.find("(waits most)") == std::string::npos);
}

TEST_CASE("tables stay inside the width", "[traces][inspect]") {
  TextTable table({"kernel", "count"});
  table.add({std::string(200, 'k'), "1,234"});
  table.add({"gr\xc3\xbc\xc3\x9f", "5"});
  CHECK(table.render(30) ==
        "  kernel                 count\n"
        "  kkkkkkkkkkkkkkkkkk...  1,234\n"
        "  gr\xc3\xbc\xc3\x9f                       5\n");
  CHECK(printable("a\x1b[31mb\n") == "a [31mb ");
}

}  // namespace rehearse::inspect_text_test
