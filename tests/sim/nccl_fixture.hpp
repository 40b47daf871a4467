// SPDX-License-Identifier: Apache-2.0
// Small communicators for the tests of the NCCL model.
#pragma once

#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "sim/nccl/plan.hpp"

namespace rehearse::sim::testing {

using Environment = std::map<std::string, std::string>;

inline GraphInfo graph(int channels, double intra, double inter) {
  return {.n_channels = channels,
          .bw_intra = intra,
          .bw_inter = inter,
          .type_intra = PathType::kNvl,
          .type_inter = PathType::kPxb,
          .latency_inter_us = 0,
          .same_channels = true};
}

// Nodes of NVLink GPUs; Hopper with NVLS unless cc says otherwise.
inline CommShape nodes_of(int nodes, int ranks_per_node, int cc = 90) {
  CommShape shape;
  shape.n_nodes = nodes;
  shape.ranks_per_node = ranks_per_node;
  shape.n_ranks = nodes * ranks_per_node;
  shape.cc_min = shape.cc_max = cc;
  shape.n_channels = 16;
  shape.nvswitch = true;
  shape.ring = graph(8, 20, 20);
  shape.tree = graph(8, 20, 20);
  if (cc >= 90) {
    shape.nvls = graph(8, 40, 40);
    shape.nvls_support = true;
    shape.nvls_channels = 16;
    shape.nvls_heads = 8;
  }
  return shape;
}

inline CommShape with_collnet(CommShape shape, int heads = 8) {
  shape.collnet = true;
  shape.collnet_heads = heads;
  shape.collnet_depth = shape.ranks_per_node > 1 ? 2 : 1;
  shape.collnet_direct = graph(8, 20, 20);
  shape.collnet_chain = graph(8, 20, 20);
  return shape;
}

inline NcclModel model_of(const CommShape& shape, const Environment& environment = {},
                          NcclVersion version = {2, 28, 9}) {
  const auto settings = parse_settings(environment, version);
  REQUIRE(settings.has_value());
  auto model = make_nccl_model(shape, *settings, version);
  REQUIRE(model.has_value());
  return *model;
}

inline Cost cost(const NcclModel& model, Function f, Algorithm a, Protocol p) {
  return model.table.at({f, a, p});
}

inline Call call_of(Function function, std::int64_t count, DataType type = DataType::kFloat32,
                    ReduceOp op = ReduceOp::kSum) {
  Call call;
  call.function = function;
  call.count = count;
  call.type = type;
  call.op = op;
  return call;
}

inline Choice choice_of(const NcclModel& model, const Call& call) {
  const auto choice = choose(model, call);
  REQUIRE(choice.has_value());
  return *choice;
}

inline PlannedCall plan_of(const NcclModel& model, const Call& call) {
  const auto plan = plan_call(model, call);
  REQUIRE(plan.has_value());
  return *plan;
}

}  // namespace rehearse::sim::testing
