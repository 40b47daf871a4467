// SPDX-License-Identifier: Apache-2.0
// `rehearse view`: a Perfetto trace in ui.perfetto.dev. The page runs in the browser and fetches the file from this
// machine: nothing is uploaded. Its security policy lets it reach port 9001 of 127.0.0.1 and no other.
#include <fcntl.h>
#include <fmt/format.h>
#include <httplib.h>
#include <spawn.h>
#include <unistd.h>

#include <atomic>
#include <boost/program_options/value_semantic.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/text.hpp"
#include "cli/context.hpp"
#include "cli/verbs.hpp"

namespace rehearse::cli {
namespace {
namespace po = boost::program_options;
namespace fs = std::filesystem;

constexpr const char* kUi = "https://ui.perfetto.dev";
constexpr const char* kHost = "127.0.0.1";
constexpr int64_t kPort = 9001;

// "a b.pftrace" -> "a%20b.pftrace".
std::string in_address(std::string_view name) {
  std::string out;
  for (const unsigned char c : name) {
    const bool plain = std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
    out += plain ? std::string(1, static_cast<char>(c)) : fmt::format("%{:02X}", c);
  }
  return out;
}

// What opens an address here; empty: nothing does, or nobody would see it.
std::string opener() {
  const auto set = [](const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0';
  };
  if (!set("DISPLAY") && !set("WAYLAND_DISPLAY")) return "";
  const char* path = std::getenv("PATH");
  for (const std::string& folder : split(path == nullptr ? "" : path, ':')) {
    std::string program = folder + "/xdg-open";
    if (::access(program.c_str(), X_OK) == 0) return program;
  }
  return "";
}

void open_in_browser(const std::string& program, const std::string& address) {
  std::string words[] = {program, address};
  char* arguments[] = {words[0].data(), words[1].data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t pid = 0;
  // When it does not start there is still the link that was printed.
  posix_spawn(&pid, program.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
}

// Serves one file until it was fetched or somebody asks for an end.
Result<void> serve_once(const fs::path& file, uint64_t size, int port, Reporter& reporter) {
  httplib::Server server;
  std::atomic<bool> fetched = false;
  const std::string own = fmt::format("{}:{}", kHost, port);
  const std::string wanted = "/" + file.filename().string();
  server.set_pre_routing_handler([&](const httplib::Request& request, httplib::Response& response) {
    // Another name for this address is a page that tries to reach us by DNS.
    if (request.get_header_value("Host") != own) {
      response.status = 403;
      return httplib::Server::HandlerResponse::Handled;
    }
    response.set_header("Access-Control-Allow-Origin", kUi);
    response.set_header("Cache-Control", "no-cache");
    if (request.method != "GET" || request.path != wanted) {
      response.status = request.method == "OPTIONS" ? 204 : 404;
      return httplib::Server::HandlerResponse::Handled;
    }
    const auto input = std::make_shared<std::ifstream>(file, std::ios::binary);
    response.set_content_provider(
        size, "application/octet-stream",
        [input](size_t offset, size_t length, httplib::DataSink& sink) {
          std::string part(std::min<size_t>(length, 1 << 20), '\0');
          input->seekg(static_cast<std::streamoff>(offset));
          if (!input->read(part.data(), static_cast<std::streamsize>(part.size()))) return false;
          return sink.write(part.data(), part.size());
        },
        [&](bool whole) { fetched = fetched || whole; });
    return httplib::Server::HandlerResponse::Handled;
  });
  if (!server.bind_to_port(kHost, port)) {
    return fail(Code::kIo, fmt::format("port {} of {} is taken", port, kHost), "view",
                "end what uses it; Perfetto's page reaches no other port");
  }
  std::jthread watcher([&](const std::stop_token& stop) {
    while (!stop.stop_requested() && !fetched && !reporter.interrupted()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    server.stop();
  });
  server.listen_after_bind();
  return {};
}

Result<int> run_view(Context& context) {
  const fs::path file = context.inputs().front();
  std::error_code ec;
  const auto size = fs::is_regular_file(file, ec) ? fs::file_size(file, ec) : 0;
  if (ec || size == 0) {
    return fail(Code::kMissingInput, "no such file, or an empty one", file.string(),
                "make one with `rehearse run SCENARIO --perfetto FILE`");
  }
  RH_TRY(const int64_t port, context.has("port") ? context.number("port", 1, 65535) : kPort);
  const std::string link = fmt::format("{}/#!/?url=http://{}:{}/{}", kUi, kHost, port,
                                       in_address(file.filename().string()));
  const std::string browser = opener();
  const bool serving = context.has("serve") || !browser.empty();
  auto printed = context.json()
                     ? context.print_stdout(nlohmann::ordered_json{
                           {"schema", "rehearse.view/1"}, {"link", link}, {"serving", serving}})
                     : context.print_stdout(std::string_view(link + "\n"));
  if (!printed) return tl::unexpected(printed.error());
  if (!serving) {
    context.reporter().note("no browser here: give --serve and open the link where there is one");
    return 0;
  }
  if (!context.has("serve")) open_in_browser(browser, link);
  return exit_code(serve_once(file, size, static_cast<int>(port), context.reporter()));
}

}  // namespace

Verb view_verb() {
  Verb verb;
  verb.name = "view";
  verb.summary = "open a Perfetto trace in the browser";
  verb.details =
      "Prints the link under which ui.perfetto.dev shows FILE, opens it in the browser and serves "
      "the "
      "file to it on 127.0.0.1 until it was fetched. Nothing is uploaded: the page runs in your "
      "browser. Without a browser it prints the link and does nothing else.";
  verb.positionals = {{"FILE", "a trace of `rehearse run --perfetto`", Count::kOne, {}}};
  verb.options = [](po::options_description& options) {
    auto add = options.add_options();
    add("serve",
        "serve the file without opening a browser, for one behind `ssh -L 9001:127.0.0.1:9001`");
    add("port", po::value<std::string>()->value_name("N"),
        "another port than 9001, the only one that ui.perfetto.dev reaches");
  };
  verb.examples = {{"./rehearse run dlrm-8 --perfetto dlrm.pftrace", "a trace of a simulated run"},
                   {"env -u DISPLAY -u WAYLAND_DISPLAY ./rehearse view dlrm.pftrace",
                    "the link, where there is no browser"}};
  verb.run = run_view;
  return verb;
}

}  // namespace rehearse::cli
