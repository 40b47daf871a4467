// SPDX-License-Identifier: Apache-2.0
#include "sim/outcome/loads.hpp"

#include <algorithm>

namespace rehearse::sim {

double ShapeLoad::on(LinkId link) const {
  const auto at = std::lower_bound(bytes.begin(), bytes.end(), std::pair<LinkId, double>{link, -1});
  return at != bytes.end() && at->first == link ? at->second : 0;
}

namespace {

void fill_load(const CallTraffic& traffic, ShapeLoad& out) {
  out.latency = traffic.latency;
  auto& bytes = out.bytes;
  for (const FlowLoad& flow : traffic.flows) {
    for (const LinkWeight& use : flow.links) bytes.emplace_back(use.link, flow.bytes * use.weight);
  }
  std::sort(bytes.begin(), bytes.end());
  size_t n = 0;
  for (const auto& [link, load] : bytes) {
    if (n > 0 && bytes[n - 1].first == link) {
      bytes[n - 1].second += load;
    } else {
      bytes[n++] = {link, load};
    }
  }
  bytes.resize(n);
}

}  // namespace

std::vector<ShapeLoad> shape_loads(const Evidence& evidence) {
  std::vector<ShapeLoad> out(evidence.replayed.shapes.size());
  for (size_t s = 0; s < out.size(); ++s) {
    const Replayed::Shape& shape = evidence.replayed.shapes[s];
    // An error here would have kept the replay from beginning.
    const auto traffic = evidence.options.traffic(shape.call, shape.member);
    if (traffic) fill_load(*traffic, out[s]);
  }
  return out;
}

ShapeLoad transfer_load(const Evidence& evidence, size_t rank, const traces::Transfer& transfer) {
  ShapeLoad out;
  if (!evidence.options.transfer) return out;
  const auto traffic = evidence.options.transfer(rank, transfer);
  if (traffic && *traffic) fill_load(**traffic, out);
  return out;
}

}  // namespace rehearse::sim
