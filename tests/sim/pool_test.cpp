// SPDX-License-Identifier: Apache-2.0
#include "sim/pool.hpp"

#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <thread>

#include "tests/temporary_folder.hpp"

namespace rehearse::pool_test {
using namespace rehearse;
using namespace std::chrono_literals;

TEST_CASE("pieces are answered in their order, each by a process of its own", "[sim][pool]") {
  SilentReporter silent;
  const auto piece = [](size_t which) -> Result<std::string> {
    if (which == 3) return fail(Code::kBadInput, "three");
    return std::to_string(which) + " " + std::to_string(::getpid());
  };
  for (const unsigned jobs : {1U, 3U}) {
    const auto answers = sim::in_children(7, jobs, piece, silent);
    REQUIRE(answers);
    REQUIRE(answers->size() == 7);
    std::set<std::string> processes;
    for (size_t i = 0; i < 7; ++i) {
      if (i == 3) continue;
      REQUIRE((*answers)[i]);
      const std::string& text = *(*answers)[i];
      CHECK(text.substr(0, text.find(' ')) == std::to_string(i));
      processes.insert(text.substr(text.find(' ')));
    }
    CHECK(processes.size() == 6);
    REQUIRE_FALSE((*answers)[3]);
    CHECK((*answers)[3].error().what == "three");
  }
  CHECK(sim::in_children(0, 2, piece, silent)->empty());
}

TEST_CASE("a piece whose process dies is tried again, and the others do not notice",
          "[sim][pool]") {
  SilentReporter silent;
  const tests::TemporaryFolder folder;
  const auto piece = [&](size_t which) -> Result<std::string> {
    const auto mark = folder.path / std::to_string(which);
    const bool first = !std::filesystem::exists(mark);
    std::ofstream(mark) << "here";
    if (which == 5 || (which == 2 && first)) ::raise(SIGKILL);
    return "done";
  };
  std::map<size_t, int> ended;
  std::set<size_t> lost;
  const auto done = sim::run_pieces(
      8, {.jobs = 2, .tries = 2}, piece,
      [&](size_t which, const Result<std::string>& answer) -> Result<void> {
        ++ended[which];
        if (!answer) lost.insert(which);
        return {};
      },
      silent);
  REQUIRE(done);
  CHECK(ended.size() == 8);
  CHECK(std::ranges::all_of(ended, [](const auto& each) { return each.second == 1; }));
  CHECK(lost == std::set<size_t>{5});
}

TEST_CASE("a piece that takes too long is ended", "[sim][pool]") {
  SilentReporter silent;
  const auto piece = [](size_t which) -> Result<std::string> {
    if (which == 1) std::this_thread::sleep_for(1h);
    return "done";
  };
  std::map<size_t, Result<std::string>> answers;
  const auto done = sim::run_pieces(
      3, {.jobs = 1, .time = 200ms, .tries = 5}, piece,
      [&](size_t which, const Result<std::string>& answer) -> Result<void> {
        answers.insert_or_assign(which, answer);
        return {};
      },
      silent);
  REQUIRE(done);
  REQUIRE(answers.size() == 3);
  CHECK(answers.at(0));
  CHECK(answers.at(2));
  REQUIRE_FALSE(answers.at(1));
  CHECK(answers.at(1).error().code == Code::kLimit);
  CHECK(answers.at(1).error().what == "took longer than 200 ms");
}

TEST_CASE("an error of who takes the answers ends the rest", "[sim][pool]") {
  SilentReporter silent;
  size_t taken = 0;
  const auto done = sim::run_pieces(
      50, {.jobs = 2}, [](size_t) -> Result<std::string> { return "done"; },
      [&](size_t, const Result<std::string>&) -> Result<void> {
        ++taken;
        return fail(Code::kIo, "no room");
      },
      silent);
  REQUIRE_FALSE(done);
  CHECK(done.error().what == "no room");
  CHECK(taken == 1);
}

}  // namespace rehearse::pool_test
