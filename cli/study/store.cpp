// SPDX-License-Identifier: Apache-2.0
#include "cli/study/store.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/atomic_file.hpp"
#include "base/document.hpp"
#include "cli/csv.hpp"

namespace rehearse {

const char* program_digest();  // cli/CMakeLists.txt

namespace cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
constexpr uint64_t kMostRowBytes = 1 << 20;

std::string hex(XXH128_hash_t hash) {
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

Result<std::string> hash_of_file(const std::string& path) {
  const auto close = [](std::FILE* file) { std::fclose(file); };
  const std::unique_ptr<std::FILE, decltype(close)> file(std::fopen(path.c_str(), "rb"), close);
  if (!file) return fail(Code::kMissingInput, "cannot open the trace", path, "is it readable?");
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                       &XXH3_freeState);
  XXH3_128bits_reset(state.get());
  std::array<char, 1 << 16> chunk{};
  while (const size_t n = std::fread(chunk.data(), 1, chunk.size(), file.get())) {
    XXH3_128bits_update(state.get(), chunk.data(), n);
  }
  if (std::ferror(file.get()) != 0) return fail(Code::kIo, "cannot read the trace", path);
  return hex(XXH3_128bits_digest(state.get()));
}

std::optional<Row> read_row(const fs::path& path) {
  const auto text = read_file(path, kMostRowBytes);
  if (!text) return std::nullopt;
  // A damaged file is the same as none: the point is computed again.
  auto row = parse_row(*text, path.string());
  if (!row) return std::nullopt;
  return *row;
}

std::string csv_of(const Plan& plan, const std::map<size_t, Row>& rows, const Goal& goal) {
  std::string out = "point";
  for (const std::string& column : plan.columns()) out += "," + csv_cell(column);
  out += ",verdict,symptom";
  for (const std::string& metric : metric_names()) out += "," + metric;
  const bool ranges =
      std::ranges::any_of(rows, [](const auto& item) { return item.second.range.has_value(); });
  if (ranges) out += ",step_time_low_ns,step_time_high_ns";
  out += ",feasible,failed\n";
  for (const auto& [p, row] : rows) {
    out += std::to_string(p);
    for (const std::string& label : plan.labels(p)) out += "," + csv_cell(label);
    out += "," + row.verdict + "," + row.symptom;
    for (size_t m = 0; m < metric_names().size(); ++m) {
      out += row.failed ? "," : fmt::format(",{}", static_cast<int64_t>(row.figures[m]));
    }
    if (ranges) {
      out += row.range ? fmt::format(",{},{}", row.range->low, row.range->high) : ",,";
    }
    out += fmt::format(",{},{}\n", goal.feasible(row) ? "yes" : "no", csv_cell(row.reason));
  }
  return out;
}

std::string lines_of(const Plan& plan, const std::map<size_t, Row>& rows, const Goal& goal) {
  std::string out;
  const std::vector<std::string> columns = plan.columns();
  for (const auto& [p, row] : rows) {
    Json axes = Json::object(), edits = Json::array();
    const std::vector<std::string> labels = plan.labels(p);
    for (size_t c = 0; c < columns.size(); ++c) axes[columns[c]] = labels[c];
    for (const auto& [path, value] : plan.written(p)) {
      edits.push_back({"written", fmt::format("{}={}", path, value)});
    }
    for (const auto& [option, value] : plan.edits(p)) edits.push_back({option, value});
    Json line{{"point", p}, {"axes", axes}};
    line.update(row_json(row));
    line["feasible"] = goal.feasible(row);
    line["edits"] = edits;
    out += line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  return out;
}

}  // namespace

Result<std::string> identity_of(const sim::Scenario& scenario,
                                const faults::FaultCatalogue& catalogue) {
  std::string text = std::string(program_digest()) + "\n" + write_document(scenario.document);
  for (const std::string& patch : scenario.applied) text += patch + "\n";
  for (const auto& entry : catalogue.entries()) text += entry->fault.id() + entry->edits;
  std::error_code ec;
  if (fs::is_directory(scenario.trace_file, ec)) {  // imported: the header tells from what
    for (const pb::InputFile& input : scenario.trace->header.inputs()) {
      text += fmt::format("{} {:x} {}\n", input.name(), input.xxh3(), input.bytes());
    }
  } else if (!scenario.trace_file.empty()) {
    RH_TRY(const std::string trace, hash_of_file(scenario.trace_file));
    text += trace;
  }
  return hex(XXH3_128bits(text.data(), text.size()));
}

std::string point_id(const std::string& identity, const std::vector<Edit>& edits) {
  std::string text = identity;
  for (const auto& [option, value] : edits) {
    text += fmt::format("\n{} {} {}", option, value.size(), value);
  }
  return hex(XXH3_128bits(text.data(), text.size()));
}

Result<Store> Store::open(const fs::path& folder) {
  std::error_code ec;
  fs::create_directories(folder / "points", ec);
  if (ec) {
    return fail(Code::kIo, "cannot make the folder: " + ec.message(), folder.string(),
                "name a folder you may write to with -o");
  }
  return Store(folder);
}

std::optional<Row> Store::find(const std::string& id) const {
  return read_row(folder_ / "points" / (id + ".json"));
}

std::optional<Row> Store::find_lost(const std::string& id) const {
  return read_row(folder_ / "points" / (id + ".lost.json"));
}

Result<void> Store::put(const std::string& id, const Row& row) const {
  // Not worth waiting for the disk: a damaged point is computed again (read_row).
  return write_file_unsynced(folder_ / "points" / (id + ".json"), row_json(row).dump() + "\n",
                             Overwrite::kReplace);
}

Result<void> Store::put_lost(const std::string& id, const Row& row) const {
  return write_file(folder_ / "points" / (id + ".lost.json"), row_json(row).dump() + "\n",
                    Overwrite::kReplace);
}

Result<void> Store::publish(const Plan& plan, const std::map<size_t, Row>& rows,
                            const Goal& goal) const {
  if (auto written =
          write_file(folder_ / "results.jsonl", lines_of(plan, rows, goal), Overwrite::kReplace);
      !written) {
    return written;
  }
  return write_file(folder_ / "results.csv", csv_of(plan, rows, goal), Overwrite::kReplace);
}

}  // namespace cli
}  // namespace rehearse
