// SPDX-License-Identifier: Apache-2.0
// Workers are this test program itself, which does not understand what it is asked: every job fails, quickly.
#include "cli/serve/jobs.hpp"

#include <catch2/catch.hpp>
#include <thread>

#include "base/atomic_file.hpp"
#include "tests/temporary_folder.hpp"

namespace rehearse::jobs_test {
using namespace rehearse;
using namespace rehearse::serve;
using namespace std::chrono_literals;

namespace {

pb::JobRequest some_request() {
  pb::JobRequest request;
  request.set_kind(pb::JobRequest::RUN);
  request.mutable_subject()->set_scenario("ddp-16");
  return request;
}

const Jobs::Finish kNothing = [](pb::Job&, const std::filesystem::path&) { return Result<void>(); };
const Jobs::Prepare kReady = [](const std::filesystem::path&) { return Result<void>(); };

void wait_for_all(const Jobs& jobs) {
  uint64_t seen = 0;
  for (int i = 0; i < 600; ++i) {
    const JobCounts counts = jobs.counts();
    if (counts.queued + counts.running == 0) return;
    seen = jobs.wait(seen, 100ms);
  }
  FAIL("jobs did not end");
}

}  // namespace

TEST_CASE("jobs of many threads each end once", "[serve][threads]") {
  const tests::TemporaryFolder folder;
  auto jobs = Jobs::open(folder.path / "jobs", {.at_once = 3}, kNothing);
  REQUIRE(jobs);
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 5; ++k) {
        const auto job = (*jobs)->submit(some_request(), kReady);
        if (job && k == 0) (void)(*jobs)->cancel(job->id());
        (void)(*jobs)->list(0, 10);
      }
    });
  }
  threads.clear();
  wait_for_all(**jobs);
  const JobCounts counts = (*jobs)->counts();
  CHECK(counts.failed + counts.cancelled == 20);
  (*jobs)->stop();
}

TEST_CASE("what a killed server leaves behind is told apart", "[serve]") {
  const tests::TemporaryFolder folder;
  const auto put = [&](const std::string& id, const std::string& text) {
    std::filesystem::create_directories(folder.path / id);
    REQUIRE(write_file(folder.path / id / "job.json", text, Overwrite::kRefuse));
  };
  put("1", R"({"schema": "rehearse.job/1", "id": "1", "state": "done"})");
  put("2", R"({"schema": "rehearse.job/1", "id": "2", "state": "running"})");
  put("3", R"({"schema": "rehearse.job/1", "id": "3", "state": "do)");
  put("4", R"({"schema": "rehearse.job/1", "id": "99", "state": "done"})");
  std::filesystem::create_directories(folder.path / "5");  // a submission that was cut
  put("not-a-job", "{}");
  REQUIRE(write_file(folder.path / "2" / "result.json.part", "{", Overwrite::kRefuse));
  REQUIRE(write_file(folder.path / "2" / "scenario.yaml", "", Overwrite::kRefuse));
  put("removed-7", "{}");
  put("removed-by-me", "{}");
  auto jobs = Jobs::open(folder.path, {}, kNothing);
  REQUIRE(jobs);
  CHECK((*jobs)->list(0, 100).size() == 2);
  CHECK((*jobs)->get("1")->state() == pb::Job::DONE);
  CHECK((*jobs)->get("2")->state() == pb::Job::FAILED);
  CHECK((*jobs)->get("2")->error().code() == "interrupted");
  // When it ended is not known; what it was about to write is worth nothing.
  CHECK((*jobs)->get("2")->ended() > 0);
  CHECK_FALSE(std::filesystem::exists(folder.path / "2" / "result.json.part"));
  CHECK((*jobs)->get("2")->files_size() == 1);
  CHECK((*jobs)->get("2")->files(0).name() == "scenario.yaml");
  CHECK_FALSE(std::filesystem::exists(folder.path / "removed-7"));
  CHECK(std::filesystem::exists(folder.path / "removed-by-me"));
  CHECK_FALSE((*jobs)->get("3"));
  for (const char* id : {"", "0", "01", "-1", "../1", "1/../1", "18446744073709551617"}) {
    CHECK_FALSE((*jobs)->get(id));
  }
  const auto next = (*jobs)->submit(some_request(), kReady);
  REQUIRE(next);
  CHECK(next->id() == "6");
}

TEST_CASE("what cannot be prepared is not a job", "[serve]") {
  const tests::TemporaryFolder folder;
  auto jobs = Jobs::open(folder.path, {}, kNothing);
  REQUIRE(jobs);
  const auto job =
      (*jobs)->submit(some_request(), [](const std::filesystem::path&) -> Result<void> {
        return fail(Code::kMissingInput, "no such trace");
      });
  REQUIRE_FALSE(job);
  CHECK(job.error().what == "no such trace");
  CHECK((*jobs)->list(0, 10).empty());
  CHECK(std::filesystem::is_empty(folder.path));
}

TEST_CASE("more jobs than may wait are refused", "[serve]") {
  const tests::TemporaryFolder folder;
  auto jobs = Jobs::open(folder.path, {.at_once = 1, .queued = 1000, .kept = 2}, kNothing);
  REQUIRE(jobs);
  REQUIRE((*jobs)->submit(some_request(), kReady));
  REQUIRE((*jobs)->submit(some_request(), kReady));
  const auto third = (*jobs)->submit(some_request(), kReady);
  REQUIRE_FALSE(third);
  CHECK(third.error().code == Code::kLimit);
}

}  // namespace rehearse::jobs_test
