// SPDX-License-Identifier: Apache-2.0
#include "cli/shard.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdlib>

#include "base/text.hpp"

namespace rehearse::cli {

Result<Shard> parse_shard(const std::string& text, const std::string& where) {
  Shard shard;
  const size_t slash = text.find('/');
  const char* const end = text.data() + text.size();
  bool good = slash != std::string::npos;
  if (good) {
    const auto a = std::from_chars(text.data(), text.data() + slash, shard.index);
    const auto b = std::from_chars(text.data() + slash + 1, end, shard.count);
    good = a.ec == std::errc() && a.ptr == text.data() + slash && b.ec == std::errc() &&
           b.ptr == end && shard.count > 0 && shard.index < shard.count;
  }
  if (!good) {
    return fail(Code::kUsage, fmt::format("{} is no shard", in_quotes(text)), where,
                "I/N with I from 0 to N-1");
  }
  return shard;
}

Result<std::optional<Shard>> shard_of(const Context& context) {
  if (context.has("shard")) {
    RH_TRY(const Shard shard, parse_shard(context.get<std::string>("shard"), "--shard"));
    return shard;
  }
  static constexpr std::array<std::array<const char*, 2>, 4> kPlaces = {
      {{"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT"},
       {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
       {"PMI_RANK", "PMI_SIZE"},
       {"JOB_COMPLETION_INDEX", "JOB_COMPLETIONS"}}};
  for (const auto& [index, count] : kPlaces) {
    const char* const i = std::getenv(index);
    const char* const n = std::getenv(count);
    if (i == nullptr || n == nullptr) continue;
    RH_TRY(const Shard shard, parse_shard(fmt::format("{}/{}", i, n), index));
    return shard;
  }
  return std::nullopt;
}

}  // namespace rehearse::cli
