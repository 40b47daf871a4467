// SPDX-License-Identifier: Apache-2.0
#include "sim/memory/fixed_memory.hpp"

#include <algorithm>
#include <set>

#include "sim/horovod/fusion.hpp"
#include "sim/nccl/settings.hpp"
#include "sim/scenario/environment.hpp"

namespace rehearse::sim {
namespace {

constexpr Bytes kContext = 500 * (Bytes{1} << 20);

// Receive connections per channel that the algorithms of one communicator open on a member.
Bytes connections(const std::string& algorithm, size_t members) {
  if (algorithm.rfind("TREE", 0) == 0) return 3;
  if (algorithm.rfind("P2P", 0) == 0) return static_cast<Bytes>(members > 0 ? members - 1 : 0);
  return 1;
}

// NCCL's buffers by communicator, from the calls that were made.
std::vector<Bytes> nccl_buffers(const Evidence& evidence, const Settings& settings) {
  const auto size = [&](Protocol protocol) { return settings.buffer_bytes[index_of(protocol)]; };
  const Bytes pairwise = size(Protocol::kSimple) + size(Protocol::kLl);
  std::vector<std::map<std::string, Bytes>> by_algorithm(evidence.program.communicators.size());
  for (const Replayed::Shape& shape : evidence.replayed.shapes) {
    const size_t members = evidence.program.communicators[shape.communicator].members.size();
    if (members < 2) continue;
    const bool pair = traces::is_point_to_point(shape.call.collective);
    const std::string algorithm = shape.algorithm.substr(0, shape.algorithm.find('/'));
    const Bytes each = algorithm == "P2P" ? pairwise : pairwise + size(Protocol::kLl128);
    const Bytes bytes = each * shape.channels * (pair ? 1 : connections(algorithm, members));
    Bytes& most = by_algorithm[shape.communicator][algorithm];
    most = std::max(most, bytes);
  }
  std::vector<Bytes> out;
  for (const auto& used : by_algorithm) {
    Bytes sum = 0;
    for (const auto& [algorithm, bytes] : used) sum += bytes;
    out.push_back(sum);
  }
  return out;
}

}  // namespace

FixedMemory::FixedMemory(const Scenario& scenario, const Evidence& evidence)
    : scenario_(scenario), evidence_(evidence), fusion_(fusion_memory(scenario)) {
  for (const pb::RankLaunch& rank : scenario.document.launch().ranks()) {
    const std::set<uint32_t> on(rank.contexts_on().begin(), rank.contexts_on().end());
    for (const uint32_t gpu : on) {
      if (gpu != rank.gpu()) opened_on_[{rank.node(), gpu}] += 1;
    }
  }
  const auto& communicators = evidence.program.communicators;
  for (uint32_t c = 0; c < communicators.size(); ++c) {
    for (const uint32_t rank : communicators[c].members) {
      if (rank >= communicators_of_.size()) communicators_of_.resize(rank + 1);
      communicators_of_[rank].push_back(c);
    }
  }
}

const std::vector<Bytes>& FixedMemory::buffers_with(const pb::RankLaunch& launch) {
  const auto environment = environment_of(scenario_.document.launch(), launch);
  std::string key;
  for (const char* name : {"NCCL_BUFFSIZE", "NCCL_LL_BUFFSIZE", "NCCL_LL128_BUFFSIZE"}) {
    const auto at = environment.find(name);
    key += (at == environment.end() ? "" : at->second) + ",";
  }
  const auto known = buffers_.find(key);
  if (known != buffers_.end()) return known->second;
  const auto version = parse_nccl_version(scenario_.document.launch().nccl_version());
  const auto settings = parse_settings(environment, version ? *version : NcclVersion{});
  return buffers_.emplace(key, nccl_buffers(evidence_, settings ? *settings : Settings{}))
      .first->second;
}

FixedParts FixedMemory::of(const pb::RankLaunch& launch) {
  const std::vector<Bytes>& buffers = buffers_with(launch);
  FixedParts out;
  if (launch.rank() < communicators_of_.size()) {
    for (const uint32_t c : communicators_of_[launch.rank()]) out.nccl += buffers[c];
  }
  const Bytes stated = scenario_.document.launch().context();
  out.context = stated > 0 ? stated : kContext;
  const auto opened = opened_on_.find({launch.node(), launch.gpu()});
  if (opened != opened_on_.end()) out.foreign = out.context * opened->second;
  const auto fusion = fusion_.find(launch.rank());
  if (fusion != fusion_.end()) out.fusion = fusion->second;
  return out;
}

}  // namespace rehearse::sim
