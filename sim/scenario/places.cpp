// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario/places.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/document.hpp"
#include "base/proto/options.pb.h"
#include "base/rank_ranges.hpp"
#include "base/text.hpp"
#include "sim/scenario/scenario.hpp"

namespace rehearse::sim {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr std::string_view kNodes = "platform.nodes";

const FieldDescriptor* transform_field(const pb::Patch& patch) {
  static const auto* const oneof = pb::Patch::descriptor()->FindOneofByName("transform");
  return patch.GetReflection()->GetOneofFieldDescriptor(patch, oneof);
}

// The fields of the transform that are set and name something.
std::vector<const FieldDescriptor*> naming_fields(const Message& transform) {
  std::vector<const FieldDescriptor*> set, out;
  transform.GetReflection()->ListFields(transform, &set);
  std::copy_if(set.begin(), set.end(), std::back_inserter(out), [](const FieldDescriptor* field) {
    return field->options().GetExtension(pb::naming) != pb::NO_NAMING;
  });
  return out;
}

pb::Naming naming_of(const FieldDescriptor& field) {
  return field.options().GetExtension(pb::naming);
}

std::vector<RankRange> ranges_in(const Message& transform, const FieldDescriptor& field) {
  const auto& reflection = *transform.GetReflection();
  if (naming_of(field) == pb::SOME_RANKS) {
    // What cannot be read is refused where the patch is used.
    auto ranges = parse_rank_ranges(reflection.GetString(transform, &field));
    return ranges ? std::move(*ranges) : std::vector<RankRange>();
  }
  const uint32_t number = reflection.GetUInt32(transform, &field);
  return {{number, number}};
}

bool names_place(const pb::Patch& patch, pb::Naming kind, uint32_t number) {
  const FieldDescriptor* at = transform_field(patch);
  if (at == nullptr) return false;
  const Message& transform = patch.GetReflection()->GetMessage(patch, at);
  for (const FieldDescriptor* field : naming_fields(transform)) {
    const bool is_node = naming_of(*field) == pb::A_NODE;
    if (is_node != (kind == pb::A_NODE)) continue;
    for (const RankRange& range : ranges_in(transform, *field)) {
      if (range.holds(number)) return true;
    }
  }
  return false;
}

std::string written_ranges(const std::vector<RankRange>& ranges) {
  std::string out;
  for (const RankRange& range : ranges) {
    if (!out.empty()) out += ',';
    out += std::to_string(range.first);
    if (range.last != range.first) out += '-' + std::to_string(range.last);
  }
  return out;
}

std::vector<RankRange> ranges_without(const std::vector<RankRange>& ranges, uint32_t rank) {
  std::vector<RankRange> out;
  for (const RankRange& range : ranges) {
    if (!range.holds(rank)) {
      out.push_back(range);
      continue;
    }
    if (range.first < rank) out.push_back({range.first, rank - 1});
    if (rank < range.last) out.push_back({rank + 1, range.last});
  }
  return out;
}

// What a field that names ranks or a node names with the new numbers; false: nothing.
bool renumber_field(Message& transform, const FieldDescriptor& field, const Numbering& numbering) {
  const auto& reflection = *transform.GetReflection();
  if (naming_of(field) == pb::SOME_RANKS) {
    const std::vector<RankRange> ranges = ranges_in(transform, field);
    std::vector<uint32_t> fresh;
    for (const auto& [old, now] : numbering.ranks) {
      const auto holds = [rank = old](const RankRange& range) { return range.holds(rank); };
      if (std::any_of(ranges.begin(), ranges.end(), holds)) fresh.push_back(now);
    }
    std::sort(fresh.begin(), fresh.end());
    reflection.SetString(&transform, &field, format_ranks(fresh));
    return !fresh.empty();
  }
  const auto& numbers = naming_of(field) == pb::A_NODE ? numbering.nodes : numbering.ranks;
  const auto at = numbers.find(reflection.GetUInt32(transform, &field));
  if (at == numbers.end()) {
    reflection.ClearField(&transform, &field);
    return false;
  }
  reflection.SetUInt32(&transform, &field, at->second);
  return true;
}

bool renumber_transform(pb::Patch& patch, const Numbering& numbering) {
  const FieldDescriptor* at = transform_field(patch);
  if (at == nullptr) return true;
  Message& transform = *patch.GetReflection()->MutableMessage(&patch, at);
  bool on_ranks = false, ranks_left = false;
  for (const FieldDescriptor* field : naming_fields(transform)) {
    const bool left = renumber_field(transform, *field, numbering);
    if (naming_of(*field) == pb::A_NODE) {
      if (!left) return false;
      continue;
    }
    on_ranks = true;
    ranks_left = ranks_left || left;
  }
  return !on_ranks || ranks_left;
}

using Fields = std::vector<const FieldDescriptor*>;

// Those that say what is done, without those that say to which ranks.
Fields fields_but_ranks(const Message& transform) {
  Fields set;
  transform.GetReflection()->ListFields(transform, &set);
  std::erase_if(set, [](const FieldDescriptor* field) {
    return naming_of(*field) == pb::A_RANK || naming_of(*field) == pb::SOME_RANKS;
  });
  return set;
}

// All ranks it names, in order, in as few ranges as will do.
std::vector<std::pair<uint64_t, uint64_t>> ranks_in(const Message& transform) {
  std::vector<std::pair<uint64_t, uint64_t>> named, out;
  for (const FieldDescriptor* field : naming_fields(transform)) {
    if (naming_of(*field) == pb::A_NODE) continue;
    for (const RankRange& range : ranges_in(transform, *field)) {
      named.emplace_back(range.first, range.last);
    }
  }
  std::ranges::sort(named);
  for (const auto& [first, last] : named) {
    if (out.empty() || first > out.back().second + 1) {
      out.emplace_back(first, last);
    } else {
      out.back().second = std::max(out.back().second, last);
    }
  }
  return out;
}

bool selects_all(std::string_view path) {
  return path.substr(std::min(path.size(), kNodes.size())).starts_with("[*]");
}

}  // namespace

