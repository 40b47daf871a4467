// SPDX-License-Identifier: Apache-2.0
#include "traces/import/nsys/database.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace rehearse::traces::nsys {
namespace {

constexpr size_t kMostInMemory = size_t{1} << 30;
constexpr int kLongestValue = 64 << 20;
constexpr size_t kMostTables = 4096;
constexpr size_t kMostColumns = 65536;
constexpr int kStepsPerLook = 200'000;
constexpr const char* kAgain = "export it again from the .nsys-rep with nsys export --type sqlite";
constexpr const char* kAgainOrCut =
    "export it again from the .nsys-rep with nsys export --type sqlite, or take what can be read "
    "with "
    "--allow-truncated";

uint64_t big_endian(std::string_view head, size_t at, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i) value = value << 8 | static_cast<uint8_t>(head[at + i]);
  return value;
}

// Bytes that the header promises; 0 when it does not say.
uint64_t promised_bytes(std::string_view head) {
  if (head.size() < 100) return 0;
  uint64_t page = big_endian(head, 16, 2);
  if (page == 1) page = 65536;
  // The count of pages holds only when both change counters agree.
  if (big_endian(head, 24, 4) != big_endian(head, 92, 4)) return 0;
  return page * big_endian(head, 28, 4);
}

std::string uri_of(const std::filesystem::path& path) {
  std::string uri = "file:";
  for (const char c : std::filesystem::absolute(path).string()) {
    if (c == '%' || c == '?' || c == '#') {
      uri += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    } else {
      uri += c;
    }
  }
  return uri + "?mode=ro&immutable=1";
}

std::string identifier(std::string_view name) {
  std::string out = "\"";
  for (const char c : name) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + '"';
}

bool is_damage(int code) {
  const int primary = code & 0xff;
  return primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB || primary == SQLITE_IOERR;
}

}  // namespace

std::optional<int64_t> Row::integer(int column) const {
  if (sqlite3_column_type(statement_, column) != SQLITE_INTEGER) return std::nullopt;
  return sqlite3_column_int64(statement_, column);
}

int64_t Row::integer(int column, int64_t otherwise) const {
  return integer(column).value_or(otherwise);
}

std::string_view Row::bytes(int column) const {
  const int type = sqlite3_column_type(statement_, column);
  if (type != SQLITE_TEXT && type != SQLITE_BLOB) return {};
  const void* const data = sqlite3_column_blob(statement_, column);
  const int size = sqlite3_column_bytes(statement_, column);
  if (data == nullptr || size <= 0) return {};
  return {static_cast<const char*>(data), static_cast<size_t>(size)};
}

Error Database::error(int code, const std::string& where) const {
  const char* const said = db_ ? sqlite3_errmsg(db_.get()) : sqlite3_errstr(code);
  if ((code & 0xff) == SQLITE_INTERRUPT) return {Code::kInterrupted, "interrupted", "", ""};
  if ((code & 0xff) == SQLITE_TOOBIG) {
    return {Code::kLimit, fmt::format("a value is longer than {} MiB", kLongestValue >> 20), where,
            "export it without binary payloads"};
  }
  if ((code & 0xff) == SQLITE_NOMEM) return {Code::kLimit, "out of memory", where, ""};
  return {Code::kBadInput, fmt::format("the database is damaged: {}", said), where, kAgainOrCut};
}

Result<Database> Database::open(Source& source, ReadContext& context) {
  Database out(context);
  out.file_ = source.name();
  if (auto connected = out.connect(source); !connected) return tl::unexpected(connected.error());
  if (auto listed = out.list(); !listed) return tl::unexpected(listed.error());
  return out;
}

