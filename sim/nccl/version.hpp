// SPDX-License-Identifier: Apache-2.0
// A version of NCCL, ordered, read from what logs and headers print. Values only.
#pragma once

#include <compare>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace rehearse::sim {

struct NcclVersion {
  int major = 2;
  int minor = 28;
  int patch = 9;

  // Orders versions; parts are below 100 in every version read by parse_nccl_version.
  [[nodiscard]] constexpr int code() const { return (major * 1000 + minor) * 1000 + patch; }

  bool operator==(const NcclVersion&) const = default;
  std::strong_ordering operator<=>(const NcclVersion& other) const {
    return code() <=> other.code();
  }
};

// Takes "2.28.9", "2.19" (patch 0), "2.29.2+cuda13.1" and the header's number "22902".
// Anything else is Code::kBadInput.
[[nodiscard]] Result<NcclVersion> parse_nccl_version(std::string_view text);

// "2.28.9".
[[nodiscard]] std::string to_string(const NcclVersion& version);

}  // namespace rehearse::sim
