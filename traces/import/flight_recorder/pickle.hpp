// SPDX-License-Identifier: Apache-2.0
// Python pickles as data only. A general unpickler runs whatever the file names; this one knows no
// names: it reads the opcodes of dicts, lists, tuples, texts, numbers, booleans and None of
// protocols 2 to 5, and refuses everything else (classes, globals, reduce, persistent ids,
// extensions). Sizes are checked against the bytes that are left, so memory is bounded by the
// length of the input.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "traces/import/flight_recorder/value.hpp"

namespace rehearse::traces::flight_recorder {

// The one object of the pickle. `name` is for messages. kBadInput with the byte and what stands
// there; kLimit above 2^26 values.
[[nodiscard]] Result<ValueId> unpickle(std::string_view bytes, const std::string& name,
                                       Values& values);

}  // namespace rehearse::traces::flight_recorder
