// SPDX-License-Identifier: Apache-2.0
#include "traces/import/decompress.hpp"

#include <fmt/format.h>
#include <isa-l/igzip_lib.h>
#include <zstd.h>

#include <array>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <vector>

namespace rehearse::traces {
namespace {

constexpr size_t kInputBlock = 256 << 10;
constexpr size_t kOutputBlock = 1 << 20;
constexpr size_t kBlocksAhead = 8;
constexpr uint64_t kMostPadding = 1 << 20;  // zero bytes after gzip members, as tapes have them

Result<size_t> cut_error(DecodeState& state, const std::string& name, const char* format,
                         uint64_t out) {
  state.cut = true;
  return fail(Code::kBadInput,
              fmt::format("the {} stream ends early: {} uncompressed bytes are whole", format, out),
              name, "copy the file again, or use --allow-truncated to take what is whole");
}

// ISA-L inflates about twice as fast as zlib.
class GzipReader final : public ByteReader {
 public:
  GzipReader(ByteReader& raw, std::string name, DecodeState& state)
      : raw_(raw), name_(std::move(name)), cut_(state), input_(kInputBlock) {
    isal_inflate_init(&inflate_);
    inflate_.crc_flag = ISAL_GZIP;
  }

  Result<size_t> read(std::span<char> out) override {
    inflate_.next_out = reinterpret_cast<uint8_t*>(out.data());
    inflate_.avail_out = static_cast<uint32_t>(out.size());
    while (inflate_.avail_out == out.size() && !done_) {
      if (inflate_.avail_in == 0 && !ended_) {
        RH_TRY(ended_, refill());
      }
      if (auto step = advance(); !step) return tl::unexpected(step.error());
    }
    const size_t made = out.size() - inflate_.avail_out;
    total_ += made;
    return made;
  }

 private:
  Result<bool> refill() {
    RH_TRY(const size_t got, raw_.read(input_));
    inflate_.next_in = reinterpret_cast<uint8_t*>(input_.data());
    inflate_.avail_in = static_cast<uint32_t>(got);
    return got == 0;
  }

  Result<void> advance() {
    if (inflate_.block_state == ISAL_BLOCK_FINISH) return next_member();
    const uint32_t in_before = inflate_.avail_in, out_before = inflate_.avail_out;
    const int rc = isal_inflate(&inflate_);
    if (rc < 0) {
      return fail(Code::kBadInput,
                  fmt::format("the gzip stream is damaged after {} uncompressed bytes", total_),
                  name_, "copy the file again; gzip -t shows whether the copy is whole");
    }
    const bool stuck = in_before == inflate_.avail_in && out_before == inflate_.avail_out;
    if (stuck && ended_ && inflate_.block_state != ISAL_BLOCK_FINISH) {
      return tl::unexpected(cut_error(cut_, name_, "gzip", total_).error());
    }
    return {};
  }

  // Another member may follow; zero bytes are padding.
  Result<void> next_member() {
    while (inflate_.avail_in > 0 && *inflate_.next_in == 0) {
      ++inflate_.next_in;
      --inflate_.avail_in;
      ++padding_;
    }
    if (padding_ > kMostPadding) {
      return fail(Code::kBadInput,
                  fmt::format("more than {} zero bytes follow the gzip stream of {} bytes",
                              kMostPadding, total_),
                  name_, "cut the file after its gzip part");
    }
    if (inflate_.avail_in == 0) {
      done_ = ended_;
      return {};
    }
    if (*inflate_.next_in != 0x1f) {
      return fail(Code::kBadInput,
                  fmt::format("something else follows the gzip stream of {} bytes", total_), name_,
                  "cut the file after its gzip part");
    }
    uint8_t* const next = inflate_.next_in;
    const uint32_t left = inflate_.avail_in;
    uint8_t* const out = inflate_.next_out;
    const uint32_t room = inflate_.avail_out;
    isal_inflate_reset(&inflate_);
    inflate_.crc_flag = ISAL_GZIP;
    inflate_.next_in = next;
    inflate_.avail_in = left;
    inflate_.next_out = out;
    inflate_.avail_out = room;
    return {};
  }

