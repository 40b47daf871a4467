// SPDX-License-Identifier: Apache-2.0
#include "traces/import/nccl_tests/table_builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "traces/evidence/names.hpp"
#include "traces/import/nccl_tests/conditions.hpp"
#include "traces/import/scan.hpp"

namespace rehearse::traces::nccl_tests {
namespace {

// Bytes of one "[1,0]<stdout>:" or "[3]" that mpirun put at the front of `text`, 0 without.
size_t tag_length(std::string_view text) {
  const size_t close = text.starts_with("[") ? text.find(']') : std::string_view::npos;
  if (close == std::string_view::npos || close > 80) return 0;
  if (close > 1 && text.find_first_not_of("0123456789", 1) == close) {
    return close + (text.substr(close).starts_with("]:") ? 2 : 1);
  }
  if (!text.substr(close).starts_with("]<std")) return 0;
  const size_t end = text.find(">:", close);
  return end == std::string_view::npos || end - close > 10 ? 0 : end + 2;
}

// Blanks in the place of tags, so that columns stay where they were.
std::string without_tags(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const size_t length = text[i] == '[' ? tag_length(text.substr(i)) : 0;
    if (length > 0) {
      out.append(length, ' ');
      i += length;
    } else {
      out += text[i++];
    }
  }
  return out;
}

// Where the comment of a line begins that has something before it: only what nccl-tests writes there
// counts, "#" stands in other output too.
size_t comment_behind(std::string_view text) {
  constexpr std::array<std::string_view, 10> kStarts = {
      "nThread ",      "Rank ",       "Using devices",     "size ",        "nccl-tests version ",
      "Collective te", "Avg bus ban", "Out of bounds val", "out-of-place", "rccl-tests version "};
  for (size_t at = text.find('#'); at != std::string_view::npos; at = text.find('#', at + 1)) {
    const std::string_view body = trimmed(text.substr(at + 1));
    if (std::any_of(kStarts.begin(), kStarts.end(),
                    [&](std::string_view start) { return body.starts_with(start); })) {
      return at;
    }
  }
  return std::string_view::npos;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> out;
  Scan scan(text);
  while (const auto word = scan.word()) out.push_back(*word);
  return out;
}

std::optional<uint64_t> natural(std::string_view word) {
  Scan scan(word);
  const auto value = scan.natural();
  return value && scan.rest().empty() ? value : std::nullopt;
}

std::optional<double> number(std::string_view word) {
  Scan scan(word);
  const auto value = scan.number();
  return value && scan.rest().empty() ? value : std::nullopt;
}

bool is_value(std::string_view word) {
  return number(word).has_value() || word == "N/A" || word == "inf" || word == "nan" ||
         word == "-nan";
}

bool is_dtype(std::string_view word) {
  constexpr std::array<std::string_view, 10> kStarts = {
      "int", "uint", "half", "float", "double", "bfloat16", "f8", "fp8", "char", "fp16"};
  return word.size() <= 16 &&
         std::any_of(kStarts.begin(), kStarts.end(),
                     [&](std::string_view start) { return word.starts_with(start); });
}

bool is_word(std::string_view word) {
  return !word.empty() && word != "N/A" && ((word[0] >= 'a' && word[0] <= 'z'));
}

std::optional<pb::MeasuredHalf> half_of(std::span<const std::string> cells, bool milliseconds) {
  const auto time = number(cells[0]), algbw = number(cells[1]), busbw = number(cells[2]);
  if (!time || !algbw || !busbw || *time < 0) return std::nullopt;
  pb::MeasuredHalf half;
  half.set_time_us(milliseconds ? *time * 1000 : *time);
  half.set_algbw(*algbw);
  half.set_busbw(*busbw);
  half.set_wrong(cells[3]);
  return half;
}

// "#  Rank  0 Group  0 Pid   1343 on host device  0 [0000:41:00] NVIDIA H100 80GB HBM3"
std::optional<pb::MeasuredDevice> device_in(std::string_view text) {
  Scan scan(text);
  if (!scan.literal("Rank ")) return std::nullopt;
  const auto rank = scan.natural();
  if (!rank || *rank > UINT32_MAX) return std::nullopt;
  if (scan.literal("Group ") && !scan.natural()) return std::nullopt;
  // The first versions do not tell the process, and before NCCL 2 not the host either.
  const auto pid = scan.literal("Pid ") ? scan.integer() : std::optional<int64_t>(0);
  std::optional<std::string_view> host = "";
  if (!pid) return std::nullopt;
  if (!scan.literal("uses ")) {
    if (!scan.literal("on ")) return std::nullopt;
    host = scan.word();
  }
  if (!host || !scan.literal("device ")) return std::nullopt;
  const auto device = scan.natural();
  if (!device || *device > 4096 || !scan.literal("[")) return std::nullopt;
  pb::MeasuredDevice out;
  out.set_rank(static_cast<uint32_t>(*rank));
  out.set_host(std::string(*host));
  out.set_pid(*pid);
  out.set_device(static_cast<int32_t>(*device));
  out.set_bus_id(std::string(scan.rest().substr(0, scan.rest().find(']'))));
  if (scan.after("]")) out.set_name(std::string(trimmed(scan.rest())));
  return out;
}

// A line of the header that lost its "#", as pages that take it for a heading make them.
bool is_bare_header(std::string_view text) {
  if (text.starts_with("nThread ")) return text.find(" nGpus ") != std::string_view::npos;
  if (text.starts_with("Rank ")) return device_in(text).has_value();
  if (text.starts_with("size ")) return text.find(" algbw ") != std::string_view::npos;
  return text.starts_with("nccl-tests version ") || text.starts_with("rccl-tests version ") ||
         text.starts_with("Collective test starting:") || text.starts_with("Avg bus bandwidth ") ||
         text.starts_with("Out of bounds values ");
}

int32_t setting(std::string_view text, std::string_view key, int32_t otherwise) {
  Scan scan(text);
  if (!scan.after(key)) return otherwise;
  const auto value = scan.natural();
  return value && *value <= INT32_MAX ? static_cast<int32_t>(*value) : otherwise;
}

}  // namespace

