// SPDX-License-Identifier: Apache-2.0
#include "cli/serve/api.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "base/document.hpp"
#include "base/embedded.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "cli/serve/job_request.hpp"

namespace rehearse {
// Made by base/cmake/embed.cmake of cli/serve/page and cli/serve/openapi.json.
std::span<const EmbeddedFile> serve_page();
}  // namespace rehearse

namespace rehearse::serve {
namespace {
using Json = nlohmann::ordered_json;

std::string type_of(std::string_view name) {
  const auto ends = [&](std::string_view ending) { return name.ends_with(ending); };
  if (ends(".html")) return "text/html; charset=utf-8";
  if (ends(".js")) return "text/javascript; charset=utf-8";
  if (ends(".css")) return "text/css; charset=utf-8";
  if (ends(".svg")) return "image/svg+xml";
  if (ends(".json")) return "application/json";
  if (ends(".yaml")) return "application/yaml; charset=utf-8";
  return "application/octet-stream";
}

Answer embedded(std::string_view name) {
  for (const EmbeddedFile& file : serve_page()) {
    if (file.name == name) return {.type = type_of(name), .body = std::string(file.bytes)};
  }
  return error_answer({Code::kMissingInput, "there is no such page", "", "start at /"});
}

// The parts of `path` that stand for {x} of `pattern`; nullopt: it is another path.
std::optional<Api::Words> matched(const std::vector<std::string>& path, const char* pattern) {
  const std::vector<std::string> parts = split(pattern, '/');
  if (parts.size() != path.size()) return std::nullopt;
  Api::Words words;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].starts_with("{")) {
      if (path[i].empty()) return std::nullopt;
      words.push_back(path[i]);
    } else if (parts[i] != path[i]) {
      return std::nullopt;
    }
  }
  return words;
}

// The page may load and ask this server only; nothing may frame it.
constexpr const char* kPagePolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

void add_headers(Answer& answer) {
  const auto add = [&](const char* name, const char* value) {
    for (const auto& header : answer.headers) {
      if (header.first == name) return;
    }
    answer.headers.emplace_back(name, value);
  };
  add("Content-Security-Policy", kPagePolicy);
  add("X-Content-Type-Options", "nosniff");
  add("Referrer-Policy", "no-referrer");
  add("Cross-Origin-Resource-Policy", "same-origin");
  add("Cross-Origin-Opener-Policy", "same-origin");
  add("Cache-Control", "no-store");
}

}  // namespace

Api::Api(Jobs& jobs, Library& library, Queries& queries, const std::filesystem::path& folder,
         Door door, ApiOptions options)
    : jobs_(jobs),
      library_(library),
      queries_(queries),
      labs_(queries, folder / "labs"),
      folder_(folder / "passing"),
      door_(std::move(door)),
      options_(options),
      streams_(std::make_shared<std::atomic<int>>(0)) {}

const std::vector<Api::Route>& Api::routes() {
  static const std::vector<Route> table = {
      {"GET", "/", &Api::index},
      {"GET", "/assets/{name}", &Api::asset},
      {"GET", "/metrics", &Api::metrics},
      {"GET", "/api/v1", &Api::about},
      {"GET", "/api/v1/openapi.json", &Api::openapi},
      {"GET", "/api/v1/platforms", &Api::platforms},
      {"GET", "/api/v1/platforms/{id}", &Api::platform},
      {"GET", "/api/v1/faults", &Api::faults},
      {"GET", "/api/v1/faults/{id}", &Api::fault},
      {"GET", "/api/v1/scenarios", &Api::scenarios},
      {"GET", "/api/v1/scenarios/{name}", &Api::scenario},
      {"POST", "/api/v1/preview", &Api::preview},
      {"GET", "/api/v1/traces", &Api::traces},
      {"POST", "/api/v1/traces", &Api::import},
      {"GET", "/api/v1/traces/{name}", &Api::trace},
      {"DELETE", "/api/v1/traces/{name}", &Api::remove_trace},
      {"GET", "/api/v1/traces/{name}/file", &Api::trace_file},
      {"POST", "/api/v1/uploads", &Api::upload},
      {"GET", "/api/v1/jobs", &Api::jobs},
      {"POST", "/api/v1/jobs", &Api::submit},
      {"GET", "/api/v1/jobs/{id}", &Api::job},
      {"DELETE", "/api/v1/jobs/{id}", &Api::remove_job},
      {"POST", "/api/v1/jobs/{id}/cancel", &Api::cancel},
      {"GET", "/api/v1/jobs/{id}/events", &Api::job_events},
      {"GET", "/api/v1/jobs/{id}/result", &Api::result},
      {"GET", "/api/v1/jobs/{id}/files/{name}", &Api::file},
      {"GET", "/api/v1/events", &Api::events},
      {"GET", "/api/v1/compare", &Api::compare},
      {"GET", "/api/v1/labs", &Api::labs},
      {"GET", "/api/v1/labs/{id}", &Api::lab},
      {"GET", "/api/v1/labs/{id}/files", &Api::lab_files},
      {"POST", "/api/v1/labs/{id}/{action}", &Api::lab_action},
  };
  return table;
}

