// SPDX-License-Identifier: Apache-2.0
#include "cli/scenario_options.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "base/document.hpp"
#include "faults/fault_use.hpp"
#include "faults/world.hpp"
#include "sim/simulate.hpp"

namespace rehearse::cli {
namespace {
namespace po = boost::program_options;

Result<std::vector<pb::Patch>> patches_of(const std::string& option, const std::string& value,
                                          const sim::Scenario& scenario,
                                          const faults::FaultCatalogue& catalogue) {
  if (option == "set") {
    RH_TRY(pb::Patch patch, sim::parse_assignment(value));
    return std::vector<pb::Patch>{std::move(patch)};
  }
  if (option == "patch-file") {
    pb::Patch patch;
    if (auto read = read_document_file(value, patch); !read) return tl::unexpected(read.error());
    return std::vector<pb::Patch>{std::move(patch)};
  }
  if (option == "patch") {
    RH_TRY(pb::Patch patch, sim::parse_patch(value, "--patch"));
    return std::vector<pb::Patch>{std::move(patch)};
  }
  RH_TRY(const auto use, faults::parse_fault(value, catalogue, scenario.document));
  return faults::patches_of(use, scenario.document);
}

Result<void> apply_all(sim::Scenario& scenario, const std::vector<pb::Patch>& patches) {
  for (const pb::Patch& patch : patches) {
    if (auto done = sim::apply(scenario, patch); !done) return done;
  }
  return {};
}

Result<pb::Fidelity> fidelity_of(Context& context, pb::Fidelity otherwise) {
  if (!context.has("fidelity")) return otherwise;
  const auto word = context.get<std::string>("fidelity");
  if (word == "fluid") return pb::FLUID;
  if (word == "step") return pb::STEP;
  return fail(Code::kUsage, fmt::format("'{}' is not a fidelity", word), "--fidelity",
              "one of fluid, step");
}

}  // namespace

void add_scenario_options(po::options_description& options) {
  using Words = std::vector<std::string>;
  auto add = options.add_options();
  add("set", po::value<Words>()->value_name("PATH=VALUE"),
      "change one value; may be repeated, as the next two, and they apply in "
      "the order written");
  add("fault", po::value<Words>()->value_name("ID[:KEY=VALUE,...]"),
      "inject a fault of the catalogue");
  add("patch", po::value<Words>()->value_name("YAML"),
      "apply a patch, e.g. 'slow-rank: {rank: 6, slowdown: 2}'");
  add("patch-file", po::value<Words>()->value_name("FILE"),
      "apply a patch of a file, such as `calibrate` writes");
  add("fidelity", po::value<std::string>()->value_name("MODE"),
      "fluid (the default: a few flows per collective) or step (every message is a flow; for small "
      "cases)");
  add("catalogue", po::value<Words>()->value_name("DIR"),
      "a folder with fault files of your own; may be repeated");
}

Result<faults::FaultCatalogue> fault_catalogue(const Arguments& arguments) {
  std::vector<std::filesystem::path> folders;
  for (const auto& [option, value] : arguments.in_order) {
    if (option == "catalogue") folders.emplace_back(value);
  }
  return faults::FaultCatalogue::load_shipped(folders);
}

Result<sim::Scenario> with_edit(sim::Scenario scenario, const std::string& option,
                                const std::string& value, const faults::FaultCatalogue& catalogue) {
  RH_TRY(const auto patches, patches_of(option, value, scenario, catalogue));
  for (const pb::Patch& patch : patches) {
    RH_TRY(scenario, sim::applied(std::move(scenario), patch));
  }
  return scenario;
}

Result<Edited> load_edited(Context& context, const std::string& what) {
  RH_TRY(sim::Scenario base, sim::load_scenario(what, context.reporter()));
  return edit(context, std::move(base));
}

Result<Edited> edit(Context& context, sim::Scenario base) {
  RH_TRY(const pb::Fidelity fidelity, fidelity_of(context, base.document.fidelity()));
  base.document.set_fidelity(fidelity);
  Edited edited{base, std::move(base), false};
  faults::FaultCatalogue catalogue;
  if (context.has("fault")) {
    RH_TRY(catalogue, fault_catalogue(context.arguments()));
  }
  for (const auto& [option, value] : context.arguments().in_order) {
    if (option != "set" && option != "fault" && option != "patch" && option != "patch-file") {
      continue;
    }
    RH_TRY(const auto patches, patches_of(option, value, edited.changed, catalogue));
    if (auto done = apply_all(edited.changed, patches); !done) {
      return tl::unexpected(std::move(done).error());
    }
    edited.patches.insert(edited.patches.end(), patches.begin(), patches.end());
    // A calibration says what the platform is, with or without what is changed.
    if (patches.size() == 1 && patches.front().has_calibration()) {
      if (auto done = apply_all(edited.base, patches); !done) {
        return tl::unexpected(std::move(done).error());
      }
      edited.calibration = patches.front().calibration();
      continue;
    }
    edited.differs = true;
  }
  return edited;
}

Result<pb::Outcome> simulate_edited(const Edited& edited, Reporter& reporter) {
  return simulate_edited(edited, sim::Detail::kSummary, reporter);
}

Result<pb::Outcome> simulate_edited(const Edited& edited, sim::Detail detail, Reporter& reporter) {
  RH_TRY(const faults::Rules rules, faults::Rules::load_shipped());
  RH_TRY(pb::Outcome outcome, sim::simulate(edited.changed, detail, reporter));
  pb::Outcome base;
  if (edited.differs) {
    RH_TRY(base, sim::simulate(edited.base, reporter));
  }
  faults::observe(edited.changed, rules, base.has_step_time_ns() ? &base.step_time_ns() : nullptr,
                  outcome);
  return outcome;
}

std::vector<std::string> command_words(const Context& context) {
  static const std::set<std::string> kDecide = {"set",      "fault",     "patch", "patch-file",
                                                "fidelity", "catalogue", "draws"};
  std::vector<std::string> out = {"rehearse", context.verb().name};
  out.insert(out.end(), context.inputs().begin(), context.inputs().end());
  for (const auto& [option, value] : context.arguments().in_order) {
    if (!kDecide.contains(option)) continue;
    out.push_back("--" + option);
    out.push_back(value);
  }
  return out;
}

}  // namespace rehearse::cli
