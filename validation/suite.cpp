// SPDX-License-Identifier: Apache-2.0
#include "validation/suite.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/install.hpp"
#include "base/text.hpp"
#include "validation/certainty/change_checks.hpp"
#include "validation/collective_checks.hpp"
#include "validation/fault_pair_checks.hpp"
#include "validation/nccl_vectors.hpp"
#include "validation/replay_checks.hpp"
#include "validation/schedule_checks.hpp"
#include "validation/step_checks.hpp"
#include "validation/straggler_checks.hpp"

namespace rehearse::validation {
namespace {

namespace fs = std::filesystem;

struct Part {
  const char* id;
  const char* what;  // for what is skipped
  const char* file;  // below the data folder; "": none is needed
  std::vector<Check> (*run)(const fs::path& data, Reporter& reporter);
};

std::vector<Check> decisions(const fs::path&, Reporter&) {
  const Check nothing = vectors_check({});
  const auto folder = shipped("tests/golden/nccl");
  if (!folder) {
    return {skipped_check(nothing.id, nothing.what,
                          "the vectors (tests/golden/nccl) are not installed")};
  }
  const auto report = check_vectors(*folder);
  if (!report) return {skipped_check(nothing.id, nothing.what, report.error().what)};
  return {vectors_check(*report)};
}

std::vector<Check> collectives(const fs::path& data, Reporter&) {
  const fs::path file = data / "nccl" / "nccl_tests.csv";
  const auto unable = [](const Error& error) {
    return std::vector<Check>{
        skipped_check("nccl-tests-calibrated", "time of collectives", error.what)};
  };
  const auto tables = read_nccl_tests(file, "");
  if (!tables) return unable(tables.error());
  auto machines = TestMachines::create({});
  if (!machines) return unable(machines.error());
  Findings findings;
  const auto observed = observe(tables->rows, *machines, findings);
  std::map<std::string, size_t> unknown;  // reason -> rows
  for (const NcclTestRow& row : tables->rows) {
    if (const auto platform = machines->platform_of(row); !platform) {
      ++unknown[platform.error().what];
    }
  }
  if (observed.empty()) {
    return unable(
        {Code::kBadInput, unknown.empty() ? "no row can be used" : unknown.begin()->first, "", ""});
  }
  std::vector<Check> out = collective_checks(observed);
  for (const auto& [why, n] : unknown) {
    out.front().assumptions.push_back(fmt::format(
        "{} rows are left out: {} (`rehearse validate nccl-tests FILE --platform P` predicts "
        "them, validation/figures/nccl_tests_hardware.yaml keeps which machine it is)",
        n, why));
  }
  for (const Findings* left : {&tables->findings, &std::as_const(findings)}) {
    for (const Finding& one : left->rows()) {
      if (one.severity == Severity::kInfo) continue;
      out.front().assumptions.push_back(
          fmt::format("{} ({}), first at {}: {}", one.id, one.count, one.first, one.advice));
    }
  }
  for (const ObservedHardware& hardware : observed) {
    for (const std::string& assumed : hardware.assumptions) {
      out.front().assumptions.push_back(fmt::format("{}: {}", hardware.hardware, assumed));
    }
  }
  out.push_back(collective_changes(observed));
  return out;
}

constexpr std::array<Part, 8> kParts = {{
    {"decisions", "NCCL's choices", "", decisions},
    {"collectives", "time of collectives against nccl-tests tables", "nccl/nccl_tests.csv",
     collectives},
    {"replay", "recorded jobs replayed as recorded", "kineto", replay_checks},
    {"stragglers", "recorded jobs with stragglers", "straggler", straggler_checks},
    // The pairs of the data folder, and those that came with the project.
    {"pairs", "published fault and fix pairs", "", fault_pair_checks},
    {"steps", "step times of stated layouts", "measured/llm_foundry_mpt.csv", step_checks},
    {"buckets", "sizes of DDP's gradient buckets", "kineto", bucket_checks},
    {"schedules", "pipelines and timers", "", schedule_checks},
}};

bool wanted(const std::vector<std::string>& only, const std::string& id) {
  return only.empty() || std::find(only.begin(), only.end(), id) != only.end();
}

}  // namespace

std::vector<std::string> suite_parts() {
  std::vector<std::string> out;
  out.reserve(kParts.size());
  for (const Part& part : kParts) out.emplace_back(part.id);
  return out;
}

Result<std::vector<Check>> run_suite(const SuiteOptions& options, Reporter& reporter) {
  for (const std::string& id : options.only) {
    const auto named = suite_parts();
    if (std::find(named.begin(), named.end(), id) == named.end()) {
      return fail(Code::kUsage, fmt::format("there is no part '{}'", id), "--only",
                  "one of " + join_words(named));
    }
  }
  std::vector<Check> out;
  for (const Part& part : kParts) {
    if (!wanted(options.only, part.id)) continue;
    if (*part.file != '\0' && (options.data.empty() || !fs::exists(options.data / part.file))) {
      out.push_back(
          skipped_check(part.id, part.what,
                        options.data.empty()
                            ? fmt::format("needs {} of a data folder (--data DIR)", part.file)
                            : fmt::format("{} is not there", (options.data / part.file).string())));
      continue;
    }
    for (Check& check : part.run(options.data, reporter)) out.push_back(std::move(check));
  }
  return out;
}

}  // namespace rehearse::validation
