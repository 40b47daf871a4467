// SPDX-License-Identifier: Apache-2.0
// Input bytes as a stream of bounded memory: plain, gzip (any number of members) or zstd, told
// apart by content, never by name. Compressed inputs are decompressed on a second thread a few
// blocks ahead of the reader; limits on size and on the ratio of decompression stop bombs. Every
// offset is one of the uncompressed bytes. A byte order mark of UTF-8 is left out. One reader at a
// time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace rehearse::traces {

enum class Encoding { kPlain, kGzip, kZstd };
[[nodiscard]] const char* name_of(Encoding encoding);

struct SourceOptions {
  uint64_t max_bytes = uint64_t{1} << 40;  // uncompressed
  // Uncompressed bytes per compressed byte that are believed, looked at after the first 64 MiB.
  uint64_t max_ratio = 250;
};

// A place that bytes come from; `read` fills a prefix of `out` and returns its length, 0 at the
// end.
class ByteReader {
 public:
  virtual ~ByteReader() = default;
  [[nodiscard]] virtual Result<size_t> read(std::span<char> out) = 0;
};

class Source {
 public:
  // kMissingInput when there is no such file, kIo when it cannot be read, kBadInput for a folder.
  [[nodiscard]] static Result<Source> open(const std::filesystem::path& path,
                                           const SourceOptions& options);
  // Over bytes that outlive the source.
  [[nodiscard]] static Result<Source> over(std::string_view bytes, std::string name,
                                           const SourceOptions& options);
  // The same input from its start, for readers that look more than once.
  [[nodiscard]] Result<Source> again() const;
  Source(Source&&) noexcept;
  Source& operator=(Source&&) noexcept;
  ~Source();

  // The first bytes (up to 256 KiB) of the uncompressed content; stays valid, reading is not
  // affected.
  [[nodiscard]] std::string_view head() const;
  // Next bytes, 0 at the end. A compressed stream that ends early gives all bytes that could be
  // decoded, then kBadInput with cut() true.
  [[nodiscard]] Result<size_t> read(std::span<char> out);
  [[nodiscard]] bool cut() const;
  [[nodiscard]] uint64_t offset() const;  // uncompressed bytes given so far
  [[nodiscard]] Encoding encoding() const;
  [[nodiscard]] const std::string& name() const;            // for messages
  [[nodiscard]] const std::filesystem::path& path() const;  // empty when in memory
  [[nodiscard]] uint64_t stored_bytes() const;              // size of the file as stored
  // xxh3 of the stored bytes; complete once read() has returned 0.
  [[nodiscard]] uint64_t xxh3() const;

 private:
  struct Impl;
  explicit Source(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rehearse::traces
