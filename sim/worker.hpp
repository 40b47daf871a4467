// SPDX-License-Identifier: Apache-2.0
// Runs functions in forked children and brings their bytes back. SimGrid keeps one engine per process
// and global settings; a child per run keeps them apart, and a run that dies takes nothing with it.
#pragma once

#include <google/protobuf/message_lite.h>
#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "base/error.hpp"
#include "base/reporter.hpp"

namespace rehearse::sim {

using Work = std::function<Result<std::string>(Reporter&)>;

// One of many like pieces of work, by number.
using Piece = std::function<Result<std::string>(size_t piece)>;

// One child at work. Dropping it kills it; it does not outlive the thread that made it either.
class Child {
 public:
  [[nodiscard]] static Result<Child> start(const Work& work);
  // A foreman: a child that does the pieces it is ordered to, each in a child of its own, and answers one after the
  // other. What pieces share is forked from it and not from a process that is busy with answers of others.
  [[nodiscard]] static Result<Child> start_foreman(const Piece& piece);
  // The next piece, of one that has answered all before; false: it is dead.
  [[nodiscard]] bool order(size_t piece);
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
  // An answer has come and was not taken.
  [[nodiscard]] bool answered() const;
  // What a foreman brought, once answered().
  [[nodiscard]] Result<std::string> take_answer();
  // What it brought, once read() has said false. A child that died by a signal is an error that says
  // which.
  [[nodiscard]] Result<std::string> answer();

 private:
  struct Inbox;
  Child(int descriptor, pid_t pid);
  // `body` runs in the child, which writes to the descriptor given, and does not return.
  template <typename Body>
  [[nodiscard]] static Result<Child> start_with(const Body& body);
  void end() noexcept;

  int descriptor_ = -1;
  int orders_ = -1;  // to a foreman
  pid_t pid_ = -1;
  std::unique_ptr<Inbox> inbox_;
};

// One child from start to end; Ctrl-C ends it.
[[nodiscard]] Result<std::string> in_child(const Work& work, Reporter& reporter);

// A message as the bytes that a child brings. kLimit above the 2 GiB that protobuf writes: it would write none, which is an empty
// message.
[[nodiscard]] Result<std::string> encoded(const google::protobuf::MessageLite& message);

// As many as there are cores.
[[nodiscard]] unsigned cores();

}  // namespace rehearse::sim
