// SPDX-License-Identifier: Apache-2.0
// nccl-tests as inputs of the import: its printed tables (read together with the NCCL log they are
// mixed with, see traces/import/nccl_log), its report as JSON (-J FILE) and tables of the same
// figures as CSV.
#pragma once

#include <string_view>

#include "base/error.hpp"
#include "traces/import/part.hpp"

namespace rehearse::traces::nccl_tests {

// The header of a table, a device list or rows of it.
[[nodiscard]] bool sniff(std::string_view head);

[[nodiscard]] bool sniff_json(std::string_view head);
[[nodiscard]] Result<FilePart> read_json(Source& source, ReadContext& context);

// A CSV whose first line names its columns, among them the size (bytes, size_bytes or size) and the
// time (time_us_oop, time_us or time). Other columns that are understood: table_id, collective,
// hardware, nodes, gpus, nccl_version, nccl_tests_version, algo_forced, proto_forced, options,
// graph, dtype, redop, root, iters, warmup, count, algbw, busbw and wrong with _oop or _ip, and
// time_us_ip, algo_used, proto_used, channels_used, nccl_predicted_us. Rows of one table_id are one
// table.
[[nodiscard]] bool sniff_csv(std::string_view head);
[[nodiscard]] Result<FilePart> read_csv(Source& source, ReadContext& context);

}  // namespace rehearse::traces::nccl_tests
