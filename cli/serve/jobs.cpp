// SPDX-License-Identifier: Apache-2.0
#include "cli/serve/jobs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/atomic_file.hpp"
#include "base/document.hpp"
#include "cli/serve/job_request.hpp"

namespace rehearse::serve {
namespace {
namespace fs = std::filesystem;

constexpr const char* kJobFile = "job.json";
constexpr const char* kPart = "result.json.part";
constexpr std::string_view kRemoved = "removed-";  // and the number of the job
constexpr uint64_t kMaxJobFile = 4u << 20;

int64_t now() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// 0: not the number of a job.
uint64_t number_of(const std::string& id) {
  uint64_t number = 0;
  const char* end = id.data() + id.size();
  const auto [stop, error] = std::from_chars(id.data(), end, number);
  return error == std::errc() && stop == end && id.size() <= 9 && id[0] != '0' ? number : 0;
}

// Names of files may be any bytes.
std::string document_of(const pb::Job& job) {
  const auto replace = nlohmann::ordered_json::error_handler_t::replace;
  return to_json(job).dump(-1, ' ', false, replace) + "\n";
}

void set_error(const Error& error, pb::Job& job) {
  job.set_state(pb::Job::FAILED);
  pb::JobError& told = *job.mutable_error();
  told.set_code(name_of(error.code));
  told.set_what(error.what);
  told.set_where(error.where);
  told.set_fix(error.fix);
}

void list_files(const fs::path& folder, pb::Job& job) {
  std::vector<std::pair<std::string, uint64_t>> found;
  std::error_code ec;
  for (fs::directory_iterator at(folder, ec), end; !ec && at != end; at.increment(ec)) {
    const std::string name = at->path().filename().string();
    std::error_code file;
    if (name == kJobFile || name == kPart || name == kUploadFile || name.front() == '.' ||
        !at->is_regular_file(file)) {
      continue;
    }
    found.emplace_back(name, at->file_size(file));
  }
  std::ranges::sort(found);
  job.clear_files();
  for (const auto& [name, bytes] : found) {
    auto& file = *job.add_files();
    file.set_name(name);
    file.set_bytes(bytes);
  }
}

// A finding is an answer, not a failure.
bool went_well(const pb::Job& job, const WorkerEnd& end) {
  if (end.why != WorkerEnd::Why::kItself || end.signal != 0) return false;
  const auto kind = job.request().kind();
  const bool finds = kind == pb::JobRequest::DIAGNOSE || kind == pb::JobRequest::CHECK;
  return end.code == 0 || (finds && end.code == static_cast<int>(Code::kFinding));
}

Result<pb::Job> read_job(const fs::path& file) {
  RH_TRY(const std::string text, read_file(file, kMaxJobFile));
  const auto json = nlohmann::ordered_json::parse(text, nullptr, false);
  if (json.is_discarded()) return bad_input("not a JSON document", file.string(), "remove it");
  pb::Job job;
  if (auto read = from_json(json, job, file.string()); !read) {
    return tl::unexpected(std::move(read).error());
  }
  return job;
}

}  // namespace

bool has_ended(const pb::Job& job) {
  return job.state() != pb::Job::QUEUED && job.state() != pb::Job::RUNNING;
}

Jobs::Jobs(fs::path folder, const JobLimits& limits, Finish finish)
    : folder_(std::move(folder)), limits_(limits), finish_(std::move(finish)) {}

Result<std::unique_ptr<Jobs>> Jobs::open(const fs::path& folder, const JobLimits& limits,
                                         Finish finish) {
  std::unique_ptr<Jobs> jobs(new Jobs(folder, limits, std::move(finish)));
  if (auto loaded = jobs->load(); !loaded) return tl::unexpected(std::move(loaded).error());
  for (unsigned i = 0; i < std::max(1u, limits.at_once); ++i) {
    jobs->threads_.emplace_back([self = jobs.get()] { self->work(); });
  }
  return jobs;
}

Jobs::~Jobs() { stop(); }

Result<void> Jobs::load() {
  std::error_code ec;
  fs::create_directories(folder_, ec);
  fs::directory_iterator at(folder_, ec);
  std::vector<fs::path> rubbish;
  for (; !ec && at != fs::directory_iterator(); at.increment(ec)) {
    const std::string name = at->path().filename().string();
    if (name.starts_with(kRemoved) && number_of(name.substr(kRemoved.size())) > 0) {
      rubbish.push_back(at->path());
    }
    const uint64_t id = number_of(name);
    if (id == 0) continue;
    next_ = std::max(next_, id + 1);
    auto job = read_job(at->path() / kJobFile);
    // Of a submission that was cut: nobody has seen it.
    if (!job || job->id() != std::to_string(id)) continue;
    if (job->state() == pb::Job::RUNNING) {
      set_error({Code::kInterrupted, "the server ended while it ran", "", "submit it again"}, *job);
      job->clear_progress();
      job->set_ended(now());
      std::error_code part;
      fs::remove(at->path() / kPart, part);
      list_files(at->path(), *job);
      save(*job);
    }
    Entry& entry = jobs_[id];
    entry.job = std::move(*job);
    touch(entry);
  }
  if (ec) {
    return fail(Code::kIo, "cannot use the folder of jobs: " + ec.message(), folder_.string(),
                "name a folder that can be written");
  }
  for (const fs::path& path : rubbish) fs::remove_all(path, ec);
  for (const auto& [id, entry] : jobs_) {
    if (entry.job.state() == pb::Job::QUEUED) queue_.push_back(id);
  }
  return {};
}

void Jobs::touch(Entry& entry) {
  entry.revision = ++revision_;
  changed_.notify_all();
}

void Jobs::save(const pb::Job& job) const {
  (void)write_file(folder_of(job.id()) / kJobFile, document_of(job), Overwrite::kReplace);
}

Result<Jobs::Entry*> Jobs::find(const std::string& id) const {
  const auto at = jobs_.find(number_of(id));
  if (at != jobs_.end()) return &at->second;
  return fail(Code::kMissingInput, "there is no such job", "job " + id.substr(0, 20),
              "GET /api/v1/jobs lists them");
}

fs::path Jobs::folder_of(const std::string& id) const {
  return folder_ / std::to_string(number_of(id));
}

Result<pb::Job> Jobs::submit(const pb::JobRequest& request, const Prepare& prepare) {
  pb::Job job;
  uint64_t id = 0;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || queue_.size() >= limits_.queued || jobs_.size() >= limits_.kept) {
      return fail(Code::kLimit, stopping_ ? "the server is ending" : "there are too many jobs",
                  "jobs", "wait until some have ended, or delete some");
    }
    id = next_++;
  }
  job.set_schema("rehearse.job/1");
  job.set_id(std::to_string(id));
  job.set_state(pb::Job::QUEUED);
  *job.mutable_request() = request;
  job.set_created(now());
  const fs::path folder = folder_of(job.id());
  std::error_code ec;
  fs::create_directory(folder, ec);
  Result<void> ready = {};
  if (ec) ready = fail(Code::kIo, "cannot make a folder: " + ec.message(), folder.string());
  if (ready) ready = prepare(folder);
  if (ready) {
    ready = write_file(folder / kJobFile, document_of(job), Overwrite::kReplace);
  }
  if (!ready) {
    fs::remove_all(folder, ec);
    return tl::unexpected(std::move(ready).error());
  }
  const std::lock_guard lock(mutex_);
  Entry& entry = jobs_[id];
  entry.job = job;
  queue_.push_back(id);
  touch(entry);
  return job;
}