Run& TableBuilder::begin_run() {
  close_row();
  Run fresh;
  fresh.number = static_cast<uint32_t>(runs_.size()) + 1;
  fresh.table.set_graph(-1);
  fresh.table.set_runs(1);
  fresh.table.set_nccl_version(version_);
  if (!next_collective_.empty()) {
    fresh.table.set_collective(next_collective_);
    fresh.table.set_collective_from("said");
    next_collective_.clear();
  }
  runs_.push_back(std::move(fresh));
  return runs_.back();
}

Run& TableBuilder::run() { return runs_.empty() ? begin_run() : runs_.back(); }

void TableBuilder::tell_version(const std::string& version) {
  version_ = version;
  if (!runs_.empty()) runs_.back().table.set_nccl_version(version);
}

void TableBuilder::read_configuration(std::string_view text) {
  pb::MeasuredTable& table = run().table;
  table.set_threads(setting(text, "nThread ", 0));
  table.set_gpus_per_thread(setting(text, "nGpus ", 0));
  table.set_warmup(setting(text, "warmup iters: ", 0));
  Scan scan(text);
  if (scan.after("warmup iters: ")) table.set_iterations(setting(scan.rest(), "iters: ", 0));
  table.set_graph(setting(text, "graph: ", -1));
}

// "### ALGO=Ring size=268435456": a script says what the next rows are.
void TableBuilder::marker(std::string_view text) {
  pb::MeasuredTable& table = begin_run().table;
  std::string others;
  for (const std::string_view word : words_of(text)) {
    const size_t equals = word.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view key = word.substr(0, equals), value = word.substr(equals + 1);
    if (key == "ALGO" || key == "NCCL_ALGO") {
      const std::string name = algorithm_name(value);
      table.set_forced_algorithm(name.empty() ? std::string(value) : name);
    } else if (key == "PROTO" || key == "NCCL_PROTO") {
      const std::string name = protocol_name(value);
      table.set_forced_protocol(name.empty() ? std::string(value) : name);
    } else if (key == "GPUS" && natural(value) && *natural(value) <= UINT32_MAX) {
      table.set_gpus(static_cast<uint32_t>(*natural(value)));
    } else if (key != "size" && key != "bytes") {
      others += fmt::format("{}{}", others.empty() ? "" : " ", word);
    }
  }
  table.set_options(others);
}

// "# size count type redop root time algbw busbw #wrong i_min time algbw busbw #wrong i_min"
void TableBuilder::read_header(std::string_view text, size_t column) {
  Run& current = run();
  current.header_seen = true;
  current.milliseconds = text.find("bytes ") < text.find("time");
  current.redop_column = text.find("redop") != std::string_view::npos;
  current.root_column = text.find("root") != std::string_view::npos;
  current.half_cells = 4;
  current.in_place_at = 0;
  const std::vector<std::string_view> words = words_of(text);
  std::vector<size_t> times;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "time" || words[i] == "cputime") times.push_back(i);
    if (words[i] == "cputime") current.cpu_time = true;
  }
  if (times.size() != 2 || times[1] - times[0] < 4) return;
  const std::string_view second = words[times[1]];
  current.half_cells = times[1] - times[0];
  current.in_place_at = column + static_cast<size_t>(second.data() - text.data()) + second.size();
}

