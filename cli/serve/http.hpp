// SPDX-License-Identifier: Apache-2.0
// A request and its answer as the API sees them, without the library that carries them. Plain values.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace rehearse::serve {

struct Request {
  std::string method;  // "GET"
  std::string path;    // decoded, without the query
  std::map<std::string, std::string> query;
  // Headers by lower-case name; only those that something here looks at.
  std::map<std::string, std::string> headers;
  // Hands over the body piece by piece until `take` says false. kLimit when it is longer than
  // `most` bytes or too slow, kIo when it ends early.
  std::function<Result<void>(uint64_t most, const std::function<bool(std::string_view)>& take)>
      body;

  // "" when absent.
  [[nodiscard]] const std::string& header(const std::string& name) const;
  [[nodiscard]] const std::string& argument(const std::string& name) const;
};

struct Answer {
  int status = 200;
  std::string type = "application/json";
  std::string body = {};
  // Sent instead of `body` when set; a regular file.
  std::filesystem::path file = {};
  // Sent instead of `body` when set: called for the next piece until it returns false. Blocks at
  // most about a second; an empty piece is fine.
  std::function<bool(std::string& piece)> stream = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
};

[[nodiscard]] Answer json_answer(const nlohmann::ordered_json& document, int status = 200);
// {"schema": "rehearse.error/1", "error": {...}}; status 0: what fits the code.
[[nodiscard]] Answer error_answer(const Error& error, int status = 0);

// The whole body as text; kLimit above `most` bytes.
[[nodiscard]] Result<std::string> text_of(const Request& request, uint64_t most);

}  // namespace rehearse::serve
