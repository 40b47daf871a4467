// SPDX-License-Identifier: Apache-2.0
#include "traces/import/nsys/processes.hpp"

#include <fmt/format.h>

#include <array>

#include "traces/import/nsys/tables.hpp"

namespace rehearse::traces::nsys {
namespace {

constexpr size_t kMostProcesses = 65536;

}  // namespace

Result<void> Processes::choose(Database& database) {
  constexpr std::array<const char*, 1> kPid = {"globalPid"};
  std::set<int64_t> with_gpu;
  for (const char* table : kGpuTables) {
    if (!database.has(table) || database.is_empty(table)) continue;
    if (!database.has(table, "globalPid")) one_ = true;
    auto read = database.each(table, kPid, [&](const Row& row) {
      if (const auto id = row.integer(0); id && with_gpu.size() < kMostProcesses) {
        with_gpu.insert(process_of(*id));
      }
    });
    if (!read) return read;
  }
  if (!one_ && !with_gpu.empty()) chosen_ = std::move(with_gpu);
  return {};
}

activity::Builder* Processes::of(std::optional<int64_t> global_id) {
  if (!one_ && !global_id) {
    ++without_process_;
    return nullptr;
  }
  const int64_t process = one_ ? 0 : process_of(*global_id);
  const auto at = builders_.find(process);
  if (at != builders_.end()) return at->second.get();
  if (chosen_ && !chosen_->contains(process)) {
    ++other_rows_;
    others_.insert(process);
    return nullptr;
  }
  if (builders_.size() >= kMostProcesses) {
    ++other_rows_;
    return nullptr;
  }
  const std::string where = one_ ? file_ : fmt::format("{}, process {}", file_, pid_of(process));
  return builders_.emplace(process, std::make_unique<activity::Builder>(context_, where))
      .first->second.get();
}

activity::Builder* Processes::known(int64_t global_id) const {
  const auto at = builders_.find(one_ ? 0 : process_of(global_id));
  return at == builders_.end() ? nullptr : at->second.get();
}

void Processes::tell_what_was_left_out() {
  if (other_rows_ > 0) {
    context_.findings.add("processes-without-gpu-work", Severity::kInfo,
                          fmt::format("{}: {} processes", file_, others_.size()),
                          "rows of processes that put no work on a GPU are left out", other_rows_);
  }
  if (without_process_ > 0) {
    context_.findings.add("rows-without-process", Severity::kDataLoss, file_,
                          "rows that do not tell their process are left out", without_process_);
  }
}

}  // namespace rehearse::traces::nsys
