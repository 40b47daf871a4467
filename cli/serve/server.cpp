// SPDX-License-Identifier: Apache-2.0
#include "cli/serve/server.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <httplib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "cli/serve/connection.hpp"

namespace rehearse::serve {
namespace {
using std::chrono::milliseconds;

constexpr size_t kThreads = 256;  // connections that are served at a time
constexpr size_t kWaiting = 128;  // that are accepted beyond them
constexpr int kBacklog = 1024;    // that the operating system keeps beyond them
constexpr rlim_t kDescriptors = 4096;
constexpr size_t kRequests = 100000;  // of one connection
constexpr auto kIdle = std::chrono::seconds(5);
constexpr size_t kMaxPath = 512;
constexpr size_t kPiece = 64u << 10;

// httplib's pool with an end to its queue.
class BoundedPool final : public httplib::ThreadPool {
 public:
  explicit BoundedPool(std::atomic<size_t>& open) : ThreadPool(kThreads), open_(open) {}
  void enqueue(std::function<void()> serve) override {
    {
      std::unique_lock lock(mutex_);
      room_.wait(lock, [&] { return open_ < kThreads + kWaiting || ending_; });
      ++open_;
    }
    ThreadPool::enqueue([this, serve = std::move(serve)] {
      serve();
      const std::lock_guard lock(mutex_);
      --open_;
      room_.notify_one();
    });
  }
  void shutdown() override {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
      room_.notify_all();
    }
    ThreadPool::shutdown();
  }

 private:
  std::atomic<size_t>& open_;
  std::mutex mutex_;
  std::condition_variable room_;
  bool ending_ = false;
};

Request plain(const httplib::Request& from) {
  Request request;
  request.method = from.method;
  request.path = from.path;
  for (const auto& [key, value] : from.params) request.query.emplace(key, value);
  for (const char* name : {"host", "origin", "sec-fetch-site", "content-type", "content-length",
                           "content-encoding", "transfer-encoding", "authorization", "cookie"}) {
    // Twice is a lie at one of two places that read it.
    if (from.get_header_value_count(name) == 1) {
      request.headers[name] = from.get_header_value(name);
    } else if (from.get_header_value_count(name) > 1) {
      request.headers[name] = "given more than once";
    }
  }
  request.body = [](uint64_t, const std::function<bool(std::string_view)>&) -> Result<void> {
    return {};
  };
  return request;
}

uint64_t length_of(const httplib::Request& request) {
  const std::string text = request.get_header_value("Content-Length");
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end ? value : 0;
}

void set_file(const std::filesystem::path& file, const std::string& type, httplib::Response& to) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  const off_t size = fd < 0 ? -1 : ::lseek(fd, 0, SEEK_END);
  if (size < 0) {
    if (fd >= 0) ::close(fd);
    const Answer gone = error_answer({Code::kMissingInput, "the file is gone", "", "ask again"});
    to.status = gone.status;
    to.set_content(gone.body, gone.type);
    return;
  }
  if (size == 0) {
    ::close(fd);
    to.set_content("", type);
    return;
  }
  to.set_content_provider(
      static_cast<size_t>(size), type,
      [fd](size_t offset, size_t length, httplib::DataSink& sink) {
        std::string piece(std::min(length, kPiece), '\0');
        const ssize_t n = ::pread(fd, piece.data(), piece.size(), static_cast<off_t>(offset));
        return n > 0 && sink.write(piece.data(), static_cast<size_t>(n));
      },
      [fd](bool) { ::close(fd); });
}

void put(Answer answer, httplib::Response& to) {
  to.status = answer.status;
  for (const auto& [name, value] : answer.headers) to.set_header(name, value);
  if (answer.stream) {
    to.set_chunked_content_provider(
        answer.type, [stream = std::move(answer.stream)](size_t, httplib::DataSink& sink) {
          std::string piece;
          bool more = false;
          try {
            more = stream(piece);
          } catch (const std::exception&) {
            return false;  // the client sees a stream that ends early, and asks again
          }
          if (!piece.empty() && !sink.write(piece.data(), piece.size())) return false;
          if (!more) sink.done();
          return true;
        });
  } else if (!answer.file.empty()) {
    set_file(answer.file, answer.type, to);
  } else if (answer.status != 204) {
    to.set_content(answer.body, answer.type);
  }
}