TableBuilder::Said TableBuilder::comment(std::string_view text, size_t column, uint64_t line) {
  Said said;
  const std::string_view body =
      trimmed(text.substr(std::min(text.find_first_not_of('#'), text.size())));
  if (text.starts_with("###")) {
    marker(body);
    return said;
  }
  Scan scan(body);
  if (scan.literal("nccl-tests version ") || scan.literal("rccl-tests version ")) {
    pb::MeasuredTable& table = begin_run().table;
    table.set_nccl_tests_version(std::string(scan.word().value_or("")));
    if (const int32_t library = setting(body, "ccl-library=", 0); library > 0) {
      table.set_nccl_version(version_of_number(library));
    }
  } else if (scan.literal("Collective test starting:")) {
    const std::string name = collective_name(scan.word().value_or(""));
    if (!name.empty()) {
      run().table.set_collective(name);
      run().table.set_collective_from("said");
    }
  } else if (body.starts_with("nThread ")) {
    // Processes that do not know of each other print the same line one after another.
    const bool again = !runs_.empty() && runs_.back().configuration == body &&
                       runs_.back().table.devices().empty() && runs_.back().table.rows().empty();
    if (again) return said;
    if (runs_.empty() || runs_.back().configured || runs_.back().table.rows_size() > 0) {
      begin_run();
    }
    runs_.back().configured = true;
    runs_.back().configuration = body;
    read_configuration(body);
  } else if (body.starts_with("Rank ")) {
    said.device = device_in(body);
    if (said.device) add_device(*said.device, line);
  } else if (scan.literal("Avg bus bandwidth")) {
    close_row();
    scan.literal(":");
    if (const auto average = scan.number()) run().table.set_average_busbw(*average);
  } else if (scan.literal("Out of bounds values")) {
    close_row();
    run().wrong = run().wrong || body.ends_with("FAILED");
  } else if ((body.starts_with("size ") || body.starts_with("bytes ")) &&
             body.find("algbw") != std::string_view::npos) {
    read_header(text, column);
  } else if (!body.empty() && body.front() != '(') {
    close_row();
  }
  return said;
}

bool TableBuilder::continues_row(const std::vector<std::string_view>& words) const {
  return open_ && !words.empty() && words.size() <= 9 &&
         std::all_of(words.begin(), words.end(), is_value);
}

void TableBuilder::add_device(const pb::MeasuredDevice& device, uint64_t line) {
  Run& current = run();
  const auto& known = current.table.devices();
  const bool twice = std::any_of(known.begin(), known.end(), [&](const pb::MeasuredDevice& other) {
    return other.rank() == device.rank();
  });
  if (!twice) {
    *current.table.add_devices() = device;
  } else if (current.twice_line == 0) {
    current.twice_line = line;
  }
}

