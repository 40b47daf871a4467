// SPDX-License-Identifier: Apache-2.0
#include "validation/nccl_vectors.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "sim/nccl/plan.hpp"

namespace rehearse::validation {

namespace {

constexpr double kTolerance = 1e-5;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // spreadsheets write one
constexpr std::size_t kMaxUnpacked = std::size_t{256} << 20;

// A CSV file without quoting: a header line, then rows of as many fields. Empty lines do not count.
class Table {
 public:
  [[nodiscard]] static Result<Table> read(const std::filesystem::path& folder,
                                          const std::string& name);

  // Advances to the next row; false at the end. A row of another length is an error.
  [[nodiscard]] Result<bool> next();

  [[nodiscard]] Result<std::string_view> text(std::string_view column) const {
    const auto found = columns_.find(column);
    if (found == columns_.end()) {
      return fail(Code::kBadInput, "no column " + std::string(column), file_ + ":1");
    }
    return fields_[found->second];
  }

  template <typename Number>
  [[nodiscard]] Result<Number> number(std::string_view column) const {
    RH_TRY(const std::string_view field, text(column));
    Number value{};
    const char* const end = field.data() + field.size();
    const auto [next, error] = std::from_chars(field.data(), end, value);
    if (error != std::errc{} || next != end) {
      return bad(column, "\"" + std::string(field) + "\" is not a number of this column");
    }
    return value;
  }

  // A field parsed by one of the parse_… functions of the model.
  template <typename Value>
  [[nodiscard]] Result<Value> parsed(std::string_view column,
                                     Result<Value> (*parse)(std::string_view)) const {
    RH_TRY(const std::string_view field, text(column));
    Result<Value> value = parse(field);
    if (!value) return bad(column, value.error().what);
    return value;
  }

  [[nodiscard]] tl::unexpected<Error> bad(std::string_view column, const std::string& what) const {
    return fail(Code::kBadInput, std::string(column) + ": " + what,
                file_ + ":" + std::to_string(line_));
  }

  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] std::size_t line() const { return line_; }

 private:
  [[nodiscard]] std::optional<std::string_view> next_line();
  void split(std::string_view line);

  std::string file_;
  std::unique_ptr<std::string> content_;  // fields_ and columns_ point into it
  std::size_t at_ = 0;
  std::size_t line_ = 0;
  std::vector<std::string_view> fields_;
  std::map<std::string_view, std::size_t> columns_;
};

Result<std::string> unpack(const std::filesystem::path& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) return fail(Code::kMissingInput, "cannot be opened", path.string());
  std::string content;
  std::array<char, 1 << 16> buffer;
  while (true) {
    const int n = gzread(file.get(), buffer.data(), static_cast<unsigned>(buffer.size()));
    if (n < 0) return fail(Code::kBadInput, "is damaged", path.string(), "unpack it by hand");
    if (n == 0) break;
    content.append(buffer.data(), static_cast<std::size_t>(n));
    if (content.size() > kMaxUnpacked) {
      return fail(Code::kLimit, "is larger than 256 MiB unpacked", path.string());
    }
  }
  return content;
}

Result<Table> Table::read(const std::filesystem::path& folder, const std::string& name) {
  std::error_code ignored;
  std::filesystem::path path = folder / name;
  if (!std::filesystem::exists(path, ignored)) path += ".gz";
  if (!std::filesystem::exists(path, ignored)) {
    return fail(Code::kMissingInput, "neither " + name + " nor " + name + ".gz is there",
                folder.string(), "give the folder with the three nccl_*.csv files");
  }
  RH_TRY(std::string content, unpack(path));
  Table table;
  table.file_ = path.string();
  table.content_ = std::make_unique<std::string>(std::move(content));
  if (table.content_->starts_with(kByteOrderMark)) table.at_ = kByteOrderMark.size();
  const std::optional<std::string_view> header = table.next_line();
  if (!header) return fail(Code::kBadInput, "is empty", table.file_ + ":1");
  table.split(*header);
  for (std::size_t i = 0; i < table.fields_.size(); ++i) table.columns_[table.fields_[i]] = i;
  if (table.columns_.size() != table.fields_.size()) {
    return fail(Code::kBadInput, "two columns have one name", table.file_ + ":1");
  }
  return table;
}

