// SPDX-License-Identifier: Apache-2.0
// A SQLite database of unknown origin, read only: no journal, no lock, no temporary file, no function of its
// schema is trusted. Tables and columns may be missing. One user at a time.
#pragma once

#include <sqlite3.h>

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/import/part.hpp"

namespace rehearse::traces::nsys {

// The row that a query stands on. Columns are counted in the order asked for.
class Row {
 public:
  Row(sqlite3_stmt* statement, uint64_t number) : statement_(statement), number_(number) {}
  [[nodiscard]] uint64_t number() const { return number_; }  // of this table, from 1
  // The integer there; nothing for NULL, text, a number with decimals or a missing column.
  [[nodiscard]] std::optional<int64_t> integer(int column) const;
  [[nodiscard]] int64_t integer(int column, int64_t otherwise) const;
  // Text or blob there, "" when it is neither; valid until the next row.
  [[nodiscard]] std::string_view bytes(int column) const;

 private:
  sqlite3_stmt* statement_;
  uint64_t number_;
};

class Database {
 public:
  // kBadInput when it is cut (unless that is accepted) or no database.
  [[nodiscard]] static Result<Database> open(Source& source, ReadContext& context);

  [[nodiscard]] bool has(std::string_view table) const;
  [[nodiscard]] bool has(std::string_view table, std::string_view column) const;
  // True when rows can be looked up by that column without reading the table.
  [[nodiscard]] bool is_key(std::string_view table, std::string_view column) const;
  // Names of all tables, in order.
  [[nodiscard]] std::vector<std::string> tables() const;
  [[nodiscard]] bool is_empty(std::string_view table);

  // Calls `use` for every row of a table in the order stored, with the columns asked for (NULL where the
  // table has none of that name). Nothing happens when there is no such table. Damage is an error, or a
  // finding and the end of the table where that is accepted.
  [[nodiscard]] Result<void> each(std::string_view table, std::span<const char* const> columns,
                                  const std::function<void(const Row&)>& use);
  // The text of `column` where `key` is `id`; nothing when there is no such row.
  [[nodiscard]] Result<std::optional<std::string>> text_of(std::string_view table,
                                                           std::string_view key,
                                                           std::string_view column, int64_t id);

 private:
  struct Close {
    void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
  };
  struct Finalize {
    void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
  };
  using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;
  struct Column {
    std::string table, name;
    bool key = false;
    // NOLINTNEXTLINE(modernize-use-nullptr): a comparison with 0
    auto operator<=>(const Column&) const = default;
  };

  explicit Database(ReadContext& context) : context_(&context) {}
  [[nodiscard]] Result<void> connect(Source& source);
  [[nodiscard]] Result<void> list();
  [[nodiscard]] Result<Statement> prepare(const std::string& sql) const;
  [[nodiscard]] Error error(int code, const std::string& where) const;

  ReadContext* context_;
  std::string file_;
  std::vector<char> memory_;  // the database when it is not read from a file; outlives db_
  std::unique_ptr<sqlite3, Close> db_;
  std::set<std::string, std::less<>> tables_;
  std::vector<Column> columns_;  // sorted
  Statement lookup_;
  std::string lookup_sql_;
};

}  // namespace rehearse::traces::nsys
