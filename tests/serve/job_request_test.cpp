// SPDX-License-Identifier: Apache-2.0
#include "cli/serve/job_request.hpp"

#include <catch2/catch.hpp>

namespace rehearse::job_request_test {
using namespace rehearse;
using namespace rehearse::serve;

TEST_CASE("a request becomes the words of a command", "[serve]") {
  const auto job = parse_job(
      R"({"kind": "run", "subject": {"scenario": "ddp-16", "edits": [{"fault": "F16"}, {"set": "-x=1"}]},
          "also": ["perfetto"]})");
  REQUIRE(job);
  CHECK(words_of(*job) == std::vector<std::string>{"run", "ddp-16", "--fault=F16", "--set=-x=1",
                                                   "--perfetto=run.pftrace", "--json"});
  const auto report = parse_job(R"({"kind": "report", "outcomes": ["3", "5"]})");
  REQUIRE(report);
  CHECK(words_of(*report) == std::vector<std::string>{"report", "../3/result.json",
                                                      "../5/result.json", "-o", "report.html",
                                                      "--json"});
}

TEST_CASE("a refusal names the place in the body", "[serve]") {
  const auto edit = parse_job(
      R"({"kind": "run", "subject": {"scenario": "ddp-16", "edits": [{"fault": "F16"}, {}]}})");
  REQUIRE_FALSE(edit);
  CHECK(edit.error().where == "body: /edits/1");
  const auto yaml =
      parse_job(R"({"kind": "run", "subject": {"yaml": "trace: ddp-16\nplatfrom: dgx-a100\n"}})");
  REQUIRE_FALSE(yaml);
  CHECK(yaml.error().where.starts_with("scenario.yaml:2:"));
  const auto key = parse_job(R"({"kind": "run", "subjekt": {}})");
  REQUIRE_FALSE(key);
  CHECK(key.error().where.find("subjekt") != std::string::npos);
}

TEST_CASE("scenario text names traces of the library only", "[serve]") {
  const auto trace = [](const std::string& file) {
    const auto subject = parse_subject(R"({"yaml": "trace: ')" + file + R"('"})");
    return subject ? "<" + trace_of(*subject) + ">" : subject.error().what;
  };
  CHECK(trace("mine.rtrace") == "<mine.rtrace>");
  CHECK(trace("ddp-16") == "<>");
  for (const char* file :
       {"/etc/passwd", "../mine.rtrace", "a/mine.rtrace", ".rtrace", "-x.rtrace"}) {
    CHECK(trace(file).starts_with("neither in the library nor shipped"));
  }
}

TEST_CASE("scenario text names entries of the catalogues only", "[serve]") {
  const auto good = [](const std::string& yaml) {
    return parse_subject(R"({"yaml": "trace: ddp-16\n)" + yaml + R"("})").has_value();
  };
  CHECK(good("platform: dgx-a100"));
  CHECK(good("platform: {like: dgx-a100, nodes: [{like: dgx-h100, count: 2}]}"));
  for (const char* like : {"/etc/passwd", "../cluster.yaml", "cluster.yaml", "a/b"}) {
    CHECK_FALSE(good(std::string("platform: ") + like));
    CHECK_FALSE(good(std::string("platform: {nodes: [{like: ") + like + "}]}"));
    CHECK_FALSE(good(std::string("platform: {nodes: [{gpus: [{like: ") + like + "}]}]}"));
  }
}

TEST_CASE("names of files become names of traces", "[serve]") {
  CHECK(trace_name_for("rank0.json.gz") == "rank0.rtrace");
  CHECK(trace_name_for("a run/../x y.rtrace") == "xy.rtrace");
  CHECK(trace_name_for("C:\\traces\\step.pt.trace.json") == "step.pt.trace.rtrace");
  CHECK(trace_name_for("../..") == "trace.rtrace");
  CHECK(trace_name_for("<img src=x>.json") == "imgsrcx.rtrace");
  CHECK(trace_name_for("-rf.json") == "rf.rtrace");
  CHECK(trace_name_for("") == "trace.rtrace");
}

}  // namespace rehearse::job_request_test
