// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "sim/nccl/buffers.hpp"
#include "sim/nccl/graphs.hpp"
#include "sim/nccl/loads.hpp"
#include "sim/nccl/pairs.hpp"
#include "sim/nccl/threads.hpp"
#include "sim/nccl/trace_call.hpp"
#include "traces/evidence/names.hpp"

namespace rehearse::sim {
namespace {

using traces::Collective;

const std::map<std::string, Collective>& collectives() {
  static const std::map<std::string, Collective> names = {
      {"all_reduce", Collective::kAllReduce},
      {"all_gather", Collective::kAllGather},
      {"reduce_scatter", Collective::kReduceScatter},
      {"broadcast", Collective::kBroadcast},
      {"reduce", Collective::kReduce},
      {"all_to_all", Collective::kAllToAll},
      {"sendrecv", Collective::kSend},
      {"gather", Collective::kGather},
      {"scatter", Collective::kScatter},
      {"barrier", Collective::kBarrier}};
  return names;
}

Result<traces::DType> dtype_of(const std::string& name) {
  static const std::map<std::string, traces::DType> names = {
      {"int8", traces::DType::kInt8},     {"uint8", traces::DType::kUint8},
      {"int32", traces::DType::kInt32},   {"uint32", traces::DType::kUint32},
      {"int64", traces::DType::kInt64},   {"uint64", traces::DType::kUint64},
      {"float16", traces::DType::kFp16},  {"half", traces::DType::kFp16},
      {"bfloat16", traces::DType::kBf16}, {"float32", traces::DType::kFp32},
      {"float", traces::DType::kFp32},    {"float64", traces::DType::kFp64},
      {"double", traces::DType::kFp64},   {"float8", traces::DType::kFp8},
      {"f8e4m3", traces::DType::kFp8},    {"f8e5m2", traces::DType::kFp8},     // as nccl-tests
      {"fp8_e4m3", traces::DType::kFp8},  {"fp8_e5m2", traces::DType::kFp8}};  // as rccl-tests
  const auto at = names.find(name);
  if (at == names.end()) {
    return fail(Code::kUsage, "unknown type \"" + name + "\"", "--type",
                "float32, float16, bfloat16, float64, float8, f8e4m3, int8, int32 and the like");
  }
  return at->second;
}

Result<traces::Reduction> reduction_of(const std::string& name) {
  static const std::map<std::string, traces::Reduction> names = {
      {"sum", traces::Reduction::kSum},
      {"avg", traces::Reduction::kAverage},
      {"min", traces::Reduction::kMin},
      {"max", traces::Reduction::kMax},
      {"prod", traces::Reduction::kProduct},
      {"none", traces::Reduction::kNone},
      // A sum of what was multiplied before, which is what GPUs do for an average of floats.
      {"mulsum", traces::Reduction::kAverage}};
  const auto at = names.find(name);
  if (at == names.end()) {
    return fail(Code::kUsage, "unknown reduction \"" + name + "\"", "--op",
                "sum, avg, min, max or prod");
  }
  return at->second;
}

bool is_pairwise(Collective collective) {
  return collective == Collective::kAllToAll || collective == Collective::kSend ||
         collective == Collective::kRecv || collective == Collective::kGather ||
         collective == Collective::kScatter;
}

class Explaining {
 public:
  Explaining(const ModelContext& context, const CommunicatorModel& model, const Question& question)
      : context_(context), model_(model), question_(question) {}