std::optional<uint32_t> rank_of(const pb::Patch& patch) {
  const FieldDescriptor* at = transform_field(patch);
  if (at == nullptr) return std::nullopt;
  const Message& transform = patch.GetReflection()->GetMessage(patch, at);
  for (const FieldDescriptor* field : naming_fields(transform)) {
    if (naming_of(*field) == pb::A_RANK)
      return transform.GetReflection()->GetUInt32(transform, field);
  }
  return std::nullopt;
}

bool names_rank(const pb::Patch& patch, uint32_t rank) {
  return names_place(patch, pb::A_RANK, rank);
}

bool alike(const pb::Patch& a, const pb::Patch& b) {
  const FieldDescriptor* at = transform_field(a);
  if (at == nullptr || at != transform_field(b)) return false;
  const Message& one = a.GetReflection()->GetMessage(a, at);
  const Message& other = b.GetReflection()->GetMessage(b, at);
  const Fields fields = fields_but_ranks(one);
  if (fields != fields_but_ranks(other) || ranks_in(one) != ranks_in(other)) return false;
  return std::ranges::all_of(fields, [&](const FieldDescriptor* field) {
    return naming_of(*field) != pb::A_NODE || one.GetReflection()->GetUInt32(one, field) ==
                                                  other.GetReflection()->GetUInt32(other, field);
  });
}

bool names_node(const pb::Patch& patch, uint32_t node) {
  return names_place(patch, pb::A_NODE, node);
}

std::optional<pb::Patch> without_rank(const pb::Patch& patch, uint32_t rank) {
  const FieldDescriptor* at = transform_field(patch);
  if (at == nullptr) return patch;
  pb::Patch out = patch;
  Message& transform = *out.GetReflection()->MutableMessage(&out, at);
  bool left = false;
  for (const FieldDescriptor* field : naming_fields(transform)) {
    if (naming_of(*field) == pb::A_NODE) continue;
    const std::vector<RankRange> ranges = ranges_without(ranges_in(transform, *field), rank);
    left = left || !ranges.empty();
    if (naming_of(*field) == pb::SOME_RANKS) {
      transform.GetReflection()->SetString(&transform, field, written_ranges(ranges));
    } else if (ranges.empty()) {
      transform.GetReflection()->ClearField(&transform, field);
    }
  }
  if (!left) return std::nullopt;
  return out;
}

Result<pb::Patch> with_node_indices(const pb::Patch& patch, const pb::Scenario& document) {
  pb::Patch out = patch;
  out.clear_set();
  for (const auto& [path, value] : sorted_assignments(patch.set())) {
    RH_TRY(const std::string made,
           reselect(document, path, kNodes,
                    [all = selects_all(path)](const Selected& nodes) -> std::optional<Selected> {
                      if (all) return std::nullopt;
                      return nodes;
                    }));
    (*out.mutable_set())[made] = value;
  }
  return out;
}

std::optional<pb::Patch> renumbered(const pb::Patch& patch, const Numbering& numbering) {
  pb::Patch out = patch;
  if (!renumber_transform(out, numbering)) return std::nullopt;
  pb::Scenario before;  // as many nodes as there were
  for (uint32_t n = 0; n < numbering.nodes_before; ++n) before.mutable_platform()->add_nodes();
  out.clear_set();
  for (const auto& [path, value] : sorted_assignments(patch.set())) {
    const bool all = selects_all(path);
    const auto fresh = [&](const Selected& nodes) -> std::optional<Selected> {
      if (all) return std::nullopt;
      Selected made;
      for (const uint32_t node : nodes) {
        const auto at = numbering.nodes.find(node);
        if (at != numbering.nodes.end()) made.push_back(at->second);
      }
      std::sort(made.begin(), made.end());
      return made;
    };
    const auto made = reselect(before, path, kNodes, fresh);
    if (made && !made->empty()) (*out.mutable_set())[*made] = value;
  }
  const bool empty = out.set().empty() && transform_field(out) == nullptr;
  if (empty && !patch.set().empty()) return std::nullopt;
  return out;
}

}  // namespace rehearse::sim
