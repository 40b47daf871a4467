// SPDX-License-Identifier: Apache-2.0
// NCCL's bootstrap: every rank takes an interface, tells rank 0's root where it listens, is called back by the
// root, and connects to the next rank of the ring; then ranks tell each other their GPUs (src/bootstrap.cc,
// src/init.cc). The root has no timer: a rank that never comes is waited for without end.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "sim/bringup/interfaces.hpp"
#include "sim/bringup/states.hpp"
#include "sim/nccl/networks.hpp"
#include "sim/nccl/version.hpp"
#include "sim/timers/settings.hpp"

namespace rehearse::sim::bringup {
namespace {

bool has_patch(std::string_view version) {
  version = version.substr(0, version.find_first_of("+-"));
  return std::count(version.begin(), version.end(), '.') != 1;
}

// Whether two versions differ as far as both are written: "2.21" may be 2.21.5. What cannot be read differs from
// nothing.
bool other_release(std::string_view a, std::string_view b) {
  auto x = parse_nccl_version(a), y = parse_nccl_version(b);
  if (!x || !y) return false;
  if (!has_patch(a) || !has_patch(b)) x->patch = y->patch;
  return *x != *y;
}

// NCCL_VERSION_CODE of nccl.h: 22105; one digit each before 2.9.
std::string header_number(std::string_view text) {
  const auto version = parse_nccl_version(text);
  if (!version) return std::string(text);
  const bool wide = version->major > 2 || version->minor > 8;
  return std::to_string(version->major * (wide ? 10000 : 1000) + version->minor * 100 +
                        version->patch);
}

class Bootstrap {
 public:
  explicit Bootstrap(Job& job) : job_(job), there_(job.started()) {}

  void run() {
    chosen_.resize(job_.processes.size());
    for (const size_t p : there_) {
      if (job_.processes[p].rank >= job_.processes[p].world_size) refuse_rank(p);
    }
    if (!job_.troubles.empty()) return rest_waits();
    for (const size_t p : there_) choose_interface(p);
    if (!job_.troubles.empty()) return rest_waits();
    for (const size_t p : there_) choose_network(p);
    if (!job_.troubles.empty()) return rest_waits();
    find_root();
    if (root_ == SIZE_MAX) return rest_waits();
    for (const size_t p : there_) {
      if (p != root_) connect(p, root_);
    }
    check_in();
    if (!job_.troubles.empty()) return rest_waits();
    for (const size_t p : there_) {
      if (p != root_) connect(root_, p);
    }
    if (!job_.troubles.empty()) return rest_waits();
    ring();
    if (!job_.troubles.empty()) return rest_waits();
    compare_libraries();
    if (!job_.troubles.empty()) return;
    find_duplicate_gpus();
    if (!job_.troubles.empty()) rest_waits();
  }

 private:
  [[nodiscard]] Process& process(size_t p) { return job_.processes[p]; }

  void refuse_rank(size_t p) {
    Trouble trouble{.process = p, .state = "bootstrap", .error = "invalid-rank"};
    trouble.since = trouble.gives_up = process(p).clock;
    trouble.facts = {{"rank", std::to_string(process(p).rank)},
                     {"world_size", std::to_string(process(p).world_size)}};
    job_.add(std::move(trouble));
    job_.blame("configuration", 0,
               fmt::format("world size {} is told, {} processes are launched",
                           process(p).world_size, job_.launched()));
  }

  void choose_interface(size_t p) {
    chosen_[p] =
        nccl_interface(job_.network, job_.document.platform(), process(p).node, process(p).env);
    if (chosen_[p] || !job_.network.described()) return;
    Trouble trouble{.process = p, .state = "interface", .error = "none"};
    trouble.since = trouble.gives_up = process(p).clock;
    trouble.facts = {{"filter", process(p).variable("NCCL_SOCKET_IFNAME")}};
    job_.add(std::move(trouble));
    job_.blame("node", process(p).node,
               fmt::format("no interface fits NCCL_SOCKET_IFNAME={} NCCL_SOCKET_FAMILY={}",
                           process(p).variable("NCCL_SOCKET_IFNAME"),
                           process(p).variable("NCCL_SOCKET_FAMILY")));
  }

