// SPDX-License-Identifier: Apache-2.0
// PyTorch's flight recorder: what each rank had enqueued, started and finished on every process
// group when it was dumped. JSON, or a Python pickle that is read as plain data (pickle.hpp).
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/finding.hpp"
#include "traces/import/flight_recorder/value.hpp"
#include "traces/import/part.hpp"

namespace rehearse::traces::flight_recorder {

[[nodiscard]] bool sniff_json(std::string_view head);
// A pickle that holds a dict; whether it is a dump shows when it is read.
[[nodiscard]] bool sniff_pickle(std::string_view head);
// kBadInput when it is no dump or cannot be read as plain data, kLimit above 256 MiB. The rank is taken from the name of the
// file where that has the word ("rank03.json", "nccl_trace_rank_3"), else from the dump, where it says so or one rank alone is in
// all of its groups, else from the number that the name ends with ("_dump_3", "job.3.txt").
[[nodiscard]] Result<FilePart> read(Source& source, ReadContext& context);

// Plain data as a dump; `file` is for findings. kBadInput when it is none.
[[nodiscard]] Result<pb::FlightRecorder> to_recorder(const Values& values, ValueId root,
                                                     const std::string& file, Findings& findings);

}  // namespace rehearse::traces::flight_recorder
