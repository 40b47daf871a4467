// SPDX-License-Identifier: Apache-2.0
// Published step times as jobs: tables of llm-foundry (MPT), torchtitan (Llama) and Megatron-LM's own
// tests, one CSV each (measured/ of the data folder). Rows that do not state enough are left out with the reason.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "validation/step_time/layout.hpp"

namespace rehearse::validation {

struct PublishedStep {
  std::string what;
  std::string model;  // rows of one model are held out together
  std::string
      family;       // Megatron's: jobs that differ in nothing but their layout; llm-foundry's: none
  std::string gpu;  // kind of GPU and precision that rates are fitted for
  TransformerJob job;
  double seconds = 0;
  double memory = 0;  // bytes, largest of a GPU; 0: not stated
  std::string source;
};

struct PublishedSteps {
  std::vector<PublishedStep> steps;
  std::map<std::string, size_t> left_out;  // reason -> rows
  std::vector<std::string> assumptions;
};

[[nodiscard]] Result<PublishedSteps> llm_foundry_steps(const std::filesystem::path& file);
[[nodiscard]] Result<PublishedSteps> torchtitan_steps(const std::filesystem::path& file);
[[nodiscard]] Result<PublishedSteps> megatron_steps(const std::filesystem::path& file);

}  // namespace rehearse::validation
