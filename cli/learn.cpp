// SPDX-License-Identifier: Apache-2.0
// `rehearse learn`: labs. A broken job, the evidence it left, and a check of what the learner makes of it.
#include "cli/learn.hpp"

#include <fmt/format.h>

#include <boost/program_options/value_semantic.hpp>

#include "base/text.hpp"
#include "cli/verbs.hpp"

namespace rehearse::cli {
namespace {
namespace po = boost::program_options;

struct LearnPart {
  const char* word;
  Result<int> (*run)(Context&, const LearnWords&);
};

constexpr LearnPart kLearnParts[] = {
    {"list", learn_list},   {"show", learn_show},   {"start", learn_start},
    {"hint", learn_hint},   {"check", learn_check}, {"solution", learn_solution},
    {"grade", learn_grade}, {"new", learn_new},     {"verify", learn_verify}};

Result<int> run_learn(Context& context) {
  if (context.inputs().empty()) return learn_list(context, {});
  const std::string& word = context.inputs().front();
  const LearnWords rest(context.inputs().begin() + 1, context.inputs().end());
  std::vector<std::string> known;
  for (const LearnPart& part : kLearnParts) {
    if (word == part.word) return part.run(context, rest);
    known.emplace_back(part.word);
  }
  const std::string near = nearest(word, known);
  return fail(
      Code::kUsage, fmt::format("{} is not a part of learn", in_quotes(word)), "learn",
      near.empty() ? "one of " + join_words(known) : fmt::format("did you mean learn {}?", near));
}

}  // namespace

Result<faults::LabCatalogue> lab_catalogue(const Context& context) {
  std::vector<std::filesystem::path> folders;
  for (const auto& [option, value] : context.arguments().in_order) {
    if (option == "labs") folders.emplace_back(value);
  }
  return faults::LabCatalogue::load_shipped(folders);
}

Verb learn_verb() {
  Verb verb;
  verb.name = "learn";
  verb.summary = "labs: find and repair what is wrong with a job";
  verb.details =
      "list shows the labs and what you have done; show ID tells what a lab is about; start ID "
      "[DIR] "
      "makes a working folder with the broken job and the evidence it left. In that folder: hint, "
      "check and solution (each takes the folder as an argument elsewhere). check simulates what "
      "the "
      "files say now: exit code 0 when the job is repaired, 1 when it is not.\n\n"
      "For teachers: grade DIR... prints one line of CSV for each working folder, checked anew; "
      "new ID "
      "[DIR] writes the file of a lab to begin with; verify ID... plays labs through: the broken "
      "job, "
      "the solution, and what is no repair.";
  verb.positionals = {
      {"WORD",
       "list, show ID, start ID [DIR], hint [DIR], check [DIR], solution [DIR], grade "
       "DIR..., new ID [DIR], verify ID...",
       Count::kAny,
       {}}};
  verb.options = [](po::options_description& options) {
    auto add = options.add_options();
    add("seed", po::value<std::string>()->value_name("N")->default_value("1"),
        "with start and verify: where the fault is put; give every student another one");
    add("labs", po::value<std::vector<std::string>>()->value_name("DIR"),
        "a folder with labs of your own; may be repeated");
    add("force", "with start: begin anew in a folder that has a lab");
  };
  verb.examples = {
      {"./rehearse learn list", "the labs, and how far you are", 0},
      {"./rehearse learn show L01", "what a lab is about", 0},
      {"./rehearse learn start L01 wrong-size", "its working folder", 0},
      {"./rehearse run wrong-size/job.yaml", "the broken job", 0},
      {"./rehearse learn check wrong-size", "nothing is repaired yet", 1},
      {"./rehearse learn hint wrong-size", "a hint, for some points", 0},
      {"sed -i 's/world_size: .*/world_size: 16/' wrong-size/job.yaml && ./rehearse learn check "
       "wrong-size",
       "repaired", 0},
      {"./rehearse learn grade wrong-size", "for teachers: one line for each folder", 0},
      {"./rehearse learn new L90 mine", "the file of a lab to begin with", 0},
      {"./rehearse learn show L90 --labs mine", "the same lab", 0}};
  verb.run = run_learn;
  return verb;
}

}  // namespace rehearse::cli
