// SPDX-License-Identifier: Apache-2.0
#include "traces/program/share.hpp"

#include <xxhash.h>

namespace rehearse::traces {
namespace {

template <typename T>
void share_column(std::unordered_map<uint64_t, Column<T>>& seen, Column<T>& column) {
  if (column.empty()) return;
  const uint64_t hash = XXH3_64bits(column.data(), column.written() * sizeof(T));
  const auto [at, fresh] = seen.try_emplace(hash, column);
  if (!fresh) column.share(at->second);  // compares: equal hashes may lie
}

}  // namespace

void SharedColumns::share(RankProgram& rank) {
  share_column(kinds_, rank.kind);
  share_column(numbers_, rank.name);
  share_column(times_, rank.gap);
  share_column(times_, rank.duration);
  share_column(numbers_, rank.call);
  share_column(shares_, rank.overlap);
  share_column(numbers_, rank.edge_begin);
  share_column(numbers_, rank.edges);
}

}  // namespace rehearse::traces
