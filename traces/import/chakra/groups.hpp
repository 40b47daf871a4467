// SPDX-License-Identifier: Apache-2.0
// Process groups that a file's "## process_group:init ##" node lists as JSON, the way PyTorch writes them.
// Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "traces/model/trace.hpp"

namespace rehearse::traces::chakra {

struct ProcessGroup {
  std::string name;           // pg_name, as calls name it
  Communicator communicator;  // without members when none are listed: all ranks
};

// The groups in `values`, which may be wrapped in lists and quotes; false when there is no readable list.
[[nodiscard]] bool parse_groups(std::string_view values, std::vector<ProcessGroup>& out);

}  // namespace rehearse::traces::chakra