  // NCCL_NET asks for a library that finds nothing to drive.
  void choose_network(size_t p) {
    const std::string why = network_refusal(job_.node(process(p).node), process(p).env);
    if (why.empty()) return;
    Trouble trouble{.process = p, .state = "interface", .error = "network"};
    trouble.since = trouble.gives_up = process(p).clock;
    trouble.facts = {{"network", process(p).variable("NCCL_NET")}};
    job_.add(std::move(trouble));
    job_.blame("node", process(p).node,
               fmt::format("NCCL_NET={}: {}", process(p).variable("NCCL_NET"), why));
  }

  void find_root() {
    for (const size_t p : there_) {
      if (process(p).rank == 0) {
        root_ = p;
        return;
      }
    }
    if (job_.unrecorded > 0 && !there_.empty()) {
      root_ = there_.front();  // stands for the one that was not recorded
      return;
    }
    // Nobody makes the unique id: the others wait for it at the store.
    job_.blame("configuration", 0, "no process is told that it is rank 0");
  }

  // Tries that fail at once are repeated after growing pauses; tries that nobody answers take the kernel's time
  // each.
  void connect(size_t from, size_t to) {
    if (job_.in_trouble(from) || !job_.network.described()) return;
    const std::string& address = chosen_[to]->address;
    const uint32_t port = ephemeral_port(job_.node(process(to).node), to);
    Arrival arrival = job_.network.knock(process(from).node, address, port);
    if (arrival.answer == Answer::kArrives && arrival.node == process(to).node) return;
    const SystemError error = error_of(arrival.answer);
    const NetworkTimers timers = timers_of(job_.launch, process(from).env, job_.findings).network;
    const auto version = parse_nccl_version(job_.launch.nccl_version());
    const bool retried =
        arrival.answer != Answer::kUnreachable &&
        (arrival.answer != Answer::kNoRoute || (version && *version >= NcclVersion{2, 24, 0}));
    Trouble trouble{.process = from, .state = "bootstrap", .error = word_of(arrival.answer)};
    trouble.since = process(from).clock;
    trouble.waits = retried;
    trouble.gives_up = process(from).clock;
    if (retried) trouble.gives_up += timers.connect;
    if (arrival.answer == Answer::kDropped) {
      trouble.gives_up += kSynTimeout * (timers.connect_tries + 1);
    }
    trouble.for_ranks = {process(to).seat};
    trouble.facts = {{"address", address},
                     {"port", std::to_string(port)},
                     {"interface", chosen_[to]->name},
                     {"own_interface", chosen_[from]->name},
                     {"errno", error.text},
                     {"tries", std::to_string(timers.connect_tries + 1)}};
    job_.add(std::move(trouble));
    const bool stopped = arrival.node != UINT32_MAX && arrival.answer != Answer::kArrives;
    if (stopped) {
      return job_.blame("node", arrival.node,
                        fmt::format("its firewall stops connections to port {}", port));
    }
    job_.blame("node", process(to).node,
               fmt::format("its ranks listen on {} ({}), which {} does not reach",
                           chosen_[to]->name, address, job_.node(process(from).node).name()));
  }

  // The root counts those who told it where they listen.
  void check_in() {
    if (!job_.troubles.empty()) return;
    const uint32_t expected = process(root_).world_size;
    std::map<uint32_t, size_t> seen;
    for (const size_t p : there_) {
      if (process(p).world_size != expected) {
        return root_warns(
            "world-size",
            {{"count", std::to_string(expected)}, {"other", std::to_string(process(p).world_size)}},
            p, "was told another world size");
      }
      const auto [first, fresh] = seen.emplace(process(p).rank, p);
      if (!fresh) {
        const uint32_t other = process(p).seat != process(p).rank
                                   ? static_cast<uint32_t>(p)
                                   : static_cast<uint32_t>(first->second);
        return root_warns(
            "duplicate-rank",
            {{"rank", std::to_string(process(p).rank)}, {"count", std::to_string(expected)}}, other,
            fmt::format("was told that it is rank {}, as another was", process(p).rank));
      }
    }
    if (seen.size() + job_.unrecorded >= expected) return;
    std::vector<uint32_t> missing;
    for (uint32_t r = 0; r < expected && missing.size() < 64; ++r) {
      if (seen.count(r) == 0) missing.push_back(r);
    }
    for (const size_t p : there_) {
      Trouble trouble{.process = p, .state = "bootstrap", .error = "missing"};
      trouble.since = process(p).clock;
      trouble.waits = true;
      trouble.for_ranks = missing;
      job_.add(std::move(trouble));
    }
    bool absent = false;
    for (const Process& each : job_.processes) {
      if (each.absent) job_.blame("rank", each.seat, "was never started");
      absent |= each.absent;
    }
    if (!absent) {
      job_.blame("configuration", 0,
                 fmt::format("world size {} is told, {} processes are launched", expected,
                             job_.launched()));
    }
  }