Result<void> Database::connect(Source& source) {
  const bool in_place = !source.path().empty() && source.encoding() == Encoding::kPlain;
  const uint64_t promised = promised_bytes(source.head());
  std::vector<char> block(1 << 20);
  uint64_t size = 0;
  for (;;) {
    if (context_->reporter.interrupted()) return fail(Code::kInterrupted, "interrupted");
    auto got = source.read(block);
    if (!got) {
      if (!source.cut() || context_->cut_files == CutFiles::kRefuse) {
        return tl::unexpected(std::move(got).error());
      }
      break;
    }
    if (*got == 0) break;
    size += *got;
    if (in_place) continue;
    if (size > kMostInMemory) {
      return fail(Code::kLimit,
                  fmt::format("a compressed database of more than {} GiB", kMostInMemory >> 30),
                  file_, "unpack it first: a plain file is read in place");
    }
    memory_.insert(memory_.end(), block.begin(), block.begin() + static_cast<ptrdiff_t>(*got));
  }
  if (promised > size) {
    const std::string what = fmt::format(
        "the database ends early: it has {} of the {} bytes it tells of", size, promised);
    const std::string where = fmt::format("{}: byte {}", file_, size);
    if (context_->cut_files == CutFiles::kRefuse) {
      return fail(Code::kBadInput, what, where, kAgainOrCut);
    }
    context_->findings.add("file-cut", Severity::kDataLoss, where, what);
  }
  sqlite3* raw = nullptr;
  const std::string uri = in_place ? uri_of(source.path()) : ":memory:";
  const int flags = in_place ? SQLITE_OPEN_READONLY | SQLITE_OPEN_URI : SQLITE_OPEN_READWRITE;
  int code = sqlite3_open_v2(uri.c_str(), &raw, flags | SQLITE_OPEN_PRIVATECACHE, nullptr);
  db_.reset(raw);
  if (code != SQLITE_OK) return tl::unexpected(error(code, file_));
  if (!in_place) {
    auto* const bytes = reinterpret_cast<unsigned char*>(memory_.data());
    code = sqlite3_deserialize(raw, "main", bytes, static_cast<sqlite3_int64>(memory_.size()),
                               static_cast<sqlite3_int64>(memory_.size()),
                               SQLITE_DESERIALIZE_READONLY);
    if (code != SQLITE_OK) return tl::unexpected(error(code, file_));
  }
  sqlite3_limit(raw, SQLITE_LIMIT_LENGTH, kLongestValue);
  sqlite3_limit(raw, SQLITE_LIMIT_EXPR_DEPTH, 64);
  sqlite3_limit(raw, SQLITE_LIMIT_TRIGGER_DEPTH, 1);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  // Only so does SQLite read a file that is shorter than its header tells; nothing can be written.
  const int lenient = context_->cut_files == CutFiles::kAccept ? 1 : 0;
  sqlite3_db_config(raw, SQLITE_DBCONFIG_WRITABLE_SCHEMA, lenient, nullptr);
  sqlite3_exec(raw, "PRAGMA temp_store=MEMORY; PRAGMA cell_size_check=ON; PRAGMA query_only=ON;",
               nullptr, nullptr, nullptr);
  sqlite3_progress_handler(
      raw, kStepsPerLook,
      [](void* context) {
        return static_cast<ReadContext*>(context)->reporter.interrupted() ? 1 : 0;
      },
      context_);
  std::error_code ignored;
  if (in_place && std::filesystem::file_size(source.path().string() + "-wal", ignored) > 0 &&
      !ignored) {
    context_->findings.add(
        "write-ahead-log", Severity::kDataLoss, source.path().string() + "-wal",
        "rows that are only in this log are not read; open the database once with "
        "sqlite3 to merge it");
  }
  return {};
}

Result<Database::Statement> Database::prepare(const std::string& sql) const {
  sqlite3_stmt* raw = nullptr;
  const int code = sqlite3_prepare_v2(db_.get(), sql.c_str(), -1, &raw, nullptr);
  Statement out(raw);
  if (code != SQLITE_OK || raw == nullptr) return tl::unexpected(error(code, file_));
  return out;
}

