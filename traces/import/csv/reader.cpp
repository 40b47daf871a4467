// SPDX-License-Identifier: Apache-2.0
#include "traces/import/csv/csv.hpp"
#include "traces/import/csv/table.hpp"
#include "traces/import/nothing_used.hpp"

namespace rehearse::traces::csv {

Result<FilePart> read(Source& source, ReadContext& context) {
  pb::TableMapping mapping;
  if (context.table != nullptr) {
    mapping = *context.table;
  } else {
    RH_TRY(mapping, shipped_mapping(source.head()));
  }
  RH_TRY(Table table, read_table(source, mapping, context));
  if (table.rows.empty()) {
    return tl::unexpected(
        nothing_used({Code::kBadInput, "no row of the table is an operation", source.name(),
                      "the mapping " + mapping.name() + " must name the operations of this table"},
                     context.findings));
  }
  FilePart part;
  part.framework = mapping.framework();
  const std::string& name = source.name();
  part.ranks = ranks_of(std::move(table), mapping, name.substr(name.rfind('/') + 1), context);
  return part;
}

}  // namespace rehearse::traces::csv