Result<pb::Job> Jobs::get(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  RH_TRY(const Entry* entry, find(id));
  return entry->job;
}

std::vector<pb::Job> Jobs::list(uint64_t before, size_t most) const {
  const std::lock_guard lock(mutex_);
  std::vector<pb::Job> out;
  auto at = before == 0 ? jobs_.end() : jobs_.lower_bound(before);
  while (at != jobs_.begin() && out.size() < most) out.push_back((--at)->second.job);
  return out;
}

JobCounts Jobs::counts() const {
  const std::lock_guard lock(mutex_);
  JobCounts counts;
  for (const auto& [id, entry] : jobs_) {
    switch (entry.job.state()) {
      case pb::Job::QUEUED:
        ++counts.queued;
        break;
      case pb::Job::RUNNING:
        ++counts.running;
        break;
      case pb::Job::DONE:
        ++counts.done;
        break;
      case pb::Job::CANCELLED:
        ++counts.cancelled;
        break;
      default:
        ++counts.failed;
    }
  }
  return counts;
}

Result<pb::Job> Jobs::cancel(const std::string& id) {
  const std::lock_guard lock(mutex_);
  RH_TRY(Entry * entry, find(id));
  if (has_ended(entry->job)) {
    return fail(Code::kUsage, "the job has ended", "job " + id, "there is nothing to cancel");
  }
  entry->cancel = true;
  if (entry->job.state() == pb::Job::QUEUED) {
    std::erase(queue_, number_of(id));
    entry->job.set_state(pb::Job::CANCELLED);
    entry->job.set_ended(now());
    save(entry->job);
    touch(*entry);
  }
  return entry->job;
}