TableBuilder::Said TableBuilder::add(std::string_view line_text, uint64_t line) {
  std::string clean = without_tags(line_text);
  if (!prefix_.empty() && clean.starts_with(prefix_)) {
    clean.replace(0, prefix_.size(), prefix_.size(), ' ');
  }
  const std::string_view text = trimmed(clean);
  if (text.empty()) return {};
  const auto column_of = [&](std::string_view part) {
    return static_cast<size_t>(part.data() - clean.data());
  };
  if (text.front() == '#' || is_bare_header(text)) return comment(text, column_of(text), line);
  if (const size_t at = comment_behind(text); at != std::string_view::npos) {
    const std::string_view behind = text.substr(at);
    Said said = comment(behind, column_of(behind), line);
    prefix_ = clean.substr(0, column_of(behind));
    return said;
  }
  const std::vector<std::string_view> words = words_of(text);
  // Behind other words, a row is one only below a header and when it is whole.
  size_t first = 0;
  const auto is_row = [&](size_t i) {
    return i + 3 <= words.size() && natural(words[i]) && natural(words[i + 1]) &&
           is_dtype(words[i + 2]) &&
           (i == 0 || (!runs_.empty() && runs_.back().header_seen && i + 7 <= words.size()));
  };
  while (first + 3 <= words.size() && !is_row(first)) ++first;
  if (is_row(first)) {
    close_row();
    (void)run();
    open_ = OpenRow{};
    open_->line = line;
    open_->row.set_bytes(*natural(words[first]));
    open_->row.set_count(*natural(words[first + 1]));
    open_->row.set_dtype(std::string(words[first + 2]));
    open_->row.set_root(-1);
    for (size_t i = first + 3; i < words.size(); ++i) {
      open_->rest.emplace_back(words[i]);
      open_->ends.push_back(column_of(words[i]) + words[i].size());
    }
  } else if (continues_row(words)) {
    open_->rest.insert(open_->rest.end(), words.begin(), words.end());
    open_->ends.resize(open_->rest.size(), 0);
  } else if (text.find("Test NCCL failure") != std::string_view::npos ||
             text.find("Test CUDA failure") != std::string_view::npos) {
    if (failures_++ == 0) failure_ = fmt::format("line {}: {}", line, text.substr(0, 200));
  } else {
    for (const std::string_view word : words) {
      const std::string_view name = word.substr(word.rfind('/') + 1);
      if (!name.ends_with("_perf") && !name.ends_with("_perf_mpi")) continue;
      if (std::string known = collective_name(name); !known.empty()) next_collective_ = known;
    }
  }
  return {};
}

void TableBuilder::close_row() {
  if (!open_) return;
  OpenRow row = std::move(*open_);
  open_.reset();
  const Run& current = runs_.back();
  size_t at = 0;
  if (at < row.rest.size() && is_word(row.rest[at])) {
    if (row.rest[at] != "none") row.row.set_redop(row.rest[at]);
    ++at;
  }
  const size_t cells = row.rest.size() - at;
  const bool has_root = current.header_seen ? current.root_column : cells % 4 == 1;
  if (has_root && at < row.rest.size()) {
    Scan scan(row.rest[at]);
    const auto root = scan.integer();
    if (root && scan.rest().empty() && *root >= -1 && *root <= INT32_MAX) {
      row.row.set_root(static_cast<int32_t>(*root));
      ++at;
    }
  }
  const auto half = [&](size_t first) -> std::optional<pb::MeasuredHalf> {
    if (row.rest.size() < first + 4) return std::nullopt;
    return half_of(std::span(row.rest).subspan(first, 4), current.milliseconds);
  };
  const auto measured = half(at);
  if (!measured) {
    if (incomplete_++ == 0) incomplete_line_ = row.line;
    return;
  }
  // A row with one half has blanks in the place of the other.
  const bool one = row.rest.size() < at + current.half_cells + 4;
  if (one && current.in_place_at > 0 && row.ends[at] + 4 > current.in_place_at) {
    *row.row.mutable_in_place() = *measured;
    *runs_.back().table.add_rows() = std::move(row.row);
    return;
  }
  *row.row.mutable_out_of_place() = *measured;
  if (const auto in_place = half(at + current.half_cells)) {
    *row.row.mutable_in_place() = *in_place;
  } else if (row.rest.size() > at + current.half_cells) {
    if (halves_lost_++ == 0) half_line_ = row.line;
  }
  *runs_.back().table.add_rows() = std::move(row.row);
}

std::vector<Run> TableBuilder::finish(Findings& findings, const std::string& file) {
  close_row();
  if (incomplete_ > 0) {
    findings.add("nccl-tests-row-incomplete", Severity::kDataLoss,
                 fmt::format("{}: line {}", file, incomplete_line_),
                 "rows without a whole measurement are not used", incomplete_);
  }
  if (halves_lost_ > 0) {
    findings.add("nccl-tests-half-incomplete", Severity::kWarning,
                 fmt::format("{}: line {}", file, half_line_),
                 "in-place halves that are cut or N/A are not used", halves_lost_);
  }
  if (failures_ > 0) {
    findings.add("nccl-tests-failed", Severity::kWarning, fmt::format("{}: {}", file, failure_),
                 "the program ended there: sizes that were to follow are missing", failures_);
  }
  for (const Run& each : runs_) {
    if (each.twice_line == 0) continue;
    findings.add("nccl-tests-not-joined", Severity::kWarning,
                 fmt::format("{}: line {}", file, each.twice_line),
                 "a rank is listed twice: the processes ran side by side, each alone; build "
                 "nccl-tests with MPI=1");
  }
  std::vector<Run> out = std::move(runs_);
  *this = TableBuilder();
  return out;
}

}  // namespace rehearse::traces::nccl_tests