  Result<Explanation> run() {
    const Placement& placement = model_.placement();
    RH_TRY(const traces::Call call,
           call_of(question_, static_cast<uint32_t>(placement.members.size())));
    out_.collective = question_.collective;
    out_.bytes = question_.bytes;
    out_.type = question_.type;
    out_.reduction = question_.reduction;
    out_.ranks = static_cast<uint32_t>(placement.members.size());
    out_.nodes = model_.nodes();
    out_.nccl_version = context_.launch.nccl_version();
    out_.constants_from = model_.nccl().version.label;
    out_.version_exact = model_.nccl().version.exact;
    out_.channels_offered = model_.nccl().shape.n_channels;
    out_.fallbacks = model_.fallbacks();
    out_.offered = model_.offered();
    out_.inside = name_of(placement.intra);
    if (placement.groups.size() > 1) out_.between = name_of(placement.inter);
    out_.findings = model_.findings();
    if (!is_pairwise(call.collective) && out_.ranks > 1) {
      const Call asked = nccl_call(call);
      RH_TRY(const PlannedCall plan, plan_call(model_.nccl(), asked));
      compare(asked, plan);
      out_.threads = plan.choice.n_threads;
      out_.chunks = plan.lo.chunk_bytes > 0 ? plan.lo : plan.hi;
      fill_graph(plan.choice.algorithm);
      const ConnectionMemory memory = connection_memory(context_, placement, model_.graphs(),
                                                        model_.nccl(), plan.choice.algorithm);
      out_.gpu_buffers = memory.gpu;
      out_.host_buffers = memory.host;
    }
    if (is_pairwise(call.collective)) fill_pairs(call.collective);
    RH_TRY(const CallTraffic traffic, traffic_of(context_, model_, question_));
    out_.chosen = traffic.algorithm;
    out_.channels = traffic.channels;
    if (auto timed = time(traffic); !timed) return tl::unexpected(timed.error());
    return std::move(out_);
  }

 private:
  static std::string shown(double us) {
    return format_duration(static_cast<Nanos>(std::llround(us * 1000)));
  }

  void compare(const Call& asked, const PlannedCall& plan) {
    const NcclModel& nccl = model_.nccl();
    const TuningInput input{nccl.shape, nccl.settings, nccl.version.constants};
    const ExplainedVariant* chosen = nullptr;
    for (const Algorithm algorithm : kAlgorithms) {
      for (const Protocol protocol : kProtocols) {
        const Variant variant{asked.function, algorithm, protocol};
        ExplainedVariant v;
        v.algorithm = algorithm;
        v.protocol = protocol;
        v.why_not = std::string(refusal(input, variant));
        if (v.why_not.empty()) v.why_not = std::string(call_refusal(nccl, asked, algorithm));
        v.available = v.why_not.empty();
        if (v.available) {
          const Cost& cost = nccl.table.at(variant);
          v.latency_us = static_cast<double>(cost.latency_us);
          v.bandwidth = static_cast<double>(cost.bandwidth_gbps) * 1e9;
          v.nccl_time_us = static_cast<double>(predicted_time_us(nccl, asked, algorithm, protocol));
          const Launch launch = launch_for(nccl, asked, algorithm, protocol);
          v.threads = launch.threads;
          const Choice choice{algorithm, protocol, 0, launch.channels, launch.threads};
          CallTraffic traffic = model_.traffic_of({asked, plan_choice(nccl, asked, choice)});
          traffic.terms.launches = question_.gpus_per_thread;
          v.channels = traffic.channels;
          if (const auto alone = time_alone(context_, traffic); alone) v.time = alone->total();
          v.chosen = algorithm == plan.choice.algorithm && protocol == plan.choice.protocol;
        }
        out_.variants.push_back(std::move(v));
      }
    }
    const ExplainedVariant* next = nullptr;
    for (const ExplainedVariant& v : out_.variants) {
      if (v.chosen) chosen = &v;
      if (!v.available || v.chosen) continue;
      if (next == nullptr || v.nccl_time_us < next->nccl_time_us) next = &v;
    }
    if (chosen == nullptr) return;
    out_.why =
        fmt::format("{} {} has the smallest time NCCL computes, {}", name_of(chosen->algorithm),
                    name_of(chosen->protocol), shown(chosen->nccl_time_us));
    if (next != nullptr) {
      out_.why +=
          fmt::format("; {} {} comes next with {} (+{:.0f} %)", name_of(next->algorithm),
                      name_of(next->protocol), shown(next->nccl_time_us),
                      (next->nccl_time_us / std::max(1e-9, chosen->nccl_time_us) - 1) * 100);
    } else {
      out_.why += "; nothing else is left";
    }
  }