std::optional<std::string_view> Table::next_line() {
  const std::string_view content = *content_;
  while (at_ < content.size()) {
    const std::size_t end = std::min(content.find('\n', at_), content.size());
    std::string_view line = content.substr(at_, end - at_);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    at_ = end + 1;
    ++line_;
    if (!line.empty()) return line;
  }
  return std::nullopt;
}

void Table::split(std::string_view line) {
  fields_.clear();
  while (true) {
    const std::size_t end = line.find(',');
    fields_.push_back(line.substr(0, end));
    if (end == std::string_view::npos) return;
    line.remove_prefix(end + 1);
  }
}

Result<bool> Table::next() {
  const std::optional<std::string_view> line = next_line();
  if (!line) return false;
  split(*line);
  if (fields_.size() != columns_.size()) {
    return fail(
        Code::kBadInput,
        std::to_string(fields_.size()) + " fields instead of " + std::to_string(columns_.size()),
        file_ + ":" + std::to_string(line_));
  }
  return true;
}

Result<bool> flag(const Table& table, std::string_view column) {
  RH_TRY(const int value, table.number<int>(column));
  return value != 0;
}

Result<sim::GraphInfo> read_graph(const Table& table, const std::string& prefix) {
  sim::GraphInfo g;
  RH_TRY(g.n_channels, table.number<int>(prefix + "_nch"));
  RH_TRY(g.bw_intra, table.number<double>(prefix + "_bw_intra"));
  RH_TRY(g.bw_inter, table.number<double>(prefix + "_bw_inter"));
  RH_TRY(g.type_intra, table.parsed(prefix + "_type_intra", sim::parse_path_type));
  RH_TRY(g.type_inter, table.parsed(prefix + "_type_inter", sim::parse_path_type));
  RH_TRY(g.latency_inter_us, table.number<double>(prefix + "_lat_inter"));
  RH_TRY(g.same_channels, flag(table, prefix + "_same"));
  return g;
}

Result<sim::CommShape> read_shape(const Table& table) {
  sim::CommShape s;
  RH_TRY(s.n_nodes, table.number<int>("n_nodes"));
  RH_TRY(s.ranks_per_node, table.number<int>("ranks_per_node"));
  RH_TRY(s.n_ranks, table.number<int>("n_ranks"));
  RH_TRY(s.cc_min, table.number<int>("cc_min"));
  RH_TRY(s.cc_max, table.number<int>("cc_max"));
  RH_TRY(s.cpu_arch, table.parsed("cpu_arch", sim::parse_cpu_arch));
  RH_TRY(s.cpu_vendor, table.parsed("cpu_vendor", sim::parse_cpu_vendor));
  RH_TRY(s.n_channels, table.number<int>("n_channels"));
  RH_TRY(s.tree_pattern_max, table.parsed("tree_pattern_max", sim::parse_graph_pattern));
  RH_TRY(s.nvswitch, flag(table, "nvswitch"));
  RH_TRY(s.nvls_support, flag(table, "nvls_support"));
  RH_TRY(s.nvls_channels, table.number<int>("nvls_channels"));
  RH_TRY(s.nvls_heads, table.number<int>("nvls_heads"));
  RH_TRY(s.collnet, flag(table, "collnet"));
  RH_TRY(s.collnet_heads, table.number<int>("collnet_heads"));
  RH_TRY(s.collnet_depth, table.number<int>("collnet_depth"));
  RH_TRY(s.ring, read_graph(table, "ring"));
  RH_TRY(s.tree, read_graph(table, "tree"));
  RH_TRY(s.nvls, read_graph(table, "nvls"));
  RH_TRY(s.collnet_direct, read_graph(table, "cnd"));
  RH_TRY(s.collnet_chain, read_graph(table, "cnc"));
  return s;
}

Result<sim::NcclModel> read_model(const Table& table) {
  RH_TRY(const sim::CommShape shape, read_shape(table));
  auto model = sim::make_nccl_model(shape, sim::Settings{}, sim::NcclVersion{2, 28, 9});
  if (!model) return table.bad("shape", model.error().what);
  return model;
}

using Models = std::map<std::int64_t, sim::NcclModel>;

// Gathers the differences of one row after another, and the first malformed field of a row.
class Comparison {
 public:
  Comparison(const Table& table, VectorReport& report) : table_(table), report_(report) {}

