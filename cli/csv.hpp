// SPDX-License-Identifier: Apache-2.0
// Comma-separated values (RFC 4180). Pure.
#pragma once

#include <string>

namespace rehearse::cli {

// One cell, in quotes where it needs them.
[[nodiscard]] std::string csv_cell(const std::string& text);

}  // namespace rehearse::cli