  // Do adapters carry what goes between nodes?
  [[nodiscard]] bool by_adapters() const {
    const Placement& placement = model_.placement();
    return placement.groups.size() > 1 && placement.inter != InterTransport::kSocket &&
           placement.inter != InterTransport::kNvlink;
  }

  void fill_heads(Algorithm algorithm) {
    const Placement& placement = model_.placement();
    const Graphs& graphs = model_.graphs();
    const bool collnet = algorithm == Algorithm::kCollnetDirect;
    out_.graph_kind = GraphKind::kHeads;
    for (size_t g = 0; g < placement.groups.size(); ++g) {
      ExplainedChannel node;
      node.channel = static_cast<int>(g);
      const auto add = [&](uint32_t member, uint32_t nic) {
        node.ring.push_back(placement.members[member].rank);
        if (by_adapters()) node.adapters.push_back(adapter(placement.groups[g], nic));
      };
      if (collnet && g < graphs.collnet_heads.size()) {
        for (const NodePath& head : graphs.collnet_heads[g]) add(head.members.front(), head.nic);
      }
      if (!collnet && g < graphs.heads.size()) {
        for (size_t h = 0; h < graphs.heads[g].size(); ++h) {
          add(graphs.heads[g][h], h < graphs.head_nics[g].size() ? graphs.head_nics[g][h] : 0);
        }
      }
      out_.graph.push_back(std::move(node));
    }
  }

  void fill_head_trees() {
    const Placement& placement = model_.placement();
    const Graphs& graphs = model_.graphs();
    const int nodes = static_cast<int>(placement.groups.size());
    out_.graph_kind = GraphKind::kHeadTrees;
    for (int h = 0; h < graphs.shape.nvls_heads; ++h) {
      const auto rank_of = [&](int node) {
        return static_cast<int>(
            placement.members[graphs.heads[static_cast<size_t>(node)][static_cast<size_t>(h)]]
                .rank);
      };
      for (int which = 0; which < 2; ++which) {
        ExplainedChannel tree;
        tree.channel = h;
        int last = 0;
        for (const Member& member : placement.members) {
          last = std::max(last, static_cast<int>(member.rank));
        }
        tree.parent.assign(static_cast<size_t>(last) + 1, kNotInTree);
        for (int n = 0; n < nodes; ++n) {
          const int up = binary_tree(n, nodes, which).up;
          tree.parent[static_cast<size_t>(rank_of(n))] = up < 0 ? -1 : rank_of(up);
          if (by_adapters()) {
            tree.adapters.push_back(
                adapter(placement.groups[static_cast<size_t>(n)],
                        graphs.head_nics[static_cast<size_t>(n)][static_cast<size_t>(h)]));
          }
        }
        out_.graph.push_back(std::move(tree));
      }
    }
  }

  void fill_graph(Algorithm algorithm) {
    if (algorithm == Algorithm::kNvls || algorithm == Algorithm::kCollnetDirect) {
      return fill_heads(algorithm);
    }
    if (algorithm == Algorithm::kNvlsTree) return fill_head_trees();
    if (algorithm == Algorithm::kTree) out_.graph_kind = GraphKind::kTrees;
    const Placement& placement = model_.placement();
    const Graphs& graphs = model_.graphs();
    std::set<std::vector<uint32_t>> seen;
    for (size_t c = 0; c < graphs.rings.size(); ++c) {
      ExplainedChannel channel;
      channel.channel = static_cast<int>(c);
      for (size_t g = 0; g < graphs.rings[c].size(); ++g) {
        const NodePath& path = graphs.rings[c][g];
        for (uint32_t m : path.members) channel.ring.push_back(placement.members[m].rank);
        if (by_adapters()) channel.adapters.push_back(adapter(placement.groups[g], path.nic));
      }
      if (algorithm == Algorithm::kTree) {
        for (const int parent : tree_parents(placement, graphs, static_cast<int>(c))) {
          channel.parent.push_back(
              parent < 0 ? -1
                         : static_cast<int>(placement.members[static_cast<size_t>(parent)].rank));
        }
      }
      std::vector<uint32_t> key = channel.ring;
      for (const auto& path : graphs.rings[c]) key.push_back(path.nic);
      if (seen.insert(key).second) out_.graph.push_back(std::move(channel));
    }
    fill_inside_ways(algorithm);
  }

