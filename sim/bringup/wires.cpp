// SPDX-License-Identifier: Apache-2.0
#include "sim/bringup/wires.hpp"

#include "sim/nccl/networks.hpp"
#include "sim/timers/settings.hpp"

namespace rehearse::sim::bringup {

Wires::Wires(Job& job) : job_(job), there_(job.started()) {
  std::set<uint32_t> nodes;
  for (const size_t p : there_) nodes.insert(process(p).node);
  nodes_.assign(nodes.begin(), nodes.end());
}

std::vector<const pb::Nic*> Wires::adapters(size_t p) {
  std::vector<const pb::Nic*> out;
  const pb::Node& node = job_.node(process(p).node);
  for (const uint32_t nic : usable_adapters(node, process(p).env)) {
    out.push_back(&node.nics(static_cast<int>(nic)));
  }
  return out;
}

const pb::Nic* Wires::adapter(size_t p) {
  const auto nics = adapters(p);
  return nics.empty() ? nullptr : nics[process(p).local % nics.size()];
}

const CommunicatorModel* Wires::world() {
  if (asked_) return world_ ? &*world_ : nullptr;
  asked_ = true;
  auto links = platforms::Links::build(job_.document.platform());
  if (!links) return nullptr;
  links_.emplace(std::move(*links));
  traces::Communicator all;
  all.id = "world";
  for (const size_t p : there_) all.members.push_back(process(p).seat);
  const ModelContext context{job_.document.platform(), *links_, job_.launch};
  auto model = CommunicatorModel::create(context, all);
  if (model) world_.emplace(std::move(*model));
  return world_ ? &*world_ : nullptr;
}

void Wires::watch(size_t p, Trouble& trouble) {
  const TorchTimers torch = timers_of(job_.launch, process(p).env, job_.findings).torch;
  if (job_.launch.framework() != pb::PYTORCH || !torch.acts()) return;
  trouble.gives_up = process(p).clock + torch.timeout;
  trouble.watched = true;
  trouble.facts["ms"] = std::to_string(torch.timeout / 1'000'000);
}

void Wires::rest_waits() {
  std::vector<uint32_t> failed;
  for (const Trouble& trouble : job_.troubles) failed.push_back(process(trouble.process).seat);
  if (failed.size() > 64) failed.resize(64);
  const std::string state = job_.troubles.front().state;
  for (const size_t p : there_) {
    Trouble trouble{.process = p, .state = state, .error = "peers"};
    trouble.since = process(p).clock;
    trouble.waits = true;
    trouble.for_ranks = failed;
    if (state == "first-collective") watch(p, trouble);
    job_.add(std::move(trouble));
  }
}

}  // namespace rehearse::sim::bringup
