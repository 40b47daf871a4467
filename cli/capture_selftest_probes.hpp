// SPDX-License-Identifier: Apache-2.0
// The looks that the self-test takes at the machine. Each opens libraries of others, so each runs in a child
// process of its own: a driver that crashes or hangs is an answer, not the end of the test.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace rehearse::cli {

struct Probe {
  enum class State { kGood, kWrong, kSkipped } state = State::kWrong;
  std::string text;
};

// Runs `look` in a child; kWrong when it crashes or takes more than 30 s.
[[nodiscard]] Probe in_child(const std::function<Probe()>& look);

[[nodiscard]] Probe probe_library(const std::filesystem::path& library);
[[nodiscard]] Probe probe_driver();
[[nodiscard]] Probe probe_cupti();
[[nodiscard]] Probe probe_nccl();
// The folder exists or can be made, and takes a file.
[[nodiscard]] Probe probe_folder(const std::filesystem::path& folder);
// Plays NCCL's calls with the library; the cost of one pair. Leaves a capture file in `folder`.
[[nodiscard]] Probe probe_cost(const std::filesystem::path& library,
                               const std::filesystem::path& folder);
// Runs a kernel that does nothing, recorded into `folder`. kSkipped without a GPU.
[[nodiscard]] Probe probe_kernel(const std::filesystem::path& library,
                                 const std::filesystem::path& folder);

// How many NCCL events the cost probe plays.
constexpr int kPlayedPairs = 100'000;

}  // namespace rehearse::cli
