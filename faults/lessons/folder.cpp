// SPDX-License-Identifier: Apache-2.0
#include "faults/lessons/folder.hpp"

#include <fmt/format.h>

#include <system_error>

#include "base/document.hpp"
#include "faults/lessons/assess.hpp"
#include "faults/lessons/evidence.hpp"
#include "faults/lessons/readme.hpp"

namespace rehearse::faults {
namespace {

namespace fs = std::filesystem;

constexpr const char* kState = ".lab.yaml";

Result<void> write_into(const fs::path& folder, const std::string& name, const std::string& text) {
  const fs::path file = folder / name;
  std::error_code ec;
  fs::create_directories(file.parent_path(), ec);
  if (ec) {
    return fail(Code::kIo, "cannot create the folder: " + ec.message(), file.parent_path().string(),
                "name a folder that can be written");
  }
  return write_file(file, text, Overwrite::kReplace);
}

// Files of others are never touched: a folder is new, empty, or that of a lab that is begun anew.
Result<void> make_room(const fs::path& folder, Overwrite overwrite) {
  std::error_code ec;
  if (!fs::exists(folder, ec) || fs::is_empty(folder, ec)) return {};
  if (!fs::exists(folder / kState, ec)) {
    return fail(Code::kUsage, "the folder is not empty", folder.string(), "name a new folder");
  }
  if (overwrite == Overwrite::kRefuse) {
    return fail(Code::kUsage, "there is a lab in this folder", folder.string(),
                "name another folder, or --force to begin anew");
  }
  for (const char* made : {"evidence", "env"}) fs::remove_all(folder / made, ec);
  return {};
}

std::string environment_text(const pb::NodeLaunch& node, const std::string& name) {
  const std::map<std::string, std::string> variables(node.env().begin(), node.env().end());
  std::string out = fmt::format("# environment of the processes on {}\n", name);
  for (const auto& [variable, value] : variables) out += fmt::format("{}={}\n", variable, value);
  return out;
}

}  // namespace

std::map<std::string, std::string> job_files(const pb::Scenario& written) {
  std::map<std::string, std::string> files;
  files["cluster.yaml"] = "# the machines of the job\n" + write_document(written.platform());
  pb::Scenario job = written;
  job.clear_platform();
  job.mutable_platform()->set_like("cluster.yaml");
  for (pb::NodeLaunch& node : *job.mutable_launch()->mutable_nodes()) {
    const std::string name = fmt::format("env/node{}.env", node.node());
    const int index = static_cast<int>(node.node());
    files[name] = environment_text(node, index < written.platform().nodes_size()
                                             ? written.platform().nodes(index).name()
                                             : name);
    node.clear_env();
    node.set_env_file(name);
  }
  std::string text = "# the job: rehearse run job.yaml\n" + write_document(job);
  if (job.patches().empty()) text += "# repairs that are in no file, see README.md\npatches: []\n";
  files["job.yaml"] = std::move(text);
  return files;
}

Result<void> start_lab(const LabJob& job, const fs::path& folder, Overwrite overwrite,
                       Reporter& reporter) {
  if (auto free = make_room(folder, overwrite); !free) return free;
  RH_TRY(const sim::Scenario broken, load_job(job, job.written, reporter));
  RH_TRY(const pb::Outcome outcome, observe_job(broken, &job.healthy_run.step_time_ns(), reporter));
  RH_TRY(const pb::Repairs repairs, shipped_repairs());
  RH_TRY(const auto evidence, evidence_of(broken, outcome));
  std::map<std::string, std::string> files = job_files(job.written);
  files["README.md"] = readme_text(job, outcome, repairs);
  for (const auto& [name, text] : evidence) files["evidence/" + name] = text;
  for (const auto& [name, text] : files) {
    if (auto done = write_into(folder, name, text); !done) return done;
  }
  pb::LabState state;
  state.set_lab(job.lab->lab.id());
  state.set_seed(job.seed);
  return write_state(folder, state);
}

Result<pb::Scenario> read_job(const fs::path& folder) {
  return sim::read_scenario(folder / "job.yaml");
}

Result<pb::LabState> read_state(const fs::path& folder) {
  pb::LabState state;
  if (auto read = read_document_file((folder / kState).string(), state); !read) {
    if (read.error().code != Code::kMissingInput) return tl::unexpected(read.error());
    return fail(Code::kMissingInput, "this is not the folder of a lab", folder.string(),
                "make one with `rehearse learn start L01`, and work inside it");
  }
  return state;
}

Result<void> write_state(const fs::path& folder, const pb::LabState& state) {
  return write_into(folder, kState, "# kept by rehearse learn\n" + write_document(state));
}

}  // namespace rehearse::faults
