// SPDX-License-Identifier: Apache-2.0
// Operations that are written as a begin (ph B) and an end (ph E) rather than as one complete event.
// An end closes the innermost begin of its thread, in the order of the file. A begin is kept as its
// text until then; what is kept is bounded.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "traces/import/kineto/event.hpp"

namespace rehearse::traces::kineto {

class OpenSpans {
 public:
  struct Begin {
    std::string text;  // of the event; 64 readable bytes stand behind it
    uint64_t offset = 0, number = 0;
    [[nodiscard]] Element element() const;
  };
  // False when too many are open: the begin is not kept.
  [[nodiscard]] bool begin(const Event& event, const Element& element);
  // What `event` ends, nothing when no begin of its thread is open.
  [[nodiscard]] std::optional<Begin> end(const Event& event);
  // The first of all that are still open, and how many these are.
  [[nodiscard]] std::optional<Element> first_open() const;
  [[nodiscard]] uint64_t open() const { return open_; }

 private:
  std::map<std::pair<std::string, std::string>, std::vector<Begin>> threads_;  // by pid and tid
  uint64_t open_ = 0, bytes_ = 0;
};

}  // namespace rehearse::traces::kineto
