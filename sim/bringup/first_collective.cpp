// SPDX-License-Identifier: Apache-2.0
// What only shows when the first data move: packets of another partition, or larger than the other port takes, are
// lost until the retries are over; ranks that cut messages differently notice, ranks that chose differently wait; a
// call that no algorithm is left for is refused.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <tuple>

#include "sim/bringup/interfaces.hpp"
#include "sim/bringup/states.hpp"
#include "sim/bringup/wires.hpp"
#include "sim/nccl/choice.hpp"
#include "sim/nccl/environment.hpp"
#include "sim/nccl/settings.hpp"
#include "sim/nccl/trace_call.hpp"
#include "sim/nccl/variables.hpp"
#include "sim/nccl/version.hpp"
#include "sim/timers/settings.hpp"

namespace rehearse::sim::bringup {
namespace {

constexpr uint32_t kDefaultPartition = 0xffff;
constexpr uint32_t kFullMember = 0x8000;

// What a process sends never arrives: its queue pairs give up after their retries.
void lose(Wires& wires, size_t p) {
  const NetworkTimers network =
      timers_of(wires.job().launch, wires.process(p).env, wires.job().findings).network;
  Trouble trouble{.process = p, .state = "first-collective", .error = "lost"};
  trouble.since = wires.process(p).clock;
  if (network.ib_total() > 0) trouble.gives_up = wires.process(p).clock + network.ib_total();
  trouble.waits = trouble.gives_up == kNever;
  wires.job().add(std::move(trouble));
}

// The partition key by which a process talks; nothing without InfiniBand.
std::optional<uint32_t> partition(Wires& wires, size_t p) {
  const pb::Nic* nic = wires.adapter(p);
  if (nic == nullptr || nic->kind() != pb::INFINIBAND) return {};
  if (nic->pkeys().empty()) return kDefaultPartition;
  return nic->pkeys(whole_number(wires.process(p).env, "NCCL_IB_PKEY", 0));
}

bool talk(uint32_t a, uint32_t b) {
  return ((a ^ b) & ~kFullMember) == 0 && ((a | b) & kFullMember) != 0;
}

void partitions(Wires& wires) {
  if (!wires.several_nodes()) return;
  std::map<size_t, uint32_t> keys;                          // by process
  std::map<uint32_t, std::map<uint32_t, size_t>> in_place;  // by local rank: how many have a key
  for (const size_t p : wires.there()) {
    if (const auto key = partition(wires, p)) {
      keys[p] = *key;
      ++in_place[wires.process(p).local][*key];
    }
  }
  std::set<uint32_t> blamed;  // nodes
  for (const auto& [p, key] : keys) {
    const auto& peers = in_place[wires.process(p).local];
    const uint32_t mine = key;
    const bool reached = std::all_of(peers.begin(), peers.end(), [&](const auto& other) {
      return talk(mine, other.first) || (other.first == mine && other.second == 1);
    });
    if (reached) continue;
    lose(wires, p);
    const auto usual =
        std::max_element(peers.begin(), peers.end(), [](const auto& a, const auto& b) {
          // Among equals a full member is the one that is right, then the default partition.
          return std::tuple(a.second, a.first & kFullMember, a.first) <
                 std::tuple(b.second, b.first & kFullMember, b.first);
        });
    if (key == usual->first && peers.size() > 1) continue;
    if (!blamed.insert(wires.process(p).node).second) continue;
    wires.job().blame(
        "node", wires.process(p).node,
        peers.size() == 1
            ? fmt::format("its ports are limited members of partition {:#06x}, like their peers",
                          key)
            : fmt::format("its ports are in partition {:#06x}, their peers in {:#06x}", key,
                          usual->first));
  }
}

// Up to 2.19 NCCL agreed on the smaller of two MTUs; since then each side takes its own.
void mtu(Wires& wires) {
  const auto version = parse_nccl_version(wires.job().launch.nccl_version());
  if (!wires.several_nodes() || !version || *version < NcclVersion{2, 20, 0}) return;
  const auto own = [&](size_t p) {
    const pb::Nic* nic = wires.adapter(p);
    return nic == nullptr ? 0u : nic->mtu();
  };
  std::map<uint32_t, uint32_t> smallest;
  for (const size_t p : wires.there()) {
    if (own(p) == 0) continue;
    const auto [at, fresh] = smallest.emplace(wires.process(p).local, own(p));
    if (!fresh) at->second = std::min(at->second, own(p));
  }
  for (const size_t p : wires.there()) {
    const uint32_t mine = own(p);
    if (mine == 0 || mine == smallest[wires.process(p).local]) continue;
    lose(wires, p);
  }
  if (wires.job().troubles.empty()) return;
  for (const size_t p : wires.there()) {
    if (wires.job().in_trouble(p) || own(p) == 0) continue;
    wires.job().blame(
        "node", wires.process(p).node,
        fmt::format("its ports take packets of {} bytes, others send larger ones", own(p)));
  }
}

int64_t step_bytes(Wires& wires, size_t p) {
  const auto version = parse_nccl_version(wires.job().launch.nccl_version());
  const auto settings = parse_settings(wires.process(p).env, version ? *version : NcclVersion{});
  return settings ? settings->step_bytes(Protocol::kSimple) : 0;
}

void choose_differently(Wires& wires) {
  for (const size_t p : wires.there()) {
    Trouble trouble{.process = p, .state = "first-collective", .error = "disagree"};
    trouble.since = wires.process(p).clock;
    trouble.waits = true;
    wires.watch(p, trouble);
    wires.job().add(std::move(trouble));
  }
}

// A rank that receives more than it has room for reports it; where it has more room nobody notices.
void cut_differently(Wires& wires) {
  for (size_t i = 0; i < wires.there().size(); ++i) {
    const size_t from = wires.there()[i], to = wires.there()[(i + 1) % wires.there().size()];
    const int64_t sent = step_bytes(wires, from), room = step_bytes(wires, to);
    if (wires.process(from).node == wires.process(to).node || sent <= room) continue;
    const bool rdma = !wires.adapters(to).empty();
    Trouble trouble{.process = to, .state = "first-collective", .error = ""};
    trouble.error = rdma ? "size-rdma" : "size-socket";
    trouble.since = trouble.gives_up = wires.process(to).clock;
    const auto own = nccl_interface(wires.job().network, wires.job().document.platform(),
                                    wires.process(from).node, wires.process(from).env);
    trouble.facts = {
        {"local", std::to_string(room)},
        {"remote", std::to_string(sent)},
        {"peer", own ? own->address : ""},
        {"port", std::to_string(ephemeral_port(wires.job().node(wires.process(from).node), from))}};
    wires.job().add(std::move(trouble));
  }
  if (wires.job().troubles.empty()) choose_differently(wires);
}

// Calls that NCCL decides about as one; others are sends and receives.
bool is_decided(traces::Collective collective) {
  using traces::Collective;
  return collective == Collective::kAllReduce || collective == Collective::kAllGather ||
         collective == Collective::kReduceScatter || collective == Collective::kBroadcast ||
         collective == Collective::kReduce || collective == Collective::kBarrier;
}

// Do ranks plan the first collective that one of them calls differently? Later ones are the replay's.
bool plan_differently(Wires& wires) {
  const Job& job = wires.job();
  auto links = platforms::Links::build(job.document.platform());
  if (job.trace == nullptr || !links) return true;
  const ModelContext context{job.document.platform(), *links, job.launch};
  std::map<uint32_t, std::optional<CommunicatorModel>> models;
  for (const traces::RankTrace& rank : job.trace->ranks) {
    const auto call = std::find_if(rank.ops.calls.begin(), rank.ops.calls.end(),
                                   [](const traces::Call& c) { return is_decided(c.collective); });
    if (call == rank.ops.calls.end()) continue;
    const auto [at, fresh] = models.try_emplace(call->communicator);
    if (!fresh) continue;
    auto model = CommunicatorModel::create(context, job.trace->communicators[call->communicator]);
    if (!model) continue;
    at->second.emplace(std::move(*model));
    const auto traffic = at->second->traffic(*call, 0);
    if (traffic && !traffic->dissent.empty()) return true;
  }
  return false;
}

// Variables that decide how a message is cut or which way it goes; NCCL takes them to be equal. What counts is what it
// makes of a value, not how it is written.
void settings(Wires& wires) {
  if (wires.there().size() < 2) return;
  for (const char* name : {"NCCL_BUFFSIZE", "NCCL_ALGO", "NCCL_PROTO"}) {
    std::map<std::string, std::vector<size_t>> by_meaning;
    for (const size_t p : wires.there()) {
      by_meaning[meaning_of(name, wires.process(p).variable(name))].push_back(p);
    }
    if (by_meaning.size() < 2) continue;
    std::map<std::string, std::vector<size_t>> by_value;
    for (auto& [meaning, ranks] : by_meaning) {
      by_value[wires.process(ranks.front()).variable(name)] = std::move(ranks);
    }
    if (name != std::string_view("NCCL_BUFFSIZE") && !plan_differently(wires)) continue;
    const auto usual =
        std::max_element(by_value.begin(), by_value.end(), [&](const auto& a, const auto& b) {
          // Among equals the ranks without the setting are the ones that are right.
          return std::pair(a.second.size(), a.first.empty()) <
                 std::pair(b.second.size(), b.first.empty());
        });
    std::set<uint32_t> blamed;
    for (const auto& [value, ranks] : by_value) {
      if (value == usual->first) continue;
      for (const size_t p : ranks) {
        if (!blamed.insert(wires.process(p).node).second) continue;
        wires.job().blame(
            "node", wires.process(p).node,
            fmt::format("{}={} there, {} elsewhere", name, value.empty() ? "unset" : value,
                        usual->first.empty() ? "unset" : usual->first));
      }
    }
    if (name == std::string_view("NCCL_BUFFSIZE")) {
      cut_differently(wires);
    } else {
      choose_differently(wires);
    }
    return;
  }
}

// "ncclFloat32", as NCCL prints it.
std::string library_name(DataType type) {
  std::string name(name_of(type));
  name.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(name.front())));
  return "nccl" + name;
}

