// SPDX-License-Identifier: Apache-2.0
// A fault with its parameters chosen, and the patches that inject and repair it. Pure functions.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "faults/fault_catalogue.hpp"
#include "sim/proto/scenario.pb.h"

namespace rehearse::faults {

struct FaultUse {
  std::shared_ptr<const FaultEntry> entry;
  std::map<std::string, std::string> values;  // every parameter, defaults filled in

  [[nodiscard]] const pb::Fault& fault() const { return entry->fault; }
  // "F16:node=1", parameters in the order of the catalogue: what parse_fault reads.
  [[nodiscard]] std::string text() const;
};

// "F16" or "F16:node=1,...". kUsage for an unknown fault or parameter (with the nearest name) and
// for a value of the wrong kind or out of range.
[[nodiscard]] Result<FaultUse> parse_fault(std::string_view text, const FaultCatalogue& catalogue);
// The same for a scenario (expanded): a node or rank that is not stated is the default one, or the last where the
// scenario is smaller than that. kUsage also for a job of a framework that does not have what the fault breaks.
[[nodiscard]] Result<FaultUse> parse_fault(std::string_view text, const FaultCatalogue& catalogue,
                                           const pb::Scenario& document);
// All defaults.
[[nodiscard]] FaultUse with_defaults(std::shared_ptr<const FaultEntry> entry);
// The same use with one parameter changed, checked as in parse_fault.
[[nodiscard]] Result<FaultUse> with_value(FaultUse use, std::string_view name, std::string value);

// What placeholders stand for in this (expanded) scenario: parameters, {rank.node}, {rank.gpu}, {node.name}. kUsage when
// it has no such rank, node, GPU or NIC.
[[nodiscard]] Result<std::map<std::string, std::string>> values_in(const FaultUse& use,
                                                                   const pb::Scenario& document);
// The same without a scenario, from defaults: enough to check a file's form.
[[nodiscard]] std::map<std::string, std::string> stand_ins(const pb::Fault& fault);

// Ascending; ranks of a trace need not be numbered without gaps.
[[nodiscard]] std::vector<uint32_t> ranks_of(const pb::Launch& launch);

// The patches that inject the fault into this (expanded) scenario. kUsage when it has no such rank,
// node, GPU or NIC.
[[nodiscard]] Result<std::vector<pb::Patch>> patches_of(const FaultUse& use,
                                                        const pb::Scenario& document);
// Its fixes for this scenario, in the catalogue's order. An `undo` without a rank undoes what is like the fault's own
// patches, not all that others did with the same transform.
[[nodiscard]] Result<std::vector<pb::Fix>> fixes_of(const FaultUse& use,
                                                    const pb::Scenario& document);

// A value as a number of the stored unit (bytes, bytes per second, nanoseconds); 0 for text.
// Checked against kind, bounds and choices.
[[nodiscard]] Result<double> parse_value(const pb::Parameter& parameter, std::string_view text);
// The reverse for kinds that are quantities; whole numbers are rounded.
[[nodiscard]] std::string format_value(const pb::Parameter& parameter, double value);

// "0-7,16" as numbers, rising. kUsage for anything else and for numbers above kMostRanks.
[[nodiscard]] Result<std::vector<uint32_t>> parse_ranks(std::string_view text);
constexpr uint32_t kMostRanks = 1u << 20;

// Reads the second document of a catalogue file with the given placeholder values.
[[nodiscard]] Result<pb::FaultEdits> read_edits(const FaultEntry& entry,
                                                const std::map<std::string, std::string>& values,
                                                const pb::Scenario* document);

}  // namespace rehearse::faults
