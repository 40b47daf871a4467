// SPDX-License-Identifier: Apache-2.0
#include "cli/serve/queries.hpp"

#include "cli/serve/worker.hpp"

namespace rehearse::serve {
namespace {

constexpr size_t kMaxKept = 32u << 20;      // bytes of answers
constexpr uint64_t kMaxAnswer = 64u << 20;  // bytes of one
constexpr auto kMaxTime = std::chrono::seconds(60);

}  // namespace

// The right to run a worker.
class Queries::Turn {
 public:
  explicit Turn(Queries& queries) : queries_(queries) {
    std::unique_lock lock(queries_.mutex_);
    queries_.turn_.wait(lock, [&] { return queries_.free_ > 0 || queries_.stopping_; });
    stopping_ = queries_.stopping_;
    if (!stopping_) --queries_.free_;
  }
  ~Turn() {
    if (stopping_) return;
    const std::lock_guard lock(queries_.mutex_);
    ++queries_.free_;
    queries_.turn_.notify_one();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  [[nodiscard]] bool stopping() const { return stopping_; }

 private:
  Queries& queries_;
  bool stopping_ = false;
};

const std::string* Queries::known(const std::string& key) const {
  const auto at = answers_.find(key);
  return at == answers_.end() ? nullptr : &at->second;
}

void Queries::keep(const std::string& key, const std::string& answer) {
  const std::lock_guard lock(mutex_);
  if (key.empty() || answer.size() > kMaxKept / 4 || known(key) != nullptr) return;
  while (bytes_ + answer.size() > kMaxKept) {
    bytes_ -= answers_[order_.front()].size();
    answers_.erase(order_.front());
    order_.pop_front();
  }
  answers_[key] = answer;
  order_.push_back(key);
  bytes_ += answer.size();
}

Result<std::string> Queries::ask(const std::vector<std::string>& words, const std::string& key) {
  return ask(words, key, folder_);
}

Result<std::string> Queries::ask(const std::vector<std::string>& words, const std::string& key,
                                 const std::filesystem::path& folder) {
  if (auto answer = kept(key)) return std::move(*answer);
  const Turn turn(*this);
  if (auto answer = kept(key)) return std::move(*answer);  // of whoever asked the same before us
  if (turn.stopping()) return fail(Code::kInterrupted, "the server is ending");
  const WorkerOrder order = {.words = words,
                             .folder = folder,
                             .output = {},
                             .time_limit = kMaxTime,
                             .most_output = kMaxAnswer};
  RH_TRY(WorkerEnd end, run_worker(order, {.progress = {}, .stopped = [&] {
                                             const std::lock_guard lock(mutex_);
                                             return stopping_;
                                           }}));
  const bool well = end.why == WorkerEnd::Why::kItself && end.signal == 0 && end.code <= 1;
  if (!well) return tl::unexpected(error_of(end, end.output));
  keep(key, end.output);
  return std::move(end.output);
}

std::optional<std::string> Queries::kept(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const std::string* answer = known(key);
  return answer == nullptr ? std::nullopt : std::make_optional(*answer);
}

void Queries::stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  turn_.notify_all();
}

}  // namespace rehearse::serve
