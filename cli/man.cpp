// SPDX-License-Identifier: Apache-2.0
// The man page from the table of verbs.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/version.hpp"
#include "cli/context.hpp"
#include "cli/help.hpp"
#include "cli/verbs.hpp"

namespace rehearse::cli {
namespace {

// Backslashes and hyphens are letters of troff; a line must not begin with its control characters.
std::string troff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool begins = out.empty() || out.back() == '\n';
    if (begins && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

std::string option_items(const boost::program_options::options_description& options) {
  std::string out;
  for (const OptionRow& row : rows_of(options)) {
    out += ".TP\n";
    if (!row.short_name.empty()) out += fmt::format("\\fB\\-{}\\fR, ", row.short_name);
    out += fmt::format("\\fB\\-\\-{}\\fR", troff(row.long_name));
    if (!row.value.empty()) out += fmt::format(" \\fI{}\\fR", troff(row.value));
    out += "\n" + troff(row.what);
    if (!row.fallback.empty()) out += fmt::format(" (default {})", troff(row.fallback));
    out += "\n";
  }
  return out;
}

}  // namespace

std::string man_page() {
  std::string out = fmt::format(
      ".TH REHEARSE 1 \"\" \"rehearse {}\" \"User Commands\"\n"
      ".SH NAME\nrehearse \\- replay a training run on a simulated cluster\n"
      ".SH SYNOPSIS\n.B rehearse\n\\fIVERB\\fR [\\fIARGUMENT\\fR...] [\\fIOPTION\\fR...]\n"
      ".SH DESCRIPTION\nReplay a multi\\-GPU training run on a simulated cluster, break it on "
      "purpose, "
      "find out why it hangs or crawls, and prove the fix before you touch the hardware.\n"
      "Data goes to stdout, everything else to stderr.\n",
      version());
  out += ".SH COMMON OPTIONS\nEvery verb takes these.\n" + option_items(common_options());
  out += ".SH VERBS\n";
  for (const Verb& verb : verbs()) {
    out += fmt::format(".SS {}\n{}\n", troff(usage_of(verb)), troff(verb.summary));
    if (!verb.details.empty()) out += ".PP\n" + troff(verb.details) + "\n";
    for (const Positional& p : verb.positionals) {
      out += fmt::format(".TP\n\\fI{}\\fR\n{}\n", troff(p.name), troff(p.what));
    }
    out += option_items(own_options(verb));
  }
  out += ".SH EXAMPLES\n";
  for (const Verb& verb : verbs()) {
    for (const Example& example : verb.examples) {
      out += fmt::format(".PP\n{}:\n.PP\n.nf\n    {}\n.fi\n", troff(example.what),
                         troff(example.command));
    }
  }
  out += ".SH EXIT STATUS\n";
  for (const ExitCode& code : exit_codes()) {
    out += fmt::format(".TP\n.B {}\n{}\n", code.code, troff(code.meaning));
  }
  out += ".SH ENVIRONMENT\n";
  for (const Variable& variable : variables()) {
    out += fmt::format(".TP\n.B {}\n{}\n", variable.name, troff(variable.meaning));
  }
  return out;
}

Verb man_verb() {
  Verb verb;
  verb.name = "man";
  verb.summary = "print the man page";
  verb.writes = Writes::kFile;
  verb.examples = {{"./rehearse man -o rehearse.1", "a file for `man -l rehearse.1`"}};
  verb.run = [](Context& context) -> Result<int> {
    Result<void> done = context.json() ? context.print(nlohmann::ordered_json{
                                             {"schema", "rehearse.man/1"}, {"troff", man_page()}})
                                       : context.print(std::string_view(man_page()));
    return exit_code(std::move(done));
  };
  return verb;
}

}  // namespace rehearse::cli
