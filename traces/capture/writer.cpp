// SPDX-License-Identifier: Apache-2.0
#include "traces/capture/writer.hpp"

#include <cxxabi.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "traces/capture/job.hpp"
#include "traces/capture/messages.hpp"
#include "traces/capture/recorder.hpp"

namespace rehearse::capture {
namespace {

namespace cf = capture_file;
constexpr int64_t kClockEvery = 10'000'000'000;
constexpr int kMostFiles = 8;

void host_name(char (&out)[256]) {
  if (::gethostname(out, sizeof out - 1) != 0) std::strcpy(out, "host");
  out[sizeof out - 1] = 0;
  for (char* c = out; *c != 0; ++c) {
    if (*c == '/' || *c == ' ') *c = '-';
  }
}

// As mkdir -p; errors show when the file is opened.
void make_folder(const char* folder) {
  char path[kLongestPath];
  std::strcpy(path, folder);
  for (char* c = path + 1; *c != 0; ++c) {
    if (*c != '/') continue;
    *c = 0;
    ::mkdir(path, 0777);
    *c = '/';
  }
  ::mkdir(path, 0777);
}

int64_t monotonic() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

}  // namespace

bool Writer::open(const Settings& settings) {
  char host[256] = "", rank[32] = "";
  host_name(host);
  place_ = place_in_job();
  if (place_.rank >= 0) {
    std::snprintf(rank, sizeof rank, "rank%lld.", static_cast<long long>(place_.rank));
  }
  make_folder(settings.folder);
  // Another process may have our number in another container, or be another library in this process.
  for (int copy = 1; copy <= kMostFiles; ++copy) {
    char again[16] = "";
    if (copy > 1) std::snprintf(again, sizeof again, ".%d", copy);
    std::snprintf(path_, sizeof path_, "%s/%s%s.%d%s.capture", settings.folder, rank, host,
                  static_cast<int>(::getpid()), again);
    if (const int error = output_.open(path_); error != 0) {
      complain("cannot write %.300s: %s; nothing is recorded", path_, std::strerror(error));
      return false;
    }
    if (output_.lock() != EWOULDBLOCK) return true;
  }
  complain("%.300s is in use; nothing is recorded", path_);
  return false;
}

bool Writer::start(Recorder& recorder) {
  begun_ = false;
  own_ = cf::Encoder(memory_);
  own_before_ = records_ = 0;
  names_ = 0;
  messages_ = 0;
  next_clock_ = 0;
  // The program's signals are not ours to take; and a limit on file sizes is an error, not a signal.
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread{};
  const int error = ::pthread_create(&thread, nullptr, &Writer::run, &recorder);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) {
    complain("cannot start a thread: %s; nothing is recorded", std::strerror(error));
    output_.close();
    return false;
  }
  ::pthread_detach(thread);
  return true;
}

void Writer::forked() { output_.close(); }

void* Writer::run(void* recorder) {
  ::prctl(PR_SET_NAME, "rehearse-capt");
  auto& r = *static_cast<Recorder*>(recorder);
  r.writer_.loop(r);
  return nullptr;
}

void Writer::loop(Recorder& r) {
  for (;;) {
    const uint32_t wanted = r.wanted_.exchange(0, std::memory_order_acq_rel);
    const bool end = (wanted & static_cast<uint32_t>(Recorder::Wanted::kEnd)) != 0;
    flush(r, wanted != 0);
    if (end) {
      put(cf::Clock{r.since_origin(now()), monotonic(), 0});
      if (begun_ && put_out()) {
        put(cf::End{records_});
        static_cast<void>(put_out());
      }
      output_.close();
    }
    if (wanted != 0) ::sem_post(&r.answered_);
    if (end) return;
    wait(r);
  }
}

// Until the next flush is due, somebody asks, or a block is full.
void Writer::wait(Recorder& r) {
  const int64_t at = now();
  int64_t pause = r.settings_.flush_ns;
  if (const int64_t change = r.window_.next_change(at); change != INT64_MAX) {
    pause = std::clamp<int64_t>(change - at, 1'000'000, pause);
  }
  const int64_t until = monotonic() + pause;
  const timespec deadline{until / 1'000'000'000, until % 1'000'000'000};
  while (::sem_clockwait(&r.work_, CLOCK_MONOTONIC, &deadline) != 0 && errno == EINTR) {
  }
  // Several blocks may have been announced; one flush takes them all.
  while (::sem_trywait(&r.work_) == 0) {
  }
}

