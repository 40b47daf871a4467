// SPDX-License-Identifier: Apache-2.0
#include "sim/timers/settings.hpp"

#include <fmt/format.h>

#include <charconv>

#include "base/text.hpp"
#include "sim/nccl/environment.hpp"
#include "sim/nccl/version.hpp"
#include "sim/timers/retries.hpp"

namespace rehearse::sim {
namespace {

constexpr Nanos kMillisecond = 1'000'000;
constexpr Nanos kSecond = 1'000'000'000;
constexpr int64_t kMostSeconds = 1'000'000'000;

// Reads variables as the libraries do.
class Variables {
 public:
  Variables(const std::map<std::string, std::string>& env, Findings& findings)
      : env_(env), findings_(findings) {}

  [[nodiscard]] int64_t number(const char* name, int64_t otherwise, int64_t least, int64_t most) {
    const auto at = env_.find(name);
    if (at == env_.end()) return otherwise;
    int64_t value = 0;
    const char* last = at->second.data() + at->second.size();
    const auto [end, error] = std::from_chars(at->second.data(), last, value);
    if (error == std::errc() && end == last && value >= least && value <= most) return value;
    findings_.add("timer-not-understood", Severity::kWarning,
                  fmt::format("{}={}", name, at->second),
                  fmt::format("write a whole number from {} to {}; the default, {}, is used", least,
                              most, otherwise));
    return otherwise;
  }

  // A number of NCCL (sim/nccl/environment.hpp); its default where it is out of range.
  [[nodiscard]] int64_t of_nccl(const char* name, int64_t otherwise, int64_t least, int64_t most) {
    const std::string text = variable_in(env_, name);
    const auto read = read_number(text);
    const bool fits = read && read->value >= least && read->value <= most;
    if (!text.empty() && !(fits && read->whole)) {
      findings_.add("timer-not-understood", Severity::kWarning, fmt::format("{}={}", name, text),
                    fmt::format("write a whole number from {} to {}; {} is used", least, most,
                                fits ? read->value : otherwise));
    }
    return fits ? read->value : otherwise;
  }

  // A switch of PyTorch, as its getCvarBool reads it. At another word PyTorch ends.
  [[nodiscard]] bool flag(const char* name, bool otherwise) const {
    const std::string value = lower_case(variable_in(env_, name));
    for (const char* yes : {"1", "t", "true", "y", "yes"}) {
      if (value == yes) return true;
    }
    for (const char* no : {"0", "f", "false", "n", "no"}) {
      if (value == no) return false;
    }
    return otherwise;
  }

  // The first of two spellings that is set; PyTorch still reads names without TORCH_.
  [[nodiscard]] const char* spelling(const char* name, const char* older) const {
    return env_.count(name) == 0 && env_.count(older) > 0 ? older : name;
  }

