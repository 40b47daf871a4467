// SPDX-License-Identifier: Apache-2.0
// The thread that writes: the session and its strings first, then full blocks, then what is known about the
// recording itself. Only this thread touches the file. A disk that refuses costs the records at hand and
// one message; the next flush tries again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "traces/capture/job.hpp"
#include "traces/capture/settings.hpp"
#include "traces/capture_file/encoder.hpp"
#include "traces/capture_file/output.hpp"

namespace rehearse::capture {

class Recorder;

class Writer {
 public:
  // Opens the file in the folder of the settings; false after a message. Reads the environment.
  [[nodiscard]] bool open(const Settings& settings);
  // Starts the thread; false after a message.
  [[nodiscard]] bool start(Recorder& recorder);
  // In the child of a fork: the file is the parent's.
  void forked();

 private:
  static void* run(void* recorder);
  void loop(Recorder& r);
  void wait(Recorder& r);
  void flush(Recorder& r, bool last);
  [[nodiscard]] bool begin(Recorder& r);
  void collect(Recorder& r);
  [[nodiscard]] bool write_names(Recorder& r);
  void write_blocks(Recorder& r);
  void write_facts(Recorder& r);
  template <typename Record>
  void put(const Record& record);
  [[nodiscard]] bool put_out();
  [[nodiscard]] bool append(std::span<const uint8_t> bytes, uint64_t records);

  capture_file::Output output_;
  char path_[kLongestPath + 512] = "";
  std::array<uint8_t, 64 << 10> memory_{};
  capture_file::Encoder own_{memory_};
  uint64_t own_before_ = 0;  // records of own_ that are written
  uint64_t records_ = 0;     // written in this session
  uint32_t names_ = 0;       // written
  size_t messages_ = 0;      // written
  Place place_;
  bool begun_ = false;
  int64_t next_clock_ = 0;
};

}  // namespace rehearse::capture
