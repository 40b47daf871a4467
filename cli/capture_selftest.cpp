// SPDX-License-Identifier: Apache-2.0
#include "cli/capture_selftest.hpp"

#include <fmt/format.h>
#include <stdlib.h>

#include <nlohmann/json.hpp>

#include "cli/capture_selftest_probes.hpp"
#include "cli/table.hpp"
#include "traces/import/import.hpp"

namespace rehearse::cli {
namespace {

namespace fs = std::filesystem;
using State = Probe::State;

struct Checked {
  std::string id;
  Probe probe;
};

// A folder that goes with the test.
struct Scratch {
  Scratch() {
    std::string name = (fs::temp_directory_path() / "rehearse-selftest-XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) path = name;
  }
  ~Scratch() {
    std::error_code error;
    if (!path.empty()) fs::remove_all(path, error);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  fs::path path;
};

// What a look left in `folder` must be readable; `kernel`: it must hold the kernel that ran.
Probe read_back(Probe probe, const fs::path& folder, const char* kernel) {
  if (probe.state != State::kGood) return probe;
  uint64_t bytes = 0;
  std::error_code error;
  for (const fs::directory_entry& file : fs::directory_iterator(folder, error)) {
    bytes += file.file_size(error);
  }
  if (bytes < static_cast<uint64_t>(kernel == nullptr ? kPlayedPairs : 1)) {
    return {State::kWrong, probe.text + ", but it was not written"};
  }
  if (kernel == nullptr) return probe;
  SilentReporter silent;
  const auto imported = traces::import_files({folder}, {}, silent);
  if (!imported) return {State::kWrong, probe.text + ", but: " + imported.error().message()};
  for (const traces::RankTrace& rank : imported->trace.ranks) {
    for (const uint32_t name : rank.ops.name) {
      if (imported->trace.strings.at(name).find(kernel) != std::string::npos) {
        return {State::kGood, probe.text + " and was recorded"};
      }
    }
  }
  return {State::kWrong, probe.text + ", but CUPTI gave no record of it"};
}

const char* word_of(State state) {
  return state == State::kGood ? "ok" : state == State::kWrong ? "wrong" : "skipped";
}

}  // namespace

Result<int> run_selftest(Context& context, const CaptureRequest& request) {
  const Scratch played, ran;
  if (played.path.empty() || ran.path.empty()) {
    return fail(Code::kIo, "no temporary folder", fs::temp_directory_path().string(),
                "set TMPDIR to a folder that can be written");
  }
  const auto looked = [](auto look) { return in_child(look); };
  std::vector<Checked> checks;
  checks.push_back({"library", looked([&] { return probe_library(request.library); })});
  checks.push_back({"driver", looked(probe_driver)});
  checks.push_back({"cupti", looked(probe_cupti)});
  checks.push_back({"nccl", looked(probe_nccl)});
  checks.push_back({"folder", probe_folder(request.folder)});
  checks.push_back(
      {"cost", read_back(looked([&] { return probe_cost(request.library, played.path); }),
                         played.path, nullptr)});
  checks.push_back(
      {"kernel", read_back(looked([&] { return probe_kernel(request.library, ran.path); }),
                           ran.path, "rehearse_selftest")});
  bool wrong = false;
  for (const Checked& c : checks) wrong = wrong || c.probe.state == State::kWrong;
  if (context.json()) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const Checked& c : checks) {
      list.push_back({{"id", c.id}, {"state", word_of(c.probe.state)}, {"what", c.probe.text}});
    }
    const nlohmann::ordered_json document = {
        {"schema", "rehearse.capture/1"}, {"ready", !wrong}, {"checks", list}};
    return exit_code(context.print_stdout(document), wrong ? 1 : 0);
  }
  Table table({{""}, {""}, {""}});
  for (const Checked& c : checks) table.add({c.id, word_of(c.probe.state), c.probe.text});
  const std::string text = table.text(context.terminal());
  return exit_code(context.print_stdout(std::string_view(text)), wrong ? 1 : 0);
}

}  // namespace rehearse::cli
