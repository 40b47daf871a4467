// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "faults/lessons/lab_catalogue.hpp"

namespace rehearse::faults {
namespace {

// What stands for the id; the text has braces of its own.
constexpr std::string_view kId = "LAB-ID";

constexpr std::string_view kSkeleton =
    R"(# A lab; the schema is faults/proto/lab.proto. Play it with: rehearse learn verify LAB-ID --labs FOLDER
id: LAB-ID
title: InfiniBand is off on one node
category: B3
level: first
minutes: 20
learn: see in NCCL's log which transport a job uses
goal: Find why the nodes talk over TCP, and bring the step time back.
background: |
  NCCL chooses a transport for every pair of ranks when it starts and writes it to its log (NCCL_DEBUG=INFO):
  "via NET/IB/0/GDRDMA" is InfiniBand straight into GPU memory, "via NET/Socket/0" is TCP.
scenario: ddp-16
fault: F16
place:
- {parameter: node, values: [0-1]}
---
report: Since the image was rebuilt, every step takes longer. Nothing else changed.
hints:
- {text: Look for "via NET" in evidence/nccl., cost: 10}
- {text: 'Compare env/node0.env and env/node1.env.', cost: 20}
wrong:
- what: force another algorithm
  set: {"launch.nodes[0].env.NCCL_ALGO": Tree, "launch.nodes[1].env.NCCL_ALGO": Tree}
  remark: still-there
- what: switch InfiniBand off everywhere
  set: {"launch.nodes[0].env.NCCL_IB_DISABLE": "1", "launch.nodes[1].env.NCCL_IB_DISABLE": "1"}
  remark: still-there
explanation: NCCL_IB_DISABLE=1 was set on node {node}. One node without InfiniBand is enough for the whole job.
)";

}  // namespace

std::string lab_skeleton(const std::string& id) {
  std::string text(kSkeleton);
  for (size_t at = text.find(kId); at != text.npos; at = text.find(kId, at + id.size())) {
    text.replace(at, kId.size(), id);
  }
  return text;
}

}  // namespace rehearse::faults
