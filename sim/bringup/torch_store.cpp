// SPDX-License-Identifier: Apache-2.0
// PyTorch's rendezvous: TCPStore at MASTER_ADDR:MASTER_PORT. Under torchrun the agent of a node hosts it or
// connects first, before its workers start; elsewhere the process of rank 0 hosts it. Then all are counted.
//
//   torchrun, static   agents connect for 600 s (static_tcp_rendezvous.py)
//   torchrun, c10d     agents connect for 60 s (read_timeout), then wait 600 s for the others (join_timeout)
//   before 2.1         every process waits until exactly world_size have come (store based barrier)
//   from 2.1 on        the process that hosts the store waits for world_size clients; under torchrun nobody does,
//                      and a missing rank shows in NCCL's bootstrap
#include <fmt/format.h>

#include <algorithm>

#include "sim/bringup/states.hpp"

namespace rehearse::sim::bringup {
namespace {

constexpr Nanos kStaticAgent = 600 * kSeconds;
constexpr Nanos kElasticRead = 60 * kSeconds;
constexpr Nanos kElasticJoin = 600 * kSeconds;

bool at_least(const pb::Launch& launch, const char* version) {
  // Without a version: a current release.
  return launch.framework_version().empty() ||
         compare_versions(launch.framework_version(), version) >= 0;
}

class StoreMeeting {
 public:
  explicit StoreMeeting(Job& job) : job_(job), agents_(job.launcher == pb::TORCHRUN) {}

  void run() {
    for (const size_t p : job_.started()) {
      const bool first = nodes_.insert(job_.processes[p].node).second;
      if (!agents_ || first) clients_.push_back(p);
    }
    if (clients_.empty() || rank_zero_is_unrecorded()) return;
    for (const size_t p : clients_) {
      if (hosts(p)) bind(p);
    }
    for (const size_t p : clients_) connect(p);
    agents_ ? gather_agents() : count(job_.started());
    if (agents_ && job_.troubles.empty()) count(job_.started());
  }

 private:
  // Then where the store is and how it does is not known.
  [[nodiscard]] bool rank_zero_is_unrecorded() const {
    return job_.unrecorded > 0 &&
           std::none_of(job_.processes.begin(), job_.processes.end(),
                        [](const Process& process) { return process.seat == 0; });
  }

  [[nodiscard]] bool hosts(size_t p) const {
    const Process& process = job_.processes[p];
    if (!agents_) return process.rank == 0;
    if (job_.launch.rendezvous() == pb::STATIC) return p == clients_.front();
    // The endpoint's host is the one that finds the address among its own.
    const Lookup found = job_.network.lookup(process.node, process.master);
    if (found.result != Lookup::Result::kFound) return false;
    const Arrival own = job_.network.knock(process.node, found.address, process.port);
    return own.answer == Answer::kArrives && own.node == process.node;
  }

  void bind(size_t p) {
    const Process& process = job_.processes[p];
    const auto& used = job_.node(process.node).ports_in_use();
    const bool taken =
        process.port != 0 && (std::find(used.begin(), used.end(), process.port) != used.end() ||
                              bound_.count({process.node, process.port}) > 0);
    if (!taken) {
      bound_.insert({process.node, process.port});
      return;
    }
    Trouble trouble{.process = p, .state = "bind", .error = "in-use"};
    trouble.since = trouble.gives_up = process.clock;
    trouble.facts = {{"port", std::to_string(process.port)}};
    job_.add(std::move(trouble));
    job_.blame("node", process.node, fmt::format("port {} is in use there already", process.port));
  }

  [[nodiscard]] Nanos patience() const {
    if (!agents_) return store_timeout(job_.launch);
    return job_.launch.rendezvous() == pb::STATIC ? kStaticAgent : kElasticRead;
  }

  void fail_to_connect(size_t p, const char* state, std::string error, Nanos gives_up) {
    const Process& process = job_.processes[p];
    Trouble trouble{.process = p, .state = state, .error = std::move(error)};
    trouble.since = process.clock;
    trouble.gives_up = gives_up;
    trouble.waits = gives_up > process.clock;
    trouble.facts = {{"host", process.master},
                     {"port", std::to_string(process.port)},
                     {"ms", std::to_string(patience() / 1'000'000)},
                     {"seconds", std::to_string(patience() / kSeconds)}};
    job_.add(std::move(trouble));
  }

