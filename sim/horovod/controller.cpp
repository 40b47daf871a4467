// SPDX-License-Identifier: Apache-2.0
#include "sim/horovod/controller.hpp"

#include <bit>
#include <charconv>
#include <cmath>

namespace rehearse::sim {
namespace {

constexpr double kTcpControllerUs = 30;

// A number of a variable within bounds; `otherwise` and a note when it is none.
double figure(const std::map<std::string, std::string>& env, const char* name, double otherwise,
              double most, std::vector<std::string>& notes) {
  const auto at = env.find(name);
  if (at == env.end() || at->second.empty()) return otherwise;
  double value = 0;
  const char* last = at->second.data() + at->second.size();
  const auto [end, error] = std::from_chars(at->second.data(), last, value);
  if (error != std::errc() || end != last || !(value >= 0) || value > most) {
    notes.push_back(std::string(name) + "=" + at->second + " is not a number Horovod can use");
    return otherwise;
  }
  return value;
}

}  // namespace

HorovodSettings horovod_settings(const std::map<std::string, std::string>& env) {
  HorovodSettings out;
  out.cycle = static_cast<Nanos>(
      std::nearbyint(figure(env, "HOROVOD_CYCLE_TIME", 1, 1e6, out.notes) * 1e6));
  out.fusion = static_cast<Bytes>(
      figure(env, "HOROVOD_FUSION_THRESHOLD", static_cast<double>(out.fusion), 1e13, out.notes));
  out.cache = static_cast<int64_t>(figure(env, "HOROVOD_CACHE_CAPACITY", 1024, 1e9, out.notes));
  const auto controller = env.find("HOROVOD_CONTROLLER");
  if (controller != env.end() && controller->second == "gloo") out.message_us = kTcpControllerUs;
  return out;
}

std::vector<LatencyPart> negotiation(const HorovodSettings& settings, uint32_t ranks) {
  if (ranks < 2) return {};
  const auto log2 = static_cast<int64_t>(std::bit_width(ranks - 1));
  std::vector<LatencyPart> parts = {
      {"wait for Horovod's cycle", 1, static_cast<double>(settings.cycle) / 2000}};
  if (settings.cache > 0) {
    parts.push_back({"cached negotiation", 4 * log2, settings.message_us});
  } else {
    // Rank 0 takes the requests one after another and spreads the responses.
    parts.push_back({"negotiation through rank 0", static_cast<int64_t>(ranks) - 1 + log2,
                     settings.message_us});
  }
  return parts;
}

std::vector<LatencyPart> longer_negotiation(const HorovodSettings& settings, uint32_t ranks) {
  double more = 0;
  for (const LatencyPart& part : negotiation(settings, ranks)) {
    more += static_cast<double>(part.count) * part.each_us;
  }
  for (const LatencyPart& part : negotiation(HorovodSettings{}, ranks)) {
    more -= static_cast<double>(part.count) * part.each_us;
  }
  if (more <= 0) return {};
  return {{"Horovod's cycle and negotiation beyond its defaults", 1, more}};
}

}  // namespace rehearse::sim
