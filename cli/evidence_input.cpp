// SPDX-License-Identifier: Apache-2.0
#include "cli/evidence_input.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "traces/evidence/evidence.hpp"
#include "traces/import/format.hpp"
#include "traces/import/rank_of_name.hpp"
#include "traces/import/source.hpp"

namespace rehearse::cli {
namespace {
namespace fs = std::filesystem;

constexpr size_t kMostFiles = 100'000;
constexpr size_t kMostText = size_t{16} << 20;

// Outcomes say so in their first line or two.
bool is_outcome(const fs::path& path) {
  if (path.extension() != ".json") return false;
  std::ifstream file(path, std::ios::binary);
  std::string head(256, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  return head.find("rehearse.outcome/1") != head.npos;
}

bool is_scenario(const fs::path& path) {
  const fs::path extension = path.extension();
  if (extension == ".rtrace") return true;
  if (extension != ".yaml" && extension != ".yml") return false;
  const auto source = traces::Source::open(path, {});
  return !source || traces::format_of(source->head()) == nullptr;
}

Result<std::vector<fs::path>> files_below(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    if (it->is_regular_file(error)) out.push_back(it->path());
    if (out.size() > kMostFiles) {
      return fail(Code::kLimit, fmt::format("more than {} files", kMostFiles), folder.string(),
                  "name the folder of one job");
    }
  }
  if (error) return fail(Code::kIo, error.message(), folder.string(), "is it readable?");
  std::sort(out.begin(), out.end());
  return out;
}

// Whether two dumps of a rank are the same one, in one form or another.
bool is_same_dump(const pb::FlightRecorder& a, const pb::FlightRecorder& b) {
  const auto last = [](const pb::FlightRecorder& recorder) {
    if (recorder.entries().empty()) return std::tuple<int64_t, int64_t, std::string>{};
    const pb::FlightEntry& entry = *recorder.entries().rbegin();
    return std::tuple(entry.record_id(), entry.collective_seq(), entry.group_name());
  };
  return a.entries_size() == b.entries_size() && last(a) == last(b);
}

Result<void> take(std::vector<pb::Evidence> found, const fs::path& file,
                  std::map<uint32_t, fs::path>& ranks, EvidenceInput& out) {
  const auto rank = traces::rank_of_name(file.filename().string());
  if (rank) out.logs.ranks.insert(*rank);
  for (pb::Evidence& evidence : found) {
    if (evidence.has_nccl_log()) {
      out.logs.nccl.push_back({rank, std::move(*evidence.mutable_nccl_log())});
    }
    if (!evidence.has_flight_recorder()) continue;
    pb::FlightRecorder& recorder = *evidence.mutable_flight_recorder();
    const auto other = recorder.has_rank() ? ranks.try_emplace(recorder.rank(), file)
                                           : std::pair(ranks.end(), true);
    if (other.second) {
      out.logs.recorders.push_back(std::move(recorder));
      continue;
    }
    const auto& known = out.logs.recorders;
    const auto same = std::find_if(known.begin(), known.end(), [&](const auto& one) {
      return one.has_rank() && one.rank() == recorder.rank();
    });
    if (same == known.end() || is_same_dump(*same, recorder)) continue;
    return fail(Code::kBadInput,
                fmt::format("another dump of rank {} than {}", recorder.rank(),
                            other.first->second.string()),
                file.string(), "name the folder of one job, or the dumps of one hang");
  }
  return {};
}

// Errors and steps that the program itself printed, in the first kMostText bytes of a text. Data (recordings, JSON, tables of
// numbers) is no output of a program.
bool take_printed(const fs::path& file, EvidenceInput& out) {
  const auto rank = traces::rank_of_name(file.filename().string());
  std::error_code error;
  // What a launcher keeps of a process without a word.
  if (fs::file_size(file, error) == 0 && !error) return faults::add_printed("", rank, out.logs);
  auto source = traces::Source::open(file, {});
  if (!source) return false;
  const std::string_view head = source->head();
  if (head.empty() || head.front() == '{' || head.starts_with("[{") || head.starts_with("[\n") ||
      head.find('\0') != head.npos || file.extension() == ".csv") {
    return false;
  }
  const traces::Format* format = traces::format_of(head);
  if (format != nullptr && format->holds != traces::Holds::kPrinted) return false;
  std::string text(kMostText, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const auto more = source->read(std::span(text).subspan(size));
    if (!more || *more == 0) break;
    size += *more;
  }
  text.resize(size);
  return faults::add_printed(text, rank, out.logs);
}

// Recordings among files that hold nothing else, with the layout of the job. Where there is a table of operations it is the
// job's own; what others made of it (pictures, timelines) stands beside it.
std::vector<fs::path> recordings(const std::vector<fs::path>& files) {
  std::vector<fs::path> tables, others, layout;
  for (const fs::path& file : files) {
    auto source = traces::Source::open(file, {});
    const traces::Format* format = source ? traces::format_of(source->head()) : nullptr;
    if (format == nullptr) continue;
    if (format->holds == traces::Holds::kLayout) {
      layout.push_back(file);
    } else if (format->holds == traces::Holds::kRecording) {
      (format->name == "csv" ? tables : others).push_back(file);
    }
  }
  std::vector<fs::path> out = std::move(tables.empty() ? others : tables);
  if (!out.empty()) out.insert(out.end(), layout.begin(), layout.end());
  return out;
}

}  // namespace

Result<EvidenceInput> sort_inputs(Context& context) {
  EvidenceInput out;
  std::map<uint32_t, fs::path> ranks;  // that left a dump, and where
  std::vector<fs::path> silent;        // files that are no evidence of another kind
  std::optional<Error> wrong;          // with the file that was named
  Findings findings;
  for (const std::string& input : context.inputs()) {
    std::error_code error;
    const fs::path path(input);
    const bool folder = fs::is_directory(path, error);
    if (!folder && (!fs::is_regular_file(path, error) || is_scenario(path) || is_outcome(path))) {
      if (!out.main.empty()) {
        return fail(Code::kUsage, "two scenarios or outcomes", input,
                    "give one, and evidence of the same job beside it");
      }
      out.main = input;
      continue;
    }
    std::vector<fs::path> files{path};
    if (folder) {
      RH_TRY(files, files_below(path));
    }
    for (const fs::path& file : files) {
      auto found = traces::read_evidence(file, findings, context.reporter());
      const bool printed = take_printed(file, out);
      if (!found && !printed) {
        silent.push_back(file);
        if (!folder) wrong = found.error();
      }
      if (!found && found.error().code == Code::kInterrupted)
        return tl::unexpected(std::move(found).error());
      if (found && !found->empty()) {
        if (auto taken = take(std::move(*found), file, ranks, out); !taken) {
          return tl::unexpected(std::move(taken).error());
        }
      } else if (!printed) {
        ++out.ignored;
      }
    }
  }
  // Steps that a script told of say less than a recording of them, and nothing where there is no job to compare with.
  if (out.main.empty() && (out.logs.empty() || out.logs.only_steps())) {
    out.traces = recordings(silent);
    if (out.traces.empty() && (out.logs.empty() || !context.has("scenario"))) {
      if (wrong && context.inputs().size() == 1) return tl::unexpected(*wrong);
      return fail(
          Code::kBadInput, "neither flight recorder dumps, logs with errors nor recordings",
          context.inputs().front(),
          "give the folder with nccl_trace_rank_* files, the output of the ranks, or the "
          "recordings of one job; steps that a script told of are compared with --scenario");
    }
  }
  return out;
}

}  // namespace rehearse::cli
