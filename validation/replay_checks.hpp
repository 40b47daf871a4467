// SPDX-License-Identifier: Apache-2.0
// Every recorded job below kineto/ and nsys/ of the data folder replayed as recorded, without the recorded times
// of NCCL's kernels: step times of every rank against the recording, beside a naive sum of kernels.
#pragma once

#include <filesystem>
#include <vector>

#include "base/reporter.hpp"
#include "validation/check.hpp"

namespace rehearse::validation {

[[nodiscard]] std::vector<Check> replay_checks(const std::filesystem::path& data,
                                               Reporter& reporter);

}  // namespace rehearse::validation
