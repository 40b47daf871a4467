// SPDX-License-Identifier: Apache-2.0
// PyTorch execution traces (ExecutionTraceObserver) of schema 1.0.1 (flat inputs), 1.0.2 and later
// (inputs with values, shapes, types) and 1.1.x (arguments of collectives as attributes). They have
// no times: what is taken from them is the order and the sizes of the collectives, to be joined
// with the profile of the rank.
#pragma once

#include <string_view>

#include "base/error.hpp"
#include "traces/import/part.hpp"

namespace rehearse::traces::pytorch_et {

[[nodiscard]] bool sniff(std::string_view head);
[[nodiscard]] Result<FilePart> read(Source& source, ReadContext& context);

}  // namespace rehearse::traces::pytorch_et
