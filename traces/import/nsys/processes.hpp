// SPDX-License-Identifier: Apache-2.0
// The processes of an Nsight Systems export that are ranks: those that put work on a GPU, or all when none
// did. Rows of the others are counted, not kept. One builder of operations per process.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>

#include "traces/import/activity/builder.hpp"
#include "traces/import/nsys/database.hpp"

namespace rehearse::traces::nsys {

// Global ids of processes and threads are packed: the thread in the lowest 24 bits, above it the pid.
[[nodiscard]] inline int64_t process_of(int64_t global_id) {
  return static_cast<int64_t>(static_cast<uint64_t>(global_id) >> 24);
}
[[nodiscard]] inline int64_t pid_of(int64_t process) { return process & 0xffffff; }
[[nodiscard]] inline int64_t tid_of(int64_t global_id) { return global_id & 0xffffff; }

class Processes {
 public:
  Processes(std::string file, ReadContext& context) : file_(std::move(file)), context_(context) {}

  // Looks who put work on a GPU.
  [[nodiscard]] Result<void> choose(Database& database);
  // The process of a global process or thread id; null for one that is not a rank.
  [[nodiscard]] activity::Builder* of(std::optional<int64_t> global_id);
  // The same when it has rows already; nothing is counted.
  [[nodiscard]] activity::Builder* known(int64_t global_id) const;
  [[nodiscard]] const std::map<int64_t, std::unique_ptr<activity::Builder>>& all() const {
    return builders_;
  }
  void tell_what_was_left_out();

 private:
  std::string file_;
  ReadContext& context_;
  bool one_ = false;                         // GPU work does not tell its process
  std::optional<std::set<int64_t>> chosen_;  // those with GPU work; nothing: all
  std::map<int64_t, std::unique_ptr<activity::Builder>> builders_;
  std::set<int64_t> others_;
  uint64_t other_rows_ = 0, without_process_ = 0;
};

}  // namespace rehearse::traces::nsys
