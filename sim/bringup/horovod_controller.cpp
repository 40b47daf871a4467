// SPDX-License-Identifier: Apache-2.0
// Gloo and MPI: Horovod's controller (Gloo with an HTTP rendezvous on the launcher's node, or MPI under mpirun) and
// PyTorch's backends of the same names. Gloo gives up after its timeout (Horovod: HOROVOD_GLOO_TIMEOUT_SECONDS, 30 s;
// PyTorch: that of the process group); MPI has no timer and prints nothing.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.hpp"
#include "sim/bringup/mesh.hpp"
#include "sim/bringup/states.hpp"
#include "sim/nccl/environment.hpp"

namespace rehearse::sim::bringup {
namespace {

std::vector<uint32_t> missing_in(const Job& job, const std::vector<size_t>& there) {
  std::set<uint32_t> ranks;
  uint32_t size = 0;
  for (const size_t p : there) {
    ranks.insert(job.processes[p].rank);
    size = std::max(size, job.processes[p].world_size);
  }
  std::vector<uint32_t> out;
  if (ranks.size() + job.unrecorded >= size) return out;
  for (uint32_t r = 0; r < size && out.size() < 64; ++r) {
    if (ranks.count(r) == 0) out.push_back(r);
  }
  return out;
}

// Ranks that were never started, that took another's number, or that nobody was told to start.
void blame_missing(Job& job, const std::vector<size_t>& there) {
  std::set<uint32_t> seen;
  uint32_t told = 0;
  bool found = false;
  for (const size_t p : there) {
    const Process& process = job.processes[p];
    told = std::max(told, process.world_size);
    if (seen.insert(process.rank).second && process.rank == process.seat) continue;
    if (process.rank == process.seat) continue;
    job.blame("rank", process.seat, fmt::format("was told that it is rank {}", process.rank));
    found = true;
  }
  for (const Process& process : job.processes) {
    if (!process.absent) continue;
    job.blame("rank", process.seat, "was never started");
    found = true;
  }
  if (found) return;
  job.blame("configuration", 0,
            fmt::format("world size {} is told, {} processes are launched", told, job.launched()));
}

struct Mesh {
  const char* state;
  const char* variable;  // that names the interface
  Nanos timeout;
};

void connect_mesh(Job& job, const Mesh& mesh) {
  const std::vector<size_t> there = job.started();
  std::vector<std::optional<ChosenInterface>> chosen(job.processes.size());
  for (const size_t p : there) {
    const Process& process = job.processes[p];
    const std::string wanted = process.variable(mesh.variable);
    chosen[p] = gloo_interface(job.network, job.document.platform(), process.node, wanted);
    if (chosen[p] || !job.network.described()) continue;
    Trouble trouble{.process = p, .state = "interface", .error = "gloo"};
    trouble.since = trouble.gives_up = process.clock;
    trouble.facts = {{"interface", wanted}};
    job.add(std::move(trouble));
    job.blame("node", process.node,
              fmt::format("{}={} is no interface there", mesh.variable, wanted));
  }
  if (!job.troubles.empty()) return;
  const std::vector<uint32_t> missing = missing_in(job, there);
  if (!missing.empty()) {
    for (const size_t p : there) {
      Trouble trouble{.process = p, .state = "join", .error = "gloo-key"};
      trouble.since = job.processes[p].clock;
      trouble.gives_up = trouble.since + mesh.timeout;
      trouble.waits = true;
      trouble.for_ranks = missing;
      trouble.facts = {{"ms", std::to_string(mesh.timeout / 1'000'000)},
                       {"missing", std::to_string(missing.front())}};
      job.add(std::move(trouble));
    }
    return blame_missing(job, there);
  }
  for (const BrokenPair& pair : broken_pairs(job, there, chosen)) {
    const Process& process = job.processes[pair.from];
    Trouble trouble{.process = pair.from, .state = mesh.state, .error = "mesh"};
    trouble.since = process.clock;
    trouble.gives_up = process.clock + mesh.timeout;
    trouble.waits = true;
    trouble.for_ranks = {job.processes[pair.to].seat};
    trouble.facts = {
        {"address", chosen[pair.to]->address},
        {"port", std::to_string(ephemeral_port(job.node(job.processes[pair.to].node), pair.to))},
        {"errno", error_of(pair.arrival.answer).text},
        {"ms", std::to_string(mesh.timeout / 1'000'000)}};
    job.add(std::move(trouble));
    blame_pair(job, pair, *chosen[pair.to]);
  }
}

// Ranks write where they listen to the server that HOROVOD_GLOO_RENDEZVOUS_ADDR and _PORT name. One that is told none
// keeps it to itself and waits for what the others never write there (gloo_context.cc); a server that does not answer
// is asked three times (http_store.cc).
void find_server(Job& job, const std::vector<size_t>& there, Nanos timeout) {
  constexpr Nanos kAsks = Nanos{3} * 500 * (kSeconds / 1000);
  for (const size_t p : there) {
    const Process& process = job.processes[p];
    Trouble trouble{.process = p, .state = "connect", .error = "http"};
    trouble.since = process.clock;
    const std::string server = process.variable("HOROVOD_GLOO_RENDEZVOUS_ADDR");
    if (server.empty()) {
      trouble.state = "join";
      trouble.error = "gloo-key";
      trouble.gives_up = process.clock + timeout;
      trouble.waits = true;
      for (size_t i = 0; i < there.size() && trouble.for_ranks.size() < 64; ++i) {
        if (there[i] != p) trouble.for_ranks.push_back(job.processes[there[i]].seat);
      }
      trouble.facts = {{"ms", std::to_string(timeout / 1'000'000)},
                       {"missing", std::to_string(process.rank == 0 ? 1 : 0)}};
      job.add(std::move(trouble));
      job.blame("configuration", 0,
                "HOROVOD_GLOO_RENDEZVOUS_ADDR is not set: ranks do not find each other");
      continue;
    }
    if (!job.network.described()) continue;
    const Lookup found = job.network.lookup(process.node, server);
    const auto port =
        static_cast<uint32_t>(whole_number(process.env, "HOROVOD_GLOO_RENDEZVOUS_PORT", 0));
    const bool known = found.result == Lookup::Result::kFound;
    const Arrival arrival =
        known ? job.network.knock(process.node, found.address, port) : Arrival{};
    if (known && port > 0 && arrival.answer == Answer::kArrives) continue;
    trouble.gives_up = process.clock + kAsks;
    trouble.facts = {{"host", server}, {"port", std::to_string(port)}};
    job.add(std::move(trouble));
    job.blame(
        "node", process.node,
        fmt::format("HOROVOD_GLOO_RENDEZVOUS_ADDR={}, port {}: nobody answers", server, port));
  }
}

// Beside all ranks Horovod lets those of a node meet and those of one place on every node, by the numbers that each
// process was told (gloo_context.cc): who is told more than there are waits for the rest, as does who is beyond what
// another of them was told, and who is not below its own size is refused. Without these variables the launcher's numbers
// are right.
void meet_in_groups(Job& job, const std::vector<size_t>& there, Nanos timeout) {
  const auto told = [&](size_t p) {
    const Process& process = job.processes[p];
    return !process.variable("HOROVOD_LOCAL_SIZE").empty() ||
           !process.variable("HOROVOD_CROSS_SIZE").empty() ||
           !process.variable("HOROVOD_CROSS_RANK").empty();
  };
  if (job.unrecorded > 0 || std::none_of(there.begin(), there.end(), told)) return;
  struct Place {
    int rank[2] = {}, size[2] = {};  // on the node, across nodes
  };
  std::map<uint32_t, int> number, members;  // of a node: its place in order, its processes
  for (const size_t p : there) {
    const uint32_t node = job.processes[p].node;
    number.emplace(node, static_cast<int>(number.size()));
    ++members[node];
  }
  std::vector<Place> places(job.processes.size());
  std::map<int, std::map<int, int>>
      met[2];  // by the number of the other group: sizes told, by number
  for (const size_t p : there) {
    const Process& process = job.processes[p];
    const auto number_of = [&](const char* name, int otherwise) {
      return process.variable(name).empty() ? otherwise
                                            : whole_number(process.env, name, otherwise);
    };
    const auto local = static_cast<int>(process.local);
    const auto nodes = std::count_if(members.begin(), members.end(),
                                     [&](const auto& each) { return each.second > local; });
    Place& place = places[p];
    place.rank[0] = number_of("HOROVOD_LOCAL_RANK", local);
    place.rank[1] = number_of("HOROVOD_CROSS_RANK", number[process.node]);
    place.size[0] = number_of("HOROVOD_LOCAL_SIZE", members[process.node]);
    place.size[1] = number_of("HOROVOD_CROSS_SIZE", static_cast<int>(nodes));
    met[0][place.rank[1]].emplace(place.rank[0], place.size[0]);
    met[1][place.rank[0]].emplace(place.rank[1], place.size[1]);
  }
  for (const size_t p : there) {
    for (const int group : {0, 1}) {
      const int rank = places[p].rank[group], size = places[p].size[group];
      const std::map<int, int>& here = met[group][places[p].rank[1 - group]];
      int missing = 0;
      while (missing < size && here.contains(missing) && here.at(missing) > rank) ++missing;
      if (rank < size && missing == size) continue;
      Trouble trouble{
          .process = p, .state = "join", .error = rank < size ? "gloo-key" : "gloo-size"};
      trouble.since = trouble.gives_up = job.processes[p].clock;
      if (rank < size) {
        trouble.gives_up += timeout;
        trouble.waits = true;
      }
      trouble.facts = {{"ms", std::to_string(timeout / 1'000'000)},
                       {"missing", std::to_string(missing)},
                       {"rank", std::to_string(rank)},
                       {"size", std::to_string(size)}};
      job.add(std::move(trouble));
      break;
    }
  }
  if (job.troubles.empty()) return;
  for (const size_t p : there) {
    const std::pair<const char*, int> right[] = {
        {"HOROVOD_LOCAL_SIZE", members[job.processes[p].node]},
        {"HOROVOD_CROSS_SIZE", static_cast<int>(members.size())},
        {"HOROVOD_CROSS_RANK", number[job.processes[p].node]}};
    for (const auto& [name, value] : right) {
      const std::string text = job.processes[p].variable(name);
      if (text.empty() || whole_number(job.processes[p].env, name, value) == value) continue;
      job.blame("rank", job.processes[p].seat,
                fmt::format("was told {}={} where it is {}", name, text, value));
    }
  }
}

}  // namespace

void meet_in_horovod(Job& job) {
  const std::vector<size_t> there = job.started();
  const bool alone = std::all_of(there.begin(), there.end(),
                                 [&](size_t p) { return job.processes[p].world_size == 1; });
  if (alone || there.empty()) return;
  const std::string controller = job.processes[there.front()].variable("HOROVOD_CONTROLLER");
  if (controller == "mpi" || (controller.empty() && job.launcher == pb::MPIRUN)) {
    return join_mpi(job);
  }
  const int seconds =
      whole_number(job.processes[there.front()].env, "HOROVOD_GLOO_TIMEOUT_SECONDS", 30);
  const Nanos timeout = std::max(0, seconds) * kSeconds;
  // horovodrun tells everybody its own server; other launchers leave it to the environment.
  const bool told = std::any_of(there.begin(), there.end(), [&](size_t p) {
    return !job.processes[p].variable("HOROVOD_GLOO_RENDEZVOUS_ADDR").empty();
  });
  if (job.launcher == pb::PLAIN || (told && job.launcher != pb::HOROVODRUN)) {
    find_server(job, there, timeout);
    if (!job.troubles.empty()) return;
  }
  connect_mesh(job, {"connect", "HOROVOD_GLOO_IFACE", timeout});
  if (job.troubles.empty()) meet_in_groups(job, there, timeout);
}

void join_full_mesh(Job& job) {
  connect_mesh(job, {"connect", "GLOO_SOCKET_IFNAME", store_timeout(job.launch)});
}

void join_mpi(Job& job) {
  const std::vector<size_t> there = job.started();
  std::vector<std::optional<ChosenInterface>> chosen(job.processes.size());
  for (const size_t p : there) {
    const Process& process = job.processes[p];
    chosen[p] = mpi_interface(job.network, job.document.platform(), process.node,
                              {process.variable("OMPI_MCA_btl_tcp_if_include"),
                               process.variable("OMPI_MCA_btl_tcp_if_exclude")});
    if (chosen[p] || !job.network.described()) continue;
    Trouble trouble{.process = p, .state = "interface", .error = "mpi"};
    trouble.since = trouble.gives_up = job.processes[p].clock;
    trouble.facts = {{"interface", job.processes[p].variable("OMPI_MCA_btl_tcp_if_include")}};
    job.add(std::move(trouble));
    job.blame("node", job.processes[p].node, "no interface is left for MPI");
  }
  if (!job.troubles.empty()) return;
  const std::vector<uint32_t> missing = missing_in(job, there);
  if (!missing.empty()) {
    for (const size_t p : there) {
      Trouble trouble{.process = p, .state = "join", .error = "mpi"};
      trouble.since = job.processes[p].clock;
      trouble.waits = true;
      trouble.for_ranks = missing;
      job.add(std::move(trouble));
    }
    return blame_missing(job, there);
  }
  for (const BrokenPair& pair : broken_pairs(job, there, chosen)) {
    const Process& process = job.processes[pair.from];
    Trouble trouble{.process = pair.from, .state = "connect", .error = "mpi"};
    trouble.since = process.clock;
    // A refusal is printed at once; then it waits without end.
    const bool printed = pair.arrival.answer != Answer::kDropped;
    trouble.gives_up = printed ? process.clock : kNever;
    trouble.waits = true;
    trouble.for_ranks = {job.processes[pair.to].seat};
    const SystemError error = error_of(pair.arrival.answer);
    trouble.facts = {{"address", chosen[pair.to]->address},
                     {"errno", error.text},
                     {"number", std::to_string(error.number)},
                     {"host", job.node(process.node).name()}};
    job.add(std::move(trouble));
    blame_pair(job, pair, *chosen[pair.to]);
  }
}

}  // namespace rehearse::sim::bringup
