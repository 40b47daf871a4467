// SPDX-License-Identifier: Apache-2.0
#include "cli/serve/connection.hpp"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace rehearse::serve {
namespace {
using std::chrono::milliseconds;

constexpr auto kHeadTime = std::chrono::seconds(5);
constexpr uint64_t kMaxHead = 32u << 10;
constexpr auto kBodyTime = std::chrono::seconds(30);
constexpr uint64_t kLeastRate = 1u << 20;  // bytes of a body per second, beyond that time
constexpr auto kWriteTime = std::chrono::seconds(30);
constexpr auto kLook = milliseconds(200);  // between looks whether the server ends
constexpr auto kLinger = milliseconds(500);

void name_of(const sockaddr_storage& address, std::string& ip, int& port) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address, sizeof v4);
    ::inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
    port = ntohs(v4.sin_port);
  } else if (address.ss_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &address, sizeof v6);
    ::inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
    port = ntohs(v6.sin6_port);
  }
  ip = text.data();
}

}  // namespace

Connection::Connection(socket_t socket, std::function<bool()> ending)
    : socket_(socket), ending_(std::move(ending)), deadline_(Clock::now() + kHeadTime) {
  const int on = 1;
  ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Connection::~Connection() {
  // Bytes that nobody reads would make the system reset the connection, and the client would lose
  // the answer that says why.
  ::shutdown(socket_, SHUT_WR);
  const auto until = Clock::now() + kLinger;
  std::array<char, 4096> waste{};
  while (!ending_() && wait_for(POLLIN, until)) {
    if (::recv(socket_, waste.data(), waste.size(), MSG_DONTWAIT) <= 0) break;
  }
  ::close(socket_);
}

bool Connection::wait_for(short events, Clock::time_point until) const {
  while (true) {
    const auto left = std::chrono::duration_cast<milliseconds>(until - Clock::now());
    if (left.count() < 0) return false;
    pollfd fd{socket_, events, 0};
    const int ready = ::poll(&fd, 1, static_cast<int>(std::min(left, kLook).count()) + 1);
    if (ready > 0) return (fd.revents & (events | POLLHUP)) != 0 && (fd.revents & POLLERR) == 0;
    if (ready < 0 && errno != EINTR) return false;
  }
}

bool Connection::await(milliseconds most) {
  const auto until = Clock::now() + most;
  while (begin_ == end_) {
    if (ending_() || Clock::now() > until) return false;
    if (!wait_for(POLLIN, std::min(until, Clock::now() + kLook))) continue;
    if (fill() <= 0) return false;
  }
  return true;
}

void Connection::begin_head() {
  deadline_ = Clock::now() + kHeadTime;
  in_head_ = true;
  taken_ = body_ = 0;
}

void Connection::begin_body(uint64_t bytes) {
  deadline_ = Clock::now() + kBodyTime + std::chrono::seconds(bytes / kLeastRate);
  in_head_ = false;
  taken_ = 0;
  body_ = bytes;
}

ssize_t Connection::fill() {
  const ssize_t n = ::recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
  begin_ = 0;
  end_ = n > 0 ? static_cast<size_t>(n) : 0;
  return n;
}

bool Connection::is_readable() const {
  return begin_ < end_ || wait_for(POLLIN, std::min(deadline_, Clock::now() + kLook));
}

bool Connection::is_writable() const {
  pollfd fd{socket_, POLLOUT | POLLRDHUP, 0};
  if (::poll(&fd, 1, 0) > 0 && (fd.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0) return false;
  return wait_for(POLLOUT, Clock::now() + kWriteTime);
}

ssize_t Connection::read(char* to, size_t size) {
  if (in_head_ && taken_ >= kMaxHead) return -1;
  while (begin_ == end_) {
    if (!wait_for(POLLIN, deadline_)) return -1;
    const ssize_t n = fill();
    if (n == 0) return 0;
    if (n < 0 && errno != EAGAIN && errno != EINTR) return -1;
  }
  const size_t n = std::min(size, end_ - begin_);
  std::memcpy(to, buffer_.data() + begin_, n);
  begin_ += n;
  taken_ += n;
  return static_cast<ssize_t>(n);
}

ssize_t Connection::write(const char* from, size_t size) {
  const auto until = Clock::now() + kWriteTime;
  size_t done = 0;
  while (done < size) {
    const ssize_t n = ::send(socket_, from + done, size - done, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      done += static_cast<size_t>(n);
    } else if (n < 0 && errno == EAGAIN) {
      if (ending_() || !wait_for(POLLOUT, until)) return -1;
    } else if (errno != EINTR) {
      return -1;
    }
  }
  return static_cast<ssize_t>(done);
}

void Connection::get_remote_ip_and_port(std::string& ip, int& port) const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getpeername(socket_, reinterpret_cast<sockaddr*>(&address), &size) == 0) {
    name_of(address, ip, port);
  }
}

void Connection::get_local_ip_and_port(std::string& ip, int& port) const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) == 0) {
    name_of(address, ip, port);
  }
}

}  // namespace rehearse::serve
