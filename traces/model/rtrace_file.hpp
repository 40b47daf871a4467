// SPDX-License-Identifier: Apache-2.0
// An opened .rtrace file: everything but the operations, and where those are. The table of records
// comes from the index and is checked against the records themselves; without a usable index (a cut
// file) it is rebuilt by walking and checking every record up to the first that is not whole. Const
// members may be used from several threads.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/finding.hpp"
#include "traces/model/rtrace.hpp"
#include "traces/model/rtrace_format.hpp"
#include "traces/model/trace.hpp"

namespace rehearse::traces {

constexpr uint64_t kMaxOperationsPerRank = UINT32_MAX;

// A file read at positions; the descriptor is closed by the destructor.
class ByteSource {
 public:
  // kMissingInput, kIo, or kBadInput for what is not a regular file.
  static Result<ByteSource> open(const std::filesystem::path& path);
  ByteSource(ByteSource&& other) noexcept;
  ByteSource& operator=(ByteSource&& other) noexcept;
  ~ByteSource();
  [[nodiscard]] uint64_t size() const { return size_; }
  // Exactly `length` bytes into `out`; they were checked to lie inside the file.
  [[nodiscard]] Result<void> read(uint64_t offset, uint64_t length, std::string& out) const;
  // "file.rtrace: byte 17".
  [[nodiscard]] std::string where(uint64_t offset) const;

 private:
  ByteSource(int descriptor, uint64_t size, std::string name);
  int descriptor_ = -1;
  uint64_t size_ = 0;
  std::string name_;
};

// Buffers that are kept between records.
struct RecordRoom {
  std::string payload, plain;
};

// The record at `offset` if it is whole, of this type, and its hash is right; a view into `room`.
[[nodiscard]] Result<std::string_view> read_record(const ByteSource& source, uint64_t offset,
                                                   RecordType type, RecordRoom& room);

struct BlockPlace {
  uint64_t offset = 0;
  uint32_t count = 0;
};

struct RankPlace {
  RankTrace rank;           // without operations
  uint64_t operations = 0;  // as the rank's record says
  uint64_t found = 0;       // in the blocks that are there
  std::vector<BlockPlace> blocks;
};

struct RtraceFile {
  ByteSource source;
  pb::TraceHeader header;
  Strings strings;
  std::vector<Communicator> communicators;
  std::vector<pb::Evidence> evidence;
  std::map<RankId, RankPlace> ranks;
  pb::TraceIndex index;      // of the records that are used
  uint64_t records_end = 0;  // first byte behind them
  Findings findings;

  static Result<RtraceFile> open(const std::filesystem::path& path, const ReadOptions& options);
};

}  // namespace rehearse::traces
