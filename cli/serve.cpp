// SPDX-License-Identifier: Apache-2.0
// `rehearse serve`: the same in the browser, and a JSON API for programs.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/text.hpp"
#include "base/units.hpp"
#include "cli/context.hpp"
#include "cli/serve/api.hpp"
#include "cli/serve/server.hpp"
#include "cli/verbs.hpp"

namespace rehearse::cli {
namespace {
namespace fs = std::filesystem;
namespace po = boost::program_options;

constexpr const char* kFolder = "rehearse-work";
constexpr auto kLook = std::chrono::milliseconds(50);

struct ServeOptions {
  fs::path folder;
  std::string address;
  uint16_t port = 0;
  serve::Door door;
  serve::JobLimits jobs;
  serve::ApiOptions api;
};

Result<ServeOptions> serve_options(Context& context) {
  ServeOptions options;
  options.folder = fs::absolute(context.inputs().empty() ? kFolder : context.inputs().front());
  options.address = context.get<std::string>("bind");
  options.door.loopback = serve::is_loopback(options.address);
  if (options.address == "localhost") options.address = "127.0.0.1";
  RH_TRY(const int64_t port, context.number("port", 0, 65535));
  options.port = static_cast<uint16_t>(port);
  if (context.has("jobs")) {
    RH_TRY(const int64_t jobs, context.number("jobs", 1, 256));
    options.jobs.at_once = static_cast<unsigned>(jobs);
  } else {
    options.jobs.at_once = std::max(1u, std::thread::hardware_concurrency());
  }
  RH_TRY(const Nanos time, parse_duration(context.get<std::string>("job-time")));
  options.jobs.time = std::chrono::milliseconds(std::max<Nanos>(time / 1'000'000, 1));
  RH_TRY(const Bytes upload, parse_bytes(context.get<std::string>("max-upload")));
  options.api.upload_bytes = static_cast<uint64_t>(std::max<Bytes>(upload, 1));
  options.api.labs = find_verb("learn") != nullptr;
  for (const auto& [option, value] : context.arguments().in_order) {
    if (option == "name") options.door.names.push_back(lower_case(value));
  }
  if (context.has("token")) {
    options.door.token = context.get<std::string>("token");
    const auto strange = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; };
    if (options.door.token.size() < 16 || std::ranges::any_of(options.door.token, strange)) {
      return fail(Code::kUsage, "a token is at least 16 letters and digits", "--token",
                  "leave it out: one is made where it is needed");
    }
  } else if (!options.door.loopback) {
    RH_TRY(options.door.token, serve::random_token());
  }
  return options;
}

// Held as long as the server runs: two servers in one folder would start each other's jobs.
class FolderLock {
 public:
  static Result<FolderLock> take(const fs::path& folder) {
    std::error_code ec;
    fs::create_directories(folder, ec);
    const int fd = ec ? -1 : ::open((folder / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
      return fail(Code::kIo, "cannot use the folder", folder.string(),
                  "name a folder that can be written");
    }
    FolderLock lock(fd);
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return lock;
    return fail(Code::kUsage, "another server uses this folder", folder.string(),
                "end it, or name another folder");
  }
  FolderLock(FolderLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FolderLock& operator=(FolderLock&&) = delete;
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock() {
    if (fd_ >= 0) ::close(fd_);
  }

 private:
  explicit FolderLock(int fd) : fd_(fd) {}
  int fd_;
};

// Workers run elsewhere.
void make_absolute(const char* variable) {
  const char* value = std::getenv(variable);
  if (value != nullptr && *value != '\0') {
    ::setenv(variable, fs::absolute(value).c_str(), 1);
  }
}

Result<void> announce(Context& context, const ServeOptions& options) {
  const bool v6 = options.address.find(':') != std::string::npos;
  const std::string host = options.address == "0.0.0.0" || options.address == "::"
                               ? "127.0.0.1"
                               : (v6 ? "[" + options.address + "]" : options.address);
  const std::string url =
      fmt::format("http://{}:{}/{}", host, options.door.port,
                  options.door.token.empty() ? "" : "?token=" + options.door.token);
  if (context.json()) {
    return context.print_stdout(nlohmann::ordered_json{{"schema", "rehearse.serve/1"},
                                                       {"url", url},
                                                       {"port", options.door.port},
                                                       {"token", options.door.token},
                                                       {"folder", options.folder.string()}});
  }
  const std::string text = fmt::format("{}\n", context.terminal().styled(Style::kBold, url));
  if (auto done = context.print_stdout(std::string_view(text)); !done) return done;
  if (!context.quiet()) {
    fmt::print(stderr, "rehearse serve: jobs and traces are kept in {}; Ctrl-C ends\n",
               options.folder.string());
    if (!options.door.loopback) {
      fmt::print(stderr,
                 "rehearse serve: others can connect; whoever has the token can run jobs here, and "
                 "the connection is not encrypted\n");
    }
  }
  return {};
}

Result<int> run_serve(Context& context) {
  RH_TRY(ServeOptions options, serve_options(context));
  RH_TRY(const FolderLock lock, FolderLock::take(options.folder));
  make_absolute("REHEARSE_HOME");
  make_absolute("REHEARSE_CACHE");
  ::signal(SIGPIPE, SIG_IGN);  // a client that goes away is no reason to end
  RH_TRY(const auto server, serve::Server::bind(options.address, options.port));
  options.door.port = server->port();
  RH_TRY(serve::Library library, serve::Library::open(options.folder));
  RH_TRY(const auto jobs,
         serve::Jobs::open(options.folder / "jobs", options.jobs, serve::finish_with(library)));
  std::error_code ec;
  const fs::path passing = options.folder / "passing";
  fs::remove_all(passing, ec);
  fs::create_directories(passing, ec);
  serve::Queries queries(passing, std::max(2u, options.jobs.at_once));
  serve::Api api(*jobs, library, queries, options.folder, options.door, options.api);
  server->start([&](const serve::Request& request) { return api.answer(request); });
  auto done = announce(context, options);
  while (done && !interrupt_requested()) std::this_thread::sleep_for(kLook);
  ::alarm(
      0);  // an orderly end may take longer than that of a command; a second Ctrl-C ends at once
  queries.stop();
  jobs->stop();
  server->stop();
  return exit_code(std::move(done));
}

}  // namespace

Verb serve_verb() {
  Verb verb;
  verb.name = "serve";
  verb.summary = "the same in the browser, with an API for programs";
  verb.details =
      "Prints the address and serves until Ctrl-C: traces, platforms, faults and scenarios to look "
      "at, a cluster to click faults into, runs with their progress, diagnoses, fixes, comparisons "
      "and reports. Every job is a process of its own and leaves a folder in DIR, which keeps "
      "traces "
      "and finished jobs for the next time. Only this machine can connect unless --bind says "
      "otherwise; then a token is needed. The API is described in docs/serve.md and at "
      "/api/v1/openapi.json.";
  verb.positionals = {
      {"DIR", "folder of traces and jobs; ./rehearse-work by default", Count::kOptional, {}}};
  verb.options = [](po::options_description& options) {
    auto add = options.add_options();
    add("port", po::value<std::string>()->value_name("N")->default_value("8642"),
        "port to listen on; 0: any that is free");
    add("bind", po::value<std::string>()->value_name("ADDRESS")->default_value("127.0.0.1"),
        "address to listen on; others than loopback need the token that is printed");
    add("token", po::value<std::string>()->value_name("TEXT"),
        "ask for this token, also on loopback");
    add("name", po::value<std::vector<std::string>>()->value_name("HOST"),
        "a host name that is ours, where it is reached by name; may be repeated");
    add("jobs", po::value<std::string>()->value_name("N"), "jobs at a time; all cores by default");
    add("job-time", po::value<std::string>()->value_name("TIME")->default_value("30min"),
        "longest time of a job");
    add("max-upload", po::value<std::string>()->value_name("SIZE")->default_value("2GiB"),
        "largest trace file that is taken");
  };
  verb.examples = {
      {"timeout --foreground --preserve-status 3 ./rehearse serve --port 0 work",
       "for three seconds, at any free port"},
      {"timeout --foreground --preserve-status 3 ./rehearse serve --port 0 --json work",
       "the address for programs"}};
  verb.run = run_serve;
  return verb;
}

}  // namespace rehearse::cli
