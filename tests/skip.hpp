// SPDX-License-Identifier: Apache-2.0
// A test that cannot run here says why and returns. Where nothing failed and every test case that ran was skipped, the
// program ends with 77, which ctest lists as skipped; a failure is always a failure.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

namespace rehearse::tests {

// Prints "skipped: " and the reason, and marks the running test case.
void skip(std::string_view why);

// PATH below the folder of real traces, logs and tables ($REHEARSE_DATA, else ../shared/data beside the project). Nothing
// where it is absent: the running test case is then skipped with that reason.
[[nodiscard]] std::optional<std::filesystem::path> real_data(
    const std::filesystem::path& path = {});

}  // namespace rehearse::tests
