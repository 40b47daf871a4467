// SPDX-License-Identifier: Apache-2.0
// Runs functions in forked children and brings their bytes back. SimGrid keeps one engine per process
// and global settings; a child per run keeps them apart, and a run that dies takes nothing with it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "base/error.hpp"
#include "base/reporter.hpp"

namespace rehearse::sim {

using Work = std::function<Result<std::string>(Reporter&)>;

// One child at work. Dropping it kills it.
class Child {
 public:
  [[nodiscard]] static Result<Child> start(const Work& work);
  // The same with a child that waits until `before` has answered or died, or until begin() is called: the core
  // that becomes free goes on at once, whatever this process is busy with.
  [[nodiscard]] static Result<Child> start_after(const Child& before, const Work& work);
  void begin();
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();

  // Readable when there is something for read().
  [[nodiscard]] int descriptor() const { return descriptor_; }
  // Takes what has come (blocks when nothing has); progress and notes reach `reporter`. False: the
  // child has ended, see answer().
  [[nodiscard]] bool read(Reporter& reporter);
  void kill() const;
  // What it brought, once read() has said false. A child that died by a signal is an error that says
  // which.
  [[nodiscard]] Result<std::string> answer();

 private:
  struct Inbox;
  Child(int descriptor, pid_t pid);
  void end() noexcept;

  int descriptor_ = -1;
  int orders_ = -1;  // to one that waits
  pid_t pid_ = -1;
  std::unique_ptr<Inbox> inbox_;
};

// One child from start to end; Ctrl-C ends it.
[[nodiscard]] Result<std::string> in_child(const Work& work, Reporter& reporter);

// As many as there are cores.
[[nodiscard]] unsigned cores();

}  // namespace rehearse::sim
