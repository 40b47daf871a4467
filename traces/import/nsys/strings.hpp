// SPDX-License-Identifier: Apache-2.0
// The table StringIds, looked up as names are needed: a long run may hold millions of texts of which few are
// names of kernels and calls.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "traces/import/nsys/database.hpp"

namespace rehearse::traces::nsys {

class StringIds {
 public:
  StringIds(Database& database, Strings& strings) : database_(database), strings_(strings) {}
  // Reads the whole table when its ids are no key to look up by.
  [[nodiscard]] Result<void> load();
  // The interned text of an id; 0 ("") when the table does not have it, which missing() counts. An error of
  // the database is kept in error() and gives 0.
  [[nodiscard]] uint32_t at(int64_t id);
  // The text itself, not interned; valid until the next call.
  [[nodiscard]] std::string_view text(int64_t id);
  [[nodiscard]] uint64_t missing() const { return missing_; }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  [[nodiscard]] std::optional<std::string> find(int64_t id);

  Database& database_;
  Strings& strings_;
  std::unordered_map<int64_t, uint32_t> known_;
  std::unordered_map<int64_t, std::string> loaded_;
  bool is_loaded_ = false;
  struct Cached {
    int64_t id = -1;
    std::string text;
  };
  std::vector<Cached> cache_ = std::vector<Cached>(1024);
  uint64_t missing_ = 0;
  std::optional<Error> error_;
};

}  // namespace rehearse::traces::nsys
