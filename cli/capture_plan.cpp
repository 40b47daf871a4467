// SPDX-License-Identifier: Apache-2.0
#include "cli/capture_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "traces/capture/extras.hpp"
#include "traces/capture/stretch.hpp"

namespace rehearse::cli {
namespace {

namespace fs = std::filesystem;
constexpr const char* kLibrary = "librehearse-capture.so";

std::string program_of(const std::string& word) { return fs::path(word).filename().string(); }

// Open MPI hands nothing on to other machines that is not named.
void name_for_mpirun(CapturePlan& plan, const VersionOf& version_of) {
  const std::string version = version_of(plan.command.front());
  if (version.find("Open MPI") != std::string::npos ||
      version.find("OpenRTE") != std::string::npos || version.find("PRRTE") != std::string::npos) {
    std::vector<std::string> names;
    for (const auto& [name, value] : plan.environment) {
      names.emplace_back("-x");
      names.push_back(name);
    }
    plan.command.insert(plan.command.begin() + 1, names.begin(), names.end());
  } else if (version.empty()) {
    plan.notes.push_back({plan.command.front() + " does not say which MPI it is",
                          "see to it that it hands the variables on to other nodes"});
  }
}

// Options of srun that stand alone, by the manual of Slurm 24.05 and of pyxis; all others take the next word
// when no "=" is in them.
constexpr std::string_view kSrunLetters = "EHIKOQVXZhklsuv";
constexpr std::string_view kSrunWords =
    " --compress --container-entrypoint --container-mount-home --container-readonly "
    "--container-remap-root --container-writable --contiguous --debugger-test "
    "--disable-status --exact --exclusive --external --help --hold --ignore-pbs --immediate "
    "--interactive --kill-on-bad-exit --label --multi-prog --nice --overcommit --overlap "
    "--oversubscribe --preserve-env --propagate --pty --quiet --reboot --send-libs "
    "--share --spread-job --unbuffered --usage --use-min-nodes --verbose --version --x11 ";

bool srun_takes_next(std::string_view word) {
  if (word.find('=') != std::string_view::npos || word.starts_with("--no-")) return false;
  if (word.starts_with("--")) return kSrunWords.find(fmt::format(" {} ", word)) == word.npos;
  return word.size() == 2 && kSrunLetters.find(word[1]) == word.npos;  // not -n4, -lv
}

// srun hands everything on unless it is told otherwise.
void name_for_srun(CapturePlan& plan, const Environment& environment) {
  std::string names;
  for (const auto& [name, value] : plan.environment) names += "," + name;
  for (size_t i = 1; i < plan.command.size(); ++i) {
    std::string& word = plan.command[i];
    if (!word.starts_with("-") || word == "--") break;
    std::string* list = nullptr;
    size_t from = 0;
    if (word.starts_with("--export=")) {
      list = &word;
      from = 9;
    } else if (word == "--export" && i + 1 < plan.command.size()) {
      list = &plan.command[i + 1];
    }
    if (list == nullptr) {
      i += srun_takes_next(word) ? 1 : 0;
      continue;
    }
    const std::string asked = list->substr(from);
    if (asked == "NONE" || asked == "NIL") {
      *list = list->substr(0, from) + names.substr(1);
    } else {
      *list += names;
    }
    return;
  }
  const auto exported = environment("SLURM_EXPORT_ENV");
  if (exported && *exported != "ALL") {
    plan.command.insert(plan.command.begin() + 1,
                        "--export=" + (*exported == "NONE" ? names.substr(1) : *exported + names));
  }
}

void name_for_launcher(CapturePlan& plan, const Environment& environment,
                       const VersionOf& version_of) {
  if (plan.command.empty()) return;
  const std::string program = program_of(plan.command.front());
  if (program == "mpirun" || program == "mpiexec" || program == "orterun" || program == "prterun") {
    name_for_mpirun(plan, version_of);
  } else if (program == "srun") {
    name_for_srun(plan, environment);
  } else if (program == "deepspeed") {
    plan.notes.push_back({"deepspeed hands only some variables on to other nodes",
                          "add those of --dry-run to ~/.deepspeed_env"});
  }
}

}  // namespace

Result<void> check_request(const CaptureRequest& request) {
  if (capture::Stretch stretch;
      !request.steps.empty() && !capture::read_stretch(request.steps, stretch)) {
    return fail(Code::kUsage, fmt::format("'{}' is no stretch of a run", request.steps), "--steps",
                "write steps (3-5) or a time after the start (10s-20s, 500ms-2s, 1min-2min)");
  }
  std::vector<std::string> known;
  known.reserve(capture::kExtras.size());
  for (const capture::Extra& extra : capture::kExtras) known.emplace_back(extra.word);
  for (const std::string& word : request.with) {
    if (std::find(known.begin(), known.end(), word) != known.end()) continue;
    const std::string near = nearest(word, known);
    return fail(Code::kUsage, fmt::format("'{}' is not one of {}", word, join_words(known)),
                "--with",
                near.empty() ? "rehearse capture --help" : fmt::format("did you mean {}?", near));
  }
  return {};
}

CapturePlan plan_capture(const CaptureRequest& request, const std::vector<std::string>& command,
                         const Environment& environment, const VersionOf& version_of) {
  CapturePlan plan;
  plan.command = command;
  const std::string library = request.library.string();
  const auto set = [&](const std::string& name, const std::string& value) {
    plan.environment.emplace_back(name, value);
  };
  // What the user has set stays: another tool may be in it.
  const auto offer = [&](const std::string& name, const std::string& value, const char* lost) {
    const auto there = environment(name);
    if (there && *there != value) {
      plan.notes.push_back({fmt::format("{}={} is set already and stays", name, *there), lost});
    } else {
      set(name, value);
    }
  };
  offer("CUDA_INJECTION64_PATH", library, "kernels and CUDA calls are not recorded");
  offer("NVTX_INJECTION64_PATH", library, "NVTX ranges are not recorded");
  offer("NCCL_PROFILER_PLUGIN", library, "events of NCCL are not recorded");
  const auto has = [&](const char* word) {
    return std::find(request.with.begin(), request.with.end(), word) != request.with.end();
  };
  if (has("tuner")) offer("NCCL_TUNER_PLUGIN", library, "NCCL's predictions are not recorded");
  set("REHEARSE_CAPTURE_FOLDER", request.folder.string());
  if (!request.steps.empty()) set("REHEARSE_CAPTURE_STEPS", request.steps);
  if (!request.with.empty()) {
    set("REHEARSE_CAPTURE_WITH", fmt::format("{}", fmt::join(request.with, ",")));
  }
  offer("NCCL_TOPO_DUMP_FILE", (request.folder / "nccl-topology.xml").string(),
        "the topology goes there");
  offer("NCCL_GRAPH_DUMP_FILE", (request.folder / "nccl-graphs.xml").string(),
        "the graphs go there");
  if (environment("NCCL_DEBUG") || environment("NCCL_DEBUG_FILE")) {
    plan.notes.push_back({"NCCL_DEBUG is set already", "NCCL's log stays where it goes"});
  } else {
    set("NCCL_DEBUG", "INFO");
    if (!environment("NCCL_DEBUG_SUBSYS")) set("NCCL_DEBUG_SUBSYS", "INIT,ENV,GRAPH");
    set("NCCL_DEBUG_FILE", (request.folder / "nccl.%h.%p.log").string());
  }
  name_for_launcher(plan, environment, version_of);
  return plan;
}

Result<fs::path> capture_library() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  const fs::path here = self.parent_path();
  for (const fs::path& folder : {here, here.parent_path() / "lib" / "rehearse"}) {
    if (fs::exists(folder / kLibrary, error)) return folder / kLibrary;
  }
  return fail(Code::kMissingInput, "the capture library is not there", (here / kLibrary).string(),
              "build it with: ./dev build release rehearse");
}

}  // namespace rehearse::cli
