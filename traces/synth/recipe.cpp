// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <xxhash.h>

#include "base/document.hpp"
#include "traces/synth/synth.hpp"

namespace rehearse {

const char* synth_digest();  // traces/CMakeLists.txt

namespace synth {

std::string recipe_id(const pb::Synth& complete, const pb::Gpu& gpu) {
  const std::string recipe =
      fmt::format("{}\n{}\n{}", synth_digest(), write_document(complete), write_document(gpu));
  const XXH128_hash_t hash = XXH3_128bits(recipe.data(), recipe.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace synth
}  // namespace rehearse