  void differ(std::string_view column, std::string expected, std::string computed) {
    differs_ = true;
    if (report_.differences.size() >= VectorReport::kMaxDifferences) return;
    report_.differences.push_back({table_.file(), table_.line(), std::string(column),
                                   std::move(expected), std::move(computed)});
  }

  void same_name(std::string_view column, std::string_view computed) {
    const auto expected = value_of(table_.text(column));
    if (expected && *expected != computed) {
      differ(column, std::string(*expected), std::string(computed));
    }
  }

  void same_count(std::string_view column, std::int64_t computed) {
    const auto expected = value_of(table_.number<std::int64_t>(column));
    if (expected && *expected != computed) {
      differ(column, std::to_string(*expected), std::to_string(computed));
    }
  }

  void near(std::string_view column, double computed) {
    const auto expected = value_of(table_.number<double>(column));
    if (!expected) return;
    const double error = std::abs(computed - *expected) / std::max(std::abs(*expected), 1e-9);
    report_.max_relative_error = std::max(report_.max_relative_error, error);
    if (!(error < kTolerance)) differ(column, std::to_string(*expected), std::to_string(computed));
  }

  void count_row() { report_.mismatches += std::exchange(differs_, false) ? 1 : 0; }

  // Counts the row if it differed and gives its first malformed field.
  [[nodiscard]] Result<void> end_row() {
    count_row();
    return std::exchange(status_, {});
  }

 private:
  template <typename Value>
  std::optional<Value> value_of(Result<Value> result) {
    if (result) return *result;
    if (status_) status_ = tl::unexpected(result.error());
    return std::nullopt;
  }

  const Table& table_;
  VectorReport& report_;
  bool differs_ = false;
  Result<void> status_;
};

// Calls `visit` with the shape_id of every row.
template <typename Visit>
Result<void> for_each_row(Table& table, const Visit& visit) {
  while (true) {
    RH_TRY(const bool more, table.next());
    if (!more) return {};
    RH_TRY(const std::int64_t id, table.template number<std::int64_t>("shape_id"));
    if (Result<void> ok = visit(id); !ok) return ok;
  }
}

Result<Models> read_shapes(const std::filesystem::path& folder) {
  RH_TRY(Table table, Table::read(folder, "nccl_shapes.csv"));
  Models models;
  const auto ok = for_each_row(table, [&](std::int64_t id) -> Result<void> {
    RH_TRY(sim::NcclModel model, read_model(table));
    if (!models.emplace(id, std::move(model)).second)
      return table.bad("shape_id", "is twice there");
    return {};
  });
  if (!ok) return tl::unexpected(ok.error());
  return models;
}

struct ListedShape {
  sim::NcclModel model;
  std::set<sim::Variant> cells;
};

// Cells the model has and the file does not list for a shape are differences too.
void check_unlisted(std::int64_t id, const ListedShape& shape, Comparison& comparison) {
  for (const sim::Variant& variant : sim::all_variants()) {
    if (!shape.model.table.at(variant).available() || shape.cells.contains(variant)) continue;
    comparison.differ(to_string(variant) + " of shape " + std::to_string(id), "unavailable",
                      "available");
    comparison.count_row();
  }
}

Result<sim::Variant> read_variant(const Table& table) {
  sim::Variant v;
  RH_TRY(v.function, table.parsed("func", sim::parse_function));
  RH_TRY(v.algorithm, table.parsed("algo", sim::parse_algorithm));
  RH_TRY(v.protocol, table.parsed("proto", sim::parse_protocol));
  if (sim::index_of(v.function) >= sim::kCollectiveCount) {
    return table.bad("func", "is no collective");
  }
  return v;
}

