// SPDX-License-Identifier: Apache-2.0
// `rehearse capture`: runs a command with the capture library in it.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/units.hpp"
#include "cli/capture_plan.hpp"
#include "cli/capture_process.hpp"
#include "cli/capture_selftest.hpp"
#include "cli/context.hpp"
#include "cli/verbs.hpp"
#include "traces/capture/extras.hpp"

namespace rehearse::cli {
namespace {
namespace po = boost::program_options;
namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::optional<std::string> variable(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

struct CaptureFileOnDisk {
  fs::path path;
  uint64_t bytes = 0;
};

// Files of the capture library in a folder, by name.
std::vector<CaptureFileOnDisk> capture_files(const fs::path& folder) {
  std::vector<CaptureFileOnDisk> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() != ".capture" || !it->is_regular_file(error)) continue;
    files.push_back({it->path(), it->file_size(error)});
  }
  std::sort(files.begin(), files.end(),
            [](const auto& a, const auto& b) { return a.path < b.path; });
  return files;
}

// Two runs in one folder would become one trace. Other nodes of this job write there too: only files of
// this machine count.
Result<void> make_room(const fs::path& folder, Overwrite overwrite) {
  const std::string host = "." + host_name() + ".";
  for (const CaptureFileOnDisk& file : capture_files(folder)) {
    if (("." + file.path.filename().string()).find(host) == std::string::npos) continue;
    if (overwrite == Overwrite::kRefuse) {
      return fail(Code::kUsage, "the folder holds a capture of this machine already",
                  folder.string(), "choose another with -o, or pass --force to replace it");
    }
    std::error_code error;
    fs::remove(file.path, error);
  }
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    return fail(Code::kIo, "cannot create the folder: " + error.message(), folder.string(),
                "name a folder that can be written with -o");
  }
  return {};
}

