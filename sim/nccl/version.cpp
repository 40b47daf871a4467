// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/version.hpp"

#include <array>
#include <charconv>
#include <cstddef>

namespace rehearse::sim {

namespace {

tl::unexpected<Error> bad_version(std::string_view text) {
  return fail(Code::kBadInput, "\"" + std::string(text) + "\" is not a version of NCCL", {},
              "write it as major.minor.patch, for example 2.28.9");
}

// NCCL_VERSION_CODE: 2.9 and later use two digits each for minor and patch, older ones one.
NcclVersion from_code(int code) {
  if (code < 10000) return {code / 1000, code / 100 % 10, code % 100};
  return {code / 10000, code / 100 % 100, code % 100};
}

}  // namespace

Result<NcclVersion> parse_nccl_version(std::string_view text) {
  const std::string_view digits = text.substr(0, text.find_first_of("+-"));
  std::array<int, 3> parts = {0, 0, 0};
  std::size_t n = 0;
  const char* at = digits.data();
  const char* const end = at + digits.size();
  while (n < parts.size()) {
    const auto [next, error] = std::from_chars(at, end, parts[n]);
    if (error != std::errc{} || parts[n] < 0) return bad_version(text);
    ++n;
    at = next;
    if (at == end) break;
    if (*at != '.') return bad_version(text);
    ++at;
  }
  if (at != end) return bad_version(text);
  if (n == 1) {
    if (parts[0] < 2000 || parts[0] > 99999) return bad_version(text);
    return from_code(parts[0]);
  }
  if (parts[0] < 1 || parts[0] > 99 || parts[1] > 99 || parts[2] > 99) return bad_version(text);
  return NcclVersion{parts[0], parts[1], parts[2]};
}

std::string to_string(const NcclVersion& version) {
  return std::to_string(version.major) + "." + std::to_string(version.minor) + "." +
         std::to_string(version.patch);
}

}  // namespace rehearse::sim
