// SPDX-License-Identifier: Apache-2.0
#include "cli/serve/http.hpp"

#include <nlohmann/json.hpp>

namespace rehearse::serve {
namespace {

const std::string& value_in(const std::map<std::string, std::string>& values,
                            const std::string& name) {
  static const std::string none;
  const auto at = values.find(name);
  return at == values.end() ? none : at->second;
}

int status_of(Code code) {
  switch (code) {
    case Code::kFinding:
      return 200;
    case Code::kUsage:
    case Code::kBadInput:
      return 400;
    case Code::kMissingInput:
      return 404;
    case Code::kLimit:
      return 413;
    case Code::kInterrupted:
      return 503;
    case Code::kInternal:
    case Code::kIo:
      return 500;
  }
  return 500;
}

}  // namespace

const std::string& Request::header(const std::string& name) const {
  return value_in(headers, name);
}
const std::string& Request::argument(const std::string& name) const {
  return value_in(query, name);
}

Answer json_answer(const nlohmann::ordered_json& document, int status) {
  const auto replace = nlohmann::ordered_json::error_handler_t::replace;
  return {.status = status, .body = document.dump(1, ' ', false, replace) + "\n"};
}

Answer error_answer(const Error& error, int status) {
  const nlohmann::ordered_json document = {{"schema", "rehearse.error/1"},
                                           {"error",
                                            {{"code", name_of(error.code)},
                                             {"what", error.what},
                                             {"where", error.where},
                                             {"fix", error.fix}}}};
  return json_answer(document, status == 0 ? status_of(error.code) : status);
}

Result<std::string> text_of(const Request& request, uint64_t most) {
  std::string text;
  if (auto read = request.body(most,
                               [&](std::string_view piece) {
                                 text += piece;
                                 return true;
                               });
      !read) {
    return tl::unexpected(std::move(read).error());
  }
  return text;
}

}  // namespace rehearse::serve