std::string quoted(const std::string& word) {
  const bool plain = !word.empty() && word.find_first_not_of(
                                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789-_./=:,%+@") == std::string::npos;
  if (plain) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

Result<int> show_plan(Context& context, const CapturePlan& plan) {
  if (context.json()) {
    Json environment = Json::object();
    for (const auto& [name, value] : plan.environment) environment[name] = value;
    Json notes = Json::array();
    for (const CapturePlan::Note& note : plan.notes) {
      notes.push_back({{"what", note.what}, {"advice", note.advice}});
    }
    return exit_code(context.print_stdout(Json{{"schema", "rehearse.capture/1"},
                                               {"environment", environment},
                                               {"command", plan.command},
                                               {"notes", notes}}));
  }
  std::string text;
  for (const auto& [name, value] : plan.environment) {
    text += fmt::format("{}={}\n", name, quoted(value));
  }
  for (size_t i = 0; i < plan.command.size(); ++i) {
    text += (i > 0 ? " " : "") + quoted(plan.command[i]);
  }
  return exit_code(context.print_stdout(std::string_view(text += "\n")));
}

Result<int> tell_result(Context& context, const fs::path& folder, const Ended& ended) {
  const std::vector<CaptureFileOnDisk> files = capture_files(folder);
  uint64_t bytes = 0;
  for (const CaptureFileOnDisk& file : files) bytes += file.bytes;
  if (context.json()) {
    Json list = Json::array();
    for (const CaptureFileOnDisk& file : files) {
      list.push_back({{"file", file.path.string()}, {"bytes", file.bytes}});
    }
    const Json document = {{"schema", "rehearse.capture/1"},
                           {"folder", folder.string()},
                           {"exit_code", ended.code},
                           {"signal", ended.signal},
                           {"files", list}};
    if (auto done = context.print_stdout(document); !done) return tl::unexpected(done.error());
  } else if (files.empty()) {
    Findings findings;
    findings.add("nothing-recorded", Severity::kWarning, folder.string(),
                 "no process used CUDA, NVTX or NCCL, or none could write; rehearse capture "
                 "--selftest checks this machine");
    context.show(findings);
  } else {
    context.reporter().note(
        fmt::format("{} capture file{}, {}, in {}; next: rehearse import {} -o job.rtrace",
                    files.size(), files.size() == 1 ? "" : "s",
                    format_bytes(static_cast<Bytes>(bytes)), folder.string(), folder.string()));
  }
  return end_as(ended);
}

Result<int> run_capture(Context& context) {
  RH_TRY(const fs::path library, capture_library());
  CaptureRequest request;
  request.library = library;
  request.folder = fs::absolute(context.output().value_or("capture")).lexically_normal();
  if (context.has("steps")) request.steps = context.get<std::string>("steps");
  if (context.has("with")) {
    std::string words = context.get<std::string>("with");
    for (size_t comma = 0; !words.empty(); words.erase(0, comma)) {
      comma = words.find(',');
      if (comma != 0) request.with.push_back(words.substr(0, comma));
      comma = comma == std::string::npos ? words.size() : comma + 1;
    }
  }
  if (auto good = check_request(request); !good) return tl::unexpected(good.error());
  if (context.has("selftest")) return run_selftest(context, request);
  if (context.inputs().empty()) {
    return fail(Code::kUsage, "no command to record", "capture",
                "write it behind --: rehearse capture -- torchrun train.py");
  }
  const CapturePlan plan = plan_capture(request, context.inputs(), variable, version_of);
  Findings findings;
  for (const CapturePlan::Note& note : plan.notes) {
    findings.add("not-as-planned", Severity::kWarning, note.what, note.advice);
  }
  context.show(findings);
  if (context.has("dry-run")) return show_plan(context, plan);
  if (auto made = make_room(request.folder, context.overwrite()); !made) {
    return tl::unexpected(made.error());
  }
  RH_TRY(const Ended ended,
         run_command(plan.command, plan.environment,
                     context.json() ? ChildOutput::kToStderr : ChildOutput::kAsItIs));
  return tell_result(context, request.folder, ended);
}

}  // namespace

Verb capture_verb() {
  Verb verb;
  verb.name = "capture";
  verb.summary = "run a command and record what it does on its GPUs";
  std::string extras;
  for (const capture::Extra& extra : capture::kExtras) {
    extras += fmt::format("{}{} ({})", extras.empty() ? "" : ", ", extra.word, extra.what);
  }
  verb.details =
      "Runs COMMAND with the capture library in every process of it that uses CUDA, NVTX or NCCL, "
      "and "
      "leaves one file per process in FOLDER (default: capture), with NCCL's topology, graphs and "
      "log: all that `rehearse import FOLDER` needs. Output, exit code and signals are those of "
      "COMMAND; "
      "what the library cannot do becomes one line on stderr. torchrun, mpirun, srun and "
      "horovodrun hand "
      "the variables on to their ranks; where one is started per node, start `rehearse capture` "
      "per node. With "
      "--json COMMAND's output goes to stderr.\n\n"
      "--with records more: " +
      extras + ".";
  verb.positionals = {{"COMMAND", "the program and its arguments, behind --", Count::kAny, {}}};
  verb.options = [](po::options_description& options) {
    auto add = options.add_options();
    add("steps", po::value<std::string>()->value_name("A-B"),
        "only these steps, as NVTX ranges like 'step 12' mark them, or this time (10s-20s)");
    add("with", po::value<std::string>()->value_name("LIST"), "record more; see above");
    add("dry-run", "print the variables and the command, and do nothing");
    add("selftest", "check driver, CUPTI, NCCL, folder and cost on this machine");
  };
  verb.writes = Writes::kFolder;
  verb.examples = {
      {"./rehearse capture --dry-run -- torchrun --nproc-per-node 8 train.py", "what would be set"},
      {"./rehearse capture -o run1 -- sh -c 'echo training'", "any command; this one has no GPU"},
      {"./rehearse capture --steps 10-12 --with memory --dry-run -- python3 train.py",
       "three steps, and allocations"},
      {"./rehearse capture --selftest", "can this machine record?"}};
  verb.run = run_capture;
  return verb;
}

}  // namespace rehearse::cli
