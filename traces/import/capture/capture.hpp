// SPDX-License-Identifier: Apache-2.0
// Files that our own capture library writes (traces/proto/capture.proto): one process, usually one rank.
// Every whole record with a right check is used; what was cut or damaged is skipped with a finding.
#pragma once

#include <string_view>

#include "traces/import/part.hpp"

namespace rehearse::traces::capture {

[[nodiscard]] bool sniff(std::string_view head);
[[nodiscard]] Result<FilePart> read(Source& source, ReadContext& context);

}  // namespace rehearse::traces::capture