Result<void> Jobs::remove(const std::string& id) {
  fs::path trash;
  {
    const std::lock_guard lock(mutex_);
    RH_TRY(const Entry* entry, find(id));
    if (!has_ended(entry->job)) {
      return fail(Code::kUsage, "the job has not ended", "job " + id, "cancel it first");
    }
    // Gone at once, however long removing its files takes.
    trash = folder_ / (std::string(kRemoved) + entry->job.id());
    std::error_code ec;
    fs::rename(folder_of(id), trash, ec);
    jobs_.erase(number_of(id));
    ++revision_;
    changed_.notify_all();
  }
  std::error_code ec;
  fs::remove_all(trash, ec);
  return {};
}

uint64_t Jobs::wait(uint64_t seen, std::chrono::milliseconds most) const {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, most, [&] { return stopping_ || revision_ > seen; });
  return revision_;
}

std::vector<pb::Job> Jobs::changed_since(uint64_t seen) const {
  const std::lock_guard lock(mutex_);
  std::vector<pb::Job> out;
  for (const auto& [id, entry] : jobs_) {
    if (entry.revision > seen) out.push_back(entry.job);
  }
  return out;
}

void Jobs::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  threads_.clear();  // joins
}

bool Jobs::stopping() const {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

bool Jobs::should_stop(uint64_t id) const {
  const std::lock_guard lock(mutex_);
  return stopping_ || jobs_.at(id).cancel;
}

void Jobs::work() {
  while (true) {
    uint64_t id = 0;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
      if (stopping_) return;
      id = queue_.front();
      queue_.pop_front();
      Entry& entry = jobs_.at(id);
      entry.job.set_state(pb::Job::RUNNING);
      entry.job.set_started(now());
      save(entry.job);
      touch(entry);
    }
    try {
      run(id);
    } catch (const std::exception& e) {
      settle(id, fail(Code::kInternal, fmt::format("a bug in rehearse: {}", e.what()), "",
                      "please report it with the job's files"));
    }
  }
}

void Jobs::run(uint64_t id) {
  WorkerOrder order;
  order.folder = folder_ / std::to_string(id);
  order.output = order.folder / kPart;
  order.time_limit = limits_.time;
  order.most_output = limits_.file_bytes;
  {
    const std::lock_guard lock(mutex_);
    order.words = words_of(jobs_.at(id).job.request());
  }
  const WorkerWatch watch = {.progress =
                                 [&](const WorkerProgress& progress) {
                                   const std::lock_guard lock(mutex_);
                                   Entry& entry = jobs_.at(id);
                                   auto& told = *entry.job.mutable_progress();
                                   told.set_what(progress.what);
                                   told.set_done(progress.done);
                                   told.set_total(progress.total);
                                   touch(entry);
                                 },
                             .stopped = [&] { return should_stop(id); }};
  settle(id, run_worker(order, watch));
}

void Jobs::settle(uint64_t id, const Result<WorkerEnd>& end) {
  const fs::path folder = folder_ / std::to_string(id);
  pb::Job job;
  bool stopped = false, cancelled = false;
  {
    const std::lock_guard lock(mutex_);
    job = jobs_.at(id).job;
    cancelled = jobs_.at(id).cancel;
    stopped = stopping_ && !cancelled;
  }
  std::error_code ec;
  const bool well = end && went_well(job, *end);
  if (well) {
    job.set_state(pb::Job::DONE);
    fs::rename(folder / kPart, folder / kResultFile, ec);
    Result<void> finished = {};
    if (ec) finished = fail(Code::kIo, "cannot keep the result: " + ec.message(), folder.string());
    if (finished) finished = finish_(job, folder);
    if (!finished) set_error(finished.error(), job);
  } else if (cancelled) {
    job.set_state(pb::Job::CANCELLED);
  } else if (stopped) {
    job.set_state(pb::Job::QUEUED);
    job.clear_started();
  } else if (!end) {
    set_error(end.error(), job);
  } else {
    const auto output = read_file(folder / kPart, kMaxJobFile);
    set_error(error_of(*end, output ? *output : ""), job);
  }
  fs::remove(folder / kPart, ec);
  job.clear_progress();
  if (has_ended(job)) {
    job.set_ended(now());
    list_files(folder, job);
  }
  save(job);
  const std::lock_guard lock(mutex_);
  Entry& entry = jobs_.at(id);
  entry.job = std::move(job);
  touch(entry);
}

}  // namespace rehearse::serve
