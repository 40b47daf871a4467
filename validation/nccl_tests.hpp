// SPDX-License-Identifier: Apache-2.0
// Our time model against measured nccl-tests tables: every row predicted from data sheet, model and
// priors, without a fit; some priors were chosen with published tables in view. Deterministic; rows in the order of the input.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/finding.hpp"
#include "validation/nccl_tests_table.hpp"
#include "validation/statistics.hpp"
#include "validation/test_machines.hpp"

namespace rehearse::validation {

struct NcclTestOptions : TestMachineOptions {
  Bytes from_bytes = Bytes{1} << 20;  // smaller rows are predicted but not judged
};

struct NcclTestPrediction {
  NcclTestRow row;
  std::string platform;
  double predicted_us = 0;
  double error = 0;       // (predicted - measured) / measured
  std::string algorithm;  // "RING/SIMPLE"
  int channels = 0;
  std::string bound;  // link that bounds it, "its channels" or "latency"
};

struct HardwareReport {
  std::string hardware;
  uint32_t from_nodes = 0;  // of the mapping entry; 0: all tables
  std::string platform;
  std::vector<std::string> assumptions;
  size_t rows = 0;  // all, also those below from_bytes
  ErrorSummary judged;
  // By "all_reduce 8 GPUs, 1 MiB to 16 MiB": where it is off, the worst first.
  struct Part {
    std::string what;
    ErrorSummary errors;
    std::string algorithm;  // most frequent
    std::string bound;
  };
  std::vector<Part> parts;
  std::string known;  // why it is off, as far as that is known
};

struct NcclTestReport {
  std::vector<NcclTestPrediction> predictions;
  std::vector<HardwareReport> hardware;  // in order of appearance
  ErrorSummary judged;
  size_t unpredicted = 0;  // rows without platform or prediction; findings say why
  Findings findings;

  static constexpr double kTarget = 0.25;  // median before any calibration
};

// kBadInput when no row can be predicted.
[[nodiscard]] Result<NcclTestReport> check_nccl_tests(const std::vector<NcclTestRow>& rows,
                                                      const NcclTestOptions& options);

}  // namespace rehearse::validation
