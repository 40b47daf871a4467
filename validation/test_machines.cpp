// SPDX-License-Identifier: Apache-2.0
#include "validation/test_machines.hpp"

#include <algorithm>

#include "base/document.hpp"
#include "platforms/model/catalogue.hpp"

namespace rehearse::validation {
namespace {

// The size column is of the larger buffer of one rank, as a question's bytes are.
sim::Question question_of(const NcclTestRow& row) {
  sim::Question question;
  question.collective = row.collective;
  question.bytes = row.bytes;
  if (!row.type.empty()) question.type = row.type;
  if (!row.reduction.empty() && row.reduction != "none") question.reduction = row.reduction;
  return question;
}

}  // namespace

Result<TestMachines> TestMachines::create(const TestMachineOptions& options) {
  RH_TRY(HardwareMap hardware, HardwareMap::shipped_table());
  return TestMachines(options, std::move(hardware));
}

Result<HardwareChoice> TestMachines::choose(const NcclTestRow& row) {
  if (options_.platform) {
    HardwareChoice given;
    given.id = options_.platform_id;
    given.platform = *options_.platform;
    return given;
  }
  const uint32_t nodes = row.nodes > 0 ? row.nodes : std::max(1U, options_.nodes);
  const uint32_t gpus = row.gpus > 0 ? row.gpus : options_.gpus;
  return hardware_.find(row, gpus > 0 ? (gpus + nodes - 1) / nodes : 0);
}

Result<std::string> TestMachines::platform_of(const NcclTestRow& row) {
  RH_TRY(const HardwareChoice choice, choose(row));
  return choice.id;
}

Result<PlacedCall> TestMachines::place(const NcclTestRow& row) {
  PlacedCall out;
  if (row.collective.empty()) {
    return fail(
        Code::kBadInput, "nothing tells which collective was measured", row.where,
        "put it into the name of the file, as all_gather.txt, or name it with --collective");
  }
  out.nodes = row.nodes > 0 ? row.nodes : std::max(1U, options_.nodes);
  const uint32_t gpus = row.gpus > 0 ? row.gpus : options_.gpus;
  RH_TRY(out.choice, choose(row));
  const std::string version = !row.nccl_version.empty()        ? row.nccl_version
                              : !options_.nccl_version.empty() ? options_.nccl_version
                                                               : out.choice.nccl_version;
  const Key key{out.choice.id, version, out.nodes, gpus, row.algorithm, row.protocol};
  auto at = machines_.find(key);
  if (at == machines_.end()) {
    RH_TRY(Machine machine, build(out.choice, version, out.nodes, gpus, row));
    at = machines_.emplace(key, std::move(machine)).first;
  }
  out.testbed = at->second.testbed.get();
  out.gpus = static_cast<uint32_t>(out.testbed->launch().ranks_size());
  if (out.gpus < 2) {
    return fail(Code::kBadInput, "a GPU alone has nobody to talk to", row.where,
                "give tables of two GPUs and more");
  }
  sim::Question question = question_of(row);
  const uint32_t driven =
      row.gpus_per_thread > 0 ? row.gpus_per_thread : out.choice.gpus_per_thread;
  question.gpus_per_thread = std::clamp(driven, 1U, std::max(1U, out.gpus / out.nodes));
  auto traffic = sim::traffic_of(out.testbed->context(), *at->second.world, question);
  if (!traffic) {
    traffic.error().where = row.where;
    return tl::unexpected(traffic.error());
  }
  out.traffic = std::move(*traffic);
  out.traffic.terms.from_graph = row.graph;
  return out;
}

Result<TestMachines::Machine> TestMachines::build(const HardwareChoice& choice,
                                                  const std::string& version, uint32_t nodes,
                                                  uint32_t gpus, const NcclTestRow& row) const {
  sim::TestbedOptions options;
  options.nodes = nodes;
  options.ranks = gpus;
  options.nccl_version = version;
  for (const auto& [name, value] : options_.env) options.settings.push_back({name, value, {}});
  if (!row.algorithm.empty()) options.settings.push_back({"NCCL_ALGO", row.algorithm, {}});
  if (!row.protocol.empty()) options.settings.push_back({"NCCL_PROTO", row.protocol, {}});
  pb::Platform platform = choice.platform;
  if (!options_.set.empty()) {
    platform.set_scale(nodes);
    if (auto done = platforms::expand(platform, choice.id); !done) {
      return tl::unexpected(done.error());
    }
    for (const auto& [path, value] : options_.set) {
      if (auto done = set_path(platform, path, value); !done) return tl::unexpected(done.error());
    }
  }
  Machine machine;
  RH_TRY(machine.testbed, sim::Testbed::make(platform, options, choice.id));
  RH_TRY(sim::CommunicatorModel world, machine.testbed->world());
  machine.world.emplace(std::move(world));
  return machine;
}

}  // namespace rehearse::validation
