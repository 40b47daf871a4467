// SPDX-License-Identifier: Apache-2.0
// The rows of a table, read and numbered, before they become ranks (ranks.cpp).
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "traces/import/csv/csv.hpp"

namespace rehearse::traces::csv {

[[nodiscard]] char separator_of(const pb::TableMapping& mapping);
// Every column that a mapping names, once.
[[nodiscard]] std::vector<std::string> columns_of(const pb::TableMapping& mapping);
// The shipped mapping that fits the header.
[[nodiscard]] Result<pb::TableMapping> shipped_mapping(std::string_view head);

// Ranks with the same values in some columns.
struct RankGroup {
  std::string label;                  // "dp_rank=3"
  std::map<RankId, int64_t> members;  // rank -> value of the column `toward`; 0 without one
};

struct TableRow {
  uint32_t operation = 0;  // into Table::operations
  RankId rank = 0;
  int64_t step = 0;
  Nanos start = 0;
  Nanos duration = 0;
  Bytes bytes = -1;
  uint32_t group = 0;  // into Table::groups, of collectives, sends and receives
  uint32_t lane = 0;   // string id; 0: that of the operation
};

struct Table {
  struct Operation {
    uint32_t name = 0;  // string id
    pb::TableOperation what;
  };
  std::vector<Operation> operations;
  std::vector<RankGroup> groups;
  std::vector<TableRow> rows;
};

// Reads all rows that the mapping tells of; those that cannot be used are findings.
[[nodiscard]] Result<Table> read_table(Source& source, const pb::TableMapping& mapping,
                                       ReadContext& context);

// Turns rows into ranks, with steps, communicators and, where the mapping says so, a host that waits.
[[nodiscard]] std::vector<RankPart> ranks_of(Table table, const pb::TableMapping& mapping,
                                             const std::string& file, ReadContext& context);

}  // namespace rehearse::traces::csv
