// SPDX-License-Identifier: Apache-2.0
// Our own container as an input of the import, so that a trace can be merged with evidence or
// checked again.
#pragma once

#include <string_view>

#include "base/error.hpp"
#include "traces/import/part.hpp"

namespace rehearse::traces::rtrace {

[[nodiscard]] bool sniff(std::string_view head);
[[nodiscard]] Result<FilePart> read(Source& source, ReadContext& context);

}  // namespace rehearse::traces::rtrace
