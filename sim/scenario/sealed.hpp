// SPDX-License-Identifier: Apache-2.0
// Patches packed into one word, so that who reads the scenario's file does not read them: the fault of a lesson, the
// hidden world of a blind test. No secret: whoever wants to unpack it can. Pure functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "sim/proto/patch.pb.h"

namespace rehearse::sim {

// The same patches give the same word; none give an empty one.
[[nodiscard]] std::string seal(std::span<const pb::Patch> patches);

// kBadInput when the word was not made by seal(); `where` names the document.
[[nodiscard]] Result<std::vector<pb::Patch>> unseal(const std::string& word,
                                                    const std::string& where);

}  // namespace rehearse::sim
