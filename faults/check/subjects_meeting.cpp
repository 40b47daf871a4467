// SPDX-License-Identifier: Apache-2.0
// Subjects of the rendezvous: where ranks meet, and TensorFlow's description of its cluster.
#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.hpp"
#include "faults/check/subjects.hpp"

namespace rehearse::faults {
namespace {

using nlohmann::json;

bool is_ip(const std::string& text) {
  std::array<unsigned char, 16> bytes{};
  return inet_pton(AF_INET, text.c_str(), bytes.data()) == 1 ||
         inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1;
}

bool is_loopback(const std::string& text) {
  return text.starts_with("127.") || text == "::1" || text == "localhost";
}

// The node that has this address on an interface that others can use.
std::optional<size_t> owner_of(const pb::Platform& platform, const std::string& address) {
  for (int n = 0; n < platform.nodes_size(); ++n) {
    for (const pb::Interface& each : platform.nodes(n).interfaces()) {
      if (each.kind() == pb::LOOPBACK || each.kind() == pb::BRIDGE) continue;
      for (const std::string& own : each.addresses()) {
        if (own.substr(0, own.find('/')) == address) return static_cast<size_t>(n);
      }
    }
  }
  return std::nullopt;
}

bool in_range(const std::string& ports, uint32_t port) {
  if (ports.empty()) return true;
  const auto parts = split(ports, '-');
  const auto low = as_number(parts.front());
  const auto high = as_number(parts.back());
  return low && high && port >= *low && port <= *high;
}

// Rules are read in order; the first that speaks of the port decides, otherwise it is open.
bool blocks(const pb::Node& node, pb::Direction direction, uint32_t port) {
  for (const pb::FirewallRule& rule : node.firewall()) {
    if (rule.direction() != pb::BOTH_DIRECTIONS && rule.direction() != direction) continue;
    // Rules for one interface, one peer or UDP say nothing certain of this connection.
    if (!rule.interface().empty() || !rule.peer().empty()) continue;
    if (rule.protocol() == pb::FirewallRule::UDP) continue;
    if (in_range(rule.ports(), port)) return rule.action() != pb::ALLOW;
  }
  return false;
}

// Linux hands out ports from 32768 to 60999; NCCL and Gloo listen on those.
constexpr uint32_t kEphemeral[] = {32768, 40000, 50000, 60999};

bool blocks_ephemeral(const pb::Node& node) {
  return std::any_of(std::begin(kEphemeral), std::end(kEphemeral), [&](uint32_t port) {
    return blocks(node, pb::INBOUND, port) || blocks(node, pb::OUTBOUND, port);
  });
}

void name_node(std::string& list, const pb::Node& node) {
  list += (list.empty() ? "" : ", ") + node.name();
}

// Where one rank looks for the others.
FactMap meeting_of(const Facts& facts, size_t rank) {
  const pb::Scenario& document = facts.document();
  const pb::Platform& platform = document.platform();
  const FactMap& env = facts.environment(rank);
  const auto given = env.find("MASTER_ADDR");
  const std::string address = given != env.end() ? given->second : document.launch().master_addr();
  FactMap out;
  if (address.empty()) return out;
  out["meeting.address"] = address;
  const auto port_given = env.find("MASTER_PORT");
  const std::string port = port_given != env.end()
                               ? port_given->second
                               : std::to_string(document.launch().master_port());
  if (port != "0") out["meeting.port"] = port;
  out["meeting.kind"] = is_loopback(address) ? "loopback" : is_ip(address) ? "address" : "name";
  std::string resolved = is_ip(address) ? address : "";
  std::vector<pb::HostRecord> records(platform.dns().begin(), platform.dns().end());
  if (const size_t node = facts.node_of(rank); node < facts.nodes()) {
    // The node's own file is asked first, so that it is read last here.
    const auto& own = platform.nodes(static_cast<int>(node)).hosts();
    records.insert(records.end(), own.begin(), own.end());
  }
  for (const pb::HostRecord& record : records) {
    if (record.name() != address) continue;
    resolved = record.unanswered() ? "" : record.address();
    if (record.delay() > 0)
      out["meeting.delay"] = number_text(static_cast<double>(record.delay()) / 1e9);
  }
  if (!resolved.empty()) out["meeting.resolved"] = resolved.substr(0, resolved.find('/'));
  const bool known_names = !records.empty();
  if (known_names || is_ip(address)) out["meeting.resolves"] = resolved.empty() ? "false" : "true";
  const size_t first = facts.ranks() > 0 ? facts.node_of(0) : facts.nodes();
  if (first < facts.nodes()) {
    out["meeting.first_node"] = std::to_string(first);
    out["meeting.suggestion"] = platform.nodes(static_cast<int>(first)).name();
  }
  std::optional<size_t> owner;
  if (!resolved.empty() && !is_loopback(resolved))
    owner = owner_of(platform, resolved.substr(0, resolved.find('/')));
  const bool addresses =
      std::any_of(platform.nodes().begin(), platform.nodes().end(),
                  [](const pb::Node& node) { return node.interfaces_size() > 0; });
  if (owner) {
    out["meeting.node"] = std::to_string(*owner);
    const pb::Node& host = platform.nodes(static_cast<int>(*owner));
    const auto number = as_number(port);
    if (number) {
      const auto wanted = static_cast<uint32_t>(*number);
      const bool taken = std::find(host.ports_in_use().begin(), host.ports_in_use().end(),
                                   wanted) != host.ports_in_use().end();
      out["meeting.port_in_use"] = taken ? "true" : "false";
      std::string blocked;
      if (blocks(host, pb::INBOUND, wanted)) name_node(blocked, host);
      for (size_t n = 0; n < facts.nodes(); ++n) {
        const pb::Node& other = platform.nodes(static_cast<int>(n));
        if (n != *owner && blocks(other, pb::OUTBOUND, wanted)) name_node(blocked, other);
      }
      if (!blocked.empty()) out["meeting.blocked"] = blocked;
    }
  } else if (!resolved.empty() && addresses) {
    out["meeting.node"] = "none";
  }
  std::string others;
  for (const pb::Node& node : platform.nodes()) {
    if (blocks_ephemeral(node)) name_node(others, node);
  }
  if (!others.empty()) out["meeting.others_blocked"] = others;
  return out;
}

// One rank's TF_CONFIG, as far as it can be read.
struct Cluster {  // NOLINT(bugprone-exception-escape): moving a json does not throw
  bool valid = false;
  json tasks;  // "cluster"
  std::string type;
  int64_t index = -1;
};

Cluster cluster_of(const std::string& text) {
  Cluster out;
  const json parsed = json::parse(text, nullptr, false);
  if (!parsed.is_object() || !parsed.contains("cluster") || !parsed["cluster"].is_object())
    return out;
  out.valid = true;
  out.tasks = parsed["cluster"];
  if (parsed.contains("task") && parsed["task"].is_object()) {
    const json& task = parsed["task"];
    if (task.contains("type") && task["type"].is_string())
      out.type = task["type"].get<std::string>();
    if (task.contains("index") && task["index"].is_number_integer())
      out.index = task["index"].get<int64_t>();
  }
  return out;
}

void add_cluster(const Cluster& cluster, FactMap& out) {
  std::multiset<std::string> addresses;
  size_t tasks = 0;
  for (const auto& [type, list] : cluster.tasks.items()) {
    if (!list.is_array()) continue;
    tasks += list.size();
    for (const json& each : list) {
      if (each.is_string()) addresses.insert(each.get<std::string>());
    }
  }
  for (const std::string& address : addresses) {
    if (addresses.count(address) > 1) out["tf.repeated_address"] = address;
  }
  out["tf.tasks"] = std::to_string(tasks);
  const auto workers = cluster.tasks.find("worker");
  out["tf.workers"] =
      std::to_string(workers != cluster.tasks.end() && workers->is_array() ? workers->size() : 0);
  if (cluster.type.empty() || cluster.index < 0) return;
  out["tf.type"] = cluster.type;
  out["tf.index"] = std::to_string(cluster.index);
  const auto own = cluster.tasks.find(cluster.type);
  const bool listed = own != cluster.tasks.end() && own->is_array() &&
                      static_cast<size_t>(cluster.index) < own->size();
  out["tf.listed"] = listed ? "true" : "false";
}

}  // namespace

void list_meeting_points(const Facts& facts, const pb::CheckTables&, const Emit& emit) {
  const pb::Framework framework = facts.document().launch().framework();
  if (framework == pb::HOROVOD || framework == pb::TENSORFLOW || framework == pb::KERAS) return;
  for (size_t r = 0; r < facts.ranks(); ++r) {
    FactMap extra = meeting_of(facts, r);
    if (!extra.empty()) emit({.node = facts.node_of(r), .rank = r}, std::move(extra));
  }
}

void list_tf_configs(const Facts& facts, const pb::CheckTables&, const Emit& emit) {
  std::map<std::pair<std::string, int64_t>, std::set<size_t>> nodes;  // by task: nodes that have it
  std::vector<std::optional<Cluster>> clusters;
  std::map<std::string, size_t> counts;  // by cluster as text
  for (size_t r = 0; r < facts.ranks(); ++r) {
    const auto at = facts.environment(r).find("TF_CONFIG");
    clusters.emplace_back();
    if (at == facts.environment(r).end()) continue;
    clusters.back() = cluster_of(at->second);
    nodes[{clusters.back()->type, clusters.back()->index}].insert(facts.node_of(r));
    if (clusters.back()->valid) ++counts[clusters.back()->tasks.dump()];
  }
  std::string usual;
  for (const auto& [text, count] : counts) {
    if (usual.empty() || count > counts[usual]) usual = text;
  }
  for (size_t r = 0; r < facts.ranks(); ++r) {
    if (!clusters[r]) continue;
    const Cluster& cluster = *clusters[r];
    FactMap extra{{"tf.valid", cluster.valid ? "true" : "false"}};
    if (cluster.valid) {
      add_cluster(cluster, extra);
      extra["tf.cluster_differs"] = cluster.tasks.dump() == usual ? "false" : "true";
      extra["tf.same_task"] = nodes[{cluster.type, cluster.index}].size() > 1 ? "true" : "false";
    }
    emit({.node = facts.node_of(r), .rank = r}, std::move(extra));
  }
}

}  // namespace rehearse::faults
