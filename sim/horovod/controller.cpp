// SPDX-License-Identifier: Apache-2.0
#include "sim/horovod/controller.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

#include "sim/bringup/process.hpp"
#include "sim/scenario/environment.hpp"

namespace rehearse::sim {
namespace {

constexpr double kTcpControllerUs = 30;
// Start of one more copy on a stream that is busy with copies (prior).
constexpr double kCopyStartUs = 2.5;
constexpr int64_t kTensorsOfBatch = 160;  // BATCHED_D2D_CAPACITY

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

bool is_on(const std::map<std::string, std::string>& env, const char* name, bool otherwise,
           std::vector<std::string>& notes) {
  return figure(env, name, otherwise ? 1 : 0, 1e9, notes) > 0;
}

uint32_t count(const std::map<std::string, std::string>& env, const char* name, uint32_t otherwise,
               double most, std::vector<std::string>& notes) {
  return static_cast<uint32_t>(figure(env, name, otherwise, most, notes));
}

}  // namespace

HorovodSettings horovod_settings(const std::map<std::string, std::string>& env,
                                 std::string_view release) {
  HorovodSettings out;
  // Both defaults changed in 0.21.0 (https://github.com/horovod/horovod/pull/2468).
  const bool old = !release.empty() && bringup::compare_versions(release, "0.21") < 0;
  if (old) out.fusion = Bytes{64} << 20;
  out.cycle = static_cast<Nanos>(
      std::nearbyint(figure(env, "HOROVOD_CYCLE_TIME", old ? 5 : 1, 1e6, out.notes) * 1e6));
  out.fusion = static_cast<Bytes>(
      figure(env, "HOROVOD_FUSION_THRESHOLD", static_cast<double>(out.fusion), 1e13, out.notes));
  out.cache = static_cast<int64_t>(figure(env, "HOROVOD_CACHE_CAPACITY", 1024, 1e9, out.notes));
  const auto controller = env.find("HOROVOD_CONTROLLER");
  if (controller != env.end() && controller->second == "gloo") {
    out.message_us = kTcpControllerUs;
    out.mpi = false;
  }
  const auto on = [&](const char* name, bool otherwise) {
    return is_on(env, name, otherwise, out.notes);
  };
  out.hierarchical_allreduce = on("HOROVOD_HIERARCHICAL_ALLREDUCE", false);
  out.hierarchical_allgather = on("HOROVOD_HIERARCHICAL_ALLGATHER", false);
  out.torus_allreduce = on("HOROVOD_TORUS_ALLREDUCE", false);
  out.batched_copies = on("HOROVOD_BATCH_D2D_MEMCOPIES", true);
  out.autotune = on("HOROVOD_AUTOTUNE", false);
  const auto number = [&](const char* name, uint32_t otherwise, double most) {
    return count(env, name, otherwise, most, out.notes);
  };
  out.streams = std::max(1U, number("HOROVOD_NUM_NCCL_STREAMS", 1, 64));
  out.warmup_samples = number("HOROVOD_AUTOTUNE_WARMUP_SAMPLES", out.warmup_samples, 1e6);
  out.steps_per_sample =
      std::max(1U, number("HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE", out.steps_per_sample, 1e6));
  out.tuning_samples = number("HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES", out.tuning_samples, 1e6);
  const auto told = [&](const char* name) {
    const auto at = env.find(name);
    return at != env.end() && !at->second.empty();
  };
  out.cycle_told = told("HOROVOD_CYCLE_TIME");
  out.fusion_told = told("HOROVOD_FUSION_THRESHOLD");
  return out;
}

HorovodSettings horovod_settings(const pb::Launch& launch, const pb::RankLaunch& rank) {
  return horovod_settings(environment_of(launch, rank), launch.framework_version());
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
  HorovodSettings usual;
  usual.cycle = settings.cycle;
  double more = 0;
  for (const LatencyPart& part : negotiation(settings, ranks)) {
    more += static_cast<double>(part.count) * part.each_us;
  }
  for (const LatencyPart& part : negotiation(usual, ranks)) {
    more -= static_cast<double>(part.count) * part.each_us;
  }
  if (more <= 0) return {};
  return {{"Horovod's negotiation beyond its defaults", 1, more}};
}

std::vector<LatencyPart> longer_copies(const HorovodSettings& settings, Bytes bytes) {
  const auto tensors = static_cast<int64_t>((bytes + kMeanTensor - 1) / kMeanTensor);
  if (settings.batched_copies || tensors < 2) return {};  // a single tensor is not copied
  const int64_t batches = (tensors + kTensorsOfBatch - 1) / kTensorsOfBatch;
  return {{"copies of single tensors into the fusion buffer and out", 2 * (tensors - batches),
           kCopyStartUs}};
}

Nanos longer_start(const HorovodSettings& settings, uint32_t ranks, Bytes bytes) {
  double us = 0;
  for (const LatencyPart& part : longer_negotiation(settings, ranks)) {
    us += static_cast<double>(part.count) * part.each_us;
  }
  for (const LatencyPart& part : longer_copies(settings, bytes)) {
    us += static_cast<double>(part.count) * part.each_us;
  }
  return static_cast<Nanos>(std::nearbyint(us * 1000));
}

}  // namespace rehearse::sim
