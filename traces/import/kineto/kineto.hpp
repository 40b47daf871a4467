// SPDX-License-Identifier: Apache-2.0
// PyTorch profiler (Kineto) traces in Chrome's JSON form, 2021 to today, one rank per file,
// streamed. What is not used is counted in findings; nothing is dropped without one.
#pragma once

#include <string_view>

#include "base/error.hpp"
#include "traces/import/part.hpp"

namespace rehearse::traces::kineto {

[[nodiscard]] bool sniff(std::string_view head);
[[nodiscard]] Result<FilePart> read(Source& source, ReadContext& context);

}  // namespace rehearse::traces::kineto
