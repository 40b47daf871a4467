// SPDX-License-Identifier: Apache-2.0
// NCCL Inspector's JSON lines (formats up to v4.2), or an array of its records: measured time of single collectives as one rank
// saw them. Records of one communicator and rank become columns; lines that cannot be used are
// counted.
#pragma once

#include <string_view>

#include "base/error.hpp"
#include "traces/import/part.hpp"

namespace rehearse::traces::inspector {

[[nodiscard]] bool sniff(std::string_view head);
// kBadInput when no line is a record.
[[nodiscard]] Result<FilePart> read(Source& source, ReadContext& context);

}  // namespace rehearse::traces::inspector
