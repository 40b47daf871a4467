// SPDX-License-Identifier: Apache-2.0
// `rehearse help`: the overview, one verb, or the table of verbs for programs.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "cli/context.hpp"
#include "cli/help.hpp"
#include "cli/verbs.hpp"

namespace rehearse::cli {
namespace {
namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

Json option_list(const po::options_description& options) {
  Json list = Json::array();
  for (const OptionRow& row : rows_of(options)) {
    list.push_back({{"name", "--" + row.long_name},
                    {"short", row.short_name.empty() ? "" : "-" + row.short_name},
                    {"value", row.value},
                    {"default", row.fallback},
                    {"what", row.what}});
  }
  return list;
}

Json document() {
  Json list = Json::array();
  for (const Verb& verb : verbs()) {
    Json examples = Json::array();
    for (const Example& e : verb.examples) {
      examples.push_back({{"command", e.command}, {"what", e.what}, {"status", e.status}});
    }
    list.push_back({{"name", verb.name},
                    {"summary", verb.summary},
                    {"usage", usage_of(verb)},
                    {"options", option_list(own_options(verb))},
                    {"examples", examples}});
  }
  return {
      {"schema", "rehearse.help/1"}, {"common", option_list(common_options())}, {"verbs", list}};
}

// One line per example: verb, exit code, command, separated by tabs.
std::string example_lines() {
  std::string out;
  for (const Verb& verb : verbs()) {
    for (const Example& e : verb.examples) {
      out += fmt::format("{}\t{}\t{}\n", verb.name, e.status, e.command);
    }
  }
  return out;
}

Result<int> run_help(Context& context) {
  Result<void> done;
  if (context.json()) {
    done = context.print(document());
  } else if (context.has("examples")) {
    done = context.print(std::string_view(example_lines()));
  } else if (context.inputs().empty()) {
    done = context.print(std::string_view(overview(context.terminal())));
  } else {
    RH_TRY(const Verb* verb, known_verb(context.inputs().front()));
    done = context.print(std::string_view(help_of(*verb, context.terminal())));
  }
  return exit_code(std::move(done));
}

}  // namespace

Verb help_verb() {
  Verb verb;
  verb.name = "help";
  verb.summary = "explain rehearse or one of its verbs";
  verb.positionals = {{"VERB", "the verb to explain", Count::kOptional, {}}};
  verb.options = [](po::options_description& options) {
    options.add_options()("examples",
                          "all examples: verb, exit code and command, separated by tabs");
  };
  verb.examples = {{"./rehearse help man", "what a verb takes"},
                   {"./rehearse help --json", "verbs, options and examples for programs"}};
  verb.run = run_help;
  return verb;
}

}  // namespace rehearse::cli
