// SPDX-License-Identifier: Apache-2.0
// The refusal of a file of which nothing could be used.
#pragma once

#include <string>

#include "base/error.hpp"
#include "base/finding.hpp"

namespace rehearse::traces {

// `otherwise`, and what most of the file was left out for where `findings` tell it.
[[nodiscard]] Error nothing_used(Error otherwise, const Findings& findings);

}  // namespace rehearse::traces
