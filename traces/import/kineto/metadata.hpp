// SPDX-License-Identifier: Apache-2.0
// The members of a Kineto document around its events.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/finding.hpp"
#include "traces/model/trace.hpp"

namespace rehearse::traces::kineto {

struct Device {
  int64_t id = -1;
  std::string name;
  Bytes memory = 0;
};

struct ProcessGroup {
  std::string name, description, backend;
  int64_t size = -1;
  std::vector<RankId> ranks;
};

struct Metadata {
  std::optional<RankId> rank;
  std::optional<uint32_t> world_size;
  std::string backend, nccl_version, host;
  std::vector<ProcessGroup> groups;
  std::vector<Device> devices;
  Nanos base = 0;          // added to every time
  bool synthetic = false;  // the file says that nothing in it was measured
  std::optional<RankId> cloned_from;
};

// `members` is a JSON object; what is there in a wrong type is a finding at `where` and left out.
[[nodiscard]] Metadata parse_metadata(std::string_view members, const std::string& where,
                                      Findings& findings);

}  // namespace rehearse::traces::kineto