Result<void> Database::list() {
  RH_TRY(const Statement tables,
         prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0"));
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(tables.get())) == SQLITE_ROW) {
    const std::string_view name = Row(tables.get(), 0).bytes(0);
    if (name.empty() || name.size() > 256 || name.starts_with("sqlite_")) continue;
    tables_.emplace(name);
    if (tables_.size() > kMostTables) {
      return fail(Code::kLimit, fmt::format("more than {} tables", kMostTables), file_, kAgain);
    }
  }
  if (code != SQLITE_DONE) return tl::unexpected(error(code, file_ + ": sqlite_master"));
  for (const std::string& table : tables_) {
    RH_TRY(const Statement info, prepare("PRAGMA table_info(" + identifier(table) + ")"));
    while ((code = sqlite3_step(info.get())) == SQLITE_ROW) {
      const Row row(info.get(), 0);
      columns_.push_back({table, std::string(row.bytes(1)), row.integer(5, 0) == 1});
      if (columns_.size() > kMostColumns) {
        return fail(Code::kLimit, fmt::format("more than {} columns", kMostColumns), file_, kAgain);
      }
    }
    if (code != SQLITE_DONE) return tl::unexpected(error(code, file_ + ": " + table));
  }
  std::sort(columns_.begin(), columns_.end());
  return {};
}

bool Database::has(std::string_view table) const { return tables_.contains(table); }

bool Database::has(std::string_view table, std::string_view column) const {
  return std::any_of(columns_.begin(), columns_.end(),
                     [&](const Column& c) { return c.table == table && c.name == column; });
}

bool Database::is_key(std::string_view table, std::string_view column) const {
  return std::any_of(columns_.begin(), columns_.end(), [&](const Column& c) {
    return c.key && c.table == table && c.name == column;
  });
}

std::vector<std::string> Database::tables() const { return {tables_.begin(), tables_.end()}; }

bool Database::is_empty(std::string_view table) {
  const auto statement = prepare("SELECT 1 FROM " + identifier(table) + " LIMIT 1");
  return !statement || sqlite3_step(statement->get()) != SQLITE_ROW;
}

Result<void> Database::each(std::string_view table, std::span<const char* const> columns,
                            const std::function<void(const Row&)>& use) {
  if (!has(table)) return {};
  std::string sql = "SELECT ";
  for (size_t i = 0; i < columns.size(); ++i) {
    sql += i > 0 ? ", " : "";
    sql += has(table, columns[i]) ? identifier(columns[i]) : std::string("NULL");
  }
  RH_TRY(const Statement statement, prepare(sql + " FROM " + identifier(table)));
  uint64_t number = 0;
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(statement.get())) == SQLITE_ROW) {
    use(Row(statement.get(), ++number));
    if (number % 65536 == 0) context_->reporter.progress(table, number, 0);
  }
  if (code == SQLITE_DONE) return {};
  const std::string where = fmt::format("{}: row {} of {}", file_, number + 1, table);
  if (context_->cut_files == CutFiles::kAccept && is_damage(code)) {
    context_->findings.add("table-damaged", Severity::kDataLoss, where,
                           fmt::format("the rows behind it are lost; {}", kAgain));
    return {};
  }
  return tl::unexpected(error(code, where));
}

Result<std::optional<std::string>> Database::text_of(std::string_view table, std::string_view key,
                                                     std::string_view column, int64_t id) {
  const std::string sql = fmt::format("SELECT {} FROM {} WHERE {} = ?1 LIMIT 1", identifier(column),
                                      identifier(table), identifier(key));
  if (sql != lookup_sql_) {
    RH_TRY(lookup_, prepare(sql));
    lookup_sql_ = sql;
  }
  sqlite3_reset(lookup_.get());
  sqlite3_bind_int64(lookup_.get(), 1, id);
  const int code = sqlite3_step(lookup_.get());
  if (code == SQLITE_DONE) return std::nullopt;
  if (code != SQLITE_ROW) {
    if (context_->cut_files == CutFiles::kAccept && is_damage(code)) return std::nullopt;
    return tl::unexpected(error(code, fmt::format("{}: {} {} of {}", file_, key, id, table)));
  }
  return std::string(Row(lookup_.get(), 1).bytes(0));
}

}  // namespace rehearse::traces::nsys