void Writer::flush(Recorder& r, bool last) {
  if (const auto before = r.before_flush_.load(std::memory_order_acquire); before != nullptr) {
    before(last);
  }
  collect(r);
  if (!begun_ && !begin(r)) return;
  // Blocks are taken before names are looked at, and written behind them.
  if (write_names(r)) write_blocks(r);
  write_facts(r);
}

bool Writer::begin(Recorder& r) {
  char host[256] = "";
  host_name(host);
  own_ = cf::Encoder(memory_);
  own_before_ = 0;
  put(cf::Session{.origin = r.origin_,
                  .process = static_cast<uint32_t>(r.process_),
                  .host = host,
                  .rank = place_.rank,
                  .world_size = place_.world_size,
                  .local_rank = place_.local_rank,
                  .program = program_invocation_short_name,
                  .library = REHEARSE_VERSION,
                  .cupti_version = r.cupti_version_.load(std::memory_order_relaxed),
                  .nccl_version = r.nccl_version_.load(std::memory_order_relaxed)});
  begun_ = put_out();
  return begun_;
}

// Takes what threads have not handed over themselves.
void Writer::collect(Recorder& r) {
  const size_t slots = r.slots_.load(std::memory_order_acquire);
  for (size_t i = 0; i < slots; ++i) {
    Thread& t = r.threads_[i];
    if (!t.used.load(std::memory_order_acquire) || !t.lock.lock()) continue;
    if (!t.encoder.bytes().empty()) r.hand_over(t);
    t.lock.unlock();
  }
}

bool Writer::write_names(Recorder& r) {
  const uint32_t count = r.names_.count();
  for (uint32_t id = names_ + 1; id <= count; ++id) {
    const std::string_view text = r.names_.text(id);
    char* plain = nullptr;
    if (text.starts_with("_Z") && text.size() < 4096) {
      char mangled[4096];
      std::memcpy(mangled, text.data(), text.size());
      mangled[text.size()] = 0;
      int status = 0;
      plain = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
    }
    put(cf::String{id, plain != nullptr ? std::string_view(plain) : text});
    std::free(plain);
  }
  if (!put_out()) return false;
  names_ = count;
  return true;
}

void Writer::write_blocks(Recorder& r) {
  for (Block* block = r.blocks_.queued(); block != nullptr;) {
    Block* const next = block->next;
    if (!append(block->content(), block->records)) r.lose(Lost::kOnDisk, block->records);
    r.blocks_.give_back(block);
    block = next;
  }
}

void Writer::write_facts(Recorder& r) {
  const int64_t at = now();
  if (at >= next_clock_) {
    next_clock_ = at + kClockEvery;
    put(cf::Clock{r.since_origin(at), monotonic(), 0});
  }
  for (; messages_ < messages(); ++messages_) put(cf::Message{message(messages_)});
  for (uint32_t kind = 1; kind < kLostKinds; ++kind) {
    const uint64_t lost = r.lost_[kind].exchange(0, std::memory_order_relaxed);
    if (lost == 0) continue;
    put(cf::Drops{kind, lost});
    if (!put_out()) r.lose(static_cast<Lost>(kind), lost);
  }
  static_cast<void>(put_out());
}

template <typename Record>
void Writer::put(const Record& record) {
  if (own_.put(record)) return;
  static_cast<void>(put_out());
  own_.put(record);
}

bool Writer::put_out() {
  const uint64_t records = own_.records() - own_before_;
  if (records == 0) return true;
  const bool done = append(own_.bytes(), records);
  own_before_ = own_.records();
  own_.clear();
  return done;
}

bool Writer::append(std::span<const uint8_t> bytes, uint64_t records) {
  int error = output_.append(bytes);
  if (error == EBADF) {
    // The program closed descriptors that it does not know.
    error = output_.open(path_);
    if (error == 0) error = output_.append(bytes);
  }
  if (error == 0) {
    records_ += records;
    return true;
  }
  complain("cannot write %.300s: %s; records are lost", path_, std::strerror(error));
  return false;
}

}  // namespace rehearse::capture
