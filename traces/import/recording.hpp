// SPDX-License-Identifier: Apache-2.0
// A trace as users name it: a .rtrace, or the files that a profiler or a launcher left, which are imported for this one
// use. Verbs that only look at a job take either; `rehearse import` is for those who want options or to keep the result.
#pragma once

#include <filesystem>
#include <vector>

#include "base/error.hpp"
#include "base/reporter.hpp"
#include "traces/import/part.hpp"
#include "traces/model/trace.hpp"

namespace rehearse::traces {

// By its first bytes; false for what cannot be read, and for pipes, which would be waited for.
[[nodiscard]] bool is_rtrace(const std::filesystem::path& path);

// A folder, or a file of a format of the table (format.hpp) that is more than the layout of a job.
[[nodiscard]] bool is_recording(const std::filesystem::path& path);

// One .rtrace as it is; anything else through import_files() with its defaults. What was ignored or repaired stands in
// the header's findings; the reporter is told that the import is not kept.
[[nodiscard]] Result<Trace> read_recording(const std::vector<std::filesystem::path>& inputs,
                                           CutFiles cut_files, Reporter& reporter);

}  // namespace rehearse::traces
