// SPDX-License-Identifier: Apache-2.0
// Size and layout of a job in a small YAML file beside its table (TableJob in traces/proto/table.proto). It
// has no operations of its own.
#pragma once

#include <string_view>

#include "traces/import/part.hpp"

namespace rehearse::traces::csv {

[[nodiscard]] bool sniff_job(std::string_view head);
[[nodiscard]] Result<FilePart> read_job(Source& source, ReadContext& context);

}  // namespace rehearse::traces::csv
