// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "traces/evidence/names.hpp"
#include "traces/import/lines.hpp"
#include "traces/import/nccl_tests/conditions.hpp"
#include "traces/import/nccl_tests/nccl_tests.hpp"
#include "traces/import/scan.hpp"

namespace rehearse::traces::nccl_tests {
namespace {

constexpr size_t kMaxLine = size_t{1} << 20;

// Fields of one line; quotes protect commas, a doubled quote stands for one.
std::vector<std::string> fields_of(std::string_view line) {
  std::vector<std::string> out(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted && c == '"' && i + 1 < line.size() && line[i + 1] == '"') {
      out.back() += line[++i];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  return out;
}

std::string_view first_line(std::string_view head) {
  std::string_view line = head.substr(0, head.find('\n'));
  if (line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// The columns of a file by name, and the fields of the row that is being read.
class Row {
 public:
  explicit Row(const std::vector<std::string>& names) {
    for (size_t i = 0; i < names.size(); ++i) columns_.try_emplace(names[i], i);
  }
  void set(std::vector<std::string> fields) { fields_ = std::move(fields); }
  [[nodiscard]] size_t columns() const { return columns_.size(); }
  [[nodiscard]] size_t fields() const { return fields_.size(); }
  [[nodiscard]] bool has(std::string_view name) const { return columns_.contains(name); }
  [[nodiscard]] std::string text(std::string_view name) const {
    const auto it = columns_.find(name);
    if (it == columns_.end() || it->second >= fields_.size()) return "";
    return std::string(trimmed(fields_[it->second]));
  }
  [[nodiscard]] std::optional<double> number(std::initializer_list<std::string_view> names) const {
    for (const std::string_view name : names) {
      const std::string value = text(name);
      Scan scan(value);
      const auto found = scan.number();
      if (found && scan.rest().empty()) return found;
    }
    return std::nullopt;
  }
  [[nodiscard]] uint32_t small(std::string_view name) const {
    const auto value = number({name});
    return value && *value >= 0 && *value <= 1e9 ? static_cast<uint32_t>(*value) : 0;
  }

 private:
  std::map<std::string, size_t, std::less<>> columns_;
  std::vector<std::string> fields_;
};

bool has_columns(const Row& row) {
  const bool size = row.has("bytes") || row.has("size_bytes") || row.has("size");
  const bool time = row.has("time_us_oop") || row.has("time_us") || row.has("time");
  // A time alone could be that of anything; the name of nccl-tests' column says enough.
  return size && time &&
         (row.has("time_us_oop") || row.has("algbw_oop") || row.has("algbw_GBs") ||
          row.has("algbw"));
}

std::optional<pb::MeasuredHalf> half_of(const Row& row, std::string_view suffix) {
  const bool first = suffix == "_oop";
  const std::string key(suffix);
  const auto time =
      first ? row.number({"time_us_oop", "time_us", "time"}) : row.number({"time_us" + key});
  if (!time || *time < 0) return std::nullopt;
  pb::MeasuredHalf half;
  half.set_time_us(*time);
  half.set_algbw(
      (first ? row.number({"algbw_oop", "algbw_GBs", "algbw"}) : row.number({"algbw" + key}))
          .value_or(0));
  half.set_busbw(
      (first ? row.number({"busbw_oop", "busbw_GBs", "busbw"}) : row.number({"busbw" + key}))
          .value_or(0));
  half.set_wrong(row.text("wrong" + key));
  return half;
}

void set_conditions(const Row& row, pb::MeasuredTable& table) {
  table.set_collective(collective_name(row.text("collective")));
  if (!table.collective().empty()) table.set_collective_from("said");
  table.set_hardware(row.text("hardware"));
  table.set_nodes(row.small("nodes"));
  table.set_gpus(row.small("gpus"));
  table.set_nccl_version(row.text("nccl_version"));
  table.set_nccl_tests_version(row.text("nccl_tests_version"));
  table.set_forced_algorithm(row.text("algo_forced"));
  table.set_forced_protocol(row.text("proto_forced"));
  table.set_options(row.text("options"));
  table.set_iterations(static_cast<int32_t>(row.small("iters")));
  table.set_warmup(static_cast<int32_t>(row.small("warmup")));
  table.set_threads(static_cast<int32_t>(row.small("threads")));
  table.set_gpus_per_thread(static_cast<int32_t>(row.small("gpus_per_thread")));
  const auto graph = row.number({"graph"});
  table.set_graph(graph && *graph >= 0 && *graph < 1e6 ? static_cast<int32_t>(*graph) : -1);
  table.set_runs(1);
}

std::optional<pb::MeasuredRow> measured_row(const Row& row) {
  const auto bytes = row.number({"bytes", "size_bytes", "size"});
  const auto half = half_of(row, "_oop");
  if (!bytes || *bytes < 0 || *bytes > 1e18 || !half) return std::nullopt;
  pb::MeasuredRow out;
  out.set_bytes(static_cast<uint64_t>(*bytes));
  const auto count = row.number({"count"});
  out.set_count(count && *count >= 0 && *count < 1e18 ? static_cast<uint64_t>(*count) : 0);
  out.set_dtype(row.text("dtype"));
  const std::string redop = row.text("redop");
  if (redop != "none") out.set_redop(redop);
  const auto root = row.number({"root"});
  out.set_root(root && *root >= 0 && *root < 1e9 ? static_cast<int32_t>(*root) : -1);
  *out.mutable_out_of_place() = *half;
  if (const auto in_place = half_of(row, "_ip")) *out.mutable_in_place() = *in_place;
  out.set_algorithm(algorithm_name(row.text("algo_used")));
  out.set_protocol(protocol_name(row.text("proto_used")));
  out.set_channels(static_cast<int32_t>(row.small("channels_used")));
  if (const auto predicted = row.number({"nccl_predicted_us"})) out.set_predicted_us(*predicted);
  return out;
}

}  // namespace

bool sniff_csv(std::string_view head) {
  const std::string_view line = first_line(head);
  return line.size() < 4096 && line.find(',') != std::string_view::npos &&
         has_columns(Row(fields_of(line)));
}

Result<FilePart> read_csv(Source& source, ReadContext& context) {
  LineReader lines(source, kMaxLine);
  std::string_view line;
  RH_TRY(const bool any, lines.next(line));
  if (!any) return fail(Code::kBadInput, "the table is empty", source.name());
  Row row(fields_of(first_line(line)));
  pb::Evidence evidence;
  evidence.set_source(source.name().substr(source.name().rfind('/') + 1));
  pb::MeasuredTables& out = *evidence.mutable_measured();
  // By table_id; rows without one are of one table as long as they were measured under the same conditions.
  std::map<std::pair<std::string, std::string>, int> tables;
  while (true) {
    RH_TRY(const bool more, lines.next(line));
    if (!more) break;
    if (trimmed(line).empty()) continue;
    row.set(fields_of(line));
    auto measured = row.fields() == row.columns() ? measured_row(row) : std::nullopt;
    if (!measured) {
      context.findings.add("nccl-tests-row-incomplete", Severity::kDataLoss, lines.where(),
                           "rows without a whole measurement are not used");
      continue;
    }
    const std::string id = row.text("table_id");
    pb::MeasuredTable conditions;
    set_conditions(row, conditions);
    const auto [it, fresh] = tables.try_emplace(
        {id, id.empty() ? conditions.SerializeAsString() : ""}, out.tables_size());
    if (fresh) {
      pb::MeasuredTable* table = out.add_tables();
      *table = std::move(conditions);
      if (table->collective().empty()) {
        table->set_collective(collective_of_file(source.name()));
        table->set_collective_from(table->collective().empty() ? "" : "file name");
      }
      table->set_id(id.empty() ? fmt::format("{}#{}", table->collective(), out.tables_size()) : id);
    }
    *out.mutable_tables(it->second)->add_rows() = std::move(*measured);
  }
  if (out.tables().empty()) {
    return fail(Code::kBadInput, "the table holds no row with a size and a time", source.name(),
                "write the columns bytes, time_us_oop, algbw_oop and busbw_oop");
  }
  FilePart part;
  part.evidence.push_back(std::move(evidence));
  return part;
}

}  // namespace rehearse::traces::nccl_tests
