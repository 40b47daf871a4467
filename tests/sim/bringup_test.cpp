// SPDX-License-Identifier: Apache-2.0
// Bring-up: what processes believe, and what each framework shows when it does not come up.
#include "sim/bringup/bringup.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "base/document.hpp"
#include "base/install.hpp"
#include "platforms/model/catalogue.hpp"
#include "sim/bringup/process.hpp"
#include "sim/bringup/texts.hpp"
#include "sim/simulate.hpp"
#include "tests/sim/starts.hpp"
#include "tests/temporary_folder.hpp"

namespace rehearse::bringup_test {
using namespace rehearse;
using namespace rehearse::sim;
using namespace rehearse::tests;

TEST_CASE("versions compare by number", "[bringup]") {
  CHECK(bringup::compare_versions("2.4", "2.13") < 0);
  CHECK(bringup::compare_versions("2.10.1", "2.10") > 0);
  CHECK(bringup::compare_versions("1.11", "1.11.0") == 0);
  CHECK(bringup::compare_versions("2.4.0+cu124", "2.4") == 0);
}

TEST_CASE("every shipped scenario and every platform of the catalogue comes up", "[bringup]") {
  SilentReporter silent;
  const auto scenarios = shipped_scenarios();
  REQUIRE(scenarios);
  for (const ShippedScenario& each : *scenarios) {
    INFO(each.name);
    const auto up = bringup::bring_up(load(each.name));
    REQUIRE(up);
    INFO((up->failed ? up->outcome.ShortDebugString() : ""));
    CHECK_FALSE(up->failed);
    CHECK_FALSE(up->alone);
    CHECK(up->moved.empty());
  }
  const tests::TemporaryFolder folder;
  const auto catalogue = rehearse::shipped("platforms/catalogue");
  REQUIRE(catalogue);
  for (const auto& entry : std::filesystem::directory_iterator(*catalogue)) {
    if (entry.path().extension() != ".yaml") continue;
    const std::string id = entry.path().stem().string();
    const auto path = folder.path / (id + ".yaml");
    std::ofstream(path) << "trace: dlrm-8\nplatform: {like: " << id << ", scale: 8}\n";
    const auto scenario = load_scenario(path.string(), silent);
    INFO(id << (scenario ? "" : scenario.error().message()));
    REQUIRE(scenario);
    const auto up = bringup::bring_up(*scenario);
    REQUIRE(up);
    INFO((up->failed ? up->outcome.ShortDebugString() : ""));
    CHECK_FALSE(up->failed);
  }
}

TEST_CASE("who counts whom at the store depends on launcher and release", "[bringup]") {
  // Under torchrun from 2.1 on nobody counts: NCCL's root waits without end.
  const pb::Outcome waits = failed("ddp-16", {"launch.world_size=24"});
  CHECK(waits.verdict() == pb::HANG);
  CHECK(waits.bring_up().failed_in() == "bootstrap");
  CHECK_FALSE(waits.bring_up().ranks(0).has_gives_up_ns());
  REQUIRE(waits.waits_size() == 16);
  CHECK(waits.waits(0).for_ranks_size() == 8);
  const pb::Outcome counted = failed("ddp-16", {"launch.world_size=24", "launch.launcher=srun"});
  CHECK(counted.first_failure().time_ns() == 600 * kSecond);
  CHECK(says(counted, "16/24 clients joined"));
  CHECK(says(counted, "retrieving ncclUniqueId from [0] via c10d key-value store"));
  const pb::Outcome longer = failed(
      "ddp-16", {"launch.world_size=24", "launch.launcher=srun", "launch.start_timeout=90s"});
  CHECK(longer.first_failure().time_ns() == 90 * kSecond);
  const pb::Outcome older =
      failed("ddp-16", {"launch.world_size=24", "launch.framework_version=1.13"});
  CHECK(older.first_failure().time_ns() == 1800 * kSecond);
  CHECK(says(older, "worker_count=16, timeout=0:30:00"));
}

TEST_CASE("nodes that never start are waited for by the agents of torchrun", "[bringup]") {
  const pb::Outcome fixed = failed("ddp-16", {"launch.ranks[node=1].absent=true"});
  CHECK(fixed.verdict() == pb::HANG);
  CHECK(fixed.first_failure().time_ns() == 600 * kSecond);
  CHECK(says(fixed, "torchelastic/role_info"));
  CHECK(fixed.culprits_size() == 8);
  const pb::Outcome elastic =
      failed("ddp-16", {"launch.ranks[node=1].absent=true", "launch.rendezvous=c10d"});
  CHECK(says(elastic, "RendezvousTimeoutError"));
}

TEST_CASE("MASTER_ADDR at 127.0.0.1 leaves the other nodes without a store", "[bringup]") {
  const pb::Outcome outcome = failed("ddp-16", {"launch.master_addr=127.0.0.1"});
  CHECK(outcome.first_failure().rank() == 8);
  CHECK(says(outcome, "Connection refused"));
}

TEST_CASE("Horovod's launcher, Gloo and MPI fail in their own ways", "[bringup]") {
  const pb::Outcome ssh =
      failed("horovod-16",
             {"platform.nodes[1].firewall=[{direction: inbound, ports: 22, action: reject}]"});
  CHECK(ssh.verdict() == pb::CRASH);
  CHECK(says(ssh, "SSH was not successful"));
  const pb::Outcome tasks = failed(
      "horovod-16",
      {"platform.nodes[0].firewall=[{direction: inbound, ports: 32768-60999, action: drop}]"});
  CHECK(tasks.first_failure().time_ns() == 30 * kSecond);
  CHECK(says(tasks, "Timed out waiting for tasks to start"));
  const pb::Outcome mesh = failed("horovod-16", {"launch.env.HOROVOD_GLOO_IFACE=docker0"});
  CHECK(mesh.verdict() == pb::HANG);
  CHECK(mesh.first_failure().time_ns() == 30 * kSecond);
  CHECK(says(mesh, "connectFullMesh"));
  const pb::Outcome mpi = failed(
      "horovod-16", {"launch.launcher=mpirun", "launch.env.OMPI_MCA_btl_tcp_if_include=docker0"});
  CHECK(mpi.verdict() == pb::HANG);
  CHECK(says(mpi, "connect() to 172.17.0.1 failed: Connection refused (111)"));
  const pb::Outcome none = failed("horovod-16", {"launch.env.HOROVOD_GLOO_IFACE=eth9"});
  CHECK(none.verdict() == pb::CRASH);
  CHECK(says(none, "Unable to find address for: eth9"));
}

TEST_CASE("ranks that are told wrong sizes of node and job do not meet in Horovod's groups",
          "[bringup]") {
  const pb::Outcome more = failed("horovod-16", {"launch.env.HOROVOD_LOCAL_SIZE=9"});
  CHECK(more.verdict() == pb::HANG);
  CHECK(more.first_failure().time_ns() == 30 * kSecond);
  CHECK(says(more, "Wait timeout after 30000ms for key(s): rank_8"));
  const pb::Outcome fewer = failed("horovod-16", {"launch.ranks[9].env.HOROVOD_LOCAL_SIZE=4"});
  CHECK(fewer.verdict() == pb::HANG);
  REQUIRE(fewer.culprits_size() == 1);
  CHECK(fewer.culprits(0).rank() == 9);
  const pb::Outcome beyond = failed("horovod-16", {"launch.ranks[9].env.HOROVOD_CROSS_SIZE=1"});
  CHECK(beyond.verdict() == pb::CRASH);
  CHECK(says(beyond, "rank < size. 1 vs 1"));
  const auto right = bringup::bring_up(
      load("horovod-16", {"launch.env.HOROVOD_LOCAL_SIZE=8", "launch.env.HOROVOD_CROSS_SIZE=2"}));
  REQUIRE(right);
  CHECK_FALSE(right->failed);
}

TEST_CASE("mpirun's control channel fails before any rank starts", "[bringup]") {
  const std::string mpirun = "launch.launcher=mpirun";
  const pb::Outcome none =
      failed("horovod-16", {mpirun, "launch.env.OMPI_MCA_oob_tcp_if_include=wlan7"});
  CHECK(none.verdict() == pb::CRASH);
  CHECK(none.first_failure().time_ns() == 0);
  CHECK(says(none, "None of the TCP networks specified to be included for out-of-band"));
  CHECK(says(none, "Value given: wlan7"));
  REQUIRE(none.culprits_size() == 1);
  CHECK(none.culprits(0).why() ==
        "OMPI_MCA_oob_tcp_if_include=wlan7 leaves mpirun no interface there");
  // A bridge has an address on every node; that of the launcher leads nowhere from another one.
  const pb::Outcome bridge =
      failed("horovod-16", {mpirun, "launch.env.OMPI_MCA_oob_tcp_if_include=docker0"});
  CHECK(bridge.verdict() == pb::HANG);
  CHECK(bridge.bring_up().ranks(0).state() == "launch");
  // The network by its address, and what other launchers take no notice of.
  for (const std::vector<std::string>& fine :
       {std::vector<std::string>{mpirun, "launch.env.OMPI_MCA_oob_tcp_if_include=10.0.0.0/16"},
        std::vector<std::string>{"launch.env.OMPI_MCA_oob_tcp_if_include=wlan7"}}) {
    const auto up = bringup::bring_up(load("horovod-16", fine));
    REQUIRE(up);
    CHECK_FALSE(up->failed);
  }
}

TEST_CASE("TensorFlow's cluster needs its names, ports and all of its workers", "[bringup]") {
  const pb::Outcome name = failed("tf-8", {"platform.nodes[1].hosts=[{name: node0}]"});
  CHECK(name.verdict() == pb::HANG);
  CHECK(says(name, "DNS resolution failed for node0:12345"));
  const pb::Outcome port = failed("tf-8", {"platform.nodes[0].ports_in_use=[12345]"});
  CHECK(port.verdict() == pb::CRASH);
  CHECK(says(port, "Could not start gRPC server"));
  const pb::Outcome proxy = failed("tf-8", {"launch.env.http_proxy=http://proxy:3128"});
  CHECK(says(proxy, "HTTP proxy http://proxy:3128"));
  const pb::Outcome missing =
      failed("tf-8", {"launch.ranks[node=1].absent=true", "launch.start_timeout=60s"});
  CHECK(missing.first_failure().time_ns() == 60 * kSecond);
  CHECK(says(missing, "/job:worker/replica:0/task:1"));
  const pb::Outcome twice = failed(
      "tf-8",
      {R"(launch.ranks[node=1].env.TF_CONFIG={"cluster": {"worker": ["node0:12345", "node1:12345"]}, "task": {"type": "worker", "index": 0}})"});
  CHECK(says(twice, "different incarnation"));
  const pb::Outcome broken = failed("tf-8", {"launch.ranks[node=1].env.TF_CONFIG={cluster"});
  CHECK(says(broken, "JSONDecodeError"));
  const pb::Outcome keras =
      failed("tf-8", {"launch.framework=keras", "platform.nodes[1].hosts=[{name: node0}]"});
  CHECK(says(keras, "DNS resolution failed"));
}

TEST_CASE("TensorFlow's sessions wait for parameter servers that are not reached", "[bringup]") {
  const auto config = [](const std::string& servers, int index) {
    return R"({"cluster": {"worker": ["node0:12345", "node1:12345"])" + servers +
           R"(}, "task": {"type": "worker", "index": )" + std::to_string(index) + "}}";
  };
  const auto job = [&](const std::string& servers, std::vector<std::string> more) {
    more.insert(more.begin(), {"launch.ranks[node=0].env.TF_CONFIG=" + config(servers, 0),
                               "launch.ranks[node=1].env.TF_CONFIG=" + config(servers, 1)});
    return more;
  };
  const std::string servers = R"(, "ps": ["node0:2222", "node1:2223"])";
  const auto up = bringup::bring_up(load("tf-8", job(servers, {})));
  REQUIRE(up);
  CHECK_FALSE(up->failed);
  const pb::Outcome walled = failed(
      "tf-8",
      job(servers,
          {"platform.nodes[1].firewall=[{direction: inbound, ports: \"2223\", action: drop}]"}));
  CHECK(walled.verdict() == pb::HANG);
  CHECK(walled.first_failure().rank() == 0);
  CHECK(walled.first_failure().time_ns() == 10 * kSecond);
  CHECK(says(walled, "still waiting for response from worker: /job:ps/replica:0/task:1"));
  REQUIRE(walled.culprits_size() == 1);
  CHECK(walled.culprits(0).node() == 1);
  const pb::Outcome taken = failed("tf-8", job(servers, {"platform.nodes[0].ports_in_use=[2222]"}));
  CHECK(says(taken, "/job:ps/replica:0/task:0"));
  const pb::Outcome nobody = failed("tf-8", job(R"(, "ps": ["elsewhere:2222"])", {}));
  CHECK(nobody.verdict() == pb::HANG);
  const pb::Outcome unlisted =
      failed("tf-8", {"launch.ranks[node=0].env.TF_CONFIG=" + config(servers, 0)});
  CHECK(unlisted.verdict() == pb::CRASH);
  CHECK(unlisted.first_failure().rank() == 4);
  CHECK(says(unlisted, "There must be at least one ps"));
}

TEST_CASE("a call that NCCL_ALGO leaves nothing for fails where Ring does not stand in",
          "[bringup]") {
  const pb::Outcome refused =
      failed("ddp-16", {"launch.nccl_version=2.24.3", "launch.env.NCCL_ALGO=NVLS"});
  CHECK(refused.verdict() == pb::CRASH);
  CHECK(refused.first_failure().operation() == "first-collective");
  CHECK(refused.error_text_size() == 16);
  CHECK(says(refused, "no algorithm/protocol available for function AllReduce with datatype"));
  CHECK(says(refused, "NCCL_ALGO was set to NVLS."));
  const auto up = bringup::bring_up(load("ddp-16", {"launch.env.NCCL_ALGO=NVLS"}));
  REQUIRE(up);
  CHECK_FALSE(up->failed);  // NCCL 2.21
}

TEST_CASE("a word in NCCL_PROTO or NCCL_ALGO that NCCL does not know ends the start since 2.24",
          "[bringup]") {
  const std::string current = "launch.nccl_version=2.28.9";
  const pb::Outcome all = failed("ddp-16", {current, "launch.env.NCCL_PROTO=simpel"});
  CHECK(all.verdict() == pb::CRASH);
  CHECK(all.bring_up().failed_in() == "tuning");
  CHECK(all.first_failure().phase() == pb::BOOTSTRAP);
  CHECK(all.error_text_size() == 16);
  CHECK(says(all, "NCCL WARN Unrecognized element token \"simpel\" when parsing \"simpel\""));
  REQUIRE(all.culprits_size() == 1);
  CHECK(all.culprits(0).kind() == "configuration");
  CHECK(all.culprits(0).why() ==
        "NCCL_PROTO=simpel: NCCL does not know \"simpel\"; SIMPLE is meant");

  const pb::Outcome one = failed("ddp-16", {current, "launch.ranks[rank=11].env.NCCL_ALGO=Rng"});
  CHECK(one.first_failure().rank() == 11);
  REQUIRE(one.culprits_size() == 1);
  CHECK(one.culprits(0).rank() == 11);
  CHECK(says(failed("ddp-16", {current, "launch.env.NCCL_ALGO=Ring;alreduce:Tree"}),
             "Unrecognized prefix token \"alreduce\""));
  CHECK(says(failed("ddp-16", {current, "launch.env.NCCL_ALGO=Ring;Tree"}),
             "All entries except the first must have a prefix: \"Ring;Tree\""));

  // NCCL 2.21: no protocol is left for the first call; a list of algorithms that names none is ignored.
  const pb::Outcome old = failed("ddp-16", {"launch.env.NCCL_PROTO=simpel"});
  CHECK(old.bring_up().failed_in() == "first-collective");
  CHECK(says(old, "no algorithm/protocol available"));
  const auto up = bringup::bring_up(load("ddp-16", {"launch.env.NCCL_ALGO=Rng"}));
  REQUIRE(up);
  CHECK_FALSE(up->failed);
}

TEST_CASE("a world that holds no whole copy of the model is refused", "[bringup]") {
  const std::string alone = "launch.env.WORLD_SIZE=1";
  const pb::Outcome outcome =
      failed("gpt-32", {alone, "launch.env.RANK=0", "launch.launcher=torchrun"});
  CHECK(outcome.verdict() == pb::CRASH);
  CHECK(outcome.first_failure().time_ns() == 0);
  CHECK(outcome.error_text_size() == 32);
  CHECK(says(outcome, "RuntimeError: world_size (1) is not divisible by 16"));
  CHECK_FALSE(start("fsdp-32", {alone, "launch.env.RANK=0"}).failed);
}

TEST_CASE("nodes that meet through a router that nobody wrote down are told", "[bringup]") {
  const std::string apart =
      "platform.nodes[1].interfaces=[{name: eth0, kind: lan, addresses: [192.168.7.2/24]}]";
  const std::string name = "platform.dns[name=node1].address=192.168.7.2";
  const auto told = [](const bringup::CameUp& up) {
    for (const pb::OutcomeFinding& each : up.outcome.findings()) {
      if (each.id() == "router-assumed") return each.first();
    }
    return std::string();
  };
  CHECK(told(start("ddp-16", {})).empty());
  const bringup::CameUp assumed = start("ddp-16", {apart, name});
  CHECK_FALSE(assumed.failed);
  CHECK(told(assumed) == "node0 and node1 have no network in common");
  // Routes that do not lead there are believed, and so are those that do.
  const bringup::CameUp none = start(
      "ddp-16",
      {apart, name, "platform.nodes[1].routes=[{destination: 10.99.0.0/16, via: 192.168.7.1}]"});
  CHECK(none.failed);
  CHECK(told(none).empty());
  const bringup::CameUp routed = start(
      "ddp-16",
      {apart, name,
       "platform.nodes[*].routes=[{destination: default, interface: eth0, via: 192.168.7.1}]"});
  CHECK_FALSE(routed.failed);
  CHECK(told(routed).empty());
}

TEST_CASE("Gloo as the backend of PyTorch waits for the timeout of its group", "[bringup]") {
  const pb::Outcome outcome = failed(
      "ddp-16", {"launch.backend=gloo", "launch.ranks[node=1].env.GLOO_SOCKET_IFNAME=docker0"});
  CHECK(outcome.verdict() == pb::HANG);
  CHECK(outcome.first_failure().time_ns() == 1800 * kSecond);
}

TEST_CASE("one rank that listens where nobody reaches it stops Gloo, alone on its node",
          "[bringup]") {
  for (const auto& [job, what] :
       {std::pair{"ddp-16", "launch.ranks[9].env.GLOO_SOCKET_IFNAME=lo"},
        std::pair{"horovod-16", "launch.ranks[9].env.HOROVOD_GLOO_IFACE=lo"}}) {
    std::vector<std::string> changes = {what};
    if (std::string_view(job) == "ddp-16") changes.emplace_back("launch.backend=gloo");
    const pb::Outcome outcome = failed(job, changes);
    INFO(job);
    CHECK(outcome.verdict() == pb::HANG);
    REQUIRE(outcome.culprits_size() == 1);
    CHECK(outcome.culprits(0).kind() == "rank");
    CHECK(outcome.culprits(0).rank() == 9);
  }
}

TEST_CASE("Horovod without a launcher meets where its environment says", "[bringup]") {
  const std::string by_hand = "launch.launcher=plain";
  const std::string size = "launch.env.HOROVOD_SIZE=16";
  const std::string server = "launch.env.HOROVOD_GLOO_RENDEZVOUS_ADDR=";
  const std::string port = "launch.env.HOROVOD_GLOO_RENDEZVOUS_PORT=4000";
  std::vector<std::string> told = {by_hand, size, port};
  for (int r = 0; r < 16; ++r) {
    told.push_back(fmt::format("launch.ranks[{0}].env.HOROVOD_RANK={0}", r));
    told.push_back(fmt::format("launch.ranks[{}].env.HOROVOD_LOCAL_RANK={}", r, r % 8));
  }
  // Nobody says where: each waits for the others in its own memory.
  const pb::Outcome alone = failed("horovod-16", told);
  CHECK(alone.first_failure().time_ns() == 30 * kSecond);
  CHECK(says(alone, "Wait timeout after 30000ms"));
  // Where there is no server it gives up after three questions.
  told.push_back(server + "nosuchhost");
  const pb::Outcome lost = failed("horovod-16", told);
  CHECK(lost.first_failure().time_ns() == kSecond * 3 / 2);
  told.back() = server + "10.0.0.1";
  const bringup::CameUp met = start("horovod-16", told);
  CHECK_FALSE(met.failed);
}

TEST_CASE("timers of the start follow the documented formulas", "[bringup][timers]") {
  // They say nothing about a particular adapter.
  for (const int t : {14, 18, 20, 22}) {
    const std::string timeout = "launch.env.NCCL_IB_TIMEOUT=" + std::to_string(t);
    const pb::Outcome outcome = failed("ddp-16", {timeout, "platform.nodes[1].nics[*].mtu=1024"});
    CHECK(outcome.first_failure().time_ns() == 7 * (Nanos{4096} << t));
  }
  const std::string refused =
      "platform.nodes[1].firewall=[{direction: inbound, ports: 32768-60999, action: reject}]";
  CHECK(failed("ddp-16", {refused}).first_failure().time_ns() == 59'500'000'000);
  CHECK(failed("ddp-16", {refused, "launch.env.NCCL_SOCKET_RETRY_CNT=3",
                          "launch.env.NCCL_SOCKET_RETRY_SLEEP_MSEC=1000"})
            .first_failure()
            .time_ns() == 6 * kSecond);
}

TEST_CASE("the watchdog acts as its error handling says", "[bringup][timers]") {
  SilentReporter silent;
  for (const int handling : {0, 1, 2, 3}) {
    INFO(handling);
    Scenario scenario =
        load("ddp-16", {"launch.env.TORCH_NCCL_ASYNC_ERROR_HANDLING=" + std::to_string(handling)});
    const auto patch = parse_patch("skip-collective: {rank: 3, nth: 5}", "test");
    REQUIRE(patch);
    REQUIRE(apply(scenario, *patch));
    const auto outcome = simulate(scenario, silent);
    REQUIRE(outcome);
    CHECK(outcome->verdict() == pb::HANG);
    if (handling == 0) {
      CHECK(outcome->timers().empty());
      continue;
    }
    REQUIRE_FALSE(outcome->timers().empty());
    CHECK(outcome->timers(0).timer() == "watchdog");
    CHECK(outcome->timers(0).time_ns() >= 600 * kSecond);
    CHECK(outcome->timers(0).time_ns() < 610 * kSecond);
    CHECK(outcome->timers(0).action() == (handling == 2 ? "abort" : "tear-down"));
  }
}

TEST_CASE("connections through host memory and loaders share /dev/shm", "[bringup]") {
  const pb::Outcome host =
      failed("ddp-16", {"launch.env.NCCL_P2P_DISABLE=1", "platform.nodes[1].shm=64MiB"});
  CHECK(host.first_failure().rank() >= 8);
  CHECK(says(host, "(size 9637888)"));
  const pb::Outcome loader =
      failed("dlrm-8", {"launch.training.loader_shm=1GiB", "platform.nodes[0].shm=2GiB"});
  CHECK(loader.first_failure().rank() == 2);
  CHECK(says(loader, "out of shared memory"));
}

TEST_CASE("a slow name service only delays the start", "[bringup]") {
  const auto up = bringup::bring_up(load("ddp-16", {"platform.dns[name=node0].delay=10s"}));
  REQUIRE(up);
  CHECK_FALSE(up->failed);
  CHECK(up->outcome.bring_up().ready_ns() == 10 * kSecond);
}

TEST_CASE("every text of the table is for a state that exists and names its source", "[bringup]") {
  const auto texts = bringup::load_texts();
  REQUIRE(texts);
  const std::set<std::string> states = {"launch",          "device",    "lookup",    "bind",
                                        "connect",         "join",      "interface", "bootstrap",
                                        "topology",        "transport", "buffers",   "tuning",
                                        "first-collective"};
  for (const pb::BringUpText& row : texts->texts()) {
    INFO(row.state() << " " << row.error());
    CHECK(states.count(row.state()) == 1);
    CHECK_FALSE(row.text().empty());
    CHECK(row.source().starts_with("https://"));
  }
  CHECK(bringup::filled("{a} {b} {", {{"a", "1"}}) == "1 {b} {");
}

TEST_CASE("ports of another partition lose what is sent to them", "[sim][bringup]") {
  const pb::Outcome other =
      failed("ddp-16", {"platform.nodes[1].nics[*].pkeys=[0x8001]", "launch.nccl_version=2.21.5"});
  CHECK(other.verdict() == pb::CRASH);
  CHECK(says(other, "status=IBV_WC_RETRY_EXC_ERR(12)"));
  REQUIRE(other.culprits_size() == 1);
  CHECK(other.culprits(0).node() == 1);
  CHECK(other.culprits(0).why() == "its ports are in partition 0x8001, their peers in 0xffff");

  // A limited member reaches full members, and nobody else.
  const auto limited =
      bringup::bring_up(load("ddp-16", {"platform.nodes[1].nics[*].pkeys=[0x7fff]"}));
  REQUIRE(limited);
  CHECK_FALSE(limited->failed);
  const pb::Outcome all = failed("ddp-16", {"platform.nodes[*].nics[*].pkeys=[0x7fff]"});
  CHECK(all.culprits_size() == 2);
}

TEST_CASE("a partition that the table lacks is refused when queue pairs are made",
          "[sim][bringup]") {
  const pb::Outcome outcome =
      failed("ddp-16", {"launch.ranks[8-15].env.NCCL_IB_PKEY=3", "launch.nccl_version=2.21.5"});
  CHECK(outcome.verdict() == pb::CRASH);
  CHECK(says(outcome, "ibv_modify_qp failed with 22 Invalid argument"));
  CHECK(outcome.first_failure().rank() == 8);
  // The second entry of a table that has it is used.
  const auto second = bringup::bring_up(load(
      "ddp-16", {"platform.nodes[*].nics[*].pkeys=[0x7fff, 0x8002]", "launch.env.NCCL_IB_PKEY=1"}));
  REQUIRE(second);
  CHECK_FALSE(second->failed);
}

}  // namespace rehearse::bringup_test
