// SPDX-License-Identifier: Apache-2.0
// Who puts traffic on each link of a program: communicators, as far as they are few, and others.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/fabric/fabric.hpp"

namespace rehearse::sim {

class LinkUsers {
 public:
  explicit LinkUsers(size_t links) : users_(links) {}

  void add(std::span<const LinkWeight> route, uint32_t communicator) {
    for (const LinkWeight& use : route) {
      Users& users = users_[use.link];
      const auto known = communicators(use.link);
      if (std::find(known.begin(), known.end(), communicator) != known.end()) continue;
      if (users.count == users.who.size()) {
        users.others = true;
      } else {
        users.who[users.count++] = communicator;
      }
    }
  }
  // What is no communicator's: copies, storage.
  void add_others(std::span<const LinkWeight> route) {
    for (const LinkWeight& use : route) users_[use.link].others = true;
  }

  [[nodiscard]] std::span<const uint32_t> communicators(LinkId link) const {
    return {users_[link].who.data(), users_[link].count};
  }
  // There are more than the communicators named.
  [[nodiscard]] bool others(LinkId link) const { return users_[link].others; }

 private:
  struct Users {
    std::array<uint32_t, 3> who{};
    uint8_t count = 0;
    bool others = false;
  };
  std::vector<Users> users_;  // by link
};

}  // namespace rehearse::sim
