// SPDX-License-Identifier: Apache-2.0
// TensorFlow's cluster (and Keras on top): every task of TF_CONFIG starts a gRPC server at its own address and
// registers with the first one; nobody goes on before all workers have registered (one hour unless start_timeout
// says otherwise). Where tasks list parameter servers, each that trains opens a session on all of them first and waits
// for them without end; a server runs where its address leads, if its port is free there. Evaluators are taken to be
// there. A world size that is told is that of the cluster: TF_CONFIG lists as many workers as it takes. Where nobody
// has a TF_CONFIG the cluster is not described and comes up.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/text.hpp"
#include "sim/bringup/states.hpp"

namespace rehearse::sim::bringup {
namespace {

constexpr Nanos kRegister = 3600 * kSeconds;
constexpr Nanos kStillWaiting = 10 * kSeconds;  // between two lines of a session that waits
constexpr const char* kServers = "ps";

struct Task {
  std::string type;
  uint32_t index = 0;
  bool operator==(const Task&) const = default;
  bool operator<(const Task& other) const {
    return std::tie(type, index) < std::tie(other.type, other.index);
  }
};

struct Cluster {
  std::map<std::string, std::vector<std::string>> addresses;  // by type
  Task own;
};

// kBadInput with Python's words when it is not what TensorFlow reads.
Result<Cluster> parse_tf_config(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded() || !json.is_object()) {
    return fail(Code::kBadInput, "json.decoder.JSONDecodeError: TF_CONFIG is not valid JSON");
  }
  Cluster out;
  const auto cluster = json.find("cluster");
  if (cluster != json.end() && cluster->is_object()) {
    for (const auto& [type, list] : cluster->items()) {
      for (const auto& address : list) {
        if (address.is_string()) out.addresses[type].push_back(address.get<std::string>());
      }
    }
  }
  const auto task = json.find("task");
  if (task != json.end() && task->is_object()) {
    const auto type = task->find("type"), index = task->find("index");
    if (type != task->end() && type->is_string()) out.own.type = type->get<std::string>();
    if (index != task->end() && index->is_number_unsigned()) out.own.index = index->get<uint32_t>();
    // Scripts often write the index as text.
    if (index != task->end() && index->is_string()) {
      out.own.index =
          static_cast<uint32_t>(std::strtoul(index->get<std::string>().c_str(), nullptr, 10));
    }
  }
  return out;
}

bool trains(const std::string& type) { return type == "worker" || type == "chief"; }

struct HostPort {
  std::string host;
  uint32_t port = 0;
};

HostPort split_address(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return {address, 0};
  return {address.substr(0, colon),
          static_cast<uint32_t>(std::strtoul(address.c_str() + colon + 1, nullptr, 10))};
}

// gRPC goes through a proxy unless the host is excepted.
std::string proxy_for(const Process& process, const std::string& host) {
  for (const char* name : {"grpc_proxy", "https_proxy", "http_proxy"}) {
    std::string proxy = process.variable(name);
    if (proxy.empty()) continue;
    for (const char* except : {"no_grpc_proxy", "no_proxy"}) {
      for (const std::string& part : split(process.variable(except), ',')) {
        if (part == "*" || (!part.empty() && host.ends_with(part))) return "";
      }
    }
    return proxy;
  }
  return "";
}

class ClusterMeeting {
 public:
  explicit ClusterMeeting(Job& job) : job_(job) {
    timeout_ = job.launch.start_timeout() > 0 ? job.launch.start_timeout() : kRegister;
  }

  void run() {
    for (const size_t p : job_.started()) {
      const std::string text = job_.processes[p].variable("TF_CONFIG");
      if (!text.empty()) add(p, text);
    }
    if (tasks_.empty() || !job_.troubles.empty()) return;
    const Cluster& any = tasks_.begin()->second.cluster;
    if (any.addresses.empty()) return;
    leave_out();
    if (!job_.troubles.empty()) return rest_waits();
    for (const auto& [task, who] : tasks_) listen(task, who);
    if (!job_.troubles.empty()) return rest_waits();
    const Task leader{any.addresses.count("chief") > 0 ? "chief" : "worker", 0};
    for (const auto& [task, who] : tasks_) {
      if (task != leader) register_at(who, leader);
    }
    if (job_.troubles.empty()) open_sessions();
    count(any);
    if (!job_.troubles.empty()) rest_waits();
  }

 private:
  struct Who {
    size_t process = 0;
    Cluster cluster;
  };

  [[nodiscard]] const Process& process(size_t p) const { return job_.processes[p]; }

