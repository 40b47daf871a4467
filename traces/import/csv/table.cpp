// SPDX-License-Identifier: Apache-2.0
#include "traces/import/csv/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/text.hpp"
#include "traces/import/csv/lines.hpp"
#include "traces/import/kineto/decimal.hpp"
#include "traces/import/limits.hpp"

namespace rehearse::traces::csv {
namespace {

constexpr int64_t kMostRanks = 1 << 24;
constexpr uint64_t kMostRows = 2'000'000'000;
constexpr int64_t kFarthestStep = int64_t{1} << 53;

int shift_of(pb::TableTime::Unit unit) {
  switch (unit) {
    case pb::TableTime::S:
      return 9;
    case pb::TableTime::MS:
      return 6;
    case pb::TableTime::US:
      return 3;
    default:
      return 0;
  }
}

bool is_pair(const pb::TableOperation& what) {
  return what.kind() == pb::TableOperation::SEND || what.kind() == pb::TableOperation::RECEIVE;
}
bool is_collective(const pb::TableOperation& what) {
  return what.kind() >= pb::TableOperation::ALL_REDUCE && !is_pair(what);
}

class TableReader {
 public:
  TableReader(Source& source, const pb::TableMapping& mapping, ReadContext& context)
      : source_(source),
        mapping_(mapping),
        context_(context),
        lines_(source, separator_of(mapping)) {}

  Result<Table> read() {
    RH_TRY(const Lines::Next header, lines_.next());
    if (header != Lines::Next::kLine) {
      return fail(Code::kBadInput, "the table has no header", source_.name(),
                  "name its columns in line 1");
    }
    if (auto found = find_columns(); !found) return tl::unexpected(found.error());
    for (;;) {
      RH_TRY(const Lines::Next next, lines_.next());
      if (next == Lines::Next::kEnd) break;
      const bool open = next == Lines::Next::kLine && !lines_.ended_with_newline();
      if (next == Lines::Next::kCut || (open && lines_.count() < columns_)) {
        if (auto cut = ended_early(); !cut) return tl::unexpected(cut.error());
        break;
      }
      if (open) {
        note("last-line-open", Severity::kWarning,
             "the last line has no line end: its last number may be cut");
      }
      row();
      if (table_.rows.size() > kMostRows) {
        return fail(Code::kLimit, fmt::format("more than {} rows", kMostRows), place(),
                    "split the table");
      }
      if (lines_.number() % 65536 == 0) {
        if (context_.reporter.interrupted()) return fail(Code::kInterrupted, "interrupted");
        context_.reporter.progress("rows", lines_.number(), 0);
      }
    }
    return std::move(table_);
  }

 private:
  [[nodiscard]] std::string place() const {
    return fmt::format("{}:{}", source_.name(), lines_.number());
  }
  void note(const char* id, Severity severity, const char* advice) {
    context_.findings.add(id, severity, place(), advice);
  }

  Result<void> ended_early() {
    const std::string what = fmt::format("the table ends inside line {}: {} rows are whole",
                                         lines_.number(), table_.rows.size());
    if (context_.cut_files == CutFiles::kRefuse || table_.rows.empty()) {
      return fail(Code::kBadInput, what, place(),
                  "copy or export it again, or take what is whole with --allow-truncated");
    }
    context_.findings.add("file-cut", Severity::kDataLoss, place(), what);
    return {};
  }

  Result<void> find_columns() {
    columns_ = lines_.count();
    std::vector<std::string> there(lines_.fields().begin(),
                                   lines_.fields().begin() + static_cast<ptrdiff_t>(columns_));
    if (!there.empty() && there[0].starts_with("\xef\xbb\xbf")) there[0].erase(0, 3);
    for (std::string& name : there) {
      while (!name.empty() && name.front() == ' ') name.erase(0, 1);
      while (!name.empty() && name.back() == ' ') name.pop_back();
    }
    std::vector<std::string> missing;
    for (const std::string& column : columns_of(mapping_)) {
      const auto at = std::find(there.begin(), there.end(), column);
      if (at == there.end()) {
        missing.push_back(in_quotes(column));
      } else {
        index_[column] = static_cast<size_t>(at - there.begin());
      }
    }
    if (!missing.empty()) {
      std::string near;
      const std::string guess = nearest(missing[0].substr(1, missing[0].size() - 2), there);
      if (!guess.empty()) near = fmt::format(" (there is {})", in_quotes(guess));
      return fail(Code::kBadInput,
                  fmt::format("the table has no column {}{}", join_words(missing), near), place(),
                  fmt::format("change the {} of the mapping {}",
                              there.size() == 1 ? "separator" : "columns", mapping_.name()));
    }
    std::vector<std::string> names;
    for (const auto& [name, what] : mapping_.operations()) names.push_back(name);
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      known_[name] = static_cast<uint32_t>(table_.operations.size());
      const pb::TableOperation& what = mapping_.operations().at(name);
      table_.operations.push_back({context_.strings.intern(name), what});
      if (is_pair(what)) add_pipeline(what);
    }
    return {};
  }

  // Pipelines of the same columns are one, whichever operation names them.
  void add_pipeline(const pb::TableOperation& what) {
    std::string key = what.toward();
    for (const std::string& column : what.same()) key += "\n" + column;
    for (const auto& p : pipelines_) {
      if (p.key == key) return;
    }
    pipelines_.push_back({key, what.toward(), {what.same().begin(), what.same().end()}});
  }

