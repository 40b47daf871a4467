// SPDX-License-Identifier: Apache-2.0
#include "faults/fix/side_effects.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.hpp"
#include "base/units.hpp"

namespace rehearse::faults {
namespace {

constexpr double kNotice = 0.02;            // smaller changes are not worth a sentence
constexpr Bytes kNoticeBytes = 16LL << 20;  // of memory
constexpr double kNoticeTraffic = 0.10;

std::string signed_percent(double change) { return fmt::format("{:+.0f} %", 100 * change); }

std::map<uint32_t, Bytes> peaks(const pb::Outcome& outcome) {
  std::map<uint32_t, Bytes> out;
  for (const pb::RankMemory& rank : outcome.memory().ranks()) out[rank.rank()] = rank.peak();
  return out;
}

bool worth_a_sentence(Bytes change, Bytes of) {
  return std::abs(change) >= kNoticeBytes &&
         static_cast<double>(std::abs(change)) >= kNotice * static_cast<double>(of);
}

void memory_effect(const FixRuns& runs, std::vector<std::string>& out) {
  const auto usual = peaks(runs.baseline), broken = peaks(runs.broken);
  std::vector<uint32_t> ranks;
  Bytes most = 0;
  const pb::RankMemory* fullest = nullptr;
  for (const pb::RankMemory& rank : runs.fixed.memory().ranks()) {
    const auto at = usual.find(rank.rank());
    if (at == usual.end()) continue;
    const Bytes more = rank.peak() - at->second;
    if (!worth_a_sentence(more, at->second)) continue;
    // What the fault did and the fix leaves is no effect of the fix.
    const auto before = broken.find(rank.rank());
    if (before != broken.end() && !worth_a_sentence(rank.peak() - before->second, at->second)) {
      continue;
    }
    ranks.push_back(rank.rank());
    if (std::abs(more) > std::abs(most)) most = more;
    if (fullest == nullptr || rank.peak() > fullest->peak()) fullest = &rank;
  }
  if (ranks.empty()) return;
  out.push_back(fmt::format("memory: {}{} on rank {}, now {} of {}", most > 0 ? "+" : "-",
                            format_bytes(std::abs(most)), format_ranks(ranks),
                            format_bytes(fullest->peak()), format_bytes(fullest->capacity())));
}

void other_ranks(const FixRuns& runs, std::vector<std::string>& out) {
  std::map<uint32_t, int64_t> before;
  for (const pb::RankBreakdown& rank : runs.broken.breakdown())
    before[rank.rank()] = rank.compute();
  std::vector<uint32_t> slower;
  double most = 0;
  for (const pb::RankBreakdown& rank : runs.fixed.breakdown()) {
    const auto at = before.find(rank.rank());
    if (at == before.end() || at->second <= 0) continue;
    const double more = static_cast<double>(rank.compute()) / static_cast<double>(at->second) - 1;
    if (more <= kNotice) continue;
    slower.push_back(rank.rank());
    most = std::max(most, more);
  }
  if (!slower.empty()) {
    out.push_back(fmt::format("other ranks: compute of rank {} takes up to {} longer",
                              format_ranks(slower), signed_percent(most)));
  }
}

// Links that no node owns are shared with other jobs.
double shared_bytes(const pb::Outcome& outcome) {
  double sum = 0;
  for (const pb::LinkUse& link : outcome.links()) {
    if (!link.name().starts_with("node")) sum += link.bytes();
  }
  return sum;
}

void other_jobs(const FixRuns& runs, std::vector<std::string>& out) {
  const double usual = shared_bytes(runs.baseline), now = shared_bytes(runs.fixed);
  const double before = runs.broken.verdict() == pb::COMPLETED ? shared_bytes(runs.broken) : 0;
  if (usual <= 0 || now <= std::max(usual, before) * (1 + kNoticeTraffic)) return;
  out.push_back(fmt::format("other jobs: {} bytes over switches and storage that they share",
                            signed_percent(now / usual - 1)));
}

void batch_effect(std::span<const pb::Patch> patches, std::vector<std::string>& out) {
  for (const pb::Patch& patch : patches) {
    if (!patch.has_regenerate()) continue;
    const pb::Regenerate& how = patch.regenerate();
    const double samples =
        (how.has_batch() ? how.batch() : 1) * (how.has_micro_batches() ? how.micro_batches() : 1);
    if (samples == 1) continue;
    out.push_back(
        fmt::format("batch: a step takes {:.3g} times the samples; learning rate and "
                    "convergence are not simulated",
                    samples));
  }
}

}  // namespace

std::vector<std::string> side_effects(const FixRuns& runs, std::span<const pb::Patch> patches) {
  std::vector<std::string> out;
  memory_effect(runs, out);
  batch_effect(patches, out);
  other_ranks(runs, out);
  other_jobs(runs, out);
  return out;
}

}  // namespace rehearse::faults
