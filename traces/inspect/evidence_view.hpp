// SPDX-License-Identifier: Apache-2.0
// Evidence as `inspect` shows it: what a log, a table, records or a dump say, summed up. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "traces/proto/evidence.pb.h"

namespace rehearse::traces {

// An array with one object per piece of evidence; `kind` tells which fields follow.
[[nodiscard]] nlohmann::ordered_json evidence_json(const std::vector<pb::Evidence>& evidence);
// A section of text, "" without evidence.
[[nodiscard]] std::string evidence_text(const std::vector<pb::Evidence>& evidence, int width);
// "2 NCCL logs, 1 table of nccl-tests".
[[nodiscard]] std::string evidence_headline(const std::vector<pb::Evidence>& evidence);

}  // namespace rehearse::traces
