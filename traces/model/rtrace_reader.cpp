// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <condition_variable>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <thread>

#include "traces/model/rtrace.hpp"
#include "traces/model/rtrace_block.hpp"
#include "traces/model/rtrace_file.hpp"

namespace rehearse::traces {
namespace {

// Grown from what was decoded, not from what the file claims.
constexpr size_t kFirstReserve = size_t{1} << 20;

struct Scratch {
  RecordRoom room;
  pb::OperationBlock block;
};

Result<RankTrace> read_rank(const RtraceFile& file, const RankPlace& place, Scratch& scratch) {
  RankTrace rank = place.rank;
  rank.ops.reserve(std::min<size_t>(place.found, kFirstReserve));
  const BlockContext context{rank.lanes, file.strings.size(), file.communicators};
  for (const BlockPlace& at : place.blocks) {
    RH_TRY(const std::string_view bytes,
           read_record(file.source, at.offset, RecordType::kOperations, scratch.room));
    const auto bad = [&](std::string what) {
      return fail(Code::kBadInput, fmt::format("rank {}: {}", rank.rank, what),
                  file.source.where(at.offset), "the file is damaged; copy or write it again");
    };
    // ParseFromArray clears but keeps the room of the columns.
    if (!parse(bytes, scratch.block)) return bad("block that cannot be parsed");
    if (scratch.block.rank() != rank.rank || scratch.block.count() != at.count) {
      return bad("block that is not the one of the index");
    }
    if (auto done = decode_block(scratch.block, context, rank.ops); !done)
      return bad(done.error().what);
  }
  return rank;
}

Result<RankTrace> read_rank_or_say_why(const RtraceFile& file, const RankPlace& place,
                                       Scratch& scratch) {
  try {
    return read_rank(file, place, scratch);
  } catch (const std::bad_alloc&) {
    return fail(Code::kLimit,
                fmt::format("not enough memory for the {} operations of rank {}", place.found,
                            place.rank.rank),
                file.source.where(0), "read it on a larger machine");
  }
}

// Ranks decoded ahead by worker threads and handed out in order; at most `window` are in memory.
class Ahead {
 public:
  Ahead(const RtraceFile& file, size_t threads) : file_(file), window_(threads + 1) {
    for (const auto& [rank, place] : file.ranks) places_.push_back(&place);
    slots_.resize(places_.size());
    for (size_t i = 0; i < std::min(threads, places_.size()); ++i) {
      try {
        workers_.emplace_back([this] { work(); });
      } catch (const std::system_error&) {
        if (workers_.empty()) throw;
        break;  // the machine has no more; fewer do the same
      }
    }
  }
  ~Ahead() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    room_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }
  Ahead(const Ahead&) = delete;
  Ahead& operator=(const Ahead&) = delete;

  Result<RankTrace> take(size_t i) {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [&] { return slots_[i].has_value(); });
    Result<RankTrace> rank = std::move(*slots_[i]);
    slots_[i].reset();
    taken_ = i + 1;
    lock.unlock();
    room_.notify_all();
    return rank;
  }

 private:
  void work() {
    Scratch scratch;
    std::unique_lock lock(mutex_);
    while (true) {
      room_.wait(lock,
                 [&] { return stop_ || next_ >= places_.size() || next_ < taken_ + window_; });
      if (stop_ || next_ >= places_.size()) return;
      const size_t mine = next_++;
      lock.unlock();
      Result<RankTrace> rank = read_rank_or_say_why(file_, *places_[mine], scratch);
      lock.lock();
      slots_[mine] = std::move(rank);
      ready_.notify_all();
    }
  }

  const RtraceFile& file_;
  const size_t window_;
  std::vector<const RankPlace*> places_;
  std::mutex mutex_;
  std::condition_variable ready_, room_;
  std::vector<std::optional<Result<RankTrace>>> slots_;
  size_t next_ = 0, taken_ = 0;
  bool stop_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace

struct RtraceReader::Impl {
  RtraceFile file;
  ReadOptions options;
};

RtraceReader::RtraceReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RtraceReader::RtraceReader(RtraceReader&&) noexcept = default;
RtraceReader& RtraceReader::operator=(RtraceReader&&) noexcept = default;
RtraceReader::~RtraceReader() = default;

Result<RtraceReader> RtraceReader::open(const std::filesystem::path& path,
                                        const ReadOptions& options) {
  RH_TRY(RtraceFile file, RtraceFile::open(path, options));
  return RtraceReader(std::make_unique<Impl>(Impl{std::move(file), options}));
}

const pb::TraceHeader& RtraceReader::header() const { return impl_->file.header; }
const Strings& RtraceReader::strings() const { return impl_->file.strings; }
const std::vector<Communicator>& RtraceReader::communicators() const {
  return impl_->file.communicators;
}
const std::vector<pb::Evidence>& RtraceReader::evidence() const { return impl_->file.evidence; }
uint64_t RtraceReader::operations() const { return impl_->file.index.operations(); }
const Findings& RtraceReader::findings() const { return impl_->file.findings; }

std::vector<RankId> RtraceReader::ranks() const {
  std::vector<RankId> ranks;
  for (const auto& [rank, place] : impl_->file.ranks) ranks.push_back(rank);
  return ranks;
}

Result<RankTrace> RtraceReader::rank(RankId rank) const {
  const auto place = impl_->file.ranks.find(rank);
  if (place == impl_->file.ranks.end()) {
    return fail(Code::kUsage, fmt::format("rank {} is not in this file", rank),
                impl_->file.source.where(0), "`rehearse inspect` lists its ranks");
  }
  Scratch scratch;
  return read_rank_or_say_why(impl_->file, place->second, scratch);
}

Result<void> RtraceReader::for_each_rank(const std::function<Result<void>(RankTrace&&)>& visit,
                                         Reporter& reporter) const {
  const size_t ranks = impl_->file.ranks.size();
  Ahead ahead(impl_->file, static_cast<size_t>(std::clamp(impl_->options.threads, 1, 256)));
  for (size_t i = 0; i < ranks; ++i) {
    if (reporter.interrupted()) return fail(Code::kInterrupted, "interrupted");
    RH_TRY(RankTrace rank, ahead.take(i));
    if (auto done = visit(std::move(rank)); !done) return done;
    reporter.progress("ranks", i + 1, ranks);
  }
  return {};
}

Result<Trace> read_rtrace(const std::filesystem::path& path, const ReadOptions& options,
                          Reporter& reporter) {
  RH_TRY(const RtraceReader reader, RtraceReader::open(path, options));
  Trace trace;
  trace.header = reader.header();
  trace.strings = reader.strings();
  trace.communicators = reader.communicators();
  trace.evidence = reader.evidence();
  // A cut file that was accepted says so in the trace itself.
  for (const Finding& finding : reader.findings().rows()) {
    pb::TraceFinding& out = *trace.header.add_findings();
    out.set_id(finding.id);
    out.set_severity(name_of(finding.severity));
    out.set_count(finding.count);
    out.set_first(finding.first);
    out.set_advice(finding.advice);
  }
  const auto keep = [&](RankTrace&& rank) -> Result<void> {
    trace.ranks.push_back(std::move(rank));
    return {};
  };
  if (auto done = reader.for_each_rank(keep, reporter); !done) return tl::unexpected(done.error());
  return trace;
}

}  // namespace rehearse::traces
