// SPDX-License-Identifier: Apache-2.0
#include "traces/import/recording.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <system_error>

#include "traces/import/format.hpp"
#include "traces/import/import.hpp"
#include "traces/import/source.hpp"
#include "traces/model/rtrace.hpp"
#include "traces/model/rtrace_format.hpp"

namespace rehearse::traces {
namespace fs = std::filesystem;

bool is_rtrace(const fs::path& path) {
  std::error_code ec;
  if (!fs::is_regular_file(path, ec)) return false;
  std::ifstream in(path, std::ios::binary);
  char magic[kRtraceMagic.size()] = {};
  in.read(magic, sizeof magic);
  return in && std::string_view(magic, sizeof magic) == kRtraceMagic;
}

bool is_recording(const fs::path& path) {
  std::error_code ec;
  if (fs::is_directory(path, ec)) return true;
  if (!fs::is_regular_file(path, ec)) return false;
  const auto source = Source::open(path, {});
  const Format* format = source ? format_of(source->head()) : nullptr;
  return format != nullptr && format->holds != Holds::kLayout;
}

Result<Trace> read_recording(const std::vector<fs::path>& inputs, CutFiles cut_files,
                             Reporter& reporter) {
  if (inputs.size() == 1 && is_rtrace(inputs.front())) {
    ReadOptions reading;
    if (cut_files == CutFiles::kAccept) reading.truncated = Truncated::kAccept;
    return read_rtrace(inputs.front(), reading, reporter);
  }
  ImportOptions options;
  options.cut_files = cut_files;
  RH_TRY(Imported imported, import_files(inputs, options, reporter));
  const auto wrong =
      std::count_if(imported.findings.rows().begin(), imported.findings.rows().end(),
                    [](const Finding& finding) { return finding.severity != Severity::kInfo; });
  std::string told;
  if (wrong > 0) told = fmt::format(", {} findings (`rehearse inspect` lists them)", wrong);
  reporter.note(
      fmt::format("imported {} file{} for this run{}; `rehearse import -o job.rtrace` keeps it",
                  imported.inputs.size(), imported.inputs.size() == 1 ? "" : "s", told));
  return std::move(imported.trace);
}

}  // namespace rehearse::traces
