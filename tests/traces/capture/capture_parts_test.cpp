// SPDX-License-Identifier: Apache-2.0
// Parts of the capture library by themselves.
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "traces/capture/blocks.hpp"
#include "traces/capture/job.hpp"
#include "traces/capture/names.hpp"
#include "traces/capture/stretch.hpp"
#include "traces/capture/window.hpp"

namespace rehearse::capture_parts_test {
using namespace rehearse::capture;

TEST_CASE("names keep their ids, whichever thread asks first", "[capture][threads]") {
  const auto names = std::make_unique<Names>();
  REQUIRE(names->prepare());
  constexpr int kNames = 2000, kThreads = 4;
  std::vector<std::vector<uint32_t>> ids(kThreads);
  std::vector<std::thread> threads;
  for (auto& mine : ids) {
    threads.emplace_back([&] {
      for (int i = 0; i < kNames; ++i) mine.push_back(names->id("name " + std::to_string(i)));
    });
  }
  for (std::thread& t : threads) t.join();
  for (int t = 1; t < kThreads; ++t) CHECK(ids[static_cast<size_t>(t)] == ids[0]);
  CHECK(names->count() == kNames);
  for (int i = 0; i < kNames; ++i) {
    CHECK(names->text(ids[0][static_cast<size_t>(i)]) == "name " + std::to_string(i));
  }
  CHECK(names->id("") == 0);
  CHECK(names->text(0).empty());
  CHECK(names->text(kNames + 1).empty());
  const std::string huge(20'000, 'x');
  CHECK(names->text(names->id(huge)).size() == 15'000);
}

TEST_CASE("blocks run out instead of growing, and come back", "[capture]") {
  Blocks blocks;
  REQUIRE(blocks.prepare(4 * kBlockBytes));
  std::vector<Block*> taken;
  while (Block* const block = blocks.take()) taken.push_back(block);
  CHECK(taken.size() == 4);
  blocks.queue(taken[2]);
  blocks.queue(taken[0]);
  Block* const first = blocks.queued();
  REQUIRE(first == taken[2]);
  CHECK(first->next == taken[0]);
  CHECK(first->next->next == nullptr);
  CHECK(blocks.queued() == nullptr);
  blocks.give_back(taken[0]);
  CHECK(blocks.take() == taken[0]);
  CHECK(blocks.take() == nullptr);
}

TEST_CASE("only variables of the allow-list are recorded, and no secrets", "[capture]") {
  for (const char* name :
       {"NCCL_ALGO", "RANK", "MASTER_ADDR", "CUDA_VISIBLE_DEVICES", "HOROVOD_FUSION_THRESHOLD",
        "SLURM_JOB_ID", "TORCH_NCCL_BLOCKING_WAIT"}) {
    INFO(name);
    CHECK(is_recorded_variable(name));
  }
  for (const char* name :
       {"PATH", "HOME", "AWS_SECRET_ACCESS_KEY", "WANDB_API_KEY", "HF_TOKEN", "SSH_AUTH_SOCK",
        "HOROVOD_SECRET_KEY", "_HOROVOD_SECRET_KEY", "NCCL_AUTH_TOKEN", "SLURM_JOB_USER",
        "DATABASE_URL", "TORCHELASTIC_PASSWORD"}) {
    INFO(name);
    CHECK_FALSE(is_recorded_variable(name));
  }
}

TEST_CASE("stretches are steps or times, and nothing else", "[capture]") {
  Stretch s;
  REQUIRE(read_stretch("3-5", s));
  CHECK((s.of == Stretch::Of::kSteps && s.first == 3 && s.last == 5));
  REQUIRE(read_stretch("7", s));
  CHECK((s.first == 7 && s.last == 7));
  REQUIRE(read_stretch("500ms-2s", s));
  CHECK((s.of == Stretch::Of::kTime && s.first == 500'000'000 && s.last == 2'000'000'000));
  for (const char* wrong : {"", "-", "a-b", "5-3", "3-5s", "10s", "2s-2s", "3-", "-3", "1h-2h",
                            "99999999999999999999-3", "1-2-3", "9223372036854775807s-1s"}) {
    INFO(wrong);
    CHECK_FALSE(read_stretch(wrong, s));
  }
}

TEST_CASE("a window opens with its first step and closes with its last", "[capture]") {
  Window w;
  Stretch s;
  REQUIRE(read_stretch("3-4", s));
  w.start(s, 1000);
  CHECK_FALSE(w.holds(5000));
  w.step_began(2, 2000);
  w.step_ended(4, 2500);  // of another family, before it began
  CHECK_FALSE(w.holds(2600));
  w.step_began(3, 3000);
  CHECK(w.holds(3000));
  CHECK_FALSE(w.holds(2999));
  w.step_ended(3, 3500);
  CHECK(w.holds(3600));
  w.step_began(4, 4000);
  w.step_ended(4, 4500);
  CHECK(w.holds(4500));
  CHECK_FALSE(w.holds(4501));
  CHECK(w.phase(9000) == Window::Phase::kAfter);
}

}  // namespace rehearse::capture_parts_test
