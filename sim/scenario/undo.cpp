// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario/undo.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "sim/scenario/places.hpp"
#include "sim/scenario/regenerate.hpp"
#include "sim/scenario/transforms.hpp"

namespace rehearse::sim {
namespace {

std::vector<std::string> undoable() {
  std::vector<std::string> out;
  for (const Transform& transform : transforms()) {
    if (transform.acts_on != ActsOn::kDocument) out.emplace_back(transform.name);
  }
  return out;
}

bool is_meant(const pb::Patch& patch, const Transform& transform, const pb::Undo& what) {
  if (transform_of(patch) != &transform) return false;
  if (what.has_rank() && !names_rank(patch, what.rank())) return false;
  return what.like().empty() ||
         std::ranges::any_of(what.like(), [&](const pb::Patch& one) { return alike(patch, one); });
}

std::vector<pb::Patch> patches_left(const std::vector<pb::Patch>& patches,
                                    const Transform& transform, const pb::Undo& what) {
  std::vector<pb::Patch> out;
  for (const pb::Patch& patch : patches) {
    if (!is_meant(patch, transform, what)) {
      out.push_back(patch);
    } else if (what.has_rank()) {
      if (auto left = without_rank(patch, what.rank())) out.push_back(std::move(*left));
    }
  }
  return out;
}

}  // namespace

Result<void> undo(Scenario& scenario, const pb::Undo& what) {
  const Transform* transform = find_transform(what.transform());
  if (transform == nullptr || transform->acts_on == ActsOn::kDocument) {
    const std::vector<std::string> known = undoable();
    const std::string near = nearest(what.transform(), known);
    return fail(
        Code::kBadInput, "there is no transform " + what.transform(), "undo",
        near.empty() ? "transforms are " + join_words(known) : "did you mean " + near + "?");
  }
  scenario.transforms = patches_left(scenario.transforms, *transform, what);
  scenario.timed = patches_left(scenario.timed, *transform, what);
  if (transform->acts_on == ActsOn::kTrace) return regenerate(scenario);
  return {};
}

}  // namespace rehearse::sim