  void at_once(size_t p, const char* state, const char* error, Facts facts) {
    Trouble trouble{.process = p, .state = state, .error = error};
    trouble.since = trouble.gives_up = process(p).clock;
    trouble.facts = std::move(facts);
    job_.add(std::move(trouble));
  }

  void wait(size_t p, const char* state, const std::string& error, Facts facts) {
    Trouble trouble{.process = p, .state = state, .error = error};
    trouble.since = process(p).clock;
    trouble.gives_up = process(p).clock + timeout_;
    trouble.waits = true;
    trouble.facts = std::move(facts);
    trouble.facts["seconds"] = std::to_string(timeout_ / kSeconds);
    job_.add(std::move(trouble));
  }

  // One server per task: ranks that are GPUs of one worker share it.
  void add(size_t p, const std::string& text) {
    auto cluster = parse_tf_config(text);
    if (!cluster) {
      at_once(p, "join", "tf-config", {{"what", cluster.error().what}});
      return job_.blame("rank", process(p).seat, "its TF_CONFIG is not valid JSON");
    }
    const Task own = cluster->own;
    const auto list = cluster->addresses.find(own.type);
    if (!cluster->addresses.empty() &&
        (list == cluster->addresses.end() || own.index >= list->second.size())) {
      at_once(p, "join", "tf-task", {{"type", own.type}, {"index", std::to_string(own.index)}});
      return job_.blame("rank", process(p).seat,
                        fmt::format("its task {} {} is not in the cluster", own.type, own.index));
    }
    const auto [at, fresh] = tasks_.emplace(own, Who{p, std::move(*cluster)});
    if (fresh || process(at->second.process).node == process(p).node) return;
    at_once(p, "join", "tf-duplicate", {{"type", own.type}, {"index", std::to_string(own.index)}});
    job_.blame("rank", process(p).seat,
               fmt::format("is {} {} as rank {} is (TF_CONFIG)", own.type, own.index,
                           process(at->second.process).seat));
  }

  [[nodiscard]] uint32_t listed_workers() const {
    const auto& addresses = tasks_.begin()->second.cluster.addresses;
    const auto at = addresses.find("worker");
    return at == addresses.end() ? 0 : static_cast<uint32_t>(at->second.size());
  }

  // Workers of the world size that is told; 0: it is not told.
  [[nodiscard]] uint32_t told_workers() const {
    const uint32_t workers = listed_workers();
    const auto ranks = static_cast<uint32_t>(job_.launch.ranks_size());
    if (job_.launch.world_size() == 0 || workers == 0 || ranks < workers) return 0;
    const uint32_t each = ranks / workers;
    return (job_.launch.world_size() + each - 1) / each;
  }

  // Workers beyond those that TF_CONFIG would list.
  void leave_out() {
    const uint32_t told = told_workers();
    for (const auto& [task, who] : tasks_) {
      if (told == 0 || task.type != "worker" || task.index < told) continue;
      at_once(who.process, "join", "tf-task",
              {{"type", task.type}, {"index", std::to_string(task.index)}});
      blame_world_size();
    }
  }

  void blame_world_size() {
    job_.blame("configuration", 0,
               fmt::format("world size {} is told, {} processes are launched",
                           job_.launch.world_size(), job_.launched()));
  }

  void listen(const Task& task, const Who& who) {
    const uint32_t port = split_address(who.cluster.addresses.at(task.type)[task.index]).port;
    const auto& used = job_.node(process(who.process).node).ports_in_use();
    if (std::find(used.begin(), used.end(), port) == used.end()) return;
    at_once(who.process, "bind", "in-use", {{"port", std::to_string(port)}});
    job_.blame("node", process(who.process).node,
               fmt::format("port {} is in use there already", port));
  }