// Each row carries the columns of its shape; the first row of a shape is the one that is read.
Result<void> check_tuning(const std::filesystem::path& folder, Models& models,
                          VectorReport& report) {
  RH_TRY(Table table, Table::read(folder, "nccl_tuning_table.csv"));
  Comparison comparison(table, report);
  std::map<std::int64_t, ListedShape> shapes;
  auto ok = for_each_row(table, [&](std::int64_t id) -> Result<void> {
    auto shape = shapes.find(id);
    if (shape == shapes.end()) {
      RH_TRY(sim::NcclModel model, read_model(table));
      shape = shapes.emplace(id, ListedShape{std::move(model), {}}).first;
    }
    ++report.tuning_rows;
    RH_TRY(const sim::Variant variant, read_variant(table));
    shape->second.cells.insert(variant);
    const sim::Cost& cost = shape->second.model.table.at(variant);
    comparison.near("latency_us", cost.latency_us);
    comparison.near("bandwidth_gbps", cost.bandwidth_gbps);
    return comparison.end_row();
  });
  if (!ok) return ok;
  for (auto& [id, shape] : shapes) {
    check_unlisted(id, shape, comparison);
    models.emplace(id, std::move(shape.model));
  }
  return {};
}

Result<void> check_choice_row(const Table& table, const sim::NcclModel& model,
                              Comparison& comparison) {
  sim::Call call;
  RH_TRY(call.function, table.parsed("func", sim::parse_function));
  RH_TRY(call.count, table.number<std::int64_t>("count"));
  RH_TRY(call.pipe_ops, table.number<int>("pipe_ops"));
  const auto planned = sim::plan_call(model, call);
  if (!planned) return table.bad("call", planned.error().what);
  const sim::Choice& choice = planned->choice;
  const sim::ChannelSplit& split = planned->split;

  comparison.same_name("algo", name_of(choice.algorithm));
  comparison.same_name("proto", name_of(choice.protocol));
  comparison.near("time_us", choice.time_us);
  comparison.same_count("bytes", sim::total_bytes(call, model.shape.n_ranks));
  comparison.same_count("max_channels", choice.max_channels);
  comparison.same_count("n_threads", choice.n_threads);
  comparison.same_count("channel_lo", split.channel_lo);
  comparison.same_count("channel_hi", split.channel_hi);
  comparison.same_count("count_lo", split.count_lo);
  comparison.same_count("count_mid", split.count_mid);
  comparison.same_count("count_hi", split.count_hi);
  comparison.same_count("chunk_lo", planned->lo.chunk_bytes);
  comparison.same_count("chunk_mid", planned->mid.chunk_bytes);
  comparison.same_count("chunk_hi", planned->hi.chunk_bytes);
  comparison.same_count("proxy_steps", planned->lo.proxy_steps);
  comparison.same_count("chunk_steps", planned->lo.chunk_steps);
  comparison.same_count("slice_steps", planned->lo.slice_steps);
  return comparison.end_row();
}

Result<void> check_choices(const std::filesystem::path& folder, const Models& models,
                           VectorReport& report) {
  RH_TRY(Table table, Table::read(folder, "nccl_choice.csv"));
  Comparison comparison(table, report);
  return for_each_row(table, [&](std::int64_t id) -> Result<void> {
    const auto model = models.find(id);
    if (model == models.end()) return table.bad("shape_id", "is not among the shapes");
    ++report.choice_rows;
    return check_choice_row(table, model->second, comparison);
  });
}

}  // namespace

Result<VectorReport> check_vectors(const std::filesystem::path& folder) {
  VectorReport report;
  const auto has = [&](const char* name) {
    std::error_code ignored;
    const bool there = std::filesystem::exists(folder / name, ignored) ||
                       std::filesystem::exists(folder / (std::string(name) + ".gz"), ignored);
    if (!there) report.absent.emplace_back(name);
    return there;
  };
  const bool shapes = has("nccl_shapes.csv"), tuning = has("nccl_tuning_table.csv"),
             choices = has("nccl_choice.csv");
  Models models;
  if (shapes || !tuning) {
    RH_TRY(models, read_shapes(folder));
  }
  if (tuning || !choices) {
    if (auto ok = check_tuning(folder, models, report); !ok) return tl::unexpected(ok.error());
  }
  report.shapes = models.size();
  if (choices) {
    if (auto ok = check_choices(folder, models, report); !ok) return tl::unexpected(ok.error());
  }
  return report;
}

Check vectors_check(const VectorReport& report) {
  Check check;
  check.id = "nccl-decisions";
  check.what = "NCCL's own cost tables and decisions, row by row";
  check.n = report.rows();
  check.metric = "share of rows that differ";
  check.value = report.rows() == 0
                    ? 0
                    : static_cast<double>(report.mismatches) / static_cast<double>(report.rows());
  judge_value(check);
  return check;
}

}  // namespace rehearse::validation