class HttpServer final : public Server, private httplib::Server {
 public:
  Result<void> bind_to(const std::string& address, uint16_t port) {
    const int flags = AI_NUMERICHOST;
    set_address_family(address.find(':') == address.npos ? AF_INET : AF_INET6);
    set_socket_options([](socket_t sock) {
      const int on = 1;  // a restart must not wait for old connections
      ::setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
      ::fcntl(sock, F_SETFD, FD_CLOEXEC);
    });
    const int got = port == 0                            ? bind_to_any_port(address, flags)
                    : bind_to_port(address, port, flags) ? port
                                                         : -1;
    if (got <= 0) {
      return fail(Code::kUsage, "cannot listen at this address",
                  fmt::format("{}:{}", address, port), "choose another --port, or 0 for any");
    }
    port_ = static_cast<uint16_t>(got);
    ::listen(svr_sock_, kBacklog);  // httplib asks for 5
    return {};
  }

  [[nodiscard]] uint16_t port() const override { return port_; }

  void start(Answering answering) override {
    answering_ = std::move(answering);
    set_keep_alive_max_count(kRequests);
    set_keep_alive_timeout(std::chrono::seconds(kIdle).count());
    raise_limits();
    new_task_queue = [this] { return new BoundedPool(open_); };
    set_pre_routing_handler(
        [this](const httplib::Request& from, httplib::Response& to) { return before(from, to); });
    Post("/.*", [this](const httplib::Request& from, httplib::Response& to,
                       const httplib::ContentReader& reader) { post(from, to, reader); });
    listener_ = std::jthread([this] { listen_after_bind(); });
    while (!is_running()) std::this_thread::sleep_for(milliseconds(1));
  }

  void stop() override {
    ending_ = true;
    httplib::Server::stop();
    if (listener_.joinable()) listener_.join();
  }

 private:
  // Everything without a body is answered before httplib looks for patterns.
  HandlerResponse before(const httplib::Request& from, httplib::Response& to) {
    if (from.method == "POST" && from.path.size() <= kMaxPath) return HandlerResponse::Unhandled;
    if (from.path.size() > kMaxPath) {
      put(error_answer({Code::kLimit, "the address is too long", "", "see /api/v1/openapi.json"},
                       414),
          to);
    } else {
      put(answering_(plain(from)), to);
    }
    return HandlerResponse::Handled;
  }

  void post(const httplib::Request& from, httplib::Response& to,
            const httplib::ContentReader& reader) {
    Request request = plain(from);
    const uint64_t length = length_of(from);
    uint64_t taken = 0;
    request.body = [&](uint64_t most,
                       const std::function<bool(std::string_view)>& take) -> Result<void> {
      if (length > most) {
        return fail(Code::kLimit, fmt::format("the body is longer than {} bytes", most),
                    "Content-Length", "send less");
      }
      const bool whole = length == 0 || reader([&](const char* bytes, size_t n) {
                           taken += n;
                           return taken <= length && take({bytes, n});
                         });
      if (whole && taken == length) return {};
      return fail(Code::kIo, "the body ended early or came too slowly", "", "send it again");
    };
    put(answering_(request), to);
    if (taken < length) to.set_header("Connection", "close");
  }

  bool process_and_close_socket(socket_t sock) override {
    Connection connection(sock, [this] { return ending_.load(); });
    for (size_t n = 1; n <= kRequests && connection.await(kIdle); ++n) {
      // Others wait for the thread: one request each.
      const bool last = n == kRequests || open_ > kThreads || ending_;
      bool closed = false, clear = false;  // where the request ends
      connection.begin_head();
      const bool good = process_request(connection, last, closed, [&](httplib::Request& request) {
        clear = request.get_header_value_count("Content-Length") <= 1 &&
                !request.has_header("Transfer-Encoding");
        connection.begin_body(length_of(request));
      });
      if (!good || closed || last || !clear || !connection.body_is_read()) break;
    }
    return true;
  }

  static void raise_limits() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kDescriptors) return;
    limit.rlim_cur = std::min(kDescriptors, limit.rlim_max);
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }

  uint16_t port_ = 0;
  Answering answering_;
  std::atomic<size_t> open_{0};
  std::atomic<bool> ending_{false};
  std::jthread listener_;
};

}  // namespace

Result<std::unique_ptr<Server>> Server::bind(const std::string& address, uint16_t port) {
  auto server = std::make_unique<HttpServer>();
  if (auto bound = server->bind_to(address, port); !bound) {
    return tl::unexpected(std::move(bound).error());
  }
  return server;
}

}  // namespace rehearse::serve
