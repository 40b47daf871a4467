// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/document.hpp"
#include "base/install.hpp"
#include "base/text.hpp"
#include "traces/import/csv/csv.hpp"
#include "traces/import/csv/table.hpp"

namespace rehearse::traces::csv {
namespace {

constexpr size_t kFewestColumns = 3;
constexpr size_t kMostColumns = 4096;

std::string_view first_line(std::string_view head) {
  if (head.starts_with("\xef\xbb\xbf")) head.remove_prefix(3);
  std::string_view line = head.substr(0, head.find('\n'));
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
  return line;
}

std::vector<std::string> names_of(std::string_view line, char separator) {
  std::vector<std::string> names = split(line, separator);
  for (std::string& name : names) {
    while (!name.empty() && (name.front() == ' ' || name.front() == '"')) name.erase(0, 1);
    while (!name.empty() && (name.back() == ' ' || name.back() == '"')) name.pop_back();
  }
  return names;
}

bool is_name(std::string_view name) {
  if (name.empty() || name.size() > 128 || (name[0] >= '0' && name[0] <= '9')) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_ .-/()[]").find(c) != std::string_view::npos;
  });
}

tl::unexpected<Error> wrong(const std::string& path, const std::string& field,
                            const std::string& what, const std::string& fix) {
  return fail(Code::kBadInput, fmt::format("{}: {}", field, what), path, fix);
}

Result<void> check_time(const pb::TableTime& time, const std::string& path,
                        const std::string& field) {
  if (time.column().empty()) return wrong(path, field + ".column", "is missing", "name the column");
  if (time.unit() == pb::TableTime::UNIT_UNSPECIFIED) {
    return wrong(path, field + ".unit", "is missing", "say s, ms, us or ns");
  }
  return {};
}

Result<void> check(const pb::TableMapping& mapping, const std::string& path) {
  const pb::TableColumns& columns = mapping.columns();
  if (mapping.separator().size() > 1) {
    return wrong(path, "separator", "is more than one character", "use a comma, semicolon or tab");
  }
  if (columns.operation().empty()) {
    return wrong(path, "columns.operation", "is missing",
                 "name the column that says what a row is");
  }
  if (auto ok = check_time(columns.start(), path, "columns.start"); !ok) return ok;
  if (columns.has_duration() == columns.has_end()) {
    return wrong(path, "columns", "needs duration or end, and not both", "name one of them");
  }
  auto ok = columns.has_duration() ? check_time(columns.duration(), path, "columns.duration")
                                   : check_time(columns.end(), path, "columns.end");
  if (!ok) return ok;
  if (mapping.times() == pb::TableMapping::WITHIN_STEP && columns.step().empty()) {
    return wrong(path, "columns.step", "is missing", "times within a step need the step's column");
  }
  if (mapping.operations().empty()) {
    return wrong(path, "operations", "is missing",
                 "say what each value of the operation column is");
  }
  for (const auto& [name, operation] : mapping.operations()) {
    const std::string field = "operations." + name;
    if (operation.kind() == pb::TableOperation::KIND_UNSPECIFIED) {
      return wrong(path, field + ".kind", "is missing", "say kernel, host, ignore or a collective");
    }
    const bool ends = operation.kind() == pb::TableOperation::SEND ||
                      operation.kind() == pb::TableOperation::RECEIVE;
    if (ends && (operation.toward().empty() || operation.shift() == 0)) {
      return wrong(path, field, "needs toward and shift",
                   "name the column that tells the two ends apart, and how far the other end is");
    }
    if (!ends && (!operation.toward().empty() || operation.shift() != 0)) {
      return wrong(path, field, "toward and shift are of send and receive only", "leave them out");
    }
  }
  return {};
}

}  // namespace

char separator_of(const pb::TableMapping& mapping) {
  return mapping.separator().empty() ? ',' : mapping.separator()[0];
}

bool looks_like_table(std::string_view head) {
  const std::string_view line = first_line(head);
  const size_t next = head.find('\n');
  if (line.size() > (64 << 10) || next == std::string_view::npos) return false;
  const std::string_view second = head.substr(next + 1, head.find('\n', next + 1) - next - 1);
  for (const char separator : {',', ';', '\t'}) {
    const std::vector<std::string> names = names_of(line, separator);
    if (names.size() < kFewestColumns || names.size() > kMostColumns) continue;
    if (!std::all_of(names.begin(), names.end(), is_name)) continue;
    const auto fields =
        static_cast<size_t>(std::count(second.begin(), second.end(), separator)) + 1;
    if (fields == names.size()) return true;
  }
  return false;
}

std::vector<std::string> columns_of(const pb::TableMapping& mapping) {
  const pb::TableColumns& c = mapping.columns();
  std::set<std::string> names = {
      c.rank(),         c.operation(), c.start().column(), c.duration().column(),
      c.end().column(), c.step(),      c.bytes(),          c.lane()};
  for (const auto& [name, operation] : mapping.operations()) {
    for (const std::string& column : operation.same()) names.insert(column);
    names.insert(operation.toward());
  }
  names.erase("");
  return {names.begin(), names.end()};
}

std::vector<std::string> missing_columns(const pb::TableMapping& mapping, std::string_view head) {
  const std::vector<std::string> there = names_of(first_line(head), separator_of(mapping));
  std::vector<std::string> missing;
  for (const std::string& column : columns_of(mapping)) {
    if (std::find(there.begin(), there.end(), column) == there.end()) missing.push_back(column);
  }
  return missing;
}

Result<pb::TableMapping> load_mapping(const std::string& path) {
  pb::TableMapping mapping;
  if (auto read = read_document_file(path, mapping); !read) return tl::unexpected(read.error());
  if (auto ok = check(mapping, path); !ok) return tl::unexpected(ok.error());
  if (mapping.name().empty()) mapping.set_name(std::filesystem::path(path).stem().string());
  return mapping;
}

Result<pb::TableMapping> shipped_mapping(std::string_view head) {
  RH_TRY(const std::filesystem::path folder, shipped("traces/import/csv/mappings"));
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    if (it->path().extension() == ".yaml") files.push_back(it->path());
  }
  std::sort(files.begin(), files.end());
  for (const auto& file : files) {
    RH_TRY(pb::TableMapping mapping, load_mapping(file.string()));
    if (missing_columns(mapping, head).empty()) return mapping;
  }
  return fail(Code::kBadInput, "a table whose columns no shipped mapping knows", "",
              "say what its columns are with --columns my-columns.yaml (see docs/import.md)");
}

bool sniff(std::string_view head) {
  return looks_like_table(head) && shipped_mapping(head).has_value();
}

}  // namespace rehearse::traces::csv
