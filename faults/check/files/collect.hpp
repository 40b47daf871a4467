// SPDX-License-Identifier: Apache-2.0
// A configuration put together from a cluster's own files: what `env`, `ip addr`, `ibstat`, `nvidia-smi topo -m`, `pip
// list` and `df` print, hostfiles, launch and training scripts, TF_CONFIG. Files are known by what is in them. The
// result is a scenario in which everything that no file tells is unset.
//
// A file belongs to the node that it is labelled with, else to the one its HOSTNAME or SLURMD_NODENAME, its folder or
// its name tells; else files of one kind are taken in the order of the nodes. A file that is alone of its kind and
// describes processes (environment, scripts) holds for all nodes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/finding.hpp"
#include "faults/proto/check.pb.h"
#include "sim/proto/scenario.pb.h"

namespace rehearse::faults {

enum class FileKind {
  kUnknown,
  kEnvironment,
  kLaunchScript,
  kTrainingScript,
  kHostfile,
  kIpAddr,
  kRoutes,
  kIbstat,
  kTopology,
  kVersions,
  kSharedMemory,
  kTfConfig,
};

[[nodiscard]] FileKind file_kind(std::string_view text);
[[nodiscard]] const char* name_of(FileKind kind);

struct ClusterFile {
  std::string name;  // path as given
  std::string text;
  std::string node;  // label; empty: to be found out
};

// What a file turned out to be.
struct FileRole {
  FileKind kind = FileKind::kUnknown;
  std::vector<uint32_t> nodes;  // indices; empty: the whole job
};

struct Collected {
  pb::Scenario document;
  std::vector<FileRole> roles;  // one per file
  Findings findings;            // files that were not understood
};

// kBadInput when no file says anything of the job.
[[nodiscard]] Result<Collected> collect(std::span<const ClusterFile> files,
                                        const pb::CheckTables& tables);

// The files with the report's fixes to variables made, in the same order; unchanged ones are empty.
[[nodiscard]] std::vector<std::string> repaired_files(std::span<const ClusterFile> files,
                                                      const Collected& collected,
                                                      const pb::CheckReport& report);

}  // namespace rehearse::faults
