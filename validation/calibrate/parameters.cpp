// SPDX-License-Identifier: Apache-2.0
#include "validation/calibrate/parameters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/efficiency.hpp"

namespace rehearse::validation {
namespace {

using platforms::LinkKind;

int64_t nanos_of(double us) { return static_cast<int64_t>(std::nearbyint(us * 1000)); }

// Shares of a link are known to some percent, latencies to a factor. A share stays a share; a hop is
// neither free nor a hundred times what NCCL's authors measured.
const std::array<Parameter, 27> kParameters = {{
    {"nvlink", "share of NVLink", 0.80, 0.40, 1.0, 0.15, false,
     [](pb::Efficiency& e, double v) { e.set_nvlink(v); }},
    {"pcie", "share of PCIe", 0.80, 0.30, 1.0, 0.25, false,
     [](pb::Efficiency& e, double v) { e.set_pcie(v); }},
    {"network", "share of a network port", 0.97, 0.40, 1.0, 0.15, false,
     [](pb::Efficiency& e, double v) { e.set_network(v); }},
    {"socket", "share of an IP interface", 0.90, 0.20, 1.0, 0.30, false,
     [](pb::Efficiency& e, double v) { e.set_socket(v); }},
    {"host", "share of PCIe by a GPU's threads through host memory", 0.40, 0.10, 1.0, 0.30, false,
     [](pb::Efficiency& e, double v) { e.set_host(v); }},
    {"nvls", "share of NVLink by in-switch reduction", 0.85, 0.40, 1.0, 0.15, false,
     [](pb::Efficiency& e, double v) { e.set_nvls(v); }},
    {"channel", "limit of one channel, of NCCL's figure", 1, 0.3, 4, 0.3, false,
     [](pb::Efficiency& e, double v) { e.set_channel(v); }},
    {"pair", "limit of one channel of send and recv, of the model's", 1, 0.2, 8, 0.4, false,
     [](pb::Efficiency& e, double v) { e.set_pair(v); }},
    {"pair_network", "the same in communicators of several nodes", 1, 0.2, 8, 0.4, false,
     [](pb::Efficiency& e, double v) { e.set_pair_network(v); }},
    {"rate.ll", "rate of LL", 1, 0.3, 2, 0.3, false,
     [](pb::Efficiency& e, double v) { e.mutable_rate()->set_ll(v); }},
    {"rate.ll128", "rate of LL128", 1, 0.3, 1.5, 0.2, false,
     [](pb::Efficiency& e, double v) { e.mutable_rate()->set_ll128(v); }},
    {"nvlink_hop.ll", "hop over NVLink in LL", 1, 0.2, 20, 0.7, false,
     [](pb::Efficiency& e, double v) { e.mutable_nvlink_hop()->set_ll(v); }},
    {"nvlink_hop.ll128", "hop over NVLink in LL128", 1, 0.2, 20, 0.7, false,
     [](pb::Efficiency& e, double v) { e.mutable_nvlink_hop()->set_ll128(v); }},
    {"nvlink_hop.simple", "hop over NVLink in SIMPLE", 1, 0.2, 20, 0.7, false,
     [](pb::Efficiency& e, double v) { e.mutable_nvlink_hop()->set_simple(v); }},
    {"pcie_hop.ll", "hop over PCIe in LL", 1, 0.2, 20, 0.7, false,
     [](pb::Efficiency& e, double v) { e.mutable_pcie_hop()->set_ll(v); }},
    {"pcie_hop.simple", "hop over PCIe in SIMPLE", 1, 0.2, 20, 0.7, false,
     [](pb::Efficiency& e, double v) { e.mutable_pcie_hop()->set_simple(v); }},
    {"host_hop.ll", "hop through host memory in LL", 1, 0.2, 20, 0.7, false,
     [](pb::Efficiency& e, double v) { e.mutable_host_hop()->set_ll(v); }},
    {"host_hop.simple", "hop through host memory in SIMPLE", 1, 0.2, 20, 0.7, false,
     [](pb::Efficiency& e, double v) { e.mutable_host_hop()->set_simple(v); }},
    {"network_hop.ll", "hop over the network in LL", 1, 0.2, 20, 0.7, false,
     [](pb::Efficiency& e, double v) { e.mutable_network_hop()->set_ll(v); }},
    {"network_hop.simple", "hop over the network in SIMPLE", 1, 0.2, 20, 0.7, false,
     [](pb::Efficiency& e, double v) { e.mutable_network_hop()->set_simple(v); }},
    {"launch", "start and end of a kernel", 6, 1, 60, 0.7, true,
     [](pb::Efficiency& e, double v) { e.set_launch(nanos_of(v)); }},
    {"issue", "host time of a launch", 5, 1, 500, 1.2, true,
     [](pb::Efficiency& e, double v) { e.set_issue(nanos_of(v)); }},
    {"issue_pair", "host time of a further send or recv of a launch", 1, 0.1, 50, 1.0, true,
     [](pb::Efficiency& e, double v) { e.set_issue_pair(nanos_of(v)); }},
    {"channel_start", "a further channel of a call", 0.1, 0.01, 5, 1.2, true,
     [](pb::Efficiency& e, double v) { e.set_channel_start(nanos_of(v)); }},
    {"peer", "a further peer on the GPU", 3, 0.1, 30, 0.7, true,
     [](pb::Efficiency& e, double v) { e.set_peer(nanos_of(v)); }},
    {"socket_hop.ll", "hop over sockets in LL", 1, 0.2, 20, 0.7, false,
     [](pb::Efficiency& e, double v) { e.mutable_socket_hop()->set_ll(v); }},
    {"socket_hop.simple", "hop over sockets in SIMPLE", 1, 0.2, 20, 0.7, false,
     [](pb::Efficiency& e, double v) { e.mutable_socket_hop()->set_simple(v); }},
}};

}  // namespace

std::span<const Parameter> parameters() { return kParameters; }

double value_at(const Point& point, size_t parameter) {
  const Parameter& p = kParameters[parameter];
  return std::clamp(p.prior * std::exp(point[parameter]), p.low, p.high);
}

pb::Efficiency efficiency_at(const Point& point) {
  pb::Efficiency out;
  for (size_t i = 0; i < kParameters.size(); ++i) {
    if (point[i] != 0) kParameters[i].state(out, value_at(point, i));
  }
  return out;
}

ModelPoint model_at(const Point& point) {
  const pb::Efficiency efficiency = efficiency_at(point);
  ModelPoint out;
  out.time = sim::time_parameters(efficiency);
  for (size_t kind = 0; kind < sim::kLinkKinds; ++kind) {
    out.shares[kind] = sim::link_share(efficiency, static_cast<LinkKind>(kind));
  }
  return out;
}

std::string written(size_t parameter, double value) {
  if (!kParameters[parameter].is_time) return fmt::format("{:.4g}", value);
  return fmt::format("{:.4g}us", value);
}

}  // namespace rehearse::validation
