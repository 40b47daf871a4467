// SPDX-License-Identifier: Apache-2.0
// Variables in files: what `env` prints, and the assignments of a shell script. Pure functions.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse {

struct VariableLine {
  std::string name;
  std::string value;
  size_t line = 0;  // from 1
};

// Lines NAME=VALUE, also after `export` or `declare -x`, with or without quotes. Other lines are passed over.
[[nodiscard]] std::vector<VariableLine> read_environment(std::string_view text);

// Words of one shell command, quotes removed; what a comment begins with ends it. Variables in `known` are filled in,
// others stay as written.
[[nodiscard]] std::vector<std::string> shell_words(std::string_view line,
                                                   const std::map<std::string, std::string>& known);

// The text with the variable set to the value on every line that assigns it, or as a new line where none does; an
// empty value removes the lines. `exports`: new lines are written as `export NAME=VALUE` below the first comments.
[[nodiscard]] std::string with_variable(const std::string& text, const std::string& name,
                                        const std::string& value, bool exports);

[[nodiscard]] bool is_environment_name(std::string_view name);

}  // namespace rehearse