  [[nodiscard]] const std::string& field(const std::string& column) const {
    return lines_.fields()[index_.at(column)];
  }
  [[nodiscard]] std::optional<int64_t> integer(const std::string& column) const {
    return kineto::parse_integer(field(column));
  }
  [[nodiscard]] std::optional<Nanos> time(const pb::TableTime& t) const {
    const auto value = kineto::parse_decimal(field(t.column()), shift_of(t.unit()));
    if (!value || *value > kLatest || *value < -kLatest) return std::nullopt;
    return value;
  }

  uint32_t group_of(const std::string& prefix, const std::vector<std::string>& same) {
    std::string label;
    for (const std::string& column : same) {
      label += fmt::format("{}{}={}", label.empty() ? "" : ",", column, field(column));
    }
    const auto [at, added] =
        group_ids_.emplace(prefix + "\n" + label, static_cast<uint32_t>(table_.groups.size()));
    if (added) table_.groups.push_back({label.empty() ? "all" : label, {}});
    return at->second;
  }

  void row() {
    if (lines_.count() != columns_) {
      return note("row-of-other-length", Severity::kDataLoss,
                  "rows with more or fewer fields than the header are left out");
    }
    const pb::TableColumns& c = mapping_.columns();
    TableRow row;
    if (!c.rank().empty()) {
      const auto rank = integer(c.rank());
      if (!rank || *rank < 0 || *rank >= kMostRanks) {
        return note("row-without-rank", Severity::kDataLoss,
                    "rows whose rank is no number from 0 to 16777215 are left out");
      }
      row.rank = static_cast<RankId>(*rank);
    }
    const auto known = known_.find(field(c.operation()));
    if (known == known_.end()) {
      context_.findings.add(
          "operation-unknown", Severity::kDataLoss,
          fmt::format("{}: {}", place(), in_quotes(field(c.operation()))),
          "operations that the mapping does not tell are left out: add them to the mapping, as "
          "ignore where they are no work");
      return;
    }
    row.operation = known->second;
    const pb::TableOperation& what = table_.operations[row.operation].what;
    const auto start = time(c.start());
    const auto length = time(c.has_duration() ? c.duration() : c.end());
    if (!start || !length) {
      return note("row-without-time", Severity::kDataLoss,
                  "rows whose times are no numbers that make sense are left out");
    }
    row.start = *start;
    row.duration = c.has_duration() ? *length : *length - *start;
    if (row.duration < 0) {
      note("negative-duration", Severity::kWarning, "taken as 0 ns long");
      row.duration = 0;
    }
    if (!c.step().empty()) {
      const auto step = integer(c.step());
      if (!step || *step < -kFarthestStep || *step > kFarthestStep) {
        return note("row-without-step", Severity::kDataLoss,
                    "rows whose step is no number are left out");
      }
      row.step = *step;
    }
    if (!c.bytes().empty()) {
      const auto bytes = integer(c.bytes());
      if (bytes && *bytes >= 0 && *bytes < (Bytes{1} << 50)) row.bytes = *bytes;
    }
    if (!place_in_groups(row, what)) return;
    if (what.kind() == pb::TableOperation::IGNORE) return;
    if (!c.lane().empty() && !field(c.lane()).empty()) {
      if (lanes_.size() < kMostLanes) lanes_.emplace(field(c.lane()), 0);
      const auto lane = lanes_.find(field(c.lane()));
      if (lane != lanes_.end()) {
        if (lane->second == 0) lane->second = context_.strings.intern(lane->first);
        row.lane = lane->second;
      }
    }
    table_.rows.push_back(row);
  }

  bool place_in_groups(TableRow& row, const pb::TableOperation& what) {
    for (const Pipeline& p : pipelines_) {
      const auto value = integer(p.toward);
      if (!value) {
        note("row-without-place", Severity::kDataLoss,
             "rows whose place in the pipeline is no number are left out");
        return false;
      }
      const uint32_t group = group_of("pipeline\n" + p.key, p.same);
      const auto [at, added] = table_.groups[group].members.emplace(row.rank, *value);
      if (!added && at->second != *value) {
        note("rank-in-two-places", Severity::kWarning,
             "a rank has several places in its pipeline; the first is taken");
      }
      if (is_pair(what) && what.toward() == p.toward &&
          std::equal(what.same().begin(), what.same().end(), p.same.begin(), p.same.end())) {
        row.group = group;
      }
    }
    if (is_collective(what)) {
      row.group = group_of(fmt::format("operation {}", row.operation),
                           {what.same().begin(), what.same().end()});
      table_.groups[row.group].members.emplace(row.rank, 0);
    }
    return true;
  }

  struct Pipeline {
    std::string key, toward;
    std::vector<std::string> same;
  };

  Source& source_;
  const pb::TableMapping& mapping_;
  ReadContext& context_;
  Lines lines_;
  Table table_;
  size_t columns_ = 0;
  std::map<std::string, size_t> index_;
  std::unordered_map<std::string, uint32_t> known_;
  std::vector<Pipeline> pipelines_;
  std::unordered_map<std::string, uint32_t> group_ids_;
  std::map<std::string, uint32_t> lanes_;
};

}  // namespace

Result<Table> read_table(Source& source, const pb::TableMapping& mapping, ReadContext& context) {
  return TableReader(source, mapping, context).read();
}

}  // namespace rehearse::traces::csv
