// SPDX-License-Identifier: Apache-2.0
// The tables of an Nsight Systems export that hold operations, described as data: whose they are, whether
// they tell a time, which columns are read, and what a row becomes. Tables and columns may be missing.
#pragma once

#include <array>
#include <map>
#include <span>
#include <string_view>

#include "traces/import/nsys/database.hpp"
#include "traces/import/nsys/payload.hpp"
#include "traces/import/nsys/processes.hpp"
#include "traces/import/nsys/strings.hpp"

namespace rehearse::traces::nsys {

constexpr const char* kKernels = "CUPTI_ACTIVITY_KIND_KERNEL";
constexpr const char* kCopies = "CUPTI_ACTIVITY_KIND_MEMCPY";
constexpr const char* kMemsets = "CUPTI_ACTIVITY_KIND_MEMSET";
constexpr const char* kGraphs = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE";
constexpr std::array<const char*, 4> kGpuTables = {kKernels, kCopies, kMemsets, kGraphs};

// A table whose rows become operations.
[[nodiscard]] bool holds_operations(std::string_view table);
// True when the database has one of them.
[[nodiscard]] bool has_operations(const Database& database);
// A table that says nothing about operations.
[[nodiscard]] bool is_descriptive(std::string_view table);

// Reads all of those tables into the builders of their processes. `base` is added to every time.
class Tables {
 public:
  Tables(Database& database, StringIds& strings, Processes& processes, ReadContext& context,
         Nanos base)
      : database_(database),
        strings_(strings),
        processes_(processes),
        context_(context),
        base_(base) {}

  [[nodiscard]] Result<void> read();

 private:
  // One row of a table, after what all tables have in common.
  struct Record {
    const Row& row;
    activity::Builder& builder;
    activity::Place place;
    activity::Span span;  // of tables that tell one
    int64_t thread = 0;   // of tables whose rows belong to threads
  };
  enum class Times { kSpan, kOwn };
  struct Description {
    const char* table = nullptr;
    const char* owner = nullptr;  // column of the process or thread
    Times times =
        Times::kSpan;  // start and end are a span that must make sense, or looked at in `use`
    std::span<const char* const> columns;  // read behind start, end and the owner, from kFirst
    void (Tables::*use)(const Record&) = nullptr;
  };
  static constexpr int kStart = 0, kEnd = 1, kOwner = 2, kFirst = 3;
  static const std::span<const Description> kAll;
  friend bool holds_operations(std::string_view table);

  [[nodiscard]] Result<void> read(const Description& description);
  [[nodiscard]] bool span_of(const Row& row, const activity::Place& place,
                             activity::Builder& builder, activity::Span& span) const;
  [[nodiscard]] static activity::GpuWork work_of(const Record& r);
  [[nodiscard]] uint32_t name_at(const Row& row, int column);
  void kernel(const Record& r);
  void copy(const Record& r);
  void memset(const Record& r);
  void graph(const Record& r);
  void runtime(const Record& r);
  void wait(const Record& r);
  void event(const Record& r);
  void range(const Record& r);
  void overhead(const Record& r);
  void memory(const Record& r);

  Database& database_;
  StringIds& strings_;
  Processes& processes_;
  ReadContext& context_;
  Nanos base_;
  Payloads payloads_;
  std::map<std::pair<int64_t, int64_t>, uint64_t> blocks_;  // (process, address) of memory
};

}  // namespace rehearse::traces::nsys
