// SPDX-License-Identifier: Apache-2.0
#include "validation/blind/draw.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace rehearse::validation {
namespace {

using Kind = pb::Parameter;
using faults::FaultUse;

// The first collectives of a rank, among which one is left out or made twice.
constexpr uint64_t kFirstCalls = 24;

std::string of_count(int count, Random& random) {
  return std::to_string(count > 0 ? random.below(static_cast<uint64_t>(count)) : 0);
}

// A pipeline stage: ranks are numbered stage by stage.
std::string stage_of(const pb::Scenario& document, Random& random) {
  const auto ranks = static_cast<uint32_t>(document.launch().ranks_size());
  const uint32_t stages = std::max<uint32_t>(2, document.trace().synth().pp());
  const uint32_t size = std::max<uint32_t>(1, ranks / stages);
  const auto first = static_cast<uint32_t>(random.below(stages)) * size;
  return fmt::format("{}-{}", first, first + size - 1);
}

std::string between(const pb::Parameter& p, Random& random) {
  const auto from = faults::parse_value(p, p.usual_from());
  const auto to = faults::parse_value(p, p.usual_to());
  if (!from || !to) return p.default_();
  // 0 is a value of counts, which logarithms do not know.
  const double shift = *from > 0 ? 0 : 1;
  const double low = std::log(*from + shift), high = std::log(*to + shift);
  return faults::format_value(p, std::exp(low + (high - low) * random.uniform()) - shift);
}

std::string value_of(const pb::Parameter& p, const pb::Node* node, const DrawFrom& from,
                     Random& random) {
  switch (p.kind()) {
    case Kind::RANK:
      return of_count(from.document.launch().ranks_size(), random);
    case Kind::NODE:
      return of_count(from.document.platform().nodes_size(), random);
    case Kind::GPU:
      return of_count(node ? node->gpus_size() : 1, random);
    case Kind::NIC:
      return of_count(node ? node->nics_size() : 1, random);
    case Kind::COLLECTIVE:
      return std::to_string(random.below(kFirstCalls));
    case Kind::MOMENT:
      return fmt::format("{:.0f}ns",
                         static_cast<double>(from.duration) * (0.1 + 0.8 * random.uniform()));
    case Kind::RANKS:
      return stage_of(from.document, random);
    default:
      break;
  }
  if (p.usual_size() > 0) {
    return p.usual(static_cast<int>(random.below(static_cast<uint64_t>(p.usual_size()))));
  }
  if (!p.usual_from().empty()) return between(p, random);
  if (p.choices_size() > 0) {
    return p.choices(static_cast<int>(random.below(static_cast<uint64_t>(p.choices_size()))));
  }
  return p.default_();
}

}  // namespace

FaultUse draw_use(const std::shared_ptr<const faults::FaultEntry>& entry, const DrawFrom& from,
                  Random& random) {
  FaultUse use = faults::with_defaults(entry);
  const pb::Node* node = nullptr;
  for (const pb::Parameter& p : entry->fault.parameters()) {
    const std::string value = value_of(p, node, from, random);
    if (auto drawn = faults::with_value(use, p.name(), value)) use = std::move(*drawn);
    if (p.kind() == Kind::NODE && !node) {
      node = &from.document.platform().nodes(std::stoi(use.values.at(p.name())));
    }
  }
  return use;
}

}  // namespace rehearse::validation
