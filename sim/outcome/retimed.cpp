// SPDX-License-Identifier: Apache-2.0
#include "sim/outcome/retimed.hpp"

#include <string_view>
#include <utility>

#include "sim/schedule_director.hpp"

namespace rehearse::sim {
namespace {

// Faster than anything that is built; not so fast that shares lose their digits.
constexpr BytesPerSec kUnbound = 1e18;

// The other direction of the same wire; kNoLink: it has none.
LinkId opposite(const platforms::Links& links, LinkId link) {
  constexpr std::pair<std::string_view, std::string_view> kDirections[] = {
      {"tx", "rx"}, {"up", "down"}, {"out", "in"}};
  const std::string& name = links[link].name;
  for (const auto& [a, b] : kDirections) {
    for (const auto& [from, to] : {std::pair{a, b}, std::pair{b, a}}) {
      if (!name.ends_with(from)) continue;
      return links.find(name.substr(0, name.size() - from.size()) + std::string(to));
    }
  }
  return platforms::kNoLink;
}

}  // namespace

Retimed::Retimed(const Evidence& evidence) : evidence_(evidence), program_(evidence.program) {}

Nanos Retimed::step(const Without& without) {
  std::vector<size_t> changed;
  for (size_t r = 0; without.operation && r < program_.ranks.size(); ++r) {
    traces::RankProgram& rank = program_.ranks[r];
    bool any = false;
    for (OpId op = 0; op < rank.size(); ++op) {
      if (!without.operation(r, op)) continue;
      rank.gap[op] = rank.duration[op] = 0;
      any = true;
    }
    if (any) changed.push_back(r);
  }
  ReplayOptions options = evidence_.options;
  options.instant = without.call;
  options.transfer = [&](size_t r,
                         const traces::Transfer& transfer) -> Result<std::optional<CallTraffic>> {
    if (without.operation && without.operation(r, transfer.op)) return std::nullopt;
    return evidence_.options.transfer(r, transfer);
  };
  if (!evidence_.options.transfer) options.transfer = {};
  std::vector<BytesPerSec> capacities(options.capacity.begin(), options.capacity.end());
  if (without.link != platforms::kNoLink) {
    capacities[without.link] = kUnbound;
    const LinkId back = opposite(evidence_.links, without.link);
    if (back != platforms::kNoLink) capacities[back] = kUnbound;
  }
  Schedule schedule = evidence_.schedule;
  std::erase_if(schedule.capacities,
                [&](const CapacityChange& change) { return capacities[change.link] == kUnbound; });
  ScheduleDirector director(schedule, program_);
  options.director = schedule.empty() ? nullptr : &director;
  const std::unique_ptr<Fabric> fabric = make_reference_fabric(std::move(capacities));
  SilentReporter silent;
  const auto replayed = replay(program_, options, *fabric, silent);
  for (size_t r : changed) {
    program_.ranks[r].gap = evidence_.program.ranks[r].gap;
    program_.ranks[r].duration = evidence_.program.ranks[r].duration;
  }
  if (!replayed || !replayed->completed) return -1;
  const std::vector<Nanos> ends =
      step_ends({program_, evidence_.names, *replayed, evidence_.models, evidence_.links,
                 evidence_.options, evidence_.schedule});
  if (ends.size() < 2) return replayed->end_time;
  return (ends.back() - ends.front()) / static_cast<Nanos>(ends.size() - 1);
}

}  // namespace rehearse::sim
