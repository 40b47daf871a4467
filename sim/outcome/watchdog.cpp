// SPDX-License-Identifier: Apache-2.0
#include "sim/outcome/watchdog.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>
#include <string>

namespace rehearse::sim {
namespace {

constexpr Nanos kSecond = 1'000'000'000;
constexpr Nanos kTorchTimeout = 600 * kSecond;
constexpr Nanos kHorovodWarning = 60 * kSecond;

std::string upper(std::string text) {
  std::erase(text, '_');
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

}  // namespace

Watchdog watchdog_of(const pb::Launch& launch) {
  Watchdog watchdog;
  watchdog.framework = launch.framework();
  if (launch.collective_timeout() > 0) {
    watchdog.timeout = launch.collective_timeout();
  } else if (launch.framework() == pb::PYTORCH) {
    watchdog.timeout = kTorchTimeout;
  } else if (launch.framework() == pb::HOROVOD) {
    watchdog.timeout = kHorovodWarning;
    const auto& env = launch.env();
    if (const auto at = env.find("HOROVOD_STALL_CHECK_TIME_SECONDS"); at != env.end()) {
      int64_t seconds = 0;
      const char* last = at->second.data() + at->second.size();
      const auto [end, error] = std::from_chars(at->second.data(), last, seconds);
      if (error == std::errc() && end == last && seconds >= 0 && seconds < 1'000'000) {
        watchdog.timeout = seconds * kSecond;
      }
    }
  }
  return watchdog;
}

void fill_watchdog_text(const Watchdog& watchdog, pb::Outcome& out) {
  if (watchdog.timeout == 0) return;
  if (watchdog.framework == pb::HOROVOD) {
    std::set<uint32_t> missing;
    for (const pb::Culprit& culprit : out.culprits()) {
      if (culprit.has_rank()) missing.insert(culprit.rank());
    }
    pb::ErrorText& error = *out.add_error_text();
    error.set_rank(0);
    error.set_text(fmt::format(
        "One or more tensors were submitted to be reduced, gathered or broadcasted by subset of "
        "ranks and are waiting for remainder of ranks for more than {} seconds. [missing ranks: "
        "{}]",
        watchdog.timeout / kSecond, fmt::join(missing, ", ")));
    return;
  }
  if (watchdog.framework != pb::PYTORCH) return;
  std::set<uint32_t> told;
  for (const pb::Wait& wait : out.waits()) {
    if (!told.insert(wait.rank()).second) continue;
    pb::ErrorText& error = *out.add_error_text();
    error.set_rank(wait.rank());
    error.set_text(fmt::format(
        "Watchdog caught collective operation timeout: WorkNCCL(SeqNum={}, OpType={}, NumelIn={}, "
        "NumelOut={}, Timeout(ms)={}) ran for {} milliseconds before timing out.",
        wait.sequence() + 1, upper(wait.operation()), wait.elements_in(), wait.elements_out(),
        watchdog.timeout / 1'000'000, watchdog.timeout / 1'000'000));
  }
}

}  // namespace rehearse::sim
