// SPDX-License-Identifier: Apache-2.0
// Jobs: a queue, a bounded number of workers at a time, and a folder per job that outlives the
// server. FOLDER/ID/job.json is replaced whole at each change of state, result.json appears whole or
// not at all (beside a failed job where what came after it failed). On opening, finished jobs are as they were, queued ones are
// queued again, and those that ran when the server was killed are failed with code `interrupted`; half a result and folders on
// their way out are removed.
//
// Safe to call from any thread; has one thread per worker, which only waits for it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "cli/serve/job.pb.h"
#include "cli/serve/worker.hpp"

namespace rehearse::serve {

struct JobLimits {
  unsigned at_once = 1;  // workers
  size_t queued = 1000;  // waiting; more are refused
  size_t kept = 10000;   // in all; more are refused
  std::chrono::milliseconds time = std::chrono::minutes(30);
  uint64_t file_bytes = uint64_t{4} << 30;
};

struct JobCounts {
  size_t queued = 0, running = 0, done = 0, failed = 0, cancelled = 0;
};

// Neither queued nor running.
[[nodiscard]] bool has_ended(const pb::Job& job);

class Jobs {
 public:
  // `finished` is called in a worker's thread with the job's folder when the worker went well,
  // before the job counts as done; its error fails the job.
  using Finish = std::function<Result<void>(pb::Job&, const std::filesystem::path& folder)>;
  [[nodiscard]] static Result<std::unique_ptr<Jobs>> open(const std::filesystem::path& folder,
                                                          const JobLimits& limits, Finish finish);
  ~Jobs();
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;

  // Fills the new job's folder before anyone can see it. kLimit when there are too many jobs.
  using Prepare = std::function<Result<void>(const std::filesystem::path& folder)>;
  [[nodiscard]] Result<pb::Job> submit(const pb::JobRequest& request, const Prepare& prepare);

  // kMissingInput when there is none of that id.
  [[nodiscard]] Result<pb::Job> get(const std::string& id) const;
  // Newest first, below `before` (0: from the newest).
  [[nodiscard]] std::vector<pb::Job> list(uint64_t before, size_t most) const;
  [[nodiscard]] JobCounts counts() const;
  // Queued: it will not start. Running: its worker is ended. Ended: kUsage.
  [[nodiscard]] Result<pb::Job> cancel(const std::string& id);
  // With its folder; kUsage while it is queued or running.
  [[nodiscard]] Result<void> remove(const std::string& id);
  [[nodiscard]] std::filesystem::path folder_of(const std::string& id) const;

  // Numbers every change of any job. Waits until there is a later one than `seen`, or the time is up;
  // returns the latest.
  [[nodiscard]] uint64_t wait(uint64_t seen, std::chrono::milliseconds most) const;
  [[nodiscard]] std::vector<pb::Job> changed_since(uint64_t seen) const;

  // Ends workers; their jobs are queued again at the next opening. Nothing is started after.
  void stop();
  [[nodiscard]] bool stopping() const;

 private:
  struct Entry {
    pb::Job job;
    uint64_t revision = 0;
    bool cancel = false;
  };
  Jobs(std::filesystem::path folder, const JobLimits& limits, Finish finish);
  [[nodiscard]] Result<void> load();
  void work();
  void run(uint64_t id);
  void settle(uint64_t id, const Result<WorkerEnd>& end);
  [[nodiscard]] bool should_stop(uint64_t id) const;
  void touch(Entry& entry);             // with the lock held
  void save(const pb::Job& job) const;  // best effort: the state in memory rules
  [[nodiscard]] Result<Entry*> find(const std::string& id) const;  // with the lock held

  std::filesystem::path folder_;
  JobLimits limits_;
  Finish finish_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;  // for wait() and for threads that look for work
  mutable std::map<uint64_t, Entry> jobs_;
  std::deque<uint64_t> queue_;
  uint64_t next_ = 1;
  uint64_t revision_ = 0;
  bool stopping_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace rehearse::serve