// The first call on a communicator that NCCL_ALGO and NCCL_PROTO leave nothing for: NCCL refuses it, before any data move.
void refused_call(Wires& wires, const traces::Communicator& communicator,
                  const traces::Call& call) {
  const Call asked = nccl_call(call);
  Job& job = wires.job();
  std::string settings;
  for (const size_t p : wires.there()) {
    const Process& process = wires.process(p);
    const auto& members = communicator.members;
    if (std::find(members.begin(), members.end(), process.seat) == members.end()) continue;
    settings.clear();
    for (const char* name : {"NCCL_ALGO", "NCCL_PROTO"}) {
      const std::string value = process.variable(name);
      if (!value.empty()) settings += fmt::format(" {} was set to {}.", name, value);
    }
    Trouble trouble{.process = p, .state = "first-collective", .error = "no-algorithm"};
    trouble.since = trouble.gives_up = process.clock;
    trouble.facts = {{"function", std::string(name_of(asked.function))},
                     {"type", library_name(asked.type)},
                     {"settings", settings}};
    job.add(std::move(trouble));
  }
  job.blame("configuration", 0,
            fmt::format("no algorithm is left for {}:{}", name_of(asked.function), settings));
}

void algorithms(Wires& wires) {
  const Job& job = wires.job();
  const auto chosen = [&](size_t p) {
    const Process& process = wires.process(p);
    return !process.variable("NCCL_ALGO").empty() || !process.variable("NCCL_PROTO").empty();
  };
  if (job.trace == nullptr || std::none_of(wires.there().begin(), wires.there().end(), chosen)) {
    return;
  }
  auto links = platforms::Links::build(job.document.platform());
  if (!links) return;
  const ModelContext context{job.document.platform(), *links, job.launch};
  std::map<uint32_t, std::optional<CommunicatorModel>> models;
  std::set<std::pair<uint32_t, traces::Collective>> seen;
  for (const traces::RankTrace& rank : job.trace->ranks) {
    for (const traces::Call& call : rank.ops.calls) {
      if (!is_decided(call.collective)) continue;
      if (!seen.emplace(call.communicator, call.collective).second) continue;
      const traces::Communicator& communicator = job.trace->communicators[call.communicator];
      const auto [at, fresh] = models.try_emplace(call.communicator);
      if (fresh) {
        if (auto model = CommunicatorModel::create(context, communicator)) {
          at->second.emplace(std::move(*model));
        }
      }
      if (!at->second || choose(at->second->nccl(), nccl_call(call))) continue;
      return refused_call(wires, communicator, call);
    }
  }
}

}  // namespace

void move_first_data(Job& job) {
  Wires wires(job);
  for (const auto state : {partitions, mtu, settings, algorithms}) {
    state(wires);
    if (!job.troubles.empty()) return wires.rest_waits();
  }
}

}  // namespace rehearse::sim::bringup
