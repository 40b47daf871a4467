// SPDX-License-Identifier: Apache-2.0
// `rehearse faults`: browse the catalogue of faults.
#include <fmt/format.h>

#include <boost/program_options/value_semantic.hpp>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/document.hpp"
#include "cli/context.hpp"
#include "cli/scenario_options.hpp"
#include "cli/table.hpp"
#include "cli/verbs.hpp"
#include "faults/check/rules.hpp"
#include "faults/coverage.hpp"
#include "faults/fault_catalogue.hpp"
#include "faults/world.hpp"

namespace rehearse::cli {
namespace {
namespace po = boost::program_options;
using Json = nlohmann::ordered_json;
using Entries = std::vector<std::shared_ptr<const faults::FaultEntry>>;

std::string joined(const auto& words, std::string_view separator = " ") {
  return fmt::format("{}", fmt::join(words.begin(), words.end(), separator));
}

std::string grade_of(const pb::Fault& fault) {
  switch (fault.grade()) {
    case pb::Fault::FULL:
      return "full";
    case pb::Fault::PARTLY:
      return "partly";
    default:
      return "by rule";
  }
}

std::string list_of(const Entries& entries, const Terminal& terminal) {
  Table table({{"fault", Align::kLeft},
               {"simulated", Align::kLeft},
               {"symptoms", Align::kLeft},
               {"what", Align::kLeft}});
  for (const auto& entry : entries) {
    table.add({entry->fault.id(), grade_of(entry->fault), joined(entry->fault.symptoms()),
               entry->fault.name()});
  }
  return table.text(terminal);
}

std::string range_of(const pb::Parameter& p) {
  if (p.choices_size() > 0) return joined(p.choices(), " | ");
  if (p.at_least().empty() && p.at_most().empty()) return "";
  return fmt::format("{} to {}", p.at_least(), p.at_most());
}

std::string example_of(const pb::Fault& fault) {
  std::string values;
  for (const pb::Parameter& p : fault.parameters()) {
    values += fmt::format("{}{}={}", values.empty() ? ":" : ",", p.name(), p.default_());
  }
  return fmt::format("rehearse run {} --fault {}{}",
                     fault.scenario().empty() ? "ddp-16" : fault.scenario(), fault.id(), values);
}

std::string show(const pb::Fault& fault, const Terminal& terminal) {
  std::string out = terminal.styled(Style::kBold, fault.id() + "  " + fault.name()) + "\n\n";
  Table facts({{"", Align::kLeft}, {"", Align::kLeft}});
  facts.add({"cause", fault.cause()});
  facts.add({"effect", fault.effect()});
  facts.add({"symptoms", joined(fault.symptoms())});
  facts.add({"in traces", fault.in_traces()});
  facts.add({"in logs", fault.in_logs()});
  facts.add({"simulated", grade_of(fault)});
  if (!fault.frameworks().empty()) {
    facts.add({"in jobs of", joined(fault.frameworks())});
    facts.add({"elsewhere", fault.elsewhere()});
  }
  facts.add({"sources", joined(fault.sources())});
  out += facts.text(terminal);
  if (fault.parameters_size() > 0) {
    Table table({{"parameter", Align::kLeft},
                 {"default", Align::kLeft},
                 {"range", Align::kLeft},
                 {"meaning", Align::kLeft}});
    for (const pb::Parameter& p : fault.parameters())
      table.add({p.name(), p.default_(), range_of(p), p.meaning()});
    out += "\n" + table.text(terminal);
  }
  Table fixes({{"fix", Align::kLeft}, {"change", Align::kLeft}});
  for (const pb::Fix& fix : fault.fixes()) fixes.add({fix.name(), fix.change()});
  out += "\n" + fixes.text(terminal);
  return out + "\ninject it:  " + example_of(fault) + "\n";
}

Json to_document(const Entries& entries) {
  Json list = Json::array();
  for (const auto& entry : entries) list.push_back(to_json(entry->fault));
  return {{"schema", "rehearse.faults/1"}, {"faults", list}};
}

Result<Entries> selected(const faults::FaultCatalogue& catalogue,
                         const std::vector<std::string>& words) {
  if (words.empty()) return catalogue.entries();
  const std::vector<std::string> rest(words.begin() + 1, words.end());
  if (words[0] == "search" && !rest.empty()) return catalogue.search(joined(rest));
  if (words[0] == "show" && !rest.empty()) {
    Entries entries;
    for (const std::string& id : rest) {
      RH_TRY(auto entry, catalogue.find(id));
      entries.push_back(std::move(entry));
    }
    return entries;
  }
  return fail(Code::kUsage, fmt::format("'{}' is not what faults takes", joined(words)), "",
              "write `faults`, `faults show ID`, `faults search WORDS` or `faults coverage`");
}

std::string coverage_text(const pb::Coverage& coverage, const Terminal& terminal) {
  int reached = 0;
  Table table({{"symptom", Align::kLeft},
               {"label", Align::kLeft},
               {"in study", Align::kRight},
               {"shown", Align::kLeft},
               {"faults", Align::kLeft},
               {"rules", Align::kRight}});
  for (const pb::CategoryCoverage& row : coverage.categories()) {
    std::vector<std::string> ids;
    for (const pb::FaultRun& run : row.faults()) ids.push_back(run.fault());
    reached += row.reached() ? 1 : 0;
    table.add({row.id(), row.label(), std::to_string(row.count()),
               row.reached() ? row.grade() : "no", joined(ids), std::to_string(row.rules_size())});
  }
  return fmt::format("{} of {} symptom categories can be shown\n\n", reached,
                     coverage.categories_size()) +
         table.text(terminal);
}

// Ids of the faults under `faults`, what each did under `runs`.
Json coverage_document(const pb::Coverage& coverage) {
  Json document = to_json(coverage);
  for (Json& row : document["categories"]) {
    Json ids = Json::array();
    for (const Json& run : row["faults"]) ids.push_back(run["fault"]);
    row["runs"] = std::exchange(row["faults"], std::move(ids));
  }
  return document;
}

Result<int> run_coverage(Context& context, const faults::FaultCatalogue& catalogue) {
  RH_TRY(const faults::Rules rules, faults::Rules::load_shipped());
  RH_TRY(const faults::Categories categories, faults::Categories::load_shipped());
  if (context.has("run")) {
    const faults::World world = faults::simulated_world(context.reporter());
    RH_TRY(const pb::FaultRuns runs, faults::run_all(catalogue, world, context.reporter()));
    const std::string head =
        "# SPDX-License-Identifier: Apache-2.0\n# Made by `rehearse faults coverage --run`; a test "
        "compares.\n";
    return exit_code(context.json() ? context.print(coverage_document(
                                          faults::coverage(runs, catalogue, rules, categories)))
                                    : context.print(std::string_view(head + write_document(runs))));
  }
  RH_TRY(const pb::FaultRuns runs, faults::shipped_runs());
  const pb::Coverage coverage = faults::coverage(runs, catalogue, rules, categories);
  return exit_code(context.json() ? context.print(coverage_document(coverage))
                                  : context.print(std::string_view(
                                        coverage_text(coverage, context.terminal()))));
}

Result<int> run_faults(Context& context) {
  RH_TRY(const auto catalogue, fault_catalogue(context.arguments()));
  if (context.inputs().size() == 1 && context.inputs()[0] == "coverage")
    return run_coverage(context, catalogue);
  RH_TRY(const Entries entries, selected(catalogue, context.inputs()));
  Result<void> done;
  if (context.json()) {
    done = context.print(to_document(entries));
  } else if (!context.inputs().empty() && context.inputs()[0] == "show") {
    std::string out;
    for (const auto& entry : entries)
      out += (out.empty() ? "" : "\n") + show(entry->fault, context.terminal());
    done = context.print(std::string_view(out));
  } else {
    done = context.print(std::string_view(list_of(entries, context.terminal())));
  }
  if (!done) return tl::unexpected(std::move(done).error());
  return entries.empty() ? 1 : 0;
}

}  // namespace

Verb faults_verb() {
  Verb verb;
  verb.name = "faults";
  verb.summary = "browse the catalogue of faults";
  verb.details =
      "Lists the faults that can be injected, shows one with its parameters, signs and fixes, "
      "searches all their "
      "texts, or shows which symptom categories can be produced by which faults and rules. Exit "
      "code 1: nothing found.";
  verb.positionals = {
      {"WORD", "nothing, show ID..., search WORD..., or coverage", Count::kAny, {}}};
  verb.options = [](po::options_description& options) {
    options.add_options()("catalogue", po::value<std::vector<std::string>>()->value_name("DIR"),
                          "a folder with fault files of your own (repeatable)");
    options.add_options()(
        "run", "with coverage: simulate every fault again and print what it does (minutes)");
  };
  verb.examples = {
      {"./rehearse faults", "all faults", 0},
      {"./rehearse faults show F16", "one fault: parameters, signs, fixes", 0},
      {"./rehearse faults search sockets --json", "those that mention a word, for programs", 0},
      {"./rehearse faults coverage", "which symptoms can be shown, and by what", 0}};
  verb.run = run_faults;
  return verb;
}

}  // namespace rehearse::cli
