// SPDX-License-Identifier: Apache-2.0
#include "faults/diagnose/mechanism.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/scenario/places.hpp"
#include "sim/scenario/transforms.hpp"

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

bool changes_traffic(const pb::Patch& patch) {
  const sim::Transform* transform = sim::transform_of(patch);
  return transform != nullptr && transform->other_traffic;
}

bool sets_speed(const pb::Patch& patch) {
  return std::any_of(patch.set().begin(), patch.set().end(), [](const auto& entry) {
    return entry.first.find(".gpus[") != std::string::npos && entry.first.ends_with(".speed");
  });
}

// A rank of which nothing was recorded can hide anything.
bool unrecorded(const pb::Patch& patch, const Changes& changes) {
  const auto rank = sim::rank_of(patch);
  const auto found = changes.find(Aspect::kCompute);
  return rank && found != changes.end() && !found->second.count(fmt::format("rank {}", *rank));
}

bool shows(const pb::Patch& patch, const Changes& changes) {
  if (sets_speed(patch)) return changed(changes, Aspect::kCompute);
  const sim::Transform* transform = sim::transform_of(patch);
  if (transform == nullptr || transform->shows == sim::shows::kNothing) return true;
  if (unrecorded(patch, changes)) return true;
  const auto any = [&](uint8_t what) { return (transform->shows & what) != 0; };
  return (any(sim::shows::kCompute) && changed(changes, Aspect::kCompute)) ||
         (any(sim::shows::kHost) && changed(changes, Aspect::kHost)) ||
         (any(sim::shows::kIdle) && changed(changes, Aspect::kIdle)) ||
         (any(sim::shows::kCalls) && changes.count(Aspect::kCalls) > 0) ||
         (any(sim::shows::kBytes) && other_bytes(changes)) ||
         (any(sim::shows::kMemory) && changed(changes, Aspect::kMemory));
}

}  // namespace

bool plausible(const std::vector<pb::Patch>& patches, pb::Verdict verdict, const Changes& changes) {
  if (verdict != pb::COMPLETED) return true;
  if (other_bytes(changes) && std::none_of(patches.begin(), patches.end(), changes_traffic)) {
    return false;
  }
  return std::all_of(patches.begin(), patches.end(),
                     [&](const pb::Patch& patch) { return shows(patch, changes); });
}

}  // namespace rehearse::faults
