// SPDX-License-Identifier: Apache-2.0
// Parts of the program that tests have recorded (watched.cpp). Each returns the exit code.
#pragma once

#include <string>
#include <vector>

namespace rehearse::tests {

using Words = std::vector<std::string>;

// A function of the capture library, which a variable of the environment names as for the driver or NCCL.
[[nodiscard]] void* door(const char* variable, const char* symbol);

// Plays NCCL for one plugin version: VERSION THREADS COLLECTIVES.
[[nodiscard]] int play_nccl(const Words& words);
// Plays NCCL for one version of the tuner plugin: VERSION CALLS, or VERSION 0 FILE with the costs of a file.
[[nodiscard]] int play_tuner(const Words& words);
// A job of some steps with kernels and collectives through a stand-in CUPTI: STEPS.
[[nodiscard]] int play_job(const Words& words);

}  // namespace rehearse::tests
