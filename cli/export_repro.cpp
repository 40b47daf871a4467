// SPDX-License-Identifier: Apache-2.0
// `rehearse export-repro`: the calls of a scenario as a Python script that needs nothing of ours.
#include <fmt/format.h>

#include <boost/program_options/value_semantic.hpp>

#include "cli/outcome_file.hpp"
#include "cli/outcome_text.hpp"
#include "cli/scenario_options.hpp"
#include "cli/verbs.hpp"
#include "faults/world.hpp"
#include "sim/shrink/script.hpp"
#include "sim/simulate.hpp"

namespace rehearse::cli {
namespace {
namespace po = boost::program_options;

std::string expected_text(const pb::Outcome& outcome) {
  std::string out = fmt::format("{} ({} {})", verdict_name(outcome.verdict()),
                                outcome.symptom().id(), outcome.symptom().label());
  for (const pb::Culprit& culprit : outcome.culprits()) {
    if (culprit.has_rank()) out += fmt::format("; rank {} {}", culprit.rank(), culprit.why());
  }
  return out;
}

Result<int> run_export_repro(Context& context) {
  RH_TRY(const Subject subject, load_subject(context, context.inputs().front()));
  RH_TRY(const sim::Job job, sim::take_apart(subject.scenario, sim::Kept::kCalls));
  RH_TRY(const faults::Rules rules, faults::Rules::load_shipped());
  RH_TRY(pb::Outcome outcome, sim::simulate(subject.scenario, context.reporter()));
  faults::observe(subject.scenario, rules, nullptr, outcome);
  const sim::ScriptFor what = context.has("mpi") ? sim::ScriptFor::kMpi : sim::ScriptFor::kTorch;
  RH_TRY(const std::string script,
         sim::script_of(job, what, {subject.scenario.document.name(), expected_text(outcome)},
                        context.reporter()));
  return exit_code(context.print(std::string_view(script)));
}

}  // namespace

Verb export_repro_verb() {
  Verb verb;
  verb.name = "export-repro";
  verb.summary = "a Python script that repeats the calls of a scenario on real hardware or CPU";
  verb.details =
      "Plain Python for torch.distributed (gloo on CPU, nccl on GPUs) or mpi4py: the groups, and "
      "what each rank calls in "
      "which order with how many elements. Best of a scenario that `shrink` made small. Work "
      "between calls, settings and "
      "the network are not part of it.";
  verb.positionals = {{"SCENARIO|OUTCOME", "a scenario, or an outcome (.json)", Count::kOne, {}}};
  verb.options = [](po::options_description& options) {
    add_scenario_options(options);
    options.add_options()("mpi", "for mpi4py instead of torch.distributed");
  };
  verb.writes = Writes::kFile;
  verb.examples = {{"./rehearse shrink ddp-16 --fault F21 -o small.yaml", "a small hang"},
                   {"./rehearse export-repro small.yaml -o repro.py",
                    "for `torchrun --nproc_per_node N repro.py`"},
                   {"./rehearse export-repro small.yaml --mpi -o repro_mpi.py",
                    "for `mpirun -n N python3 repro_mpi.py`"}};
  verb.run = run_export_repro;
  return verb;
}

}  // namespace rehearse::cli
