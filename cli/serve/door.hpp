// SPDX-License-Identifier: Apache-2.0
// Who may come in. A web page of somebody else, open in the browser of the person who runs the
// server, must not reach it: neither under its own name (DNS rebinding: the Host is checked), nor by
// sending requests here (Origin and Sec-Fetch-Site are checked, bodies must be of types that forms
// cannot send, nothing ever answers a preflight). Where others than this machine can connect, or
// the user asks for it, a token is needed too. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/serve/http.hpp"

namespace rehearse::serve {

struct Door {
  uint16_t port = 0;
  bool loopback = true;            // only this machine can connect
  std::vector<std::string> names;  // Host names that are ours besides localhost and addresses
  std::string token;               // empty: none is needed
};

// The answer to a request that must not be served; nullopt: it may.
[[nodiscard]] std::optional<Answer> refusal(const Request& request, const Door& door);

// The answer to a first visit with the token in the address: a cookie, and off to the page itself.
[[nodiscard]] std::optional<Answer> greeting(const Request& request, const Door& door);

// True for 127.0.0.0/8 and ::1 (with or without brackets) and localhost.
[[nodiscard]] bool is_loopback(const std::string& host);

// 128 random bits of the operating system, in hexadecimal.
[[nodiscard]] Result<std::string> random_token();

}  // namespace rehearse::serve
