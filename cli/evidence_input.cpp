// SPDX-License-Identifier: Apache-2.0
#include "cli/evidence_input.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "traces/evidence/evidence.hpp"

namespace rehearse::cli {
namespace {
namespace fs = std::filesystem;

constexpr size_t kMostFiles = 100'000;

// Outcomes say so in their first line or two.
bool is_outcome(const fs::path& path) {
  if (path.extension() != ".json") return false;
  std::ifstream file(path, std::ios::binary);
  std::string head(256, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  return head.find("rehearse.outcome/1") != head.npos;
}

bool is_scenario(const fs::path& path) {
  const fs::path extension = path.extension();
  return extension == ".yaml" || extension == ".yml" || extension == ".rtrace";
}

Result<std::vector<fs::path>> files_below(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    if (it->is_regular_file(error)) out.push_back(it->path());
    if (out.size() > kMostFiles) {
      return fail(Code::kLimit, fmt::format("more than {} files", kMostFiles), folder.string(),
                  "name the folder of one job");
    }
  }
  if (error) return fail(Code::kIo, error.message(), folder.string(), "is it readable?");
  std::sort(out.begin(), out.end());
  return out;
}

void take(std::vector<pb::Evidence> found, std::set<uint32_t>& ranks, EvidenceInput& out) {
  for (pb::Evidence& evidence : found) {
    if (evidence.has_nccl_log()) out.logs.push_back(std::move(*evidence.mutable_nccl_log()));
    if (!evidence.has_flight_recorder()) continue;
    pb::FlightRecorder& recorder = *evidence.mutable_flight_recorder();
    if (recorder.has_rank() && !ranks.insert(recorder.rank()).second) continue;
    out.recorders.push_back(std::move(recorder));
  }
}

}  // namespace

Result<EvidenceInput> sort_inputs(Context& context) {
  EvidenceInput out;
  std::set<uint32_t> ranks;
  Findings findings;
  for (const std::string& input : context.inputs()) {
    std::error_code error;
    const fs::path path(input);
    const bool folder = fs::is_directory(path, error);
    if (!folder && (!fs::is_regular_file(path, error) || is_scenario(path) || is_outcome(path))) {
      if (!out.main.empty()) {
        return fail(Code::kUsage, "two scenarios or outcomes", input,
                    "give one, and evidence of the same job beside it");
      }
      out.main = input;
      continue;
    }
    std::vector<fs::path> files{path};
    if (folder) {
      RH_TRY(files, files_below(path));
    }
    const size_t before = out.recorders.size() + out.logs.size();
    for (const fs::path& file : files) {
      auto found = traces::read_evidence(file, findings, context.reporter());
      if (!found && !folder) return tl::unexpected(std::move(found).error());
      if (!found && found.error().code == Code::kInterrupted)
        return tl::unexpected(std::move(found).error());
      if (found && !found->empty()) {
        take(std::move(*found), ranks, out);
      } else {
        ++out.ignored;
      }
    }
    if (out.recorders.size() + out.logs.size() == before && ranks.empty()) {
      return fail(Code::kBadInput, "neither flight recorder dumps nor NCCL logs", input,
                  "give the folder with nccl_trace_rank_* files or NCCL_DEBUG output");
    }
  }
  return out;
}

}  // namespace rehearse::cli
