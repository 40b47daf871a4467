// SPDX-License-Identifier: Apache-2.0
// Placeholders of a catalogue file ({node}, {rank.gpu}, {max PATH}) replaced by text before the
// document is read, so that a number can be one too and the reader's line and column stay those of
// the file. What stands in braces and is neither a name nor `max PATH` (a YAML mapping) is left
// alone. Pure.
#pragma once

#include <google/protobuf/message.h>

#include <map>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace rehearse::faults {

struct Placeholders {
  std::map<std::string, std::string> values;  // by name, "rank.node" included
  // Where {max PATH} looks; not owned. Null: it becomes 1, which is enough to check a file's form.
  const google::protobuf::Message* document = nullptr;
};

// kBadInput with file:line:column at an unknown name or a path that leads nowhere.
[[nodiscard]] Result<std::string> substitute(std::string_view text, const std::string& file,
                                             const Placeholders& placeholders);

// The largest number at `path` (fields, [index] and [*]) below `message`, written with its unit.
[[nodiscard]] Result<std::string> largest_at(const google::protobuf::Message& message,
                                             std::string_view path);

// "file:line:column" of a byte of the text.
[[nodiscard]] std::string place_in(std::string_view text, size_t offset, const std::string& file);

}  // namespace rehearse::faults