  void register_at(const Who& who, const Task& leader) {
    const size_t p = who.process;
    const auto list = who.cluster.addresses.find(leader.type);
    if (list == who.cluster.addresses.end() || list->second.empty()) return;
    const HostPort there = split_address(list->second.front());
    Facts facts = {{"host", there.host}, {"port", std::to_string(there.port)}};
    if (const std::string proxy = proxy_for(process(p), there.host); !proxy.empty()) {
      facts["proxy"] = proxy;
      wait(p, "connect", "proxy", std::move(facts));
      return job_.blame("rank", process(p).seat, "a proxy stands in its environment: " + proxy);
    }
    if (!job_.network.described()) return;
    const Lookup found = job_.network.lookup(process(p).node, there.host);
    if (found.result != Lookup::Result::kFound) {
      wait(p, "lookup", found.result == Lookup::Result::kUnknown ? "unknown" : "unanswered",
           std::move(facts));
      return job_.blame("node", process(p).node,
                        fmt::format("the name {} does not resolve there", there.host));
    }
    job_.processes[p].clock += found.delay;
    const Arrival arrival = job_.network.knock(process(p).node, found.address, there.port);
    const auto server = tasks_.find(leader);
    const bool serves = server != tasks_.end() && arrival.answer == Answer::kArrives &&
                        arrival.node == process(server->second.process).node;
    // Tasks that the trace does not have are taken to be there.
    if (serves || (server == tasks_.end() && job_.unrecorded > 0)) return;
    facts["address"] = found.address;
    facts["errno"] = error_of(arrival.answer).text;
    wait(p, "connect", word_of(arrival.answer), std::move(facts));
    if (arrival.node != UINT32_MAX && arrival.answer != Answer::kArrives) {
      return job_.blame("node", arrival.node,
                        fmt::format("its firewall stops connections to port {}", there.port));
    }
    job_.blame("configuration", 0,
               fmt::format("TF_CONFIG: no server is reached at {}:{}", there.host, there.port));
  }

  void open_sessions() {
    const auto lists = [](const auto& row) {
      return row.second.cluster.addresses.count(kServers) > 0;
    };
    if (std::none_of(tasks_.begin(), tasks_.end(), lists)) return;
    for (const auto& [task, who] : tasks_) {
      if (!trains(task.type)) continue;
      const auto servers = who.cluster.addresses.find(kServers);
      if (servers == who.cluster.addresses.end()) {
        at_once(who.process, "join", "tf-no-servers", {});
        job_.blame("rank", process(who.process).seat,
                   "its TF_CONFIG lists no parameter server, those of other tasks do");
        continue;
      }
      for (uint32_t i = 0; i < servers->second.size(); ++i) {
        if (open_session(who.process, i, split_address(servers->second[i]))) continue;
        break;
      }
    }
  }

  // False: it waits for this server.
  bool open_session(size_t p, uint32_t index, const HostPort& there) {
    if (!job_.network.described()) return true;
    const Lookup found = job_.network.lookup(process(p).node, there.host);
    if (found.result != Lookup::Result::kFound) {
      job_.blame("node", process(p).node,
                 fmt::format("the name {} does not resolve there", there.host));
    } else {
      const Arrival arrival = job_.network.knock(process(p).node, found.address, there.port);
      if (arrival.answer == Answer::kArrives) {
        const auto& used = job_.node(arrival.node).ports_in_use();
        if (std::find(used.begin(), used.end(), there.port) == used.end()) return true;
        job_.blame("node", arrival.node,
                   fmt::format("port {} of parameter server {} is in use there already", there.port,
                               index));
      } else if (arrival.node != UINT32_MAX) {
        job_.blame("node", arrival.node,
                   fmt::format("its firewall stops connections to port {}", there.port));
      } else {
        job_.blame("configuration", 0,
                   fmt::format("TF_CONFIG: no parameter server is reached at {}:{}", there.host,
                               there.port));
      }
    }
    Trouble trouble{.process = p, .state = "connect", .error = "tf-server"};
    trouble.since = process(p).clock;
    trouble.gives_up = process(p).clock + kStillWaiting;
    trouble.waits = true;
    trouble.facts = {{"index", std::to_string(index)}};
    job_.add(std::move(trouble));
    return false;
  }

  void count(const Cluster& cluster) {
    if (!job_.troubles.empty() || job_.unrecorded > 0) return;
    std::vector<std::string> missing;
    for (const auto& [type, list] : cluster.addresses) {
      for (uint32_t i = 0; trains(type) && i < list.size(); ++i) {
        if (tasks_.count({type, i}) == 0)
          missing.push_back(fmt::format("/job:{}/replica:0/task:{}", type, i));
      }
    }
    const bool more = missing.empty() && told_workers() > listed_workers();
    if (more) missing.push_back(fmt::format("/job:worker/replica:0/task:{}", listed_workers()));
    if (missing.empty()) return;
    for (const auto& [task, who] : tasks_) {
      wait(who.process, "join", "tf-missing", {{"missing", missing.front()}});
    }
    if (more) return blame_world_size();
    job_.blame("configuration", 0, "TF_CONFIG lists " + missing.front() + ", which nobody is");
  }

  void rest_waits() {
    for (const auto& [task, who] : tasks_) wait(who.process, "join", "tf-peers", {});
  }

  Job& job_;
  Nanos timeout_ = 0;
  std::map<Task, Who> tasks_;
};

}  // namespace

void meet_in_tensorflow(Job& job) { ClusterMeeting(job).run(); }

}  // namespace rehearse::sim::bringup
