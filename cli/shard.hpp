// SPDX-License-Identifier: Apache-2.0
// Which part of a long work this process does: --shard I/N, else the place that a job array or an MPI launcher gives it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "cli/context.hpp"

namespace rehearse::cli {

// Every count-th piece from the index-th.
struct Shard {
  uint32_t index = 0, count = 1;
};

// "I/N" with I from 0 to N-1; `where` names the option or variable it is from. kUsage otherwise.
[[nodiscard]] Result<Shard> parse_shard(const std::string& text, const std::string& where);

// nullopt: all of it.
[[nodiscard]] Result<std::optional<Shard>> shard_of(const Context& context);

}  // namespace rehearse::cli
