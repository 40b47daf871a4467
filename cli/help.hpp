// SPDX-License-Identifier: Apache-2.0
// Texts made from the table of verbs: help, completion scripts, man page. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "cli/terminal.hpp"
#include "cli/verb.hpp"

namespace rehearse::cli {

// An option as tables show it.
struct OptionRow {
  std::string short_name;  // "o" or ""
  std::string long_name;   // "output"
  std::string value;       // "FILE" or "" for a switch
  std::string fallback;    // default value as text, or ""
  std::string what;
};
[[nodiscard]] std::vector<OptionRow> rows_of(
    const boost::program_options::options_description& options);

// "rehearse inspect FILE [OPTION...]".
[[nodiscard]] std::string usage_of(const Verb& verb);
[[nodiscard]] std::string overview(const Terminal& terminal);
[[nodiscard]] std::string help_of(const Verb& verb, const Terminal& terminal);

[[nodiscard]] std::string bash_completion();
[[nodiscard]] std::string zsh_completion();
[[nodiscard]] std::string fish_completion();
// The man page rehearse(1) in troff.
[[nodiscard]] std::string man_page();

// Exit codes with their meaning, as in base/error.hpp.
struct ExitCode {
  int code;
  const char* meaning;
};
[[nodiscard]] const std::vector<ExitCode>& exit_codes();

// Environment variables that rehearse itself reads.
struct Variable {
  const char* name;
  const char* meaning;
};
[[nodiscard]] const std::vector<Variable>& variables();

}  // namespace rehearse::cli
