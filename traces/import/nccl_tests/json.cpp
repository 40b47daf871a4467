// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "traces/evidence/names.hpp"
#include "traces/import/json_text.hpp"
#include "traces/import/nccl_tests/conditions.hpp"
#include "traces/import/nccl_tests/nccl_tests.hpp"
#include "traces/import/scan.hpp"

namespace rehearse::traces::nccl_tests {
namespace {

namespace dom = simdjson::dom;
constexpr size_t kMostReportBytes = size_t{64} << 20;

Result<std::string> content_of(Source& source) {
  std::string out;
  std::string piece(size_t{256} << 10, '\0');
  while (true) {
    RH_TRY(const size_t length, source.read(piece));
    if (length == 0) return out;
    if (out.size() + length > kMostReportBytes) {
      return fail(Code::kLimit, "a report of more than 64 MiB", source.name(),
                  "measure fewer sizes, or without times per iteration");
    }
    out.append(piece, 0, length);
  }
}

std::string text_at(const dom::element& in, std::string_view key) {
  std::string_view value;
  return in[key].get(value) == simdjson::SUCCESS ? std::string(value) : std::string();
}

// nccl-tests writes some numbers as text.
std::optional<double> number_at(const dom::element& in, std::string_view key) {
  double value = 0;
  if (in[key].get(value) == simdjson::SUCCESS && std::isfinite(value)) return value;
  const std::string text = text_at(in, key);
  Scan scan(text);
  const auto told = scan.number();
  return told && scan.at_end() ? told : std::nullopt;
}

uint64_t count_at(const dom::element& in, std::string_view key) {
  const auto value = number_at(in, key);
  return value && *value >= 0 && *value < 1e18 ? static_cast<uint64_t>(*value) : 0;
}

int32_t small_at(const dom::element& in, std::string_view key, int32_t otherwise) {
  const auto value = number_at(in, key);
  return value && std::abs(*value) < 1e9 ? static_cast<int32_t>(*value) : otherwise;
}

std::optional<pb::MeasuredHalf> half_at(const dom::element& row, std::string_view key) {
  dom::element in;
  if (row[key].get(in) != simdjson::SUCCESS || !in.is_object()) return std::nullopt;
  auto time = number_at(in, "time");
  if (!time) time = number_at(in, "cpu_time");
  if (!time || *time < 0) return std::nullopt;
  pb::MeasuredHalf half;
  half.set_time_us(*time);
  half.set_algbw(number_at(in, "alg_bw").value_or(0));
  half.set_busbw(number_at(in, "bus_bw").value_or(0));
  const auto wrong = number_at(in, "nwrong");
  half.set_wrong(wrong ? fmt::format("{}", *wrong) : "N/A");
  return half;
}

// The report of -C has the host's time in the place of the GPU's.
bool tells_cpu_time(const dom::element& row) {
  dom::element half;
  return row["out_of_place"].get(half) == simdjson::SUCCESS && half.is_object() &&
         !number_at(half, "time") && number_at(half, "cpu_time");
}

std::optional<pb::MeasuredRow> row_of(const dom::element& in) {
  const auto bytes = number_at(in, "size");
  if (!bytes || *bytes < 0 || *bytes > 1e18) return std::nullopt;
  pb::MeasuredRow row;
  row.set_bytes(static_cast<uint64_t>(*bytes));
  row.set_count(count_at(in, "count"));
  row.set_dtype(text_at(in, "type"));
  const std::string redop = text_at(in, "redop");
  if (redop != "none") row.set_redop(redop);
  row.set_root(small_at(in, "root", -1));
  if (const auto half = half_at(in, "out_of_place")) *row.mutable_out_of_place() = *half;
  if (const auto half = half_at(in, "in_place")) *row.mutable_in_place() = *half;
  if (!row.has_out_of_place() && !row.has_in_place()) return std::nullopt;
  return row;
}

pb::MeasuredDevice device_of(const dom::element& in) {
  pb::MeasuredDevice device;
  device.set_rank(static_cast<uint32_t>(std::max(small_at(in, "rank", 0), 0)));
  device.set_host(text_at(in, "hostname"));
  device.set_pid(small_at(in, "pid", 0));
  device.set_device(small_at(in, "device", -1));
  device.set_bus_id(text_at(in, "device_hex"));
  device.set_name(text_at(in, "device_info"));
  return device;
}

// The elements of an array, none where there is no array.
std::vector<dom::element> items_at(const dom::element& in, std::string_view key) {
  std::vector<dom::element> out;
  dom::array items;
  if (in[key].get(items) != simdjson::SUCCESS) return out;
  for (const dom::element item : items) out.push_back(item);
  return out;
}

// The program's name says the collective; of the environment nothing but what forces a choice is kept.
void set_report_conditions(const dom::element& document, pb::MeasuredTable& table) {
  const auto args = items_at(document, "args");
  std::string_view program;
  if (!args.empty() && args[0].get(program) == simdjson::SUCCESS) {
    table.set_collective(collective_name(program.substr(program.rfind('/') + 1)));
    if (!table.collective().empty()) table.set_collective_from("said");
  }
  for (const dom::element& item : items_at(document, "env")) {
    std::string_view variable;
    if (item.get(variable) != simdjson::SUCCESS) continue;
    if (variable.starts_with("NCCL_ALGO="))
      table.set_forced_algorithm(std::string(variable.substr(10)));
    if (variable.starts_with("NCCL_PROTO=")) {
      table.set_forced_protocol(std::string(variable.substr(11)));
    }
  }
  if (const int32_t version = small_at(document, "nccl_version", 0); version > 0) {
    table.set_nccl_version(version_of_number(version));
  }
  table.set_graph(-1);
  table.set_runs(1);
  dom::element config;
  if (document["config"].get(config) != simdjson::SUCCESS) return;
  table.set_threads(small_at(config, "nthreads", 0));
  table.set_gpus_per_thread(small_at(config, "ngpus", 0));
  table.set_warmup(small_at(config, "warmup_iters", 0));
  table.set_iterations(small_at(config, "iterations", 0));
  table.set_graph(small_at(config, "graph", -1));
  // It lists the first device of each process; with several per process the list is not whole.
  const auto devices = items_at(config, "devices");
  const int per_process = table.threads() * table.gpus_per_thread();
  if (per_process == 1) {
    for (const dom::element& device : devices) *table.add_devices() = device_of(device);
  } else if (per_process > 1 && !devices.empty()) {
    table.set_gpus(static_cast<uint32_t>(devices.size()) * static_cast<uint32_t>(per_process));
    table.set_hardware(device_of(devices[0]).name());
  }
}

}  // namespace

bool sniff_json(std::string_view head) {
  const size_t start = head.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos || head[start] != '{') return false;
  const auto has = [&](std::string_view key) { return head.find(key) != std::string_view::npos; };
  return has("\"alg_bw\"") && has("\"bus_bw\"") && has("\"results\"");
}