Answer Api::dispatch(const Request& request) {
  if (auto hello = greeting(request, door_)) return *hello;
  if (auto refused = refusal(request, door_)) return *refused;
  const std::string method = request.method == "HEAD" ? "GET" : request.method;
  std::string whole = request.path;
  if (whole == "/api/v1/") whole.pop_back();
  const std::vector<std::string> path = split(whole, '/');
  std::string allowed;
  for (const Route& route : routes()) {
    const auto words = matched(path, route.pattern);
    if (!words) continue;
    if (route.method == method) return (this->*route.handler)(request, *words);
    allowed += (allowed.empty() ? "" : ", ") + std::string(route.method);
  }
  if (allowed.empty()) {
    return error_answer({Code::kMissingInput, "there is nothing at this address",
                         in_quotes(request.path), "see /api/v1/openapi.json"});
  }
  Answer answer = error_answer({Code::kUsage, "this address does not take " + in_quotes(method),
                                in_quotes(request.path), "it takes " + allowed},
                               405);
  answer.headers.emplace_back("Allow", allowed);
  return answer;
}

Answer Api::answer(const Request& request) {
  answered_.fetch_add(1, std::memory_order_relaxed);
  Answer answer;
  try {
    answer = dispatch(request);
  } catch (const std::exception& e) {
    answer =
        error_answer({Code::kInternal, fmt::format("a bug in rehearse {}: {}", version(), e.what()),
                      in_quotes(request.path), "please report it"});
  }
  add_headers(answer);
  return answer;
}

Answer Api::index(const Request&, const Words&) { return embedded("index.html"); }

Answer Api::asset(const Request&, const Words& words) {
  Answer answer = embedded(words[0]);
  answer.headers.emplace_back("Cache-Control", "max-age=60");
  return answer;
}

Answer Api::openapi(const Request&, const Words&) { return embedded("openapi.json"); }

Answer Api::about(const Request&, const Words&) {
  return json_answer(
      {{"schema", "rehearse.api/1"},
       {"version", version()},
       {"openapi", "/api/v1/openapi.json"},
       {"labs", options_.labs},
       {"limits", {{"body_bytes", kMaxBody}, {"upload_bytes", options_.upload_bytes}}}});
}

Answer Api::metrics(const Request&, const Words&) {
  const JobCounts counts = jobs_.counts();
  std::string text = "# HELP rehearse_jobs Jobs by state.\n# TYPE rehearse_jobs gauge\n";
  const std::pair<const char*, size_t> rows[] = {{"queued", counts.queued},
                                                 {"running", counts.running},
                                                 {"done", counts.done},
                                                 {"failed", counts.failed},
                                                 {"cancelled", counts.cancelled}};
  for (const auto& [state, n] : rows) {
    text += fmt::format("rehearse_jobs{{state=\"{}\"}} {}\n", state, n);
  }
  text += fmt::format(
      "# HELP rehearse_requests_total Requests answered.\n# TYPE rehearse_requests_total counter\n"
      "rehearse_requests_total {}\n",
      answered_.load(std::memory_order_relaxed));
  return {.type = "text/plain; version=0.0.4", .body = text};
}

}  // namespace rehearse::serve
