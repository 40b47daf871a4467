// SPDX-License-Identifier: Apache-2.0
// What the rules of the static check look at, one by one: `each:` of a rule. Most are plain (job, node, rank); the
// others need the model (who shares a GPU, which interfaces a filter leaves) and add facts of their own. A rule's
// condition then decides whether a subject is wrong.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "faults/check/facts.hpp"
#include "faults/proto/check.pb.h"

namespace rehearse::faults {

using Emit = std::function<void(const Place& place, FactMap extra)>;

struct SubjectKind {
  std::string_view name;
  // Facts it adds, separated by spaces.
  std::string_view facts;
  void (*list)(const Facts& facts, const pb::CheckTables& tables, const Emit& emit) = nullptr;
};

[[nodiscard]] std::span<const SubjectKind> subject_kinds();
// nullptr when there is none of that name.
[[nodiscard]] const SubjectKind* find_subject_kind(std::string_view name);

// Those that have files of their own.
void list_variables(const Facts& facts, const pb::CheckTables& tables, const Emit& emit);
void list_requirements(const Facts& facts, const pb::CheckTables& tables, const Emit& emit);
void list_capabilities(const Facts& facts, const pb::CheckTables& tables, const Emit& emit);
void list_devices(const Facts& facts, const pb::CheckTables& tables, const Emit& emit);
void list_interface_filters(const Facts& facts, const pb::CheckTables& tables, const Emit& emit);
void list_adapter_filters(const Facts& facts, const pb::CheckTables& tables, const Emit& emit);
void list_interfaces(const Facts& facts, const pb::CheckTables& tables, const Emit& emit);
void list_ways(const Facts& facts, const pb::CheckTables& tables, const Emit& emit);
void list_adapters(const Facts& facts, const pb::CheckTables& tables, const Emit& emit);
void list_meeting_points(const Facts& facts, const pb::CheckTables& tables, const Emit& emit);
void list_tf_configs(const Facts& facts, const pb::CheckTables& tables, const Emit& emit);
void list_components(const Facts& facts, const pb::CheckTables& tables, const Emit& emit);
void list_gpus(const Facts& facts, const pb::CheckTables& tables, const Emit& emit);

}  // namespace rehearse::faults
