// SPDX-License-Identifier: Apache-2.0
// The part of the API that looks things up: catalogues, scenarios, traces, labs.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/document.hpp"
#include "base/text.hpp"
#include "cli/serve/api.hpp"
#include "cli/serve/job_request.hpp"

namespace rehearse::serve {
namespace {
namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// A word that a command takes for no option and for no path.
bool is_id(const std::string& text) {
  return !text.empty() && text.size() <= 64 && text[0] != '-' &&
         text.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == text.npos;
}

Answer unknown(const std::string& what, const std::string& list) {
  return error_answer({Code::kMissingInput, "there is no such " + what, "",
                       fmt::format("GET /api/v1/{} lists them", list)});
}

Answer of_text(Result<std::string> text) {
  if (!text) return error_answer(text.error());
  return {.body = std::move(*text)};
}

// An entry of a catalogue. On the command line a word that names none is a mistake of usage, here an address that is not
// there.
Answer of_entry(Result<std::string> text) {
  if (!text && text.error().code == Code::kUsage) return error_answer(text.error(), 404);
  return of_text(std::move(text));
}

// A folder that is gone when it goes out of scope.
class PassingFolder {
 public:
  explicit PassingFolder(fs::path path) : path_(std::move(path)) {
    std::error_code ec;
    fs::create_directories(path_, ec);
  }
  ~PassingFolder() {
    std::error_code ec;
    fs::remove_all(path_, ec);
  }
  PassingFolder(const PassingFolder&) = delete;
  PassingFolder& operator=(const PassingFolder&) = delete;
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

}  // namespace

Answer Api::asked(const Words& words) {
  return of_text(queries_.ask(words, fmt::format("{}", fmt::join(words, " "))));
}

Answer Api::platforms(const Request&, const Words&) { return asked({"platforms", "--json"}); }

Answer Api::platform(const Request& request, const Words& words) {
  if (!is_id(words[0])) return unknown("platform", "platforms");
  Words command = {"platforms", "show", words[0], "--json"};
  const std::string& nodes = request.argument("nodes");
  if (!nodes.empty()) command.push_back("--nodes=" + nodes.substr(0, 20));
  return asked(command);
}

Answer Api::faults(const Request&, const Words&) { return asked({"faults", "--json"}); }

Answer Api::fault(const Request&, const Words& words) {
  if (!is_id(words[0])) return unknown("fault", "faults");
  return of_entry(queries_.ask({"faults", "show", words[0], "--json"}, "faults show " + words[0]));
}

Answer Api::scenarios(const Request&, const Words&) { return asked({"run", "--list", "--json"}); }

Answer Api::scenario(const Request&, const Words& words) {
  if (!is_id(words[0])) return unknown("scenario", "scenarios");
  pb::Subject subject;
  subject.set_scenario(words[0]);
  return of_text(expand(subject));
}

Answer Api::preview(const Request& request, const Words&) {
  const auto body = text_of(request, kMaxBody);
  if (!body) return error_answer(body.error());
  const auto subject = parse_subject(*body);
  if (!subject) return error_answer(subject.error());
  return of_text(expand(*subject));
}

Result<std::string> Api::expand(const pb::Subject& subject) {
  const std::string trace = trace_of(subject);
  std::string key = "scenario " + subject.SerializeAsString();
  if (!trace.empty()) {
    // The library may hold another trace under this name tomorrow.
    RH_TRY(const fs::path file, library_.trace(trace));
    std::error_code ec;
    key += fmt::format(" {} {}", fs::last_write_time(file, ec).time_since_epoch().count(),
                       fs::file_size(file, ec));
  }
  if (auto answer = queries_.kept(key)) return std::move(*answer);
  const PassingFolder folder(folder_ / std::to_string(next_folder_.fetch_add(1)));
  if (auto laid = library_.lay_out(subject, folder.path()); !laid) {
    return tl::unexpected(std::move(laid).error());
  }
  Words command = words_of(subject);
  command.insert(command.begin(), "run");
  command.insert(command.end(), {"--dry-run", "--json"});
  return queries_.ask(command, key, folder.path());
}

Answer Api::traces(const Request&, const Words&) {
  const auto traces = library_.traces();
  if (!traces) return error_answer(traces.error());
  Json rows = Json::array();
  for (const LibraryTrace& trace : *traces) {
    rows.push_back({{"name", trace.name}, {"bytes", trace.bytes}});
  }
  return json_answer({{"schema", "rehearse.traces/1"}, {"traces", rows}});
}

Answer Api::trace(const Request&, const Words& words) {
  const auto file = library_.trace(words[0]);
  if (!file) return error_answer(file.error());
  std::error_code ec;
  const auto key = fmt::format("inspect {} {} {}", words[0],
                               fs::last_write_time(*file, ec).time_since_epoch().count(),
                               fs::file_size(*file, ec));
  return of_text(queries_.ask({"inspect", fs::absolute(*file).string(), "--json"}, key));
}

Answer Api::trace_file(const Request&, const Words& words) {
  const auto file = library_.trace(words[0]);
  if (!file) return error_answer(file.error());
  Answer answer{.type = "application/octet-stream", .file = *file};
  answer.headers.emplace_back("Content-Disposition",
                              fmt::format("attachment; filename=\"{}\"", words[0]));
  return answer;
}

Answer Api::remove_trace(const Request&, const Words& words) {
  if (auto removed = library_.remove(words[0]); !removed) return error_answer(removed.error());
  return {.status = 204};
}

Answer Api::upload(const Request& request, const Words&) {
  const auto id = library_.keep_upload(request, request.argument("name"), options_.upload_bytes);
  if (!id) return error_answer(id.error());
  return json_answer({{"schema", "rehearse.upload/1"}, {"upload", *id}}, 201);
}

Answer Api::labs(const Request&, const Words&) { return of_text(labs_.list()); }

Answer Api::lab(const Request&, const Words& words) { return of_entry(labs_.show(words[0])); }

Answer Api::lab_files(const Request&, const Words& words) {
  const auto files = labs_.files(words[0]);
  return files ? json_answer(*files) : error_answer(files.error());
}

Answer Api::lab_action(const Request& request, const Words& words) {
  const std::string &id = words[0], &action = words[1];
  const auto body = text_of(request, kMaxBody);
  if (!body) return error_answer(body.error());
  const Json json = body->empty() ? Json::object() : Json::parse(*body, nullptr, false);
  if (!json.is_object()) {
    return error_answer({Code::kBadInput, "not a JSON object", "body", "see /api/v1/openapi.json"});
  }
  if (action == "start") {
    const auto seed = json.find("seed");
    const bool given = seed != json.end() && seed->is_number_unsigned();
    return of_text(labs_.start(id, given ? static_cast<uint32_t>(*seed) : 1));
  }
  if (action != "run" && action != "check" && action != "hint" && action != "solution") {
    return unknown("action of a lab", "openapi.json");
  }
  if (json.contains("files")) {
    if (auto written = labs_.write(id, json["files"]); !written)
      return error_answer(written.error());
  }
  return of_text(action == "run" ? labs_.run(id) : labs_.ask(action, id));
}

}  // namespace rehearse::serve
