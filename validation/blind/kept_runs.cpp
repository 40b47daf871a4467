// SPDX-License-Identifier: Apache-2.0
#include "validation/blind/kept_runs.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <utility>

#include "base/atomic_file.hpp"
#include "base/document.hpp"

namespace rehearse::validation {
namespace {

constexpr uint64_t kMostRunBytes = 1 << 20;

}  // namespace

std::string identity_of(const std::string& program, const faults::FaultCatalogue& catalogue) {
  std::string out = program;
  for (const auto& entry : catalogue.entries()) {
    out += "\n" + write_document(entry->fault) + entry->edits;
  }
  return out;
}

Result<KeptRuns> KeptRuns::open(const std::filesystem::path& folder, std::string identity) {
  std::error_code ec;
  std::filesystem::create_directories(folder / "runs", ec);
  if (ec) {
    return fail(Code::kIo, "cannot make the folder: " + ec.message(), folder.string(),
                "name a folder you may write to with -o");
  }
  return KeptRuns(folder, std::move(identity));
}

std::filesystem::path KeptRuns::path_of(const std::string& run) const {
  const std::string text = identity_ + "\n" + run;
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return folder_ / "runs" / fmt::format("{:016x}{:016x}.yaml", hash.high64, hash.low64);
}

std::optional<pb::CampaignRun> KeptRuns::find(const std::string& run) const {
  const std::filesystem::path path = path_of(run);
  const auto text = read_file(path, kMostRunBytes);
  pb::CampaignRun row;
  if (!text || !read_document(*text, path.string(), row)) return std::nullopt;
  return row;
}

Result<void> KeptRuns::put(const std::string& run, const pb::CampaignRun& row) const {
  return write_file_unsynced(path_of(run), write_document(row), Overwrite::kReplace);
}

}  // namespace rehearse::validation
