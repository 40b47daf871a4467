// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/network_settings.hpp"

#include <algorithm>

#include "sim/nccl/environment.hpp"

namespace rehearse::sim {
namespace {

// Priors. Without priority flow control RoCE sends everything again from a lost packet on: 1.5 to 3
// times slower under congestion (Mittal et al., Revisiting Network Support for RDMA, 2018).
constexpr double kLossyShare = 0.5;
// Strictly ordered writes through the address translation of a virtual machine wait for each other;
// about half of the rate is what cloud documentation warns of. Unvalidated.
constexpr double kOrderedShare = 0.5;

class Numbers {
 public:
  Numbers(const std::map<std::string, std::string>& environment, std::vector<std::string>& notes)
      : environment_(environment), notes_(notes) {}

  // -2 asks for the default in every NCCL variable.
  int64_t read(const char* name, int64_t least, int64_t most, int64_t otherwise) {
    const std::string text = variable_in(environment_, name);
    if (text.empty()) return otherwise;
    if (std::string note = number_note(name, text); !note.empty()) {
      notes_.push_back(std::move(note));
    }
    const auto read = read_number(text);
    if (!read || read->value == -2) return otherwise;
    if (read->value >= least && read->value <= most) return read->value;
    notes_.push_back(std::string(name) + "=" + text + " is not a number from " +
                     std::to_string(least) + " to " + std::to_string(most) +
                     "; the default is kept");
    return otherwise;
  }

 private:
  const std::map<std::string, std::string>& environment_;
  std::vector<std::string>& notes_;
};

}  // namespace

NetworkSettings network_settings(const std::map<std::string, std::string>& environment,
                                 const pb::Node& node, std::vector<std::string>& notes) {
  Numbers numbers(environment, notes);
  NetworkSettings out;
  out.queue_pairs = std::min(
      kMostQueuePairs,
      static_cast<uint32_t>(numbers.read("NCCL_IB_QPS_PER_CONNECTION", 1, 128, out.queue_pairs)));
  out.split_data = numbers.read("NCCL_IB_SPLIT_DATA_ON_QPS", 0, 1, 0) == 1;
  out.adaptive = static_cast<int>(numbers.read("NCCL_IB_ADAPTIVE_ROUTING", 0, 1, -1));
  out.adaptive_threshold = numbers.read("NCCL_IB_AR_THRESHOLD", 0, 1 << 30, 8192);
  out.service_level = static_cast<uint32_t>(numbers.read("NCCL_IB_SL", 0, 15, 0));
  out.traffic_class = static_cast<uint32_t>(numbers.read("NCCL_IB_TC", 0, 255, 0));
  out.relaxed_ordering = numbers.read("NCCL_IB_PCI_RELAXED_ORDERING", 0, 2, 2) != 0;
  const bool aws = std::any_of(node.nics().begin(), node.nics().end(),
                               [](const pb::Nic& nic) { return nic.kind() == pb::EFA; });
  const int64_t threads = numbers.read("NCCL_SOCKET_NTHREADS", 0, 16, aws ? 2 : 0);
  const int64_t each = numbers.read("NCCL_NSOCKS_PERTHREAD", 1, 64, aws ? 8 : 1);
  out.socket_threads = static_cast<int>(threads);
  out.sockets = static_cast<int>(std::clamp<int64_t>(threads * each, 1, 64));
  return out;
}

double class_share(const pb::Fabric& fabric, pb::NicKind kind, const NetworkSettings& settings) {
  const uint32_t own = kind == pb::ROCE ? settings.traffic_class : settings.service_level;
  for (const pb::TrafficClass& each : fabric.classes()) {
    if (each.id() != own) continue;
    const double part = each.share() > 0 ? each.share() : 1;
    return each.lossy() ? part * kLossyShare : part;
  }
  return 1;
}

double ordering_share(const pb::Node& node, pb::NicKind kind, const NetworkSettings& settings) {
  const bool verbs = kind == pb::INFINIBAND || kind == pb::ROCE;
  return verbs && node.virtual_machine() && !settings.relaxed_ordering ? kOrderedShare : 1;
}

bool asks_for_spreading(const NetworkSettings& settings, pb::NicKind kind, int64_t bytes) {
  const bool on = settings.adaptive < 0 ? kind == pb::INFINIBAND : settings.adaptive == 1;
  return on && bytes > settings.adaptive_threshold;
}

}  // namespace rehearse::sim
