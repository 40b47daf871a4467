// SPDX-License-Identifier: Apache-2.0
#include "sim/outcome/loads.hpp"

#include <algorithm>

namespace rehearse::sim {

double ShapeLoad::on(LinkId link) const {
  const auto at = std::lower_bound(bytes.begin(), bytes.end(), std::pair<LinkId, double>{link, -1});
  return at != bytes.end() && at->first == link ? at->second : 0;
}

std::vector<ShapeLoad> shape_loads(const Evidence& evidence) {
  std::vector<ShapeLoad> out(evidence.replayed.shapes.size());
  for (size_t s = 0; s < out.size(); ++s) {
    const Replayed::Shape& shape = evidence.replayed.shapes[s];
    const auto traffic = evidence.traffic(shape.call, shape.member);
    if (!traffic) continue;  // the replay would not have begun
    out[s].latency = traffic->latency;
    std::vector<std::pair<LinkId, double>>& bytes = out[s].bytes;
    for (const FlowLoad& flow : traffic->flows) {
      for (const LinkWeight& use : flow.links)
        bytes.emplace_back(use.link, flow.bytes * use.weight);
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
  return out;
}

}  // namespace rehearse::sim
