// SPDX-License-Identifier: Apache-2.0
// Small inputs for tests of the import: a folder that goes away, Kineto documents as text,
// compression.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "traces/import/import.hpp"

namespace rehearse::traces::samples {

class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  // Writes a file and returns its path.
  std::filesystem::path write(const std::string& name, const std::string& bytes) const;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

[[nodiscard]] std::string gzip(const std::string& text);
[[nodiscard]] std::string zstd(const std::string& text);

// {"distributedInfo": {rank, world_size}, "traceEvents": [events]}
[[nodiscard]] std::string document(const std::string& events, int rank = 0, int world = 1);
[[nodiscard]] Result<Imported> import_text(const std::string& text,
                                           const ImportOptions& options = {},
                                           const std::string& name = "trace.json");
// Index of the first operation of that name, or nothing.
[[nodiscard]] std::optional<size_t> find_op(const Imported& imported, const std::string& name,
                                            size_t rank = 0);
[[nodiscard]] size_t count_of(const RankTrace& rank, OpKind kind);

}  // namespace rehearse::traces::samples