 private:
  const std::map<std::string, std::string>& env_;
  Findings& findings_;
};

int default_ib_timeout(const std::string& version) {
  const auto parsed = parse_nccl_version(version);
  if (!parsed || *parsed >= NcclVersion{2, 23, 0}) return 20;
  return *parsed >= NcclVersion{2, 14, 0} ? 18 : 14;
}

TorchTimers torch_timers(const pb::Launch& launch, Variables& env) {
  TorchTimers out;
  const bool nccl = launch.backend() == pb::NCCL;
  out.timeout =
      launch.collective_timeout() > 0 ? launch.collective_timeout() : (nccl ? 600 : 1800) * kSecond;
  out.handling = static_cast<ErrorHandling>(env.number(
      env.spelling("TORCH_NCCL_ASYNC_ERROR_HANDLING", "NCCL_ASYNC_ERROR_HANDLING"), 3, 0, 3));
  out.blocking_wait =
      env.flag(env.spelling("TORCH_NCCL_BLOCKING_WAIT", "NCCL_BLOCKING_WAIT"), false);
  // A wait that blocks leaves nothing for the watchdog to do; else the report needs its errors
  // (constructor of ProcessGroupNCCL).
  out.desync_debug = !out.blocking_wait &&
                     env.flag(env.spelling("TORCH_NCCL_DESYNC_DEBUG", "NCCL_DESYNC_DEBUG"), false);
  if (out.desync_debug && out.handling == ErrorHandling::kNone) {
    out.handling = ErrorHandling::kSkipCleanUp;
  }
  out.monitoring = env.flag("TORCH_NCCL_ENABLE_MONITORING", true);
  out.heartbeat = env.number("TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC", 480, 1, kMostSeconds) * kSecond;
  out.coordination =
      env.number("TORCH_NCCL_COORD_CHECK_MILSEC", 1000, 1, kMostSeconds) * kMillisecond;
  // As torchtitan and others set the size of the buffer.
  out.records = env.number(env.spelling("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"),
                           out.records, 0, INT32_MAX);
  if (env.flag("TORCH_NCCL_DUMP_ON_TIMEOUT", true)) {
    out.dump_wait =
        env.number("TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC", 15000, 0, kMostSeconds) * kMillisecond;
  } else {
    out.records = 0;
  }
  return out;
}

HorovodTimers horovod_timers(const pb::Launch& launch, Variables& env) {
  HorovodTimers out;
  out.checks = env.number("HOROVOD_STALL_CHECK_DISABLE", 0, INT32_MIN, INT32_MAX) <= 0;
  out.warning = env.number("HOROVOD_STALL_CHECK_TIME_SECONDS", 60, 0, kMostSeconds) * kSecond;
  if (launch.collective_timeout() > 0) out.warning = launch.collective_timeout();
  out.shutdown = env.number("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", 0, 0, kMostSeconds) * kSecond;
  // Horovod refuses a shutdown time that is not above the warning time and then never shuts down.
  if (out.shutdown <= out.warning) out.shutdown = 0;
  return out;
}

}  // namespace

RankTimers timers_of(const pb::Launch& launch, const std::map<std::string, std::string>& env,
                     Findings& findings) {
  Variables variables(env, findings);
  RankTimers out;
  out.framework = launch.framework();
  if (launch.framework() == pb::PYTORCH) out.torch = torch_timers(launch, variables);
  if (launch.framework() == pb::HOROVOD) out.horovod = horovod_timers(launch, variables);
  const int64_t exponent =
      variables.of_nccl("NCCL_IB_TIMEOUT", default_ib_timeout(launch.nccl_version()), 0, 31);
  // The InfiniBand specification reads 0 as no timeout.
  out.network.ib_timeout = exponent == 0 ? 0 : Nanos{4096} << exponent;
  out.network.ib_retries = static_cast<int>(variables.of_nccl("NCCL_IB_RETRY_CNT", 7, 0, 7));
  const int64_t tries = variables.of_nccl("NCCL_SOCKET_RETRY_CNT", 34, 0, 10'000);
  const int64_t sleep = variables.of_nccl("NCCL_SOCKET_RETRY_SLEEP_MSEC", 100, 0, 1'000'000);
  out.network.connect = tries * (tries + 1) / 2 * sleep * kMillisecond;
  out.network.connect_tries = static_cast<int>(tries);
  out.network.tcp = patience_of(kTcpRetry);
  return out;
}

Nanos launcher_notices(const pb::Launch& launch) {
  switch (launch.launcher()) {
    case pb::TORCHRUN:
      return 100 * kMillisecond;  // --monitor-interval
    case pb::MPIRUN:
    case pb::HOROVODRUN:
    case pb::SRUN:
      return 0;
    case pb::PLAIN:
      return -1;
    default:
      // Unset: what the framework is usually started with.
      return launch.framework() == pb::PYTORCH ? 100 * kMillisecond : 0;
  }
}

}  // namespace rehearse::sim
