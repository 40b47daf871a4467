// SPDX-License-Identifier: Apache-2.0
// Who reaches whom over IP: computed from addresses and prefixes, routes and routers, interfaces that are
// down, containers behind address translation, firewall rules and the name service of an expanded platform.
// A platform that describes no routers at all is taken to have one that joins its networks; a route that names a router
// which nothing describes is taken to be right. Ways tell where that was assumed.
// It says where a connection's first packet arrives, not who listens there. Immutable; holds on to the
// platform.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "platforms/proto/platform.pb.h"
#include "sim/bringup/ip.hpp"

namespace rehearse::sim::bringup {

// What the one who connects sees.
enum class Answer : uint8_t {
  kArrives,      // at a node; a listener there accepts, else it is refused
  kRefused,      // ECONNREFUSED: a firewall answers for the node
  kNoRoute,      // EHOSTUNREACH: nobody has the address on that wire
  kUnreachable,  // ENETUNREACH: no way leads to that network
  kDropped,      // nothing comes back until the kernel gives up (ETIMEDOUT)
};

struct Arrival {
  Answer answer = Answer::kUnreachable;
  uint32_t node = UINT32_MAX;       // where it arrives, or whose firewall stopped it
  uint32_t interface = UINT32_MAX;  // that it leaves by; UINT32_MAX: it stays inside the node
};

struct Lookup {
  enum class Result : uint8_t { kFound, kUnknown, kUnanswered };
  Result result = Result::kFound;
  std::string address;
  Nanos delay = 0;
};

// How packets get from one node to another.
enum class WayKind : uint8_t {
  kDirect,   // over a network that both are on
  kRouted,   // through a router that the platform describes, or that a route names
  kAssumed,  // through a router of which nothing tells
  kNone,
};

// The link-local IPv6 address that the kernel gives the interfaces of a node (one stands for all).
[[nodiscard]] Ip link_local_of(uint32_t node);

class Network {
 public:
  explicit Network(const pb::Platform& platform);

  // Every node has an interface with an address that others could reach. Without that nothing is known of who
  // reaches whom, and everybody is taken to.
  [[nodiscard]] bool described() const { return described_; }

  // The address of a name as a process on `node` gets it: /etc/hosts, its own name, then the name service. An
  // address is its own answer.
  [[nodiscard]] Lookup lookup(uint32_t node, std::string_view name) const;
  // The first packet of a TCP connection from a process on `from`.
  [[nodiscard]] Arrival knock(uint32_t from, std::string_view address, uint32_t port) const;
  // The best way between two nodes, over all their interfaces that lead out; the worse of both directions. Firewalls
  // aside.
  [[nodiscard]] WayKind way_between(uint32_t a, uint32_t b) const;
  // Interfaces that a process on `node` sees and that are up, as indices; in a container its own only.
  [[nodiscard]] std::vector<uint32_t> visible(uint32_t node) const;
  [[nodiscard]] bool is_up(uint32_t node, uint32_t interface) const;
  // The address by which the node knows itself: what its own name resolves to, else its first.
  [[nodiscard]] std::string own_address(uint32_t node) const;

 private:
  struct Owner {
    uint32_t node = 0, interface = 0;
  };
  struct Hop {
    uint32_t interface = UINT32_MAX;
    std::string via;  // router; empty: on the wire
  };
  [[nodiscard]] const pb::Node& node(uint32_t index) const {
    return platform_.nodes(static_cast<int>(index));
  }
  [[nodiscard]] bool is_own(uint32_t node, const Ip& ip) const;
  [[nodiscard]] Hop way(uint32_t from, const Ip& to) const;
  [[nodiscard]] WayKind one_way(uint32_t from, uint32_t to) const;
  [[nodiscard]] Arrival across(uint32_t from, const Hop& hop, const Ip& to) const;

  const pb::Platform& platform_;
  bool described_ = true;
  std::map<Ip, std::vector<Owner>> owners_;  // of addresses that others can reach
};

}  // namespace rehearse::sim::bringup
