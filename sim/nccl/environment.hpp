// SPDX-License-Identifier: Apache-2.0
// How NCCL reads the values of its variables. The one place for it: transports, the start of a job and
// the static check all ask here. Pure functions.
//
// Name filters (NCCL_IB_HCA, NCCL_SOCKET_IFNAME; src/misc/utils.cc parseStringList, matchIfList): a
// comma-separated list of prefixes; a leading ^ excludes, = asks for exact names, ^= excludes exact
// names. Names keep their case and their spaces; an empty list holds for every name, so "^" alone
// leaves none.
// Numbers (src/misc/param.cc): as strtoll with base 0, so "0x10" is 16, "2 ports" is 2 and "yes" is 0.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace rehearse::sim {

// Of an IP interface; a port behind a colon is not looked at. An empty filter allows every name.
[[nodiscard]] bool name_allowed(std::string_view name, std::string_view filter);

// The same for adapters, where a number after a colon is a port ("mlx5_0:1"): every adapter of a
// platform is the first port of its device.
[[nodiscard]] bool hca_allowed(std::string_view name, std::string_view filter);

struct ReadNumber {
  int64_t value = 0;
  bool whole = true;  // false: there is more than a number, or none
};

// Nothing for an empty text and for a number that is out of range: NCCL keeps its default then.
[[nodiscard]] std::optional<ReadNumber> read_number(std::string_view text);

// What NCCL makes of a value that is not just a number, as a sentence; "" where it is one or empty.
[[nodiscard]] std::string number_note(std::string_view name, std::string_view text);

// A variable that is a number; `otherwise` when it is not set or out of range.
[[nodiscard]] int whole_number(const std::map<std::string, std::string>& env, const char* name,
                               int otherwise);

// The value of a variable; "" when it is not set, which is the same.
[[nodiscard]] std::string variable_in(const std::map<std::string, std::string>& env,
                                      const std::string& name);

}  // namespace rehearse::sim
