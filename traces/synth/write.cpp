// SPDX-License-Identifier: Apache-2.0
#include <condition_variable>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "traces/model/rtrace.hpp"
#include "traces/synth/synth.hpp"

namespace rehearse::synth {
namespace {

// Ranks made ahead on worker threads and handed out in order; at most `window` of them exist at a
// time.
class RanksInOrder {
 public:
  RanksInOrder(const Generator& generator, int threads)
      : generator_(generator), slots_(2 * static_cast<size_t>(threads)) {
    for (int i = 0; i < threads; ++i) {
      try {
        workers_.emplace_back([this] { work(); });
      } catch (const std::system_error&) {
        if (workers_.empty()) throw;
        break;  // the machine has no more; fewer do the same
      }
    }
  }
  RanksInOrder(const RanksInOrder&) = delete;
  RanksInOrder& operator=(const RanksInOrder&) = delete;
  ~RanksInOrder() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  // Rank 0, 1, 2, ...: call ranks() times.
  Result<traces::RankTrace> next() {
    std::unique_lock lock(mutex_);
    auto& slot = slots_[taken_ % slots_.size()];
    changed_.wait(lock, [&] { return slot.has_value(); });
    Result<traces::RankTrace> rank = std::move(*slot);
    slot.reset();
    ++taken_;
    changed_.notify_all();
    return rank;
  }

 private:
  Result<traces::RankTrace> made(uint32_t rank) const {
    try {
      return generator_.rank(rank);
    } catch (const std::bad_alloc&) {
      return fail(Code::kLimit, "not enough memory for the operations of one rank",
                  "rank " + std::to_string(rank), "make a smaller job, or use a larger machine");
    }
  }

  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return stopped_ || started_ < taken_ + slots_.size(); });
      if (stopped_ || started_ >= generator_.ranks()) return;
      const uint32_t rank = started_++;
      lock.unlock();
      Result<traces::RankTrace> trace = made(rank);
      lock.lock();
      slots_[rank % slots_.size()] = std::move(trace);
      changed_.notify_all();
    }
  }

  const Generator& generator_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::optional<Result<traces::RankTrace>>> slots_;
  uint32_t started_ = 0, taken_ = 0;
  bool stopped_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace

Result<uint64_t> synthesize_to(const std::filesystem::path& path, const pb::Synth& options,
                               const pb::Gpu& gpu, const WriteOptions& write, Reporter& reporter) {
  RH_TRY(const pb::Synth full, complete(options));
  RH_TRY(auto writer, traces::RtraceWriter::create(path, write.overwrite));
  RH_TRY(const Generator generator, Generator::create(full, gpu));
  if (auto done = writer.header(generator.header()); !done) return tl::unexpected(done.error());
  for (const traces::Communicator& c : generator.communicators())
    if (auto done = writer.communicator(c); !done) return tl::unexpected(done.error());
  RanksInOrder ranks(generator, std::max(1, write.threads));
  for (uint32_t r = 0; r < generator.ranks(); ++r) {
    if (reporter.interrupted()) return fail(Code::kInterrupted, "interrupted", path.string());
    RH_TRY(const traces::RankTrace rank, ranks.next());
    if (auto done = writer.rank(rank, generator.strings()); !done)
      return tl::unexpected(done.error());
    reporter.progress("ranks", r + 1, generator.ranks());
  }
  const uint64_t operations = writer.operations();
  if (auto done = writer.commit(); !done) return tl::unexpected(done.error());
  return operations;
}

}  // namespace rehearse::synth
