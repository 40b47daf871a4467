// SPDX-License-Identifier: Apache-2.0
// The blind matrix in full: every fault at 20 random places (or as many as the first argument says) on hidden machines.
// Prints accuracies, per fault what it was taken for, and the runs that went wrong; asserts nothing. The second argument
// names faults ("F60,F65" or "all"), the third the seed, the fourth a folder in which runs are kept (a matrix that was stopped
// goes on where it was), the fifth the part of it that is to be made ("0/4").
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <thread>

#include "base/text.hpp"
#include "validation/blind/campaign.hpp"

namespace rehearse {
const char* program_digest();  // tests/bench/CMakeLists.txt
}

using namespace rehearse;

int main(int argc, char** argv) {
  SilentReporter reporter;
  const auto catalogue = faults::FaultCatalogue::load_shipped();
  if (!catalogue) {
    fmt::print(stderr, "{}\n", catalogue.error().message());
    return 66;
  }
  validation::CampaignRequest request;
  request.seeds = argc > 1 ? static_cast<uint32_t>(std::max(1, std::atoi(argv[1]))) : 20;
  if (argc > 2 && std::string_view(argv[2]) != "all") request.faults = split(argv[2], ',');
  if (argc > 3) request.seed = std::strtoull(argv[3], nullptr, 10);
  std::optional<validation::KeptRuns> kept;
  if (argc > 4) {
    auto opened =
        validation::KeptRuns::open(argv[4], validation::identity_of(program_digest(), *catalogue));
    if (!opened) {
      fmt::print(stderr, "{}\n", opened.error().message());
      return 74;
    }
    kept = std::move(*opened);
    request.kept = &*kept;
  }
  if (argc > 5 && std::sscanf(argv[5], "%u/%u", &request.part, &request.parts) != 2) {
    fmt::print(stderr, "'{}' is no part of the form 0/4\n", argv[5]);
    return 2;
  }
  request.blind = true;
  request.jobs = std::max(1u, std::thread::hardware_concurrency());
  const auto runs = validation::run_campaign(request, *catalogue, reporter);
  if (!runs) {
    fmt::print(stderr, "{}\n", runs.error().message());
    return 70;
  }
  const auto show = [](const char* what, const std::vector<pb::CampaignRun>& of) {
    const auto f = validation::figures_of(of);
    fmt::print(
        "{:8} {:5} runs  symptom {:.3f}  top1 {:.3f}  top3 {:.3f}  culprit {:.3f}  fix {:.3f}",
        what, f.runs, f.symptom, f.top1, f.top3, f.culprit, f.fix);
    return f;
  };
  const auto all = show("all", *runs);
  fmt::print("  false alarms {:.3f} of {}  unknown {:.3f} of {}  {} failed  {} simulations\n",
             all.false_alarms, all.healthy, all.unknown, all.outside, all.failed, all.simulations);
  std::map<std::string, std::vector<pb::CampaignRun>> by_fault;
  for (const pb::CampaignRun& run : *runs) {
    if (run.truth() == pb::CampaignRun::CATALOGUED) by_fault[run.fault()].push_back(run);
  }
  for (const auto& [fault, own] : by_fault) {
    show(fault.c_str(), own);
    std::map<std::string, int> others;
    for (const pb::CampaignRun& run : own) {
      if (run.place() == 1 && !run.called_unknown()) continue;
      const std::string first = run.causes().empty() ? run.seen_symptom() : run.causes(0);
      ++others[run.called_unknown() ? "unknown" : first.substr(0, first.find_first_of(": "))];
    }
    for (const auto& [other, times] : others) fmt::print("  {} x{}", other, times);
    fmt::print("\n");
  }
  for (const pb::CampaignRun& run : *runs) {
    const bool good = run.truth() == pb::CampaignRun::HEALTHY ? run.seen_symptom() == "healthy"
                      : run.truth() == pb::CampaignRun::UNKNOWN
                          ? run.called_unknown()
                          : run.symptom_right() && run.place() == 1 && !run.called_unknown() &&
                                (!run.has_culprit_right() || run.culprit_right()) &&
                                run.fix_restores();
    if (good) continue;
    fmt::print("{} {} on {} (unnoticed before {}): {} seen as {}{}, place {}, {} runs {}",
               run.fault(), run.use(), run.job(), run.redrawn(), run.symptom(), run.seen_symptom(),
               run.called_unknown() ? ", unknown" : "", run.place(), run.simulations(),
               run.failed());
    for (const std::string& cause : run.causes()) fmt::print("  [{}]", cause);
    fmt::print("\n");
  }
  return 0;
}
