// SPDX-License-Identifier: Apache-2.0
// Every NCCL_* variable that is modelled: where it acts, or why it changes nothing about the time of
// a healthy collective. One table, so that nothing is honoured by accident or ignored in silence.
// Constant data.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/finding.hpp"
#include "sim/nccl/placement.hpp"

namespace rehearse::sim {

enum class Acts : uint8_t {
  kDecision,   // algorithm, protocol, channels, threads, chunks
  kTransport,  // how two ranks reach each other, which adapters they use
  kTime,       // rate or latency only
  kBringUp,    // the start of the job: interfaces, addresses, timers
  kOutage,     // what happens when a port is lost
  kObserved,   // what can be seen of a run
  kNowhere     // what it changes is not in the model; `note` says why
};

// How NCCL reads a value.
enum class Form : uint8_t {
  kText,      // as it is written
  kWord,      // in any case of letters
  kNumber,    // sim/nccl/environment.hpp
  kSelection  // a list of algorithms or protocols (sim/nccl/selection.hpp)
};

struct Variable {
  std::string_view name;
  Acts acts = Acts::kDecision;
  std::string_view note;
  // May differ between nodes without harm: it names hardware of the node.
  bool per_node = false;
  Form form = Form::kNumber;
  // Default of a number, where it is one for all machines and versions; "": it is not.
  std::string_view usual{};
};

[[nodiscard]] std::span<const Variable> nccl_variables();
// nullptr when there is none of that name.
[[nodiscard]] const Variable* find_variable(std::string_view name);

// What NCCL makes of a value: two values with the same meaning do the same, as do "Ring" and "ring",
// "1048576" and "0x100000", and a number that is the default and no value at all. Values of variables
// that are not in the table mean what is written.
[[nodiscard]] std::string meaning_of(std::string_view name, std::string_view value);

// "nccl-environment-differs" for each variable that means other things to members, with the ranks that
// differ from the first; "nccl-variable-unknown" for each NCCL_ variable that is not in the table;
// "nccl-variable-idle" for those that act nowhere.
[[nodiscard]] Findings variable_findings(const Placement& placement);

}  // namespace rehearse::sim
