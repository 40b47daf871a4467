// SPDX-License-Identifier: Apache-2.0
// Platforms from what machines tell of themselves. The result is a compact platform document: what
// was seen, what it is like in the catalogue, and under `assumptions` what nobody told. Each
// importer takes a whole file as text, never opens anything itself and bounds what it believes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/finding.hpp"
#include "platforms/import/seen.hpp"
#include "platforms/model/catalogue.hpp"
#include "platforms/proto/platform.pb.h"

namespace rehearse::platforms {

struct ImportText {
  std::string name;  // of the file, for places
  std::string text;
};

struct ImportSettings {
  // Data sheet of the GPUs where files do not name them (id in catalogue/gpus); empty: best match.
  std::string gpu;
};

struct ImportedPlatform {
  pb::Platform platform;  // compact: `like` of GPUs is not resolved
  std::string format;     // "NCCL topology", ...
  Findings findings;
};

enum class ImportFormat { kUnknown, kNcclTopology, kNcclGraph, kNvidiaSmi };

// By content. kUnknown: not one of these.
[[nodiscard]] ImportFormat format_of(std::string_view text);

// NCCL_TOPO_DUMP_FILE, NCCL_TOPO_FILE and RCCL's models. One node per host_hash.
[[nodiscard]] Result<ImportedPlatform> import_nccl_topology(const ImportText& file,
                                                            const Machines& machines,
                                                            const ImportSettings& settings);

// NCCL_GRAPH_DUMP_FILE. Its channels are put on `into`'s first node when there is one (kBadInput for
// a GPU or NIC that it does not have), else on a machine of the catalogue with as many GPUs.
[[nodiscard]] Result<ImportedPlatform> import_nccl_graph(const ImportText& file,
                                                         const std::optional<pb::Platform>& into,
                                                         const Machines& machines);

// `nvidia-smi topo -m`, with or without terminal escape codes.
[[nodiscard]] Result<ImportedPlatform> import_nvidia_smi(const ImportText& file,
                                                         const Machines& machines,
                                                         const ImportSettings& settings);

// A machine of the catalogue from scattered facts: `nodes` copies of the best match; where it has
// another number of GPUs than was seen, that is told. `name` is for findings.
[[nodiscard]] Result<ImportedPlatform> import_seen(const Seen& seen, uint32_t nodes,
                                                   const std::string& name,
                                                   const Machines& machines);

// What the platform means: the document read back, `like` resolved and expanded.
[[nodiscard]] Result<pb::Platform> expanded(const pb::Platform& compact, const std::string& name,
                                            const Machines& machines);

}  // namespace rehearse::platforms
