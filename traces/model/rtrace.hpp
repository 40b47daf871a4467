// SPDX-License-Identifier: Apache-2.0
// The .rtrace container. A file is the magic "RTRACE" + two version bytes, then records:
//
//   u32 type | u32 flags | u64 payload bytes | u64 xxh3 of the payload | payload
//
// little-endian; a payload is one message of trace.proto, zstd-compressed when flags say so; the
// hash is seeded with type and flags. The last record is an index followed by a 16-byte trailer
// (u64 offset of the index, "RTRACEND"). Records may stand in any order except that the header
// comes first and strings, communicators and ranks come before the operations that name them.
// Appending writes to a copy, which takes the place of the file at commit. A file without a trailer
// (cut while it was copied) is read by walking records up to the last whole one; what is lost is
// said. Every length is checked against the bytes that are left before it is believed. The same
// trace gives the same bytes.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "base/finding.hpp"
#include "base/reporter.hpp"
#include "traces/model/trace.hpp"

namespace rehearse::traces {

// Writes a trace rank by rank, so that memory holds one rank at a time. Call order: header once,
// then communicators, then ranks; strings are written as they appear. The file appears at commit().
class RtraceWriter {
 public:
  static Result<RtraceWriter> create(const std::filesystem::path& path, Overwrite overwrite);
  // Goes on with a whole file: header() is not called again, communicators are numbered on, and the
  // strings given to rank() start with those of the file. Until commit() the old file stays as it
  // was.
  static Result<RtraceWriter> append(const std::filesystem::path& path);
  RtraceWriter(RtraceWriter&&) noexcept;
  RtraceWriter& operator=(RtraceWriter&&) noexcept;
  ~RtraceWriter();
  [[nodiscard]] Result<void> header(const pb::TraceHeader& header);
  [[nodiscard]] Result<void> communicator(const Communicator& communicator);
  // At any place behind the header. kLimit when one piece of evidence is larger than a record may be.
  [[nodiscard]] Result<void> evidence(const pb::Evidence& evidence);
  // `strings` may have grown since the last call; new entries are written first. Each rank once.
  // kInternal when operations break the rules of traces/model/rtrace_block.hpp.
  [[nodiscard]] Result<void> rank(const RankTrace& rank, const Strings& strings);
  [[nodiscard]] Result<void> commit();
  // Written so far, including those of the file appended to.
  [[nodiscard]] uint64_t operations() const;

 private:
  struct Impl;
  explicit RtraceWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

enum class Truncated { kRefuse, kAccept };

struct ReadOptions {
  // A cut file is refused (kBadInput, with how much could be read) or read up to the last whole
  // record.
  Truncated truncated = Truncated::kRefuse;
  // Largest number of operations read before giving up with kLimit.
  uint64_t max_operations = 1'000'000'000;
  int threads = 2;
};

// Everything about a file but its operations, and access to them rank by rank in any order.
class RtraceReader {
 public:
  static Result<RtraceReader> open(const std::filesystem::path& path, const ReadOptions& options);
  RtraceReader(RtraceReader&&) noexcept;
  RtraceReader& operator=(RtraceReader&&) noexcept;
  ~RtraceReader();
  [[nodiscard]] const pb::TraceHeader& header() const;
  [[nodiscard]] const Strings& strings() const;
  [[nodiscard]] const std::vector<Communicator>& communicators() const;
  [[nodiscard]] const std::vector<pb::Evidence>& evidence() const;
  [[nodiscard]] std::vector<RankId> ranks() const;  // ascending
  [[nodiscard]] uint64_t operations() const;
  // Reads one rank whole. Safe to call from several threads. kUsage when the file does not have it.
  [[nodiscard]] Result<RankTrace> rank(RankId rank) const;
  // Calls `visit` for each rank in ascending order; ranks are decoded ahead on other threads.
  [[nodiscard]] Result<void> for_each_rank(const std::function<Result<void>(RankTrace&&)>& visit,
                                           Reporter& reporter) const;
  // What was lost when a cut file was accepted.
  [[nodiscard]] const Findings& findings() const;

 private:
  struct Impl;
  explicit RtraceReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Whole traces in memory. Findings of a cut file are added to those of the header.
[[nodiscard]] Result<Trace> read_rtrace(const std::filesystem::path& path,
                                        const ReadOptions& options, Reporter& reporter);
[[nodiscard]] Result<void> write_rtrace(const Trace& trace, const std::filesystem::path& path,
                                        Overwrite overwrite);

}  // namespace rehearse::traces
