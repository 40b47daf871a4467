// SPDX-License-Identifier: Apache-2.0
#include "validation/nccl_tests_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <map>
#include <optional>
#include <set>

#include "base/text.hpp"

namespace rehearse::validation {
namespace {

constexpr std::uintmax_t kMostBytes = std::uintmax_t{256} << 20;
constexpr int64_t kMostPayload = int64_t{1} << 46;

template <typename Number>
std::optional<Number> number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  size_t at = 0;
  while (at < line.size()) {
    while (at < line.size() && (line[at] == ' ' || line[at] == '\t' || line[at] == '\r')) ++at;
    size_t end = at;
    while (end < line.size() && line[end] != ' ' && line[end] != '\t' && line[end] != '\r') ++end;
    if (end > at) words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

// What mpirun and friends put before each line: "[1,0]<stdout>:" or "3:".
std::string_view without_prefix(std::string_view line) {
  if (const size_t tag = line.find(">:"); tag != std::string_view::npos && line.starts_with('[')) {
    return line.substr(tag + 2);
  }
  const size_t colon = line.find(':');
  if (colon != std::string_view::npos && colon > 0 && colon < 8 &&
      line.find_first_not_of("0123456789") == colon) {
    return line.substr(colon + 1);
  }
  return line;
}

std::string collective_in(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  static const std::map<std::string, std::string> kSpellings = {
      {"allreduce", "all_reduce"}, {"allgather", "all_gather"}, {"reducescatter", "reduce_scatter"},
      {"all_to_all", "alltoall"},  {"all2all", "alltoall"},     {"send_recv", "sendrecv"}};
  // Longer names first: reduce is part of three others.
  for (const char* name :
       {"reduce_scatter", "reducescatter", "all_reduce", "allreduce", "all_gather", "allgather",
        "all_to_all", "alltoall", "all2all", "send_recv", "sendrecv", "broadcast", "hypercube",
        "gather", "scatter", "reduce"}) {
    if (lower.find(name) == std::string::npos) continue;
    const auto same = kSpellings.find(name);
    return same == kSpellings.end() ? name : same->second;
  }
  return "";
}

class PrintedTable {
 public:
  PrintedTable(std::string name, const std::string& collective)
      : name_(std::move(name)), given_(collective) {
    const size_t slash = name_.find_last_of('/');
    from_name_ = collective_in(slash == std::string::npos ? name_ : name_.substr(slash + 1));
  }

  void line(std::string_view text, size_t number_of_line) {
    line_ = number_of_line;
    text = without_prefix(text);
    const auto words = words_of(text);
    if (words.empty()) return;
    if (text.find('#') != std::string_view::npos && words[0].starts_with('#')) return comment(text);
    if (number<int64_t>(words[0])) row(words);
  }

  NcclTestTables take() { return std::move(out_); }

 private:
  void comment(std::string_view text) {
    if (text.find("Collective test starting") != std::string_view::npos) {
      stated_ = collective_in(text.substr(text.find("starting")));
    } else if (text.find("nThread") != std::string_view::npos) {
      hosts_.clear();
      ranks_ = 0;
    } else if (const size_t at = text.find("nccl-library="); at != std::string_view::npos) {
      version_ = std::string(words_of(text.substr(at + 13))[0]);
    } else if (text.find("Rank") != std::string_view::npos &&
               text.find(" on ") != std::string_view::npos) {
      device(text);
    }
  }

  void device(std::string_view text) {
    const size_t on = text.find(" on ");
    const auto rest = words_of(text.substr(on + 4));
    const size_t bracket = text.find(']');
    if (rest.empty() || bracket == std::string_view::npos) return;
    hosts_.insert(std::string(rest[0]));
    ++ranks_;
    std::string_view gpu = text.substr(bracket + 1);
    while (!gpu.empty() && gpu.front() == ' ') gpu.remove_prefix(1);
    while (!gpu.empty() && (gpu.back() == ' ' || gpu.back() == '\r')) gpu.remove_suffix(1);
    hardware_ = std::string(gpu);
  }

  // size count type [redop] [root] time algbw busbw [errors] [time algbw busbw errors]
  void row(const std::vector<std::string_view>& words) {
    const auto bytes = number<int64_t>(words[0]);
    size_t at = 1;
    if (at < words.size() && number<int64_t>(words[at])) ++at;
    if (at >= words.size() || number<double>(words[at])) return;  // not a row of a table
    NcclTestRow row;
    row.type = std::string(words[at++]);
    if (at < words.size() && !number<double>(words[at])) row.reduction = std::string(words[at++]);
    std::vector<double> figures;
    for (; at < words.size() && figures.size() < 9; ++at) {
      const auto figure = number<double>(words[at]);
      if (figure) figures.push_back(*figure);
    }
    const size_t time = has_root(figures, *bytes) ? 1 : 0;
    if (*bytes < 0 || *bytes > kMostPayload || figures.size() < time + 3) {
      out_.findings.add("unread-row", Severity::kDataLoss, fmt::format("{}:{}", name_, line_),
                        "the row has no time; NCCL's log may have torn it apart");
      return;
    }
    row.bytes = *bytes;
    row.time_us = figures[time];
    row.where = fmt::format("{}:{}", name_, line_);
    row.source = name_;
    row.collective = !stated_.empty() ? stated_ : !given_.empty() ? given_ : from_name_;
    row.hardware = hardware_;
    row.nodes = static_cast<uint32_t>(hosts_.size());
    row.gpus = ranks_;
    row.nccl_version = version_;
    if (row.time_us > 0) {
      out_.rows.push_back(std::move(row));
    } else {
      out_.findings.add("row-without-time", Severity::kInfo, row.where, "it is left out");
    }
  }

  // Each half has three or four figures; a root before them makes their number odd. Of four alone
  // the printed bandwidth tells.
  static bool has_root(const std::vector<double>& figures, int64_t bytes) {
    if (figures.size() != 4) return figures.size() >= 5 && figures.size() % 2 == 1;
    const double expected = figures[0] > 0 ? static_cast<double>(bytes) / 1000 / figures[0] : -1;
    return std::abs(expected - figures[1]) > 0.02 + 0.02 * figures[1];
  }

  std::string name_, given_, from_name_, stated_, hardware_, version_;
  std::set<std::string> hosts_;
  uint32_t ranks_ = 0;
  size_t line_ = 0;
  NcclTestTables out_;
};

class CollectedTable {
 public:
  CollectedTable(std::string name, std::string_view header) : name_(std::move(name)) {
    size_t i = 0;
    for (const std::string& column : split(header, ',')) columns_.emplace(column, i++);
  }
  [[nodiscard]] bool complete() const {
    return columns_.contains("collective") && columns_.contains("bytes") &&
           columns_.contains("time_us_oop");
  }

  void line(std::string_view text, size_t number_of_line) {
    fields_ = split(text, ',');
    const std::string where = fmt::format("{}:{}", name_, number_of_line);
    if (fields_.size() != columns_.size()) {
      out_.findings.add("unread-row", Severity::kDataLoss, where,
                        "the row has another number of fields than the header");
      return;
    }
    NcclTestRow row;
    row.where = where;
    row.source = field("source_file");
    row.collective = field("collective");
    row.hardware = field("hardware");
    row.nodes = number<uint32_t>(field("nodes")).value_or(0);
    row.gpus = number<uint32_t>(field("gpus")).value_or(0);
    row.nccl_version = field("nccl_version");
    row.algorithm = field("algo_forced");
    row.protocol = field("proto_forced");
    row.options = field("options");
    row.type = field("dtype");
    row.reduction = field("redop");
    const auto bytes = number<int64_t>(field("bytes"));
    auto time = number<double>(field("time_us_oop"));
    if (!time || *time <= 0) time = number<double>(field("time_us_ip"));
    if (!bytes || *bytes < 0 || *bytes > kMostPayload || !time || !(*time > 0)) {
      out_.findings.add("row-without-time", Severity::kInfo, where, "it is left out");
      return;
    }
    row.bytes = *bytes;
    row.time_us = *time;
    out_.rows.push_back(std::move(row));
  }

  NcclTestTables take() { return std::move(out_); }

 private:
  [[nodiscard]] std::string field(const char* name) const {
    const auto at = columns_.find(name);
    return at == columns_.end() ? "" : fields_[at->second];
  }
  std::string name_;
  std::map<std::string, size_t> columns_;
  std::vector<std::string> fields_;
  NcclTestTables out_;
};

template <typename Reader>
void read_lines(std::string_view text, size_t first_line, Reader& reader) {
  size_t line = first_line;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view row = text.substr(0, end);
    if (!row.empty() && row.back() == '\r') row.remove_suffix(1);
    if (!row.empty()) reader.line(row, line);
    ++line;
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

const std::vector<std::string>& nccl_test_names() {
  static const std::vector<std::string> names = {"all_reduce", "all_gather", "reduce_scatter",
                                                 "broadcast",  "reduce",     "alltoall",
                                                 "sendrecv",   "gather",     "scatter"};
  return names;
}

Result<NcclTestTables> parse_nccl_tests(std::string_view text, const std::string& name,
                                        const std::string& collective) {
  const std::string_view header = text.substr(0, text.find('\n'));
  NcclTestTables out;
  if (header.find(',') != std::string_view::npos &&
      header.find("bytes") != std::string_view::npos) {
    std::string_view trimmed = header;
    if (!trimmed.empty() && trimmed.back() == '\r') trimmed.remove_suffix(1);
    CollectedTable table(name, trimmed);
    if (!table.complete()) {
      return fail(Code::kBadInput, "a collection needs columns collective, bytes and time_us_oop",
                  name + ":1", "see docs/validation.md for the columns");
    }
    read_lines(text.substr(std::min(text.size(), header.size() + 1)), 2, table);
    out = table.take();
  } else {
    PrintedTable table(name, collective);
    read_lines(text, 1, table);
    out = table.take();
  }
  if (out.rows.empty()) {
    return fail(Code::kBadInput, "no row of an nccl-tests table", name,
                "give what all_reduce_perf and its like print, or a collection as CSV");
  }
  return out;
}

Result<NcclTestTables> read_nccl_tests(const std::filesystem::path& file,
                                       const std::string& collective) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(file, error);
  if (error) {
    return fail(Code::kMissingInput, "cannot read it: " + error.message(), file.string(),
                "give files of nccl-tests tables");
  }
  if (size > kMostBytes) {
    return fail(Code::kLimit, "larger than 256 MiB", file.string(), "split it");
  }
  std::ifstream in(file, std::ios::binary);
  std::string text(size, '\0');
  in.read(text.data(), static_cast<std::streamsize>(size));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(0, in.gcount())));
  return parse_nccl_tests(text, file.string(), collective);
}

}  // namespace rehearse::validation
