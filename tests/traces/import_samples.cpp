// SPDX-License-Identifier: Apache-2.0
#include "tests/traces/import_samples.hpp"

#include <fmt/format.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#include <cstdlib>
#include <fstream>

namespace rehearse::traces::samples {

namespace fs = std::filesystem;

TempFolder::TempFolder() {
  std::string name = (fs::temp_directory_path() / "rehearse-import-XXXXXX").string();
  path_ = ::mkdtemp(name.data());
}
TempFolder::~TempFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}
fs::path TempFolder::write(const std::string& name, const std::string& bytes) const {
  const fs::path file = path_ / name;
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return file;
}

std::string gzip(const std::string& text) {
  z_stream z{};
  deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&z, text.size()) + 64, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  deflate(&z, Z_FINISH);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

std::string zstd(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

std::string document(const std::string& events, int rank, int world) {
  return fmt::format(
      R"({{"schemaVersion": 1, "distributedInfo": {{"backend": "nccl", "rank": {}, "world_size": {}}},
"traceEvents": [{}]}})",
      rank, world, events);
}

Result<Imported> import_text(const std::string& text, const ImportOptions& options,
                             const std::string& name) {
  const TempFolder folder;
  SilentReporter silent;
  return import_files({folder.write(name, text)}, options, silent);
}

std::optional<size_t> find_op(const Imported& imported, const std::string& name, size_t rank) {
  const Operations& ops = imported.trace.ranks.at(rank).ops;
  for (size_t op = 0; op < ops.size(); ++op) {
    if (imported.trace.strings.at(ops.name[op]) == name) return op;
  }
  return std::nullopt;
}

size_t count_of(const RankTrace& rank, OpKind kind) {
  return static_cast<size_t>(std::count(rank.ops.kind.begin(), rank.ops.kind.end(), kind));
}

}  // namespace rehearse::traces::samples
