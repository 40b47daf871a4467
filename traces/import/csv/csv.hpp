// SPDX-License-Identifier: Apache-2.0
// Tables of operations as CSV, one row each, whose columns a mapping names (traces/proto/table.proto): one of
// those shipped that fits the header, or the user's own. Rows are held while the file is read, about 64 bytes
// each.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "traces/import/part.hpp"
#include "traces/proto/table.pb.h"

namespace rehearse::traces::csv {

// A header that a shipped mapping fits.
[[nodiscard]] bool sniff(std::string_view head);
// With the mapping of the context, else the shipped one that fits.
[[nodiscard]] Result<FilePart> read(Source& source, ReadContext& context);

// A first line of names and a second one of as many fields, by any usual separator.
[[nodiscard]] bool looks_like_table(std::string_view head);

// Reads and checks a mapping; errors carry file:line:column where the document tells it.
[[nodiscard]] Result<pb::TableMapping> load_mapping(const std::string& path);
// Columns that the mapping needs and the header of `head` does not have.
[[nodiscard]] std::vector<std::string> missing_columns(const pb::TableMapping& mapping,
                                                       std::string_view head);

}  // namespace rehearse::traces::csv
