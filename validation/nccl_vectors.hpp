// SPDX-License-Identifier: Apache-2.0
// Recomputes golden vectors of NCCL's decisions and tells where the model differs. The vectors were
// made by NCCL 2.28.9's own code with default settings: shapes of communicators, the cost table of
// each, and the decision for many calls on them. Nothing of a row is used but its inputs.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "validation/check.hpp"

namespace rehearse::validation {

struct VectorDifference {
  std::string file;
  std::size_t row = 0;  // line of the file, the header is line 1
  std::string column;
  std::string expected;
  std::string computed;
};

struct VectorReport {
  std::size_t shapes = 0;
  std::size_t tuning_rows = 0;
  std::size_t choice_rows = 0;
  // Rows with any difference, and cells of the cost table that should not be available.
  std::size_t mismatches = 0;
  // Largest relative error of a latency, bandwidth or time; such a figure differs above 1e-5.
  double max_relative_error = 0;
  std::vector<VectorDifference> differences;  // the first kMaxDifferences
  std::vector<std::string> absent;            // of the three files

  static constexpr std::size_t kMaxDifferences = 50;

  [[nodiscard]] std::size_t rows() const { return tuning_rows + choice_rows; }
};

// Reads nccl_shapes.csv, nccl_tuning_table.csv and nccl_choice.csv in `folder`, each plain or with
// .gz behind. The tuning table carries its shapes and so does without the first; either of the other two may be left out.
// Code::kMissingInput when neither of them is there or no file has the shapes of the choices, Code::kBadInput with
// file:line when one is malformed, Code::kLimit when one is larger than 256 MiB unpacked.
[[nodiscard]] Result<VectorReport> check_vectors(const std::filesystem::path& folder);

// Its claim of accuracy: the share of rows that differ is to be none.
[[nodiscard]] Check vectors_check(const VectorReport& report);

}  // namespace rehearse::validation
