// SPDX-License-Identifier: Apache-2.0
// One connection of a client with a clock on it: a request's head must come within a time and a
// size, its body within a time that its length allows for, and every answer must be taken off our
// hands; a client that dawdles loses the connection, not the server a thread. For httplib, whose own
// timeouts begin anew with every byte. Used by one thread.
#pragma once

#include <httplib.h>

#include <array>
#include <chrono>
#include <functional>
#include <string>

namespace rehearse::serve {

class Connection final : public httplib::Stream {
 public:
  // Takes the socket over. `ending` says that the server is about to end.
  Connection(socket_t socket, std::function<bool()> ending);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Until the first byte of a request is there; false: none came.
  [[nodiscard]] bool await(std::chrono::milliseconds most);
  void begin_head();
  void begin_body(uint64_t bytes);
  // True when exactly the body's bytes were read.
  [[nodiscard]] bool body_is_read() const { return taken_ == body_; }

  [[nodiscard]] bool is_readable() const override;
  [[nodiscard]] bool is_writable() const override;
  ssize_t read(char* to, size_t size) override;
  ssize_t write(const char* from, size_t size) override;
  using httplib::Stream::write;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  [[nodiscard]] socket_t socket() const override { return socket_; }

 private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] bool wait_for(short events, Clock::time_point until) const;
  [[nodiscard]] ssize_t fill();

  socket_t socket_;
  std::function<bool()> ending_;
  std::array<char, 16384> buffer_{};
  size_t begin_ = 0, end_ = 0;  // bytes in the buffer that were not asked for yet
  Clock::time_point deadline_;
  bool in_head_ = true;
  uint64_t taken_ = 0, body_ = 0;
};

}  // namespace rehearse::serve
