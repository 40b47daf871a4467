// SPDX-License-Identifier: Apache-2.0
#include "faults/check/apply.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/atomic_file.hpp"
#include "base/document.hpp"
#include "base/install.hpp"
#include "base/text.hpp"
#include "faults/check/check.hpp"
#include "sim/proto/scenario.pb.h"

namespace rehearse::faults {
namespace {

namespace fs = std::filesystem;

// As JSON, which is YAML too; bytes that are no text are replaced.
std::string quoted_text(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// The scenario as its author wrote it.
Result<std::string> written_text(const std::string& what) {
  std::error_code ec;
  fs::path path = what;
  if (!fs::exists(path, ec)) {
    RH_TRY(path, shipped("sim/scenarios/" + what + ".yaml"));
  }
  RH_TRY(std::string text, read_file(path, kMaxDocumentBytes));
  if (text.starts_with("RTRACE"))
    return fmt::format("trace: {}\n", quoted_text(fs::absolute(path).string()));
  if (!text.empty() && text.back() != '\n') text += '\n';
  return text;
}

// Byte behind the block of a key at the top level; npos when there is no such key.
size_t end_of_block(const std::string& text, std::string_view key) {
  bool inside = false;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    const std::string_view line(text.data() + begin, end - begin);
    const bool continues =
        line.front() == ' ' || line.front() == '-' || line.front() == '#' || line.front() == '\n';
    if (inside && !continues) return begin;
    if (line.starts_with(key)) inside = true;
    begin = end;
  }
  return inside ? text.size() : text.npos;
}

}  // namespace

Result<std::string> repaired_scenario(const std::string& what, const pb::CheckReport& report) {
  const auto fixes = fixes_in(report);
  if (fixes.empty()) {
    return fail(Code::kUsage, "no finding has a fix that is a change of configuration", what,
                "read the findings; what they ask for is outside the scenario");
  }
  RH_TRY(std::string text, written_text(what));
  std::string patch = "- set:\n";
  for (const auto& [path, value] : fixes) {
    patch += fmt::format("    {}: {}\n", quoted_text(path), quoted_text(value));
  }
  const size_t at = end_of_block(text, "patches:");
  if (at == text.npos) {
    text += "patches:\n" + patch;
  } else {
    text.insert(at, patch);
  }
  pb::Scenario reread;
  if (auto read = read_document(text, what, reread); !read) {
    Error error = std::move(read).error();
    error.fix = "write `patches:` of the scenario as a list with one `- ` per line, then try again";
    return tl::unexpected(std::move(error));
  }
  return text;
}

}  // namespace rehearse::faults