  void connect(size_t p) {
    Process& process = job_.processes[p];
    if (job_.in_trouble(p) || !job_.network.described()) return;
    if (process.world_size == 1 && hosts(p)) return;
    const Lookup found = job_.network.lookup(process.node, process.master);
    if (found.result != Lookup::Result::kFound) {
      const bool unknown = found.result == Lookup::Result::kUnknown;
      // From 1.11 on a name that is not found is asked for again until the time is over.
      const bool again = at_least(job_.launch, "1.11");
      fail_to_connect(p, "lookup", unknown ? "unknown" : "unanswered",
                      process.clock + (again ? patience() : found.delay));
      return job_.blame("node", process.node,
                        fmt::format("the name {} does not resolve there", process.master));
    }
    process.clock += found.delay;
    const Arrival arrival = job_.network.knock(process.node, found.address, process.port);
    if (arrival.answer == Answer::kArrives && bound_.count({arrival.node, process.port}) > 0)
      return;
    const Nanos gives_up = process.clock + patience();
    if (arrival.answer == Answer::kArrives) {
      const auto& used = job_.node(arrival.node).ports_in_use();
      // Somebody else accepts the connection and does not answer.
      if (std::find(used.begin(), used.end(), process.port) != used.end()) {
        return fail_to_connect(p, "connect", "no-answer", gives_up);
      }
    }
    fail_to_connect(p, "connect", word_of(arrival.answer), gives_up);
    if (arrival.answer == Answer::kRefused || arrival.answer == Answer::kDropped) {
      return job_.blame("node", arrival.node,
                        fmt::format("its firewall stops connections to port {}", process.port));
    }
    job_.blame("configuration", 0,
               fmt::format("MASTER_ADDR={}: no store is reached at {}:{}", process.master,
                           found.address, process.port));
  }

  // Agents know how many nodes there are and wait for all.
  void gather_agents() {
    std::vector<uint32_t> missing;
    std::set<uint32_t> seen;
    for (const Process& process : job_.processes) {
      if (!seen.insert(process.node).second) continue;
      const auto client = std::find_if(clients_.begin(), clients_.end(), [&](size_t p) {
        return job_.processes[p].node == process.node;
      });
      if (client == clients_.end() || job_.in_trouble(*client)) missing.push_back(process.seat);
    }
    if (missing.empty()) return;
    const bool fixed = job_.launch.rendezvous() == pb::STATIC;
    for (const size_t p : clients_) {
      if (job_.in_trouble(p)) continue;
      const Process& process = job_.processes[p];
      Trouble trouble{.process = p, .state = "join", .error = fixed ? "agents" : "nodes"};
      trouble.since = process.clock;
      trouble.gives_up = process.clock + (fixed ? kStaticAgent : kElasticJoin);
      trouble.waits = true;
      trouble.for_ranks = missing;
      trouble.facts = {{"ms", std::to_string((fixed ? kStaticAgent : kElasticJoin) / 1'000'000)},
                       {"missing", std::to_string(missing.size())}};
      job_.add(std::move(trouble));
    }
    blame_absent();
  }

  void blame_absent() {
    for (const Process& process : job_.processes) {
      if (process.absent) job_.blame("rank", process.seat, "was never started");
    }
  }

  // All processes that got through, against the number that each expects.
  void count(const std::vector<size_t>& started) {
    std::vector<size_t> well;
    for (const size_t p : started) {
      if (!job_.in_trouble(p)) well.push_back(p);
    }
    if (at_least(job_.launch, "2.1") && agents_) return;
    const auto joined = static_cast<uint32_t>(well.size()) + job_.unrecorded;
    const Nanos timeout = store_timeout(job_.launch);
    for (const size_t p : well) {
      const Process& process = job_.processes[p];
      const bool enough = joined >= process.world_size;
      const bool barrier = !at_least(job_.launch, "2.1");
      if (joined == process.world_size || (!barrier && enough) || process.world_size == 1) continue;
      Trouble trouble{.process = p, .state = "join", .error = ""};
      trouble.error = barrier ? "barrier" : process.rank == 0 ? "clients" : "unique-id";
      trouble.since = process.clock;
      trouble.gives_up = process.clock + timeout;
      trouble.waits = true;
      trouble.for_ranks = missing_ranks(well, process.world_size);
      trouble.facts = {{"rank", std::to_string(process.rank)},
                       {"world_size", std::to_string(process.world_size)},
                       {"count", std::to_string(joined)},
                       {"timeout", as_timedelta(timeout)},
                       {"ms", std::to_string(timeout / 1'000'000)},
                       {"seconds", std::to_string(timeout / kSeconds + 1)}};
      job_.add(std::move(trouble));
      if (process.world_size != job_.launched()) {
        job_.blame("configuration", 0,
                   fmt::format("world size {} is told, {} processes are launched",
                               process.world_size, job_.launched()));
      }
    }
    if (!job_.troubles.empty()) blame_absent();
  }

  [[nodiscard]] std::vector<uint32_t> missing_ranks(const std::vector<size_t>& well,
                                                    uint32_t world_size) const {
    constexpr size_t kMostShown = 64;
    std::set<uint32_t> there;
    for (const size_t p : well) there.insert(job_.processes[p].rank);
    std::vector<uint32_t> out;
    for (uint32_t r = 0; r < world_size && out.size() < kMostShown; ++r) {
      if (there.count(r) == 0) out.push_back(r);
    }
    return out;
  }

  Job& job_;
  bool agents_;
  std::set<uint32_t> nodes_;
  std::vector<size_t> clients_;
  std::set<std::pair<uint32_t, uint32_t>> bound_;  // node and port
};

}  // namespace

Nanos store_timeout(const pb::Launch& launch) {
  if (launch.start_timeout() > 0) return launch.start_timeout();
  // default_pg_nccl_timeout came with 2.2; before it and for other backends it is 30 minutes.
  return launch.backend() == pb::NCCL && at_least(launch, "2.2") ? 600 * kSeconds : 1800 * kSeconds;
}

void meet_at_store(Job& job) { StoreMeeting(job).run(); }

}  // namespace rehearse::sim::bringup
