// SPDX-License-Identifier: Apache-2.0
#include "cli/serve/door.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/text.hpp"

namespace rehearse::serve {
namespace {

// Browsers keep one jar for all ports of a host.
std::string cookie_name(const Door& door) { return fmt::format("rehearse_token_{}", door.port); }

bool is_address(const std::string& host) {
  std::array<unsigned char, 16> bytes{};
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    return ::inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), bytes.data()) == 1;
  }
  return ::inet_pton(AF_INET, host.c_str(), bytes.data()) == 1;
}

struct HostPort {
  std::string host;
  uint16_t port = 80;
};

std::optional<HostPort> parse_host(const std::string& text) {
  HostPort out;
  const size_t colon = text.rfind(':');
  const bool has_port = colon != std::string::npos && text.find(']', colon) == std::string::npos;
  out.host = lower_case(text.substr(0, has_port ? colon : text.npos));
  if (out.host.empty()) return std::nullopt;
  if (!has_port) return out;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, out.port);
  if (error != std::errc() || stop != end) return std::nullopt;
  return out;
}

bool is_ours(const std::string& header, const Door& door) {
  const auto at = parse_host(header);
  // Behind a proxy the port is the proxy's; a name that was allowed is enough then.
  if (!at) return false;
  if (std::ranges::find(door.names, at->host) != door.names.end()) return true;
  if (at->port != door.port) return false;
  if (is_loopback(at->host)) return true;
  // A name can be made to point here by anybody, an address cannot.
  return !door.loopback && is_address(at->host);
}

// Takes as long for a wrong token as for the right one.
bool equal(const std::string& a, const std::string& b) {
  unsigned different = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    different |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  }
  return different == 0;
}

std::string cookie_of(const Request& request, const Door& door) {
  const std::string name = cookie_name(door);
  for (std::string part : split(request.header("cookie"), ';')) {
    part.erase(0, part.find_first_not_of(' '));
    const size_t equals = part.find('=');
    if (equals != part.npos && part.substr(0, equals) == name) return part.substr(equals + 1);
  }
  return {};
}

bool has_token(const Request& request, const Door& door) {
  if (door.token.empty()) return true;
  const std::string& header = request.header("authorization");
  if (header.starts_with("Bearer ") && equal(header.substr(7), door.token)) return true;
  return equal(cookie_of(request, door), door.token);
}

std::optional<Answer> wrong_body(const Request& request) {
  const std::string& length = request.header("content-length");
  if (length.size() > 15 || length.find_first_not_of("0123456789") != length.npos) {
    return error_answer({Code::kUsage, "this is no length", "Content-Length", "send one number"},
                        400);
  }
  if (!request.header("transfer-encoding").empty()) {
    return error_answer({Code::kUsage, "a body needs its length", "Transfer-Encoding",
                         "send Content-Length instead"},
                        411);
  }
  if (length.empty() || length == "0") return std::nullopt;
  if (!request.header("content-encoding").empty()) {
    return error_answer({Code::kUsage, "encoded bodies are not taken", "Content-Encoding",
                         "send it as it is; a compressed trace file needs no header"},
                        415);
  }
  std::string type = lower_case(request.header("content-type"));
  type = type.substr(0, type.find(';'));
  if (type == "application/json" || type == "application/octet-stream") return std::nullopt;
  return error_answer({Code::kUsage, "this type of body is not taken", "Content-Type",
                       "application/json, or application/octet-stream for a trace file"},
                      415);
}

}  // namespace

bool is_loopback(const std::string& host) {
  if (host == "localhost" || host == "::1" || host == "[::1]") return true;
  in_addr address{};
  return ::inet_pton(AF_INET, host.c_str(), &address) == 1 && (ntohl(address.s_addr) >> 24) == 127;
}

std::optional<Answer> greeting(const Request& request, const Door& door) {
  if (door.token.empty() || request.method != "GET" || request.path != "/") return std::nullopt;
  if (!is_ours(request.header("host"), door)) return std::nullopt;
  if (!equal(request.argument("token"), door.token)) return std::nullopt;
  Answer answer{.status = 303, .type = "text/plain", .body = "welcome\n"};
  answer.headers = {{"Location", "/"},
                    {"Set-Cookie", fmt::format("{}={}; Path=/; HttpOnly; SameSite=Strict",
                                               cookie_name(door), door.token)}};
  return answer;
}

std::optional<Answer> refusal(const Request& request, const Door& door) {
  if (!is_ours(request.header("host"), door)) {
    return error_answer({Code::kUsage, "this server does not answer to that name",
                         "Host: " + in_quotes(request.header("host")),
                         "use http://127.0.0.1, or start it with --name"},
                        421);
  }
  const std::string& origin = request.header("origin");
  const std::string& host = request.header("host");
  if (!origin.empty() && origin != "http://" + host && origin != "https://" + host) {
    return error_answer({Code::kUsage, "requests of other sites are refused",
                         "Origin: " + in_quotes(origin), "use the page of this server"},
                        403);
  }
  const std::string& site = request.header("sec-fetch-site");
  const bool reads_page = request.method == "GET" && !request.path.starts_with("/api/");
  if (!site.empty() && site != "same-origin" && site != "none" && !reads_page) {
    return error_answer({Code::kUsage, "requests of other sites are refused",
                         "Sec-Fetch-Site: " + in_quotes(site), "use the page of this server"},
                        403);
  }
  if (!has_token(request, door)) {
    Answer answer = error_answer({Code::kUsage, "a token is needed", "Authorization",
                                  "open the address that `rehearse serve` printed, or send "
                                  "Authorization: Bearer TOKEN"},
                                 401);
    answer.headers.emplace_back("WWW-Authenticate", "Bearer");
    return answer;
  }
  return wrong_body(request);
}

Result<std::string> random_token() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return fail(Code::kIo, "the operating system gives no random bytes", "--token",
                "give a token of your own");
  }
  std::string out;
  for (const unsigned char byte : bytes) out += fmt::format("{:02x}", byte);
  return out;
}

}  // namespace rehearse::serve
