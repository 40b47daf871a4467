// SPDX-License-Identifier: Apache-2.0
#include "faults/check/subjects.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace rehearse::faults {
namespace {

void list_job(const Facts&, const pb::CheckTables&, const Emit& emit) { emit({}, {}); }

void list_nodes(const Facts& facts, const pb::CheckTables&, const Emit& emit) {
  for (size_t n = 0; n < facts.nodes(); ++n) emit({.node = n, .rank = {}}, {});
}

void list_ranks(const Facts& facts, const pb::CheckTables&, const Emit& emit) {
  for (size_t r = 0; r < facts.ranks(); ++r) emit({.node = facts.node_of(r), .rank = r}, {});
}

constexpr SubjectKind kKinds[] = {
    {"job", "", list_job},
    {"node", "", list_nodes},
    {"rank", "", list_ranks},
    {"variable",
     "variable.name variable.value variable.known variable.reader variable.use variable.at_least "
     "variable.at_most "
     "variable.values variable.replaced_by variable.replaced_since variable.since variable.until "
     "variable.nearest "
     "variable.differs variable.may_differ variable.reader_version variable.slip variable.meant "
     "variable.remedy variable.leaves",
     list_variables},
    {"requirement",
     "row.component row.from row.below row.needs row.at_least row.under row.category row.otherwise "
     "row.source row.have "
     "row.found row.wanted",
     list_requirements},
    {"capability",
     "row.backend row.operation row.data_type row.below row.source row.version row.wanted",
     list_capabilities},
    {"device",
     "device.mask device.visible device.ordinal device.physical device.shared_with device.one_each",
     list_devices},
    {"interface-filter",
     "filter.variable filter.value filter.matches filter.names filter.kind filter.up "
     "filter.reaches filter.bandwidth "
     "filter.fastest filter.suggestion filter.all",
     list_interface_filters},
    {"adapter-filter",
     "hca.value hca.matches hca.names hca.down hca.active hca.left_out hca.suggestion hca.all",
     list_adapter_filters},
    {"interface",
     "interface.name interface.kind interface.down interface.mtu interface.usual_mtu "
     "interface.address "
     "interface.taken_by interface.bandwidth",
     list_interfaces},
    {"way", "way.kind way.to way.own way.others", list_ways},
    {"adapter",
     "nic.index nic.name nic.kind nic.down nic.bandwidth nic.usual_bandwidth nic.mtu nic.usual_mtu "
     "nic.rail nic.beside_infiniband "
     "nic.usual_rail nic.gid_index nic.usual_gid_index nic.gpudirect nic.usual_name",
     list_adapters},
    {"meeting-point",
     "meeting.address meeting.port meeting.kind meeting.resolves meeting.node meeting.first_node "
     "meeting.delay meeting.resolved "
     "meeting.port_in_use meeting.blocked meeting.others_blocked meeting.suggestion",
     list_meeting_points},
    {"tf-config",
     "tf.valid tf.workers tf.type tf.index tf.listed tf.same_task tf.cluster_differs "
     "tf.repeated_address tf.tasks",
     list_tf_configs},
    {"component", "component.name component.version component.usual", list_components},
    {"card",
     "card.index card.model card.usual_model card.width card.usual_width card.generation "
     "card.usual_generation "
     "card.links card.usual_links card.speed",
     list_gpus},
};

}  // namespace

std::span<const SubjectKind> subject_kinds() { return kKinds; }

const SubjectKind* find_subject_kind(std::string_view name) {
  const auto at = std::find_if(std::begin(kKinds), std::end(kKinds),
                               [&](const SubjectKind& kind) { return kind.name == name; });
  return at == std::end(kKinds) ? nullptr : at;
}

}  // namespace rehearse::faults