  void fill_inside_ways(Algorithm algorithm) {
    const Placement& placement = model_.placement();
    std::map<std::string, std::set<std::pair<uint32_t, uint32_t>>> ways;  // members
    const auto add = [&](uint32_t a, uint32_t b) {
      const Member& from = placement.members[a];
      const Member& to = placement.members[b];
      if (a != b && from.group == 0 && to.group == 0) {
        ways[name_of(placement.between(from, to))].insert({a, b});
      }
    };
    const Graphs& graphs = model_.graphs();
    for (size_t c = 0; c < graphs.rings.size(); ++c) {
      if (algorithm == Algorithm::kTree) {
        const std::vector<int> parents = tree_parents(placement, graphs, static_cast<int>(c));
        for (size_t m = 0; m < parents.size(); ++m) {
          if (parents[m] >= 0) add(static_cast<uint32_t>(m), static_cast<uint32_t>(parents[m]));
        }
        continue;
      }
      for (const NodePath& path : graphs.rings[c]) {
        for (size_t i = 1; i < path.members.size(); ++i) add(path.members[i - 1], path.members[i]);
        if (placement.groups.size() == 1 && path.members.size() > 1) {
          add(path.members.back(), path.members.front());
        }
      }
    }
    if (ways.size() < 2) return;
    for (const auto& [name, pairs] : ways) {
      auto& row = out_.inside_ways.emplace_back(name, std::vector<std::string>{});
      for (const auto& [a, b] : pairs) {
        row.second.push_back(
            fmt::format("{} > {}", placement.members[a].rank, placement.members[b].rank));
      }
    }
  }

  // Rooted calls and all-to-alls: the first rank and all others; send and recv: the next one.
  void fill_pairs(Collective collective) {
    const Placement& placement = model_.placement();
    const auto members = static_cast<uint32_t>(placement.members.size());
    const bool next_only = collective == Collective::kSend || collective == Collective::kRecv;
    const Loads loads(context_, placement, model_.graphs(), Queues{});
    std::map<std::pair<std::string, Loads::Leaves>, size_t> known;
    for (uint32_t m = 1; m < (next_only ? std::min(2U, members) : members); ++m) {
      const Member& first = placement.members.front();
      const Member& peer = placement.members[m];
      const bool inside = first.group == peer.group;
      const Loads::Leaves leaves = loads.leaves(0, m);
      std::string transport =
          inside ? name_of(placement.between(first, peer)) : name_of(placement.inter);
      const auto [at, fresh] = known.emplace(std::pair{transport, leaves}, out_.pairs.size());
      if (fresh) {
        ExplainedPair pair;
        pair.transport = std::move(transport);
        if (leaves.net != UINT32_MAX) {
          pair.adapter = adapter(placement.groups[first.group], leaves.net);
        }
        if (leaves.through != UINT32_MAX) {
          pair.through = static_cast<int>(placement.members[leaves.through].rank);
        }
        out_.pairs.push_back(std::move(pair));
      }
      out_.pairs[at->second].peers.push_back(peer.rank);
    }
  }

