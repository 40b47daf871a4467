// SPDX-License-Identifier: Apache-2.0
// How far predictions of collectives have been from measured ones, by platform: the band around a
// new prediction. Read from validation/figures/nccl_tests_accuracy.yaml, which `rehearse validate nccl-tests
// --save` writes. No parameter was fitted to the tables; some priors were chosen with
// them in view, so the bands are not strictly held out.
#pragma once

#include <optional>
#include <string>

#include "base/error.hpp"
#include "base/units.hpp"
#include "validation/nccl_tests.hpp"

namespace rehearse::validation {

struct Accuracy {
  std::string platform;
  size_t rows = 0;
  // Eight of ten measured times lay between low and high times the predicted one.
  double low = 1;
  double high = 1;
};

// Of calls of `bytes` or about as many on a platform; nothing where none was measured.
[[nodiscard]] Result<std::optional<Accuracy>> accuracy_of(const std::string& platform, Bytes bytes);

// The document behind it, from a report.
[[nodiscard]] std::string accuracy_document(const NcclTestReport& report);

}  // namespace rehearse::validation
