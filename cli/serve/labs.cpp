// SPDX-License-Identifier: Apache-2.0
#include "cli/serve/labs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>

#include "base/atomic_file.hpp"
#include "base/text.hpp"
#include "cli/serve/job_request.hpp"
#include "sim/proto/scenario.pb.h"

namespace rehearse::serve {
namespace {
namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr uint64_t kMaxText = 256u << 10;

Result<void> check_lab(const std::string& id) {
  const auto good = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  if (!id.empty() && id.size() <= 16 && std::ranges::all_of(id, good)) return {};
  return fail(Code::kMissingInput, "there is no such lab", in_quotes(id),
              "GET /api/v1/labs lists them");
}

// "env/node1.env".
bool is_environment(const std::string& name) {
  return name.size() > 12 && name.size() <= 20 && name.starts_with("env/node") &&
         name.ends_with(".env") &&
         std::all_of(name.begin() + 8, name.end() - 4, [](char c) { return c >= '0' && c <= '9'; });
}

bool is_students(const std::string& name) {
  return name == "job.yaml" || name == "cluster.yaml" || is_environment(name);
}

Result<void> check_file(const std::string& name, const std::string& text) {
  const KnownFile known = [](const std::string& other) {
    return other == "cluster.yaml" || is_environment(other);
  };
  if (name == "job.yaml") {
    pb::Scenario job;
    return read_text(text, name, known, job);
  }
  if (name == "cluster.yaml") {
    pb::Platform cluster;
    return read_text(text, name, {}, cluster);
  }
  return {};
}

}  // namespace

Result<fs::path> Labs::started(const std::string& id) const {
  if (auto good = check_lab(id); !good) return tl::unexpected(std::move(good).error());
  std::error_code ec;
  if (fs::is_regular_file(folder_ / id / "job.yaml", ec)) return folder_ / id;
  return fail(Code::kUsage, "the lab has not been started", id,
              fmt::format("POST /api/v1/labs/{}/start", id));
}

Result<std::string> Labs::list() { return queries_.ask({"learn", "list", "--json"}, ""); }

Result<std::string> Labs::show(const std::string& id) {
  if (auto good = check_lab(id); !good) return tl::unexpected(std::move(good).error());
  return queries_.ask({"learn", "show", id, "--json"}, "lab " + id);
}

Result<Json> Labs::files(const std::string& id) const {
  if (auto good = check_lab(id); !good) return tl::unexpected(std::move(good).error());
  Json document = {{"schema", "rehearse.lab-files/1"}, {"lab", id}, {"started", false}};
  std::map<std::string, std::string> texts;
  std::error_code ec;
  const fs::path folder = folder_ / id;
  fs::recursive_directory_iterator at(folder, ec);
  for (; !ec && at != fs::recursive_directory_iterator(); at.increment(ec)) {
    const std::string name = at->path().lexically_relative(folder).string();
    std::error_code file;
    if (name.front() == '.' || !at->is_regular_file(file) || name.ends_with(".rtrace")) continue;
    const auto text = read_file(at->path(), kMaxText);
    if (!text || invalid_utf8(*text) != std::string::npos) continue;
    texts[name] = *text;
  }
  Json files = Json::array();
  for (const auto& [name, text] : texts) {
    files.push_back({{"name", name}, {"text", text}, {"yours", is_students(name)}});
  }
  document["started"] = started(id).has_value();
  document["files"] = std::move(files);
  return document;
}

Result<std::string> Labs::start(const std::string& id, uint32_t seed) {
  if (auto good = check_lab(id); !good) return tl::unexpected(std::move(good).error());
  std::error_code ec;
  fs::create_directories(folder_, ec);
  return queries_.ask({"learn", "start", id, (folder_ / id).string(),
                       fmt::format("--seed={}", seed), "--force", "--json"},
                      "");
}

Result<void> Labs::write(const std::string& id, const Json& files) const {
  RH_TRY(const fs::path folder, started(id));
  for (const auto& [name, text] : files.items()) {
    std::error_code ec;
    if (!is_students(name) || !text.is_string() || !fs::is_regular_file(folder / name, ec)) {
      return bad_input("not a file of this lab that you may change: " + in_quotes(name),
                       "body: /files", "GET /api/v1/labs/ID/files says which are yours");
    }
    if (auto good = check_file(name, text.get_ref<const std::string&>()); !good) return good;
  }
  for (const auto& [name, text] : files.items()) {
    auto written =
        write_file(folder / name, text.get_ref<const std::string&>(), Overwrite::kReplace);
    if (!written) return written;
  }
  return {};
}

Result<std::string> Labs::run(const std::string& id) {
  RH_TRY(const fs::path folder, started(id));
  return queries_.ask({"run", "./job.yaml", "--json"}, "", folder);
}

Result<std::string> Labs::ask(const std::string& word, const std::string& id) {
  RH_TRY(const fs::path folder, started(id));
  return queries_.ask({"learn", word, ".", "--json"}, "", folder);
}

}  // namespace rehearse::serve
