// SPDX-License-Identifier: Apache-2.0
#include "cli/outcome_groups.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.hpp"

namespace rehearse::cli {

std::vector<SameText> same_texts(const pb::Outcome& outcome) {
  std::vector<SameText> out;
  for (const pb::ErrorText& error : outcome.error_text()) {
    const std::string prefix = fmt::format("[Rank {}] ", error.rank());
    const std::string text =
        error.text().starts_with(prefix) ? error.text().substr(prefix.size()) : error.text();
    auto same = std::ranges::find(out, text, &SameText::text);
    if (same == out.end()) same = out.insert(out.end(), {text, {}});
    same->ranks.push_back(error.rank());
  }
  for (SameText& same : out) std::ranges::sort(same.ranks);
  return out;
}

std::vector<SameWait> same_waits(const pb::Outcome& outcome) {
  std::map<std::string, SameWait> rows;
  for (const pb::Wait& wait : outcome.waits()) {
    std::vector<uint32_t> wanted(wait.for_ranks().begin(), wait.for_ranks().end());
    SameWait& row = rows[fmt::format("{}\t{:020}\t{}\t{}", wait.communicator(), wait.sequence(),
                                     wait.operation(), format_ranks(wanted))];
    row.wait = &wait;
    row.ranks.push_back(wait.rank());
    row.wanted = std::move(wanted);
  }
  std::vector<SameWait> out;
  for (auto& [key, row] : rows) {
    std::ranges::sort(row.ranks);
    out.push_back(std::move(row));
  }
  return out;
}

std::string place_of(const pb::Culprit& culprit) {
  if (culprit.has_rank()) return fmt::format("rank {}", culprit.rank());
  if (culprit.has_node()) return fmt::format("node {}", culprit.node());
  if (!culprit.link().empty()) return fmt::format("link {}", culprit.link());
  return culprit.kind();
}

}  // namespace rehearse::cli