  ByteReader& raw_;
  std::string name_;
  DecodeState& cut_;
  std::vector<char> input_;
  inflate_state inflate_{};
  uint64_t total_ = 0;
  uint64_t padding_ = 0;
  bool ended_ = false, done_ = false;
};

class ZstdReader final : public ByteReader {
 public:
  ZstdReader(ByteReader& raw, std::string name, DecodeState& state)
      : raw_(raw),
        name_(std::move(name)),
        cut_(state),
        input_(kInputBlock),
        stream_(ZSTD_createDStream()) {
    // Frames may ask for any window; 128 MiB is what zstd --long=27 writes.
    ZSTD_DCtx_setParameter(stream_.get(), ZSTD_d_windowLogMax, 27);
  }

  Result<size_t> read(std::span<char> out) override {
    ZSTD_outBuffer target{out.data(), out.size(), 0};
    while (target.pos == 0) {
      if (in_.pos == in_.size) {
        RH_TRY(const size_t got, raw_.read(input_));
        in_ = {input_.data(), got, 0};
        if (got == 0) {
          if (!between_frames_) return cut_error(cut_, name_, "zstd", total_);
          return size_t{0};
        }
      }
      const size_t rc = ZSTD_decompressStream(stream_.get(), &target, &in_);
      if (ZSTD_isError(rc)) {
        return fail(Code::kBadInput,
                    fmt::format("the zstd stream is damaged after {} uncompressed bytes: {}",
                                total_, ZSTD_getErrorName(rc)),
                    name_, "copy the file again; zstd -t shows whether the copy is whole");
      }
      between_frames_ = rc == 0;
    }
    total_ += target.pos;
    return target.pos;
  }

 private:
  struct Free {
    void operator()(ZSTD_DStream* s) const { ZSTD_freeDStream(s); }
  };
  ByteReader& raw_;
  std::string name_;
  DecodeState& cut_;
  std::vector<char> input_;
  std::unique_ptr<ZSTD_DStream, Free> stream_;
  ZSTD_inBuffer in_{nullptr, 0, 0};
  uint64_t total_ = 0;
  bool between_frames_ = false;
};

class ReadAhead final : public ByteReader {
 public:
  explicit ReadAhead(std::unique_ptr<ByteReader> inner) : inner_(std::move(inner)) {
    thread_ = std::thread([this] { produce(); });
  }
  ~ReadAhead() override {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  Result<size_t> read(std::span<char> out) override {
    if (used_ == current_.size()) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !ready_.empty() || ended_; });
      if (ready_.empty()) {
        if (error_) return tl::unexpected(*error_);
        return size_t{0};
      }
      std::swap(current_, ready_.front());
      spare_.push_back(std::move(ready_.front()));
      ready_.pop_front();
      used_ = 0;
      lock.unlock();
      changed_.notify_all();
    }
    const size_t n = std::min(out.size(), current_.size() - used_);
    std::memcpy(out.data(), current_.data() + used_, n);
    used_ += n;
    return n;
  }

 private:
  Result<size_t> fill(std::vector<char>& block) {
    try {
      block.resize(kOutputBlock);
      return inner_->read(block);
    } catch (const std::bad_alloc&) {
      return fail(Code::kLimit, "not enough memory to decompress", {}, "use a larger machine");
    }
  }

  void produce() {
    for (;;) {
      std::vector<char> block;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stop_ || ready_.size() < kBlocksAhead; });
        if (stop_) return;
        if (!spare_.empty()) {
          block = std::move(spare_.back());
          spare_.pop_back();
        }
      }
      auto got = fill(block);
      const std::lock_guard lock(mutex_);
      if (!got || *got == 0) {
        if (!got) error_ = std::move(got).error();
        ended_ = true;
        changed_.notify_all();
        return;
      }
      block.resize(*got);
      ready_.push_back(std::move(block));
      changed_.notify_all();
    }
  }

  std::unique_ptr<ByteReader> inner_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::vector<char>> ready_;   // guarded by mutex_
  std::vector<std::vector<char>> spare_;  // guarded by mutex_
  std::optional<Error> error_;            // guarded by mutex_
  bool ended_ = false, stop_ = false;     // guarded by mutex_
  std::vector<char> current_;
  size_t used_ = 0;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<ByteReader> gzip_reader(ByteReader& raw, std::string name, DecodeState& state) {
  return std::make_unique<GzipReader>(raw, std::move(name), state);
}
std::unique_ptr<ByteReader> zstd_reader(ByteReader& raw, std::string name, DecodeState& state) {
  return std::make_unique<ZstdReader>(raw, std::move(name), state);
}
std::unique_ptr<ByteReader> read_ahead(std::unique_ptr<ByteReader> inner) {
  return std::make_unique<ReadAhead>(std::move(inner));
}

}  // namespace rehearse::traces