  // Ports that are one device by all their names, as NCCL's log has them.
  [[nodiscard]] std::string adapter(const LocalGroup& group, uint32_t index) const {
    const SystemNet& net = group.system().nets[index];
    const pb::Node& node = context_.platform.nodes(static_cast<int>(group.hosts[net.host]));
    std::string out;
    for (const uint32_t port : net.ports) {
      if (!out.empty()) out += "+";
      out += node.nics(static_cast<int>(port)).name();
    }
    return out;
  }

  Result<void> time(const CallTraffic& traffic) {
    auto alone = time_alone(context_, traffic);
    if (!alone) return tl::unexpected(alone.error());
    out_.latency = traffic.parts;
    out_.latency_time = alone->latency;
    out_.transfer_time = alone->transfer;
    out_.channel_time = alone->capped;
    out_.issue_time = alone->issue;
    out_.never = alone->stalled || !traffic.dissent.empty();
    out_.dissent = traffic.dissent;
    if (!traffic.dissent.empty()) {
      out_.findings.add("nccl-decisions-differ", Severity::kWarning, traffic.dissent,
                        "set the variables alike on all ranks; the call never ends");
    }
    out_.time = alone->total();
    for (const AloneTime::Bound& bound : alone->links) {
      const platforms::Link& link = context_.links[bound.link];
      out_.links.push_back(
          {link.name, link.kind, link.capacity, bound.capacity, bound.bytes, bound.time});
    }
    out_.bound = alone->issue > alone->latency + alone->transfer ? "launches"
                 : alone->latency > alone->transfer              ? "latency"
                 : out_.links.empty() || alone->capped >= out_.links.front().time
                     ? "its channels"
                     : out_.links.front().name;
    if (out_.never || out_.time <= 0) return {};
    const double seconds = static_cast<double>(out_.time) * 1e-9;
    out_.algorithm_rate = static_cast<double>(out_.bytes) / seconds;
    out_.bus_rate = traffic.bus_bytes / seconds;
    return {};
  }

  const ModelContext context_;
  const CommunicatorModel& model_;
  const Question& question_;
  Explanation out_;
};

}  // namespace

Result<traces::Call> call_of(const Question& question, uint32_t ranks) {
  const auto at = collectives().find(traces::collective_name(question.collective));
  if (at == collectives().end()) {
    return fail(Code::kUsage, "unknown collective \"" + question.collective + "\"", "--collective",
                "all_reduce, all_gather, reduce_scatter, broadcast, reduce, all_to_all, sendrecv, "
                "gather, scatter or barrier");
  }
  traces::Call call;
  call.collective = at->second;
  RH_TRY(call.dtype, dtype_of(question.type));
  RH_TRY(call.reduction, reduction_of(question.reduction));
  call.bytes_in = call.bytes_out = question.bytes;
  call.peer = 0;
  const Bytes part = question.bytes / std::max(1U, ranks);
  const bool grows =
      call.collective == Collective::kAllGather || call.collective == Collective::kGather;
  const bool shrinks =
      call.collective == Collective::kReduceScatter || call.collective == Collective::kScatter;
  if (grows) call.bytes_in = part;
  if (shrinks) call.bytes_out = part;
  return call;
}

Result<CallTraffic> traffic_of(const ModelContext& context, const CommunicatorModel& model,
                               const Question& question) {
  const auto ranks = static_cast<uint32_t>(model.placement().members.size());
  RH_TRY(const traces::Call call, call_of(question, ranks));
  auto traffic = call.collective != Collective::kSend || ranks < 2
                     ? model.traffic(call, 0)
                     : shift_traffic({context, model.placement(), model.graphs(), model.nccl(),
                                      model.parameters()},
                                     question.bytes);
  if (traffic) traffic->terms.launches = question.gpus_per_thread;
  return traffic;
}

Result<Explanation> explain(const ModelContext& context, const CommunicatorModel& model,
                            const Question& question) {
  return Explaining(context, model, question).run();
}

}  // namespace rehearse::sim
