// SPDX-License-Identifier: Apache-2.0
// Questions that a command of this program answers at once: the catalogues, what is in a trace, a
// scenario with its edits. A bounded number of workers at a time; answers are kept by what was asked
// until there are too many. Safe to call from any thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace rehearse::serve {

class Queries {
 public:
  // Workers run in `folder`.
  Queries(std::filesystem::path folder, unsigned at_once)
      : folder_(std::move(folder)), free_(at_once) {}
  Queries(const Queries&) = delete;
  Queries& operator=(const Queries&) = delete;

  // What the command prints; its own error when it fails. `key` names the question; "" is not kept.
  [[nodiscard]] Result<std::string> ask(const std::vector<std::string>& words,
                                        const std::string& key);
  [[nodiscard]] Result<std::string> ask(const std::vector<std::string>& words,
                                        const std::string& key,
                                        const std::filesystem::path& folder);
  // The answer to a question that was asked before; nullopt: not kept.
  [[nodiscard]] std::optional<std::string> kept(const std::string& key);
  // Nothing is asked any more; workers are ended.
  void stop();

 private:
  class Turn;
  [[nodiscard]] const std::string* known(const std::string& key) const;  // with the lock held
  void keep(const std::string& key, const std::string& answer);

  std::filesystem::path folder_;
  std::mutex mutex_;
  std::condition_variable turn_;
  unsigned free_;
  bool stopping_ = false;
  std::map<std::string, std::string> answers_;
  std::list<std::string> order_;  // oldest first
  size_t bytes_ = 0;
};

}  // namespace rehearse::serve
