// SPDX-License-Identifier: Apache-2.0
// The texts of frameworks and libraries for failures at start, from the shipped table sim/bringup/texts.yaml.
#pragma once

#include <string>

#include "base/error.hpp"
#include "sim/bringup/job.hpp"
#include "sim/proto/bringup_texts.pb.h"

namespace rehearse::sim::bringup {

[[nodiscard]] Result<pb::BringUpTexts> load_texts();

// What a process in trouble prints under this launch; "" when it prints nothing.
[[nodiscard]] std::string text_of(const pb::BringUpTexts& texts, const pb::Launch& launch,
                                  const Trouble& trouble);

// "{host}" replaced by facts["host"]; braces without a fact stay.
[[nodiscard]] std::string filled(std::string_view text, const Facts& facts);

}  // namespace rehearse::sim::bringup
