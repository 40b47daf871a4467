// SPDX-License-Identifier: Apache-2.0
// HTTP in front of the API: accepts connections, hands requests over, sends answers. A bounded number
// of connections at a time; more wait in the operating system's queue.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/error.hpp"
#include "cli/serve/http.hpp"

namespace rehearse::serve {

class Server {
 public:
  using Answering = std::function<Answer(const Request&)>;
  // Binds at once. Port 0: any that is free. kUsage when the address cannot be had.
  [[nodiscard]] static Result<std::unique_ptr<Server>> bind(const std::string& address,
                                                            uint16_t port);
  virtual ~Server() = default;
  [[nodiscard]] virtual uint16_t port() const = 0;
  // Answers in threads of its own until stop().
  virtual void start(Answering answering) = 0;
  virtual void stop() = 0;
};

}  // namespace rehearse::serve
