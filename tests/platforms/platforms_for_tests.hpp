// SPDX-License-Identifier: Apache-2.0
// Small platforms in protobuf text form, and routes as names.
#pragma once

#include <google/protobuf/text_format.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "platforms/model/catalogue.hpp"
#include "platforms/model/links.hpp"

namespace rehearse::platforms {

inline pb::Platform parse(const std::string& text) {
  pb::Platform platform;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(text, &platform));
  return platform;
}

inline pb::Platform expanded(const std::string& text) {
  pb::Platform platform = parse(text);
  const auto ok = expand(platform, "test");
  INFO((ok ? std::string() : ok.error().message()));
  REQUIRE(ok);
  return platform;
}

inline Error refused(const std::string& text) {
  pb::Platform platform = parse(text);
  const auto ok = expand(platform, "test");
  REQUIRE_FALSE(ok);
  CHECK_FALSE(ok.error().fix.empty());
  return ok.error();
}

inline Links links_of(const pb::Platform& platform) {
  auto links = Links::build(platform);
  INFO((links ? std::string() : links.error().message()));
  REQUIRE(links);
  return *links;
}

inline std::vector<std::string> names(const Links& links, const std::vector<LinkId>& route) {
  std::vector<std::string> out;
  for (const LinkId id : route) out.push_back(links[id].name);
  return out;
}

using Names = std::vector<std::string>;

// Two sockets; each with a switch over two GPUs (generation 4) and a NIC of 200 Gbit/s.
inline const std::string kTwoSockets = R"(
  nodes {
    numa { memory_bandwidth: 200e9 interconnect: 50e9 }
    numa { memory_bandwidth: 200e9 interconnect: 60e9 }
    switches { name: "plx0" pcie { generation: 4 width: 16 numa: 0 } }
    switches { name: "plx1" pcie { generation: 4 width: 16 numa: 1 } }
    gpus { count: 4 pcie { generation: 4 width: 16 parent: "plx{i/2}" } }
    nics { count: 2 kind: INFINIBAND bandwidth: 25e9 latency: 450
           pcie { generation: 4 width: 16 parent: "plx{i}" } }
    interfaces { name: "lo" addresses: "127.0.0.1/8" }
    interfaces { name: "eth0" bandwidth: 1.25e9 addresses: "10.0.0.{i}/16" }
    interfaces { name: "ib{i}" count: 2 addresses: "10.1{k}.0.{i}/16" }
    interfaces { name: "docker0" addresses: "172.17.0.1/16" }
    memory: 1024
  }
)";

}  // namespace rehearse::platforms
