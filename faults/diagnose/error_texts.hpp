// SPDX-License-Identifier: Apache-2.0
// What an error text says whatever run it is of, and whom it names. Pure functions.
#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace rehearse::faults {

// Ranks that a text names: "rank 4 of 16 ranks has already checked in", "rank 9 and rank 8 both on CUDA device 7000",
// "[missing ranks: 3, 11]".
[[nodiscard]] std::set<uint32_t> ranks_named_in(const std::string& text);

// An error text without what differs from run to run: numbers, addresses, names of hosts.
[[nodiscard]] std::string text_kind(const std::string& text);

}  // namespace rehearse::faults
