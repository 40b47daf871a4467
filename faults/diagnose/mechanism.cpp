// SPDX-License-Identifier: Apache-2.0
#include "faults/diagnose/mechanism.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace rehearse::faults {
namespace {

// Bytes of collectives that differ by more than this (in logarithm) were asked for by another program.
constexpr double kOtherBytes = 0.05;

bool changed(const Changes& changes, Aspect aspect) {
  const auto found = changes.find(aspect);
  return found != changes.end() &&
         std::any_of(found->second.begin(), found->second.end(), [](const auto& entry) {
           return std::abs(entry.second.value) > entry.second.noise;
         });
}

bool other_bytes(const Changes& changes) {
  const auto found = changes.find(Aspect::kCalls);
  return found != changes.end() &&
         std::any_of(found->second.begin(), found->second.end(), [](const auto& entry) {
           return !entry.first.ends_with(" calls") && std::abs(entry.second.value) > kOtherBytes;
         });
}

bool edits_program(const pb::Patch& patch) {
  switch (patch.transform_case()) {
    case pb::Patch::kRegenerate:
    case pb::Patch::kScaleCollectives:
    case pb::Patch::kResizeCollective:
    case pb::Patch::kSkipCollective:
    case pb::Patch::kExtraCollective:
    case pb::Patch::kEndEarly:
    case pb::Patch::kGrowDataParallel:
    case pb::Patch::kSteps:
      return true;
    default:
      return false;
  }
}

bool sets_speed(const pb::Patch& patch) {
  return std::any_of(patch.set().begin(), patch.set().end(), [](const auto& entry) {
    return entry.first.find(".gpus[") != std::string::npos && entry.first.ends_with(".speed");
  });
}

// A rank of which nothing was recorded can hide anything.
template <typename Transform>
bool unrecorded(const Transform& transform, const Changes& changes) {
  const auto found = changes.find(Aspect::kCompute);
  return transform.has_rank() && found != changes.end() &&
         !found->second.count(fmt::format("rank {}", transform.rank()));
}

bool shows(const pb::Patch& patch, const Changes& changes) {
  if (sets_speed(patch)) return changed(changes, Aspect::kCompute);
  if (unrecorded(patch.slow_rank(), changes) || unrecorded(patch.pause_rank(), changes) ||
      unrecorded(patch.slow_host(), changes)) {
    return true;
  }
  switch (patch.transform_case()) {
    case pb::Patch::kSlowRank:
    case pb::Patch::kVarySteps:
      return changed(changes, Aspect::kCompute);
    case pb::Patch::kPauseRank:
    case pb::Patch::kSlowHost:
    case pb::Patch::kLoadData:
      return changed(changes, Aspect::kHost) || changed(changes, Aspect::kIdle) ||
             changed(changes, Aspect::kCompute);
    case pb::Patch::kScaleCollectives:
      return other_bytes(changes);
    case pb::Patch::kRegenerate:
      return changes.count(Aspect::kCalls) > 0 || changed(changes, Aspect::kCompute) ||
             changed(changes, Aspect::kMemory);
    default:
      return true;
  }
}

}  // namespace

bool plausible(const std::vector<pb::Patch>& patches, pb::Verdict verdict, const Changes& changes) {
  if (verdict != pb::COMPLETED) return true;
  if (other_bytes(changes) && std::none_of(patches.begin(), patches.end(), edits_program)) {
    return false;
  }
  return std::all_of(patches.begin(), patches.end(),
                     [&](const pb::Patch& patch) { return shows(patch, changes); });
}

}  // namespace rehearse::faults
