// SPDX-License-Identifier: Apache-2.0
// From words to a verb and back to an exit code; the one place where errors are printed.
#pragma once

#include <string>
#include <vector>

namespace rehearse::cli {

// `words` are the arguments of the program without its name. Never throws.
int dispatch(const std::vector<std::string>& words);

}  // namespace rehearse::cli