  // The root's thread prints and ends; the processes wait on.
  void root_warns(const char* error, Facts facts, size_t culprit, const std::string& why) {
    Trouble trouble{.process = root_, .state = "bootstrap", .error = error};
    trouble.since = trouble.gives_up = process(root_).clock;
    trouble.waits = true;
    trouble.facts = std::move(facts);
    trouble.for_ranks = {process(culprit).seat};
    job_.add(std::move(trouble));
    job_.blame("rank", process(culprit).seat, why);
  }

  void ring() {
    std::vector<size_t> order = there_;
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return process(a).rank < process(b).rank; });
    for (size_t i = 0; order.size() > 1 && i < order.size(); ++i) {
      connect(order[i], order[(i + 1) % order.size()]);
    }
  }

  [[nodiscard]] const std::string& library_of(size_t p) {
    const auto& versions = job_.node(process(p).node).versions();
    const auto at = versions.find("nccl");
    return at == versions.end() ? job_.launch.nccl_version() : at->second;
  }

  // Every rank compares its version with those of all others and names the first that differs.
  void compare_libraries() {
    std::vector<size_t> first_with;  // each version
    std::set<std::string> seen;
    for (const size_t p : there_) {
      if (seen.insert(library_of(p)).second) first_with.push_back(p);
    }
    for (size_t i = 0; seen.size() > 1 && i < there_.size(); ++i) {
      const size_t own = there_[i];
      const auto other = std::find_if(first_with.begin(), first_with.end(), [&](size_t p) {
        return other_release(library_of(p), library_of(own));
      });
      if (other == first_with.end()) continue;
      Trouble trouble{.process = own, .state = "topology", .error = "nccl-version"};
      trouble.since = trouble.gives_up = process(own).clock;
      trouble.facts = {{"rank", std::to_string(process(own).rank)},
                       {"version", header_number(library_of(own))},
                       {"other", std::to_string(process(*other).rank)},
                       {"other_version", header_number(library_of(*other))}};
      job_.add(std::move(trouble));
      if (other_release(library_of(own), job_.launch.nccl_version())) {
        job_.blame("node", process(own).node,
                   fmt::format("has NCCL {}, others have {}", library_of(own), library_of(*other)));
      }
    }
  }

  void find_duplicate_gpus() {
    std::map<std::pair<uint32_t, uint32_t>, std::vector<size_t>> on;
    for (const size_t p : there_) {
      if (process(p).gpu) on[{process(p).node, *process(p).gpu}].push_back(p);
    }
    for (const auto& [seat, group] : on) {
      for (size_t i = 0; group.size() > 1 && i < group.size(); ++i) {
        const size_t own = group[i], other = group[i == 0 ? 1 : 0];
        Trouble trouble{.process = own, .state = "topology", .error = "duplicate-gpu"};
        trouble.since = trouble.gives_up = process(own).clock;
        trouble.facts = {
            {"rank", std::to_string(process(own).rank)},
            {"other", std::to_string(process(other).rank)},
            {"bus",
             bus_number(job_.node(seat.first).gpus(static_cast<int>(seat.second)), seat.second)}};
        job_.add(std::move(trouble));
        if (i > 0) {
          job_.blame("rank", process(own).seat,
                     fmt::format("is on GPU {} of node {}, as rank {} is", seat.second, seat.first,
                                 process(group[0]).seat));
        }
      }
    }
  }

  // Those without an error of their own wait in the bootstrap without end.
  void rest_waits() {
    std::vector<uint32_t> failed;
    for (const Trouble& trouble : job_.troubles) {
      if (!trouble.waits || trouble.gives_up != kNever)
        failed.push_back(process(trouble.process).seat);
    }
    if (failed.size() > 64) failed.resize(64);
    for (const size_t p : there_) {
      Trouble trouble{.process = p, .state = "bootstrap", .error = "peers"};
      trouble.since = process(p).clock;
      trouble.waits = true;
      trouble.for_ranks = failed;
      job_.add(std::move(trouble));
    }
  }

  Job& job_;
  std::vector<size_t> there_;
  std::vector<std::optional<ChosenInterface>> chosen_;
  size_t root_ = SIZE_MAX;
};

}  // namespace

void bootstrap_nccl(Job& job) { Bootstrap(job).run(); }

}  // namespace rehearse::sim::bringup
