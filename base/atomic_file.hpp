// SPDX-License-Identifier: Apache-2.0
// Output files that are whole or absent: written to a temporary name in the same folder, synced,
// then renamed over the target. Dropping an AtomicFile without commit() removes the temporary.
// Pipes, devices and whatever stands under /dev (/dev/stdout) cannot be replaced and are written
// directly.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace rehearse {

enum class Overwrite { kRefuse, kReplace };

class AtomicFile {
 public:
  // Opens a temporary beside `target`. kUsage when the target exists and may not be replaced.
  static Result<AtomicFile> create(const std::filesystem::path& target, Overwrite overwrite);
  AtomicFile(AtomicFile&&) noexcept;
  AtomicFile& operator=(AtomicFile&&) noexcept;
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  [[nodiscard]] Result<void> write(std::string_view bytes);
  // Bytes written so far.
  [[nodiscard]] uint64_t size() const { return size_; }
  // Flush, fsync, rename. Nothing may be written after.
  [[nodiscard]] Result<void> commit();
  // The same without waiting for the disk: whole or absent whatever happens to the process, but a machine that stops may
  // leave it damaged. For what is checked when it is read and can be made again.
  [[nodiscard]] Result<void> commit_unsynced();

 private:
  AtomicFile() = default;
  enum class Sync { kDisk, kNone };

  void discard() noexcept;
  [[nodiscard]] Result<void> close_as(Sync sync);
  [[nodiscard]] Result<void> publish(Sync sync);

  std::FILE* file_ = nullptr;
  std::filesystem::path target_;
  std::filesystem::path temporary_;  // empty: written directly
  Overwrite overwrite_ = Overwrite::kRefuse;
  uint64_t size_ = 0;
};

// Writes a whole file atomically.
[[nodiscard]] Result<void> write_file(const std::filesystem::path& target, std::string_view bytes,
                                      Overwrite overwrite);
// The same without waiting for the disk (commit_unsynced).
[[nodiscard]] Result<void> write_file_unsynced(const std::filesystem::path& target,
                                               std::string_view bytes, Overwrite overwrite);
// Reads a whole regular file of at most `limit` bytes; kMissingInput (absent, a folder, a pipe, no
// permission), kIo or kLimit.
[[nodiscard]] Result<std::string> read_file(const std::filesystem::path& path, uint64_t limit);

}  // namespace rehearse
