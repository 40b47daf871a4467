// SPDX-License-Identifier: Apache-2.0
#include "cli/serve/door.hpp"

#include <catch2/catch.hpp>

namespace rehearse::door_test {
using namespace rehearse::serve;

namespace {

Request from(const std::string& method, const std::string& path,
             std::map<std::string, std::string> headers) {
  Request request;
  request.method = method;
  request.path = path;
  request.headers = std::move(headers);
  return request;
}

int status(const Request& request, const Door& door) {
  const auto answer = refusal(request, door);
  return answer ? answer->status : 200;
}

}  // namespace

TEST_CASE("a name of somebody else is refused, our own names are not", "[serve]") {
  const Door door{.port = 8642, .loopback = true, .names = {"cluster.example"}, .token = ""};
  for (const char* host : {"127.0.0.1:8642", "localhost:8642", "[::1]:8642", "Cluster.Example",
                           "cluster.example:443"}) {
    CHECK(status(from("GET", "/api/v1", {{"host", host}}), door) == 200);
  }
  for (const char* host : {"", "evil.example:8642", "127.0.0.1", "192.168.0.1:8642", "localhost:1",
                           "localhost:8642x", ":8642", "[::1]8642", "localhost:-1"}) {
    CHECK(status(from("GET", "/api/v1", {{"host", host}}), door) == 421);
  }
}

TEST_CASE("addresses are ours where others can connect, names are not", "[serve]") {
  const Door door{.port = 80, .loopback = false, .names = {}, .token = "0123456789abcdef"};
  const auto with = [&](const std::string& host) {
    return status(
        from("GET", "/api/v1", {{"host", host}, {"authorization", "Bearer 0123456789abcdef"}}),
        door);
  };
  CHECK(with("10.1.2.3") == 200);
  CHECK(with("[2001:db8::1]:80") == 200);
  CHECK(with("gpu-head") == 421);
}

TEST_CASE("a token is compared as a whole", "[serve]") {
  const Door door{.port = 80, .loopback = true, .names = {}, .token = "0123456789abcdef"};
  const auto with = [&](const std::string& name, const std::string& value) {
    return status(from("GET", "/api/v1", {{"host", "localhost"}, {name, value}}), door);
  };
  CHECK(with("authorization", "Bearer 0123456789abcdef") == 200);
  CHECK(with("cookie", "a=b; rehearse_token_80=0123456789abcdef") == 200);
  for (const char* token : {"", "0", "0123456789abcde", "0123456789abcdef0", "0123456789abcdeF"}) {
    CHECK(with("authorization", std::string("Bearer ") + token) == 401);
    CHECK(with("cookie", std::string("rehearse_token_80=") + token) == 401);
  }
}

TEST_CASE("bodies have a length and a type that no form can send", "[serve]") {
  const Door door{.port = 80, .loopback = true, .names = {}, .token = ""};
  const auto with = [&](std::map<std::string, std::string> headers) {
    headers["host"] = "localhost";
    return status(from("POST", "/api/v1/jobs", std::move(headers)), door);
  };
  CHECK(with({{"content-length", "0"}}) == 200);
  CHECK(with({{"content-length", "5"}, {"content-type", "application/json; charset=utf-8"}}) ==
        200);
  CHECK(with({{"content-length", "5"}, {"content-type", "text/plain"}}) == 415);
  CHECK(with({{"content-length", "5"}}) == 415);
  CHECK(with({{"transfer-encoding", "chunked"}}) == 411);
}

}  // namespace rehearse::door_test
