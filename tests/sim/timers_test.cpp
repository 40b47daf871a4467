// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "sim/timers/settings.hpp"

namespace rehearse::timers_test {
using namespace rehearse;
using namespace rehearse::sim;

namespace {

constexpr Nanos kSecond = 1'000'000'000;

RankTimers timers(pb::Framework framework, const std::map<std::string, std::string>& env,
                  const std::string& nccl = "2.28.9") {
  pb::Launch launch;
  launch.set_framework(framework);
  launch.set_nccl_version(nccl);
  Findings findings;
  return timers_of(launch, env, findings);
}

}  // namespace

TEST_CASE("the InfiniBand timer is 4.096 us times 2 to the timeout, times the retries",
          "[sim][timers]") {
  CHECK(timers(pb::PYTORCH, {}, "2.12.10").network.ib_timeout == Nanos{4096} << 14);
  CHECK(timers(pb::PYTORCH, {}, "2.18.5").network.ib_timeout == Nanos{4096} << 18);
  CHECK(timers(pb::PYTORCH, {}).network.ib_timeout == Nanos{4096} << 20);
  CHECK(timers(pb::PYTORCH, {}).network.ib_total() == 7 * (Nanos{4096} << 20));
  const NetworkTimers set =
      timers(pb::PYTORCH, {{"NCCL_IB_TIMEOUT", "22"}, {"NCCL_IB_RETRY_CNT", "3"}}).network;
  CHECK(set.ib_total() == 3 * (Nanos{4096} << 22));
  CHECK(timers(pb::PYTORCH, {{"NCCL_IB_TIMEOUT", "0"}}).network.ib_total() == 0);
}

TEST_CASE("sockets try to connect for about a minute", "[sim][timers]") {
  CHECK(timers(pb::PYTORCH, {}).network.connect == 59'500'000'000);
}

TEST_CASE("an established connection is given up after 924.6 s", "[sim][timers]") {
  CHECK(timers(pb::PYTORCH, {}).network.tcp == 924'600'000'000);
}

TEST_CASE("PyTorch's watchdog follows its variables, old names too", "[sim][timers]") {
  const TorchTimers plain = timers(pb::PYTORCH, {}).torch;
  CHECK(plain.timeout == 600 * kSecond);
  CHECK(plain.handling == ErrorHandling::kSkipCleanUp);
  CHECK(plain.heartbeat == 480 * kSecond);
  CHECK(plain.acts());
  const TorchTimers off = timers(pb::PYTORCH, {{"TORCH_NCCL_ASYNC_ERROR_HANDLING", "0"}}).torch;
  CHECK_FALSE(off.acts());
  CHECK_FALSE(timers(pb::PYTORCH, {{"NCCL_ASYNC_ERROR_HANDLING", "0"}}).torch.acts());
  CHECK(timers(pb::PYTORCH,
               {{"TORCH_NCCL_ASYNC_ERROR_HANDLING", "0"}, {"TORCH_NCCL_BLOCKING_WAIT", "1"}})
            .torch.acts());
}

TEST_CASE("PyTorch's switches are read in all their words", "[sim][timers]") {
  for (const char* yes : {"1", "yes", "Y", "True", "t"}) {
    INFO(yes);
    CHECK(timers(pb::PYTORCH, {{"TORCH_NCCL_DESYNC_DEBUG", yes}}).torch.desync_debug);
    CHECK(timers(pb::PYTORCH, {{"TORCH_NCCL_DUMP_ON_TIMEOUT", yes}}).torch.records == 2000);
  }
  for (const char* no : {"0", "no", "N", "False", "f"}) {
    INFO(no);
    CHECK_FALSE(timers(pb::PYTORCH, {{"TORCH_NCCL_ENABLE_MONITORING", no}}).torch.monitoring);
    CHECK(timers(pb::PYTORCH, {{"TORCH_NCCL_DUMP_ON_TIMEOUT", no}}).torch.records == 0);
  }
}

TEST_CASE("Horovod shuts down only when its time is above that of the warning", "[sim][timers]") {
  CHECK(timers(pb::HOROVOD, {}).horovod.warning == 60 * kSecond);
  CHECK(timers(pb::HOROVOD, {}).horovod.shutdown == 0);
  CHECK(timers(pb::HOROVOD, {{"HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "30"}}).horovod.shutdown == 0);
  CHECK(timers(pb::HOROVOD, {{"HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "90"}}).horovod.shutdown ==
        90 * kSecond);
  CHECK_FALSE(timers(pb::HOROVOD, {{"HOROVOD_STALL_CHECK_DISABLE", "1"}}).horovod.checks);
  CHECK(timers(pb::HOROVOD, {{"HOROVOD_STALL_CHECK_DISABLE", "0"}}).horovod.checks);
}

TEST_CASE("a timer that is no number is a finding, and what NCCL makes of it holds",
          "[sim][timers]") {
  pb::Launch launch;
  launch.set_framework(pb::PYTORCH);
  launch.set_nccl_version("2.28.9");
  const auto timeout = [&](const char* value, Findings& findings) {
    return timers_of(launch, {{"NCCL_IB_TIMEOUT", value}}, findings).network.ib_timeout;
  };
  for (const char* value : {"-1", "32", "0x20", "99999999999999999999"}) {
    INFO(value);
    Findings findings;
    CHECK(timeout(value, findings) == Nanos{4096} << 20);
    CHECK(findings.count("timer-not-understood") == 1);
  }
  Findings findings;
  CHECK(timeout("18x", findings) == Nanos{4096} << 18);
  CHECK(timeout("abc", findings) == 0);
  CHECK(findings.count("timer-not-understood") == 2);
  CHECK(timeout("0x16", findings) == Nanos{4096} << 22);
  CHECK(timeout("026", findings) == Nanos{4096} << 22);
  CHECK(timeout("", findings) == Nanos{4096} << 20);
  CHECK(findings.count("timer-not-understood") == 2);
}

}  // namespace rehearse::timers_test