Result<FilePart> read_json(Source& source, ReadContext& context) {
  RH_TRY(const std::string text, content_of(source));
  const std::string& file = source.name();
  dom::parser parser(kMostReportBytes);
  dom::element document;
  if (const auto error = parse_json(parser, text, document)) {
    return fail(Code::kBadInput,
                fmt::format("no whole JSON document: {}", simdjson::error_message(error)), file,
                "nccl-tests closes its report when it ends; give the printed table instead");
  }
  Run run;
  run.number = 1;
  run.configured = true;
  set_report_conditions(document, run.table);
  uint64_t unused = 0;
  for (const dom::element& item : items_at(document, "results")) {
    if (auto row = row_of(item)) {
      *run.table.add_rows() = std::move(*row);
      run.cpu_time = run.cpu_time || tells_cpu_time(item);
    } else {
      ++unused;
    }
  }
  if (unused > 0) {
    context.findings.add("nccl-tests-row-incomplete", Severity::kDataLoss, file,
                         "rows without a whole measurement are not used", unused);
  }
  dom::element average;
  if (document["average_bus_bandwidth"].get(average) == simdjson::SUCCESS) {
    if (const auto value = number_at(average, "bandwidth")) run.table.set_average_busbw(*value);
  }
  if (run.table.rows().empty()) {
    return fail(Code::kBadInput, "no row of the report is a whole measurement", file,
                "run nccl-tests again");
  }
  FilePart part;
  part.nccl_version = run.table.nccl_version();
  std::vector<Run> runs;
  runs.push_back(std::move(run));
  pb::Evidence evidence;
  evidence.set_source(file.substr(file.rfind('/') + 1));
  *evidence.mutable_measured() = to_tables(std::move(runs), nullptr, {}, file, context.findings);
  part.evidence.push_back(std::move(evidence));
  return part;
}

}  // namespace rehearse::traces::nccl_tests
