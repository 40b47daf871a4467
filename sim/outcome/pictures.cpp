// SPDX-License-Identifier: Apache-2.0
#include "sim/outcome/pictures.hpp"

#include <algorithm>

#include "base/markup.hpp"
#include "base/packed.hpp"
#include "sim/memory/account.hpp"
#include "sim/outcome/overview.hpp"

namespace rehearse::sim {
namespace {

// Before the overview chooses from them: of runs with more operations short ones are merged at once, or a run of many
// steps would take gigabytes for its picture.
constexpr size_t kMostEntries = 4'000'000;
constexpr size_t kRanksInDetail = 16;
constexpr size_t kMemoryCurves = 16;
constexpr size_t kLongestName = 400;  // bytes; names of templates have kilobytes
constexpr uint64_t kMostBytes = 64u << 20;

}  // namespace

pb::Pictures make_pictures(const Scenario& scenario, const Evidence& evidence,
                           const pb::Outcome& outcome) {
  pb::Pictures out;
  pb::Timeline whole;
  fill_timeline(evidence, resolution_of(evidence, kMostEntries), whole);
  uint64_t ended = 0;
  for (const OpTimes& rank : evidence.replayed.end) {
    for (OpId op = 0; op < rank.size(); ++op) ended += rank[op] >= 0 ? 1 : 0;
  }
  out.set_operations(ended);
  OverviewOptions options;
  options.in_detail = ranks_of_interest(outcome, kRanksInDetail);
  *out.mutable_timeline() = overview(whole, options);
  for (std::string& name : *out.mutable_timeline()->mutable_names()) {
    name = shortened(name, kLongestName);
  }
  fill_cluster(scenario, evidence, *out.mutable_cluster());
  for (pb::MemoryCurve& curve : memory_curves(scenario, evidence, kMemoryCurves)) {
    *out.add_memory() = std::move(curve);
  }
  return out;
}

std::string packed(const pb::Pictures& pictures) { return pack(pictures.SerializeAsString()); }

Result<pb::Pictures> unpacked_pictures(const std::string& text, const std::string& where) {
  RH_TRY(const std::string bytes, unpack(text, kMostBytes, where));
  pb::Pictures out;
  if (!out.ParseFromString(bytes)) {
    return fail(Code::kBadInput, "the pictures of the outcome are damaged", where,
                "make the outcome again");
  }
  return out;
}

}  // namespace rehearse::sim
