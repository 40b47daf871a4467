// SPDX-License-Identifier: Apache-2.0
// The file that encoded records are appended to. Opened for appending, so that a child of fork() and a
// second run may share it; every append is whole records, and what a full disk left half is taken back.
// Errors are errno values, 0 for none: nothing throws, prints or allocates. Appends come from one thread
// at a time.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>

namespace rehearse::capture_file {

class Output {
 public:
  Output() = default;
  ~Output() { close(); }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // Opens or creates `path`, readable by its owner only.
  int open(const char* path);
  // EWOULDBLOCK when another open of the file holds it; it is held until close().
  int lock();
  // Writes all of `bytes`, or none of them where the file can be shortened again. EBADF when the
  // descriptor is no longer ours: programs close what they do not know, and open something else.
  int append(std::span<const uint8_t> bytes);
  // To the disk itself, not only to the kernel, which is enough to survive the process.
  int sync();
  void close();
  [[nodiscard]] bool is_open() const { return fd_ >= 0; }

 private:
  [[nodiscard]] bool is_ours() const;

  int fd_ = -1;
  dev_t device_ = 0;
  ino_t file_ = 0;
};

}  // namespace rehearse::capture_file
