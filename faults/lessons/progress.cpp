// SPDX-License-Identifier: Apache-2.0
#include "faults/lessons/progress.hpp"

#include <algorithm>

#include "base/atomic_file.hpp"
#include "base/document.hpp"
#include "base/install.hpp"

namespace rehearse::faults {
namespace {

Result<std::filesystem::path> progress_file() {
  RH_TRY(const std::filesystem::path folder, state_folder());
  return folder / "labs.yaml";
}

}  // namespace

uint32_t score_of(const pb::LabScript& script, const pb::LabState& state) {
  if (!state.passed() || state.gave_up()) return 0;
  uint32_t cost = 0;
  for (int i = 0; i < std::min<int>(script.hints_size(), static_cast<int>(state.hints())); ++i) {
    cost += script.hints(i).cost();
  }
  return cost >= 100 ? 0 : 100 - cost;
}

Result<pb::LabProgress> read_progress() {
  RH_TRY(const std::filesystem::path file, progress_file());
  pb::LabProgress progress;
  std::error_code ec;
  if (!std::filesystem::exists(file, ec)) return progress;
  if (auto read = read_document_file(file.string(), progress); !read) {
    return tl::unexpected(read.error());
  }
  return progress;
}

const pb::LabState* find_state(const pb::LabProgress& progress, std::string_view lab) {
  for (const pb::LabState& state : progress.labs()) {
    if (state.lab() == lab) return &state;
  }
  return nullptr;
}

Result<void> note_progress(const pb::LabState& state) {
  RH_TRY(const std::filesystem::path file, progress_file());
  RH_TRY(pb::LabProgress progress, read_progress());
  pb::LabState noted = state;
  auto& labs = *progress.mutable_labs();
  const auto at = std::find_if(labs.begin(), labs.end(),
                               [&](const pb::LabState& each) { return each.lab() == state.lab(); });
  if (at == labs.end()) {
    *labs.Add() = std::move(noted);
  } else {
    noted.set_passed(noted.passed() || at->passed());
    noted.set_score(std::max(noted.score(), at->score()));
    *at = std::move(noted);
  }
  std::sort(labs.begin(), labs.end(),
            [](const pb::LabState& a, const pb::LabState& b) { return a.lab() < b.lab(); });
  return write_file(file, write_document(progress), Overwrite::kReplace);
}

}  // namespace rehearse::faults
