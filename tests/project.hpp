// SPDX-License-Identifier: Apache-2.0
// Where the project's own files are for a test: documents, catalogues, corpus. A test program that is started by hand
// finds them too.
#pragma once

#include <filesystem>

namespace rehearse::tests {

// $REHEARSE_HOME, else the folder that the tests were built from.
[[nodiscard]] std::filesystem::path project();

}  // namespace rehearse::tests
