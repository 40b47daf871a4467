// SPDX-License-Identifier: Apache-2.0
// Databases that `nsys export --type sqlite` writes, of schema 3.x and older: every process with GPU work in
// one is a rank. Tables that are not there, and columns that a version does not have, are done without.
#pragma once

#include <string_view>

#include "traces/import/part.hpp"

namespace rehearse::traces::nsys {

[[nodiscard]] bool sniff(std::string_view head);
// Plain files are read in place (nothing is written beside them, memory does not grow with the file);
// compressed ones and those in memory are held whole, up to 1 GiB. Damage is refused with the table and row
// where it shows, or with CutFiles::kAccept what can be read is taken.
[[nodiscard]] Result<FilePart> read(Source& source, ReadContext& context);

}  // namespace rehearse::traces::nsys
