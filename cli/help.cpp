// SPDX-License-Identifier: Apache-2.0
#include "cli/help.hpp"

#include <fmt/format.h>

#include <boost/program_options/cmdline.hpp>

#include "base/text.hpp"
#include "base/version.hpp"
#include "cli/table.hpp"

namespace rehearse::cli {
namespace po = boost::program_options;
namespace {

constexpr int kHelpWidth = 100;  // lines of help stay readable on wide terminals and in pipes

std::string paragraph(const std::string& text, const Terminal& terminal) {
  const int width = terminal.width() > 0 ? std::min(terminal.width(), kHelpWidth) : kHelpWidth;
  std::string out;
  for (const std::string& line : split(text, '\n')) {
    for (const std::string& part : wrap(line, width)) out += part + "\n";
  }
  return out;
}

std::string option_table(const po::options_description& options, const Terminal& terminal) {
  Table table({{""}, {""}});
  for (const OptionRow& row : rows_of(options)) {
    std::string name = row.short_name.empty() ? "      " : fmt::format("  -{}, ", row.short_name);
    name += "--" + row.long_name;
    if (!row.value.empty()) name += " " + row.value;
    std::string what = row.what;
    if (!row.fallback.empty()) what += fmt::format(" (default {})", row.fallback);
    table.add({name, what});
  }
  return table.text(terminal);
}

}  // namespace

std::vector<OptionRow> rows_of(const po::options_description& options) {
  std::vector<OptionRow> rows;
  for (const auto& option : options.options()) {
    OptionRow row;
    row.long_name = option->long_name();
    const std::string shorter =
        option->canonical_display_name(po::command_line_style::allow_dash_for_short);
    if (shorter.size() == 2 && shorter[0] == '-') row.short_name = shorter.substr(1);
    row.what = option->description();
    if (option->semantic()->max_tokens() > 0) {
      row.value = option->semantic()->name();
      // boost writes a default into the name of the value: "WHEN (=auto)".
      if (const size_t at = row.value.find(" (="); at != std::string::npos) {
        row.fallback = row.value.substr(at + 3, row.value.size() - at - 4);
        row.value.resize(at);
      }
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string usage_of(const Verb& verb) {
  std::string text = "rehearse " + verb.name;
  for (const Positional& p : verb.positionals) {
    switch (p.count) {
      case Count::kOne:
        text += " " + p.name;
        break;
      case Count::kOptional:
        text += " [" + p.name + "]";
        break;
      case Count::kAny:
        text += " [" + p.name + "...]";
        break;
      case Count::kSome:
        text += " " + p.name + "...";
        break;
    }
  }
  return text + " [OPTION...]";
}

std::string overview(const Terminal& terminal) {
  std::string out = paragraph(
      "Replay a multi-GPU training run on a simulated cluster, break it on purpose, find out why "
      "it "
      "hangs or crawls, and prove the fix before you touch the hardware.",
      terminal);
  out += "\nusage: rehearse VERB [ARGUMENT...] [OPTION...]\n\n";
  Table table({{""}, {""}});
  for (const Verb& verb : verbs()) table.add({"  " + verb.name, verb.summary});
  out += table.text(terminal);
  out += "\n`rehearse VERB --help` explains a verb and shows examples; `rehearse --version`.\n";
  return out;
}

std::string help_of(const Verb& verb, const Terminal& terminal) {
  const auto title = [&](const char* text) {
    return "\n" + terminal.styled(Style::kBold, text) + "\n";
  };
  std::string out = fmt::format("usage: {}\n\n", usage_of(verb));
  out += paragraph(verb.summary, terminal);
  if (!verb.details.empty()) out += "\n" + paragraph(verb.details, terminal);
  if (!verb.positionals.empty()) {
    out += title("arguments:");
    Table table({{""}, {""}});
    for (const Positional& p : verb.positionals) {
      const std::string choices =
          p.choices.empty() ? "" : fmt::format(" ({})", fmt::join(p.choices, ", "));
      table.add({"  " + p.name, p.what + choices});
    }
    out += table.text(terminal);
  }
  if (const auto own = own_options(verb); !own.options().empty()) {
    out += title("options:") + option_table(own, terminal);
  }
  out += title("common options:") + option_table(common_options(), terminal);
  out += title("examples:");
  for (const Example& example : verb.examples) {
    out += terminal.styled(Style::kDim, "  # " + example.what) + "\n  " + example.command + "\n";
  }
  return out;
}

const std::vector<ExitCode>& exit_codes() {
  static const std::vector<ExitCode> codes = {
      {0, "ok"},
      {1, "a finding, or a threshold that was not met"},
      {2, "the command line makes no sense"},
      {65, "the input was read and is wrong"},
      {66, "the input is not there"},
      {70, "a bug in rehearse"},
      {74, "the operating system refused to read or write"},
      {75, "a stated limit was reached (memory, operations, depth, time)"},
      {130, "interrupted"},
  };
  return codes;
}

const std::vector<Variable>& variables() {
  static const std::vector<Variable> list = {
      {"REHEARSE_HOME",
       "folder of the shipped data (catalogues, scenarios), instead of the installed one"},
      {"REHEARSE_CACHE", "folder for generated traces, instead of ~/.cache/rehearse"},
      {"REHEARSE_PROGRESS", "json: progress as lines of JSON on stderr, for programs"},
      {"NO_COLOR", "when set, no colour unless --color=always"},
  };
  return list;
}

}  // namespace rehearse::cli
