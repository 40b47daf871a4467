// SPDX-License-Identifier: Apache-2.0
// The static check on a cluster's own files.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "faults/check/check.hpp"
#include "faults/check/files/collect.hpp"
#include "faults/check/files/launch_script.hpp"
#include "faults/check/files/machine.hpp"

namespace rehearse::check_files_test {
using namespace rehearse;
using namespace rehearse::faults;

namespace {

const std::string kIpAddr0 =
    "1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN group default qlen 1000\n"
    "    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00\n"
    "    inet 127.0.0.1/8 scope host lo\n"
    "2: ens5: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9001 qdisc mq state UP group default qlen "
    "1000\n"
    "    link/ether 0a:1b:2c:3d:4e:5f brd ff:ff:ff:ff:ff:ff\n"
    "    inet 172.31.4.10/20 brd 172.31.15.255 scope global dynamic ens5\n"
    "    inet6 fe80::81b:2cff:fe3d:4e5f/64 scope link\n"
    "3: docker0: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 1500 qdisc noqueue state DOWN group "
    "default\n"
    "    inet 172.17.0.1/16 brd 172.17.255.255 scope global docker0\n"
    "4: ib0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 2044 qdisc mq state UP group default qlen 256\n"
    "    link/infiniband 00:00:10:29:fe:80 brd 00:ff:ff\n"
    "    inet 10.1.0.1/16 scope global ib0\n";

std::string replaced_all(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

const std::string kIbstat =
    "CA 'mlx5_0'\n\tCA type: MT4123\n\tNumber of ports: 1\n\tPort 1:\n\t\tState: "
    "Active\n\t\tPhysical state: LinkUp\n"
    "\t\tRate: 200\n\t\tLink layer: InfiniBand\n"
    "CA 'mlx5_1'\n\tCA type: MT4123\n\tPort 1:\n\t\tState: Down\n\t\tRate: 40\n\t\tLink layer: "
    "InfiniBand\n";

const std::string kScript =
    "#!/bin/bash\n"
    "# starts the job on this node\n"
    "export NCCL_DEBUG=WARN\n"
    "export MASTER_ADDR=172.31.4.10\n"
    "IFACE=ens5\n"
    "export NCCL_SOCKET_IFNAME=$IFACE GLOO_SOCKET_IFNAME=\"${IFACE}\"\n"
    "export RUN_ID=$(date +%s)\n"
    "torchrun --nnodes=2 --nproc_per_node 8 \\\n"
    "  --node_rank=$NODE_RANK --master_addr $MASTER_ADDR --master-port 29501 train.py --lr 0.1\n";

const Rules& shipped_rules() {
  static const auto loaded = Rules::load_shipped();
  if (!loaded) FAIL(loaded.error().message());
  return *loaded;
}

std::string all_findings(const pb::CheckReport& report) {
  std::string out;
  for (const pb::CheckFinding& finding : report.findings()) {
    out += finding.severity() + " " + finding.rule() + " @ " + finding.where() + ": " +
           finding.what() + "\n";
  }
  return out;
}

std::string first_rule(const std::vector<ClusterFile>& files, std::string* seen = nullptr) {
  const auto collected = collect(files, shipped_rules().tables());
  if (!collected) return "refused: " + collected.error().what;
  const pb::CheckReport report = check(collected->document, shipped_rules(), "files");
  if (seen != nullptr) *seen = all_findings(report);
  return report.findings_size() == 0 || report.findings(0).severity() == "info"
             ? "none"
             : report.findings(0).rule();
}

}  // namespace

TEST_CASE("files are known by what is in them", "[faults][check]") {
  CHECK(file_kind(kIpAddr0) == FileKind::kIpAddr);
  CHECK(file_kind(kIbstat) == FileKind::kIbstat);
  CHECK(file_kind(kScript) == FileKind::kLaunchScript);
  CHECK(file_kind("PATH=/usr/bin\nHOME=/root\nNCCL_DEBUG=INFO\n") == FileKind::kEnvironment);
  CHECK(file_kind("declare -x HOME=\"/root\"\ndeclare -x NCCL_DEBUG=\"INFO\"\n") ==
        FileKind::kEnvironment);
  CHECK(file_kind("node0 slots=8\nnode1 slots=8\n") == FileKind::kHostfile);
  CHECK(file_kind("10.0.0.1\n10.0.0.2\n") == FileKind::kHostfile);
  CHECK(file_kind("torch==2.4.0\nnumpy==1.26.4\n") == FileKind::kVersions);
  CHECK(file_kind("{\"cluster\": {\"worker\": [\"a:1\"]}}") == FileKind::kTfConfig);
  CHECK(file_kind("import torch\nmodel = DDP(model)\n") == FileKind::kTrainingScript);
  CHECK(file_kind("") == FileKind::kUnknown);
  CHECK(file_kind(std::string("\x80\xff\x00garbage", 10)) == FileKind::kUnknown);
  CHECK(file_kind("Lorem ipsum dolor sit amet, consectetur\n") == FileKind::kUnknown);
}

TEST_CASE("an address belongs to the interface it stands under, named before or not",
          "[faults][check]") {
  // `ip -4 addr` and `ip -6 addr`, one after the other.
  const auto interfaces = read_ip_addr(
      "2: eth0: <BROADCAST,UP,LOWER_UP> mtu 1500 state UP\n"
      "    inet 10.0.0.5/24 scope global eth0\n"
      "3: eth1: <NO-CARRIER,BROADCAST,UP> mtu 9000 state DOWN\n"
      "    inet 10.1.0.5/24 scope global eth1\n"
      "2: eth0: <BROADCAST,UP,LOWER_UP> mtu 1500 state UP\n"
      "    inet6 fd00::5/64 scope global\n");
  REQUIRE(interfaces.size() == 2);
  REQUIRE(interfaces[0].addresses_size() == 2);
  CHECK(interfaces[0].addresses(1) == "fd00::5/64");
  CHECK_FALSE(interfaces[0].down());
  REQUIRE(interfaces[1].addresses_size() == 1);
  CHECK(interfaces[1].down());
  const auto older = read_ifconfig(
      "eth0: flags=4163<UP,BROADCAST,RUNNING,MULTICAST>  mtu 1500\n"
      "        inet 10.0.0.5  netmask 255.255.254.0  broadcast 10.0.1.255\n"
      "eth1: flags=4099<UP,BROADCAST,MULTICAST>  mtu 9000\n"
      "lo: flags=73<UP,LOOPBACK,RUNNING>  mtu 65536\n");
  REQUIRE(older.size() == 3);
  REQUIRE(older[0].addresses_size() == 1);
  CHECK(older[0].addresses(0) == "10.0.0.5/23");
  CHECK_FALSE(older[0].down());
  CHECK(older[1].mtu() == 9000);
  CHECK(older[1].down());
  CHECK(older[2].kind() == pb::LOOPBACK);
}

TEST_CASE("interfaces, adapters, hostfiles and versions are read", "[faults][check]") {
  const auto interfaces = read_ip_addr(kIpAddr0);
  REQUIRE(interfaces.size() == 4);
  CHECK(interfaces[0].kind() == pb::LOOPBACK);
  CHECK(interfaces[1].name() == "ens5");
  CHECK(interfaces[1].mtu() == 9001);
  REQUIRE(interfaces[1].addresses_size() == 1);
  CHECK(interfaces[1].addresses(0) == "172.31.4.10/20");
  CHECK(interfaces[2].kind() == pb::BRIDGE);
  CHECK(interfaces[2].down());
  CHECK(interfaces[3].kind() == pb::IPOIB);
  const auto adapters = read_ibstat(kIbstat);
  REQUIRE(adapters.size() == 2);
  CHECK(adapters[0].bandwidth() == 25e9);
  CHECK_FALSE(adapters[0].down());
  CHECK(adapters[1].down());
  const auto hosts = read_hostfile("# all\na slots=4\nb:2\n\nc\n");
  REQUIRE(hosts.size() == 3);
  CHECK(hosts[0].slots == 4u);
  CHECK(hosts[1].name == "b");
  CHECK(hosts[1].slots == 2u);
  CHECK_FALSE(hosts[2].slots);
  CHECK(expand_node_list("gpu[08-10,12],login") ==
        std::vector<std::string>{"gpu08", "gpu09", "gpu10", "gpu12", "login"});
  const auto versions = read_versions(
      "Package Version\n------- -------\ntorch   2.4.0+cu121\nnvidia-nccl-cu12 2.20.5\n");
  CHECK(versions.at("pytorch") == "2.4.0+cu121");
  CHECK(versions.at("nccl") == "2.20.5");
  CHECK(
      read_shm(
          "Filesystem 1K-blocks Used Available Use% Mounted on\nshm 65536 0 65536 0% /dev/shm\n") ==
      64 << 20);
}

TEST_CASE("a launch script is read, not run", "[faults][check]") {
  const LaunchScript script = read_launch_script(kScript);
  CHECK(script.launcher == pb::TORCHRUN);
  CHECK(script.nodes == 2u);
  CHECK(script.processes_per_node == 8u);
  CHECK_FALSE(script.node_rank);
  CHECK(script.master_addr == "172.31.4.10");
  CHECK(script.master_port == 29501u);
  CHECK(script.variables.at("NCCL_SOCKET_IFNAME") == "ens5");
  CHECK(script.variables.at("GLOO_SOCKET_IFNAME") == "ens5");
  CHECK(script.variables.count("RUN_ID") == 0);
  const LaunchScript mpi = read_launch_script(
      "mpirun -np 8 -H a:4,b:4 -x NCCL_IB_DISABLE=1 -mca btl_tcp_if_exclude docker0 python "
      "train.py\n");
  CHECK(mpi.launcher == pb::MPIRUN);
  CHECK(mpi.processes == 8u);
  CHECK(mpi.hosts.size() == 2);
  CHECK(mpi.variables.at("NCCL_IB_DISABLE") == "1");
  CHECK(mpi.variables.at("OMPI_MCA_btl_tcp_if_exclude") == "docker0");
  const LaunchScript slurm = read_launch_script(
      "#!/bin/bash\n#SBATCH --nodes=4\n#SBATCH --ntasks-per-node=8\nsrun --label python "
      "train.py\n");
  CHECK(slurm.launcher == pb::SRUN);
  CHECK(slurm.nodes == 4u);
  CHECK(slurm.processes_per_node == 8u);
}

TEST_CASE("a cluster's files: nothing wrong, and what is", "[faults][check]") {
  const std::string other =
      replaced_all(replaced_all(kIpAddr0, "172.31.4.10", "172.31.4.11"), "10.1.0.1", "10.1.0.2");
  const std::string up = replaced_all(kIbstat, "State: Down", "State: Active");
  const std::string same_rate = replaced_all(up, "Rate: 40", "Rate: 200");
  const std::vector<ClusterFile> good = {{"run.sh", kScript, ""},
                                         {"a-ip.txt", kIpAddr0, "a"},
                                         {"b-ip.txt", other, "b"},
                                         {"a-ibstat.txt", same_rate, "a"},
                                         {"b-ibstat.txt", same_rate, "b"}};
  std::string seen;
  CHECK(first_rule(good, &seen) == "none");
  INFO(seen);
  const auto with = [&](size_t index, const std::string& from, const std::string& to) {
    std::vector<ClusterFile> files = good;
    const std::string before = files[index].text;
    files[index].text = replaced_all(before, from, to);
    REQUIRE(files[index].text != before);
    return files;
  };
  CHECK(first_rule(with(0, "IFACE=ens5", "IFACE=eth0")) == "interface-filter-empty");
  CHECK(first_rule(with(0, "IFACE=ens5", "IFACE=docker0")) == "interface-filter-unroutable");
  CHECK(first_rule(with(0, "MASTER_ADDR=172.31.4.10", "MASTER_ADDR=172.31.4.11")) ==
        "master-not-rank-zero");
  CHECK(first_rule(with(0, "MASTER_ADDR=172.31.4.10", "MASTER_ADDR=127.0.0.1")) ==
        "master-address-loopback");
  CHECK(first_rule(with(0, "NCCL_DEBUG=WARN", "NCCL_IB_DISABLE=1")) == "infiniband-disabled");
  CHECK(first_rule(with(0, "NCCL_DEBUG=WARN", "NCCL_IB_DISABEL=1")) == "variable-misspelt");
  CHECK(first_rule(with(2, "172.31.4.11", "172.31.4.10")) == "address-repeated");
  CHECK(first_rule(with(2, "mtu 9001", "mtu 1500")) == "interface-mtu-differs");
  CHECK(first_rule(with(3, "State: Active", "State: Down")) == "adapter-down");
}

TEST_CASE("node ranks and the number of nodes are compared with the nodes there are",
          "[faults][check]") {
  const auto dump = [](const char* host, const char* rank) {
    return std::string("HOSTNAME=") + host + "\nPATH=/usr/bin\nHOME=/root\nNODE_RANK=" + rank +
           "\n";
  };
  const std::string script =
      "export NCCL_DEBUG=WARN\n"
      "torchrun --nnodes=2 --nproc-per-node=8 --node-rank=\"${NODE_RANK}\" --master-addr=a "
      "train.py\n";
  const ClusterFile hosts{"hostfile", "a slots=8\nb slots=8\n", ""};
  std::string seen;
  CHECK(first_rule({{"run.sh", script, ""},
                    hosts,
                    {"a.env", dump("a", "0"), ""},
                    {"b.env", dump("b", "1"), ""}},
                   &seen) == "none");
  INFO(seen);
  CHECK(first_rule({{"run.sh", script, ""},
                    hosts,
                    {"a.env", dump("a", "0"), ""},
                    {"b.env", dump("b", "0"), ""}}) == "node-rank-repeated");
  const std::string three = replaced_all(script, "--nnodes=2", "--nnodes=3");
  CHECK(first_rule({{"run.sh", three, ""}, hosts}) == "world-size-differs-from-processes");
  CHECK(first_rule({{"run.sh", three, ""}}) == "none");  // who they are is not known
}

TEST_CASE("launchers start as many processes as they are asked for, up to the slots of hosts",
          "[faults][check]") {
  const auto rule = [](const std::string& command) {
    return first_rule({{"run.sh", "#!/bin/sh\n" + command + " python train.py\n", ""}});
  };
  CHECK(rule("horovodrun -np 8 -H a:4,b:4") == "none");
  CHECK(rule("horovodrun -np 6 -H a:4,b:4") == "none");
  CHECK(rule("horovodrun -np 16 -H a:4,b:4") == "world-size-differs-from-processes");
  CHECK(first_rule({{"run.sh", "mpirun -np 8 --hostfile hosts -x PATH python train.py\n", ""},
                    {"hosts", "a slots=4\nb slots=2\n", ""}}) ==
        "world-size-differs-from-processes");
}

TEST_CASE("a dump that says something else than the script is named", "[faults][check]") {
  const std::vector<ClusterFile> files = {
      {"run.sh", "export NCCL_DEBUG=INFO\ntorchrun --nnodes 1 --nproc-per-node 4 train.py\n", ""},
      {"a.env", "HOSTNAME=a\nPATH=/usr/bin\nHOME=/root\nNCCL_DEBUG=WARN\n", ""}};
  const auto collected = collect(files, shipped_rules().tables());
  REQUIRE(collected);
  CHECK(collected->findings.count("script-differs-from-dump") == 1);
}

TEST_CASE("a cluster that cannot be read is not one that differs", "[faults][check]") {
  const auto dump = [](const char* host, const std::string& config) {
    return std::string("HOSTNAME=") + host + "\nPATH=/usr/bin\nTF_CONFIG=" + config + "\n";
  };
  const std::string cluster = R"({"cluster": {"worker": ["a:1", "b:1"]}, "task": )";
  const std::vector<ClusterFile> files = {
      {"a.env", dump("a", cluster + R"({"type": "worker", "index": 0}})"), ""},
      {"b.env", dump("b", cluster), ""}};
  const auto collected = collect(files, shipped_rules().tables());
  REQUIRE(collected);
  const pb::CheckReport report = check(collected->document, shipped_rules(), "files");
  INFO(all_findings(report));
  REQUIRE(report.findings_size() == 1);
  CHECK(report.findings(0).rule() == "tf-config-unreadable");
}

TEST_CASE("nodes in different networks need routes", "[faults][check]") {
  const auto ip = [](const std::string& address) {
    return "1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN\n"
           "    inet 127.0.0.1/8 scope host lo\n"
           "2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP\n"
           "    inet " +
           address +
           " brd 10.0.255.255 scope global eth0\n"
           "3: docker0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP\n"
           "    inet 172.17.0.1/16 scope global docker0\n";
  };
  const std::string script =
      "torchrun --nnodes 2 --nproc-per-node 4 --master-addr 10.0.0.5 train.py\n";
  const auto routes = [](const std::string& network, const std::string& more) {
    return more + network + " dev eth0 proto kernel scope link\n" +
           "172.17.0.0/16 dev docker0 proto kernel scope link src 172.17.0.1\n";
  };
  using Files = std::vector<ClusterFile>;
  const auto given = [&](const std::string& own, const Files& more) {
    Files files = {
        {"run.sh", script, ""}, {"a.txt", ip("10.0.0.5/24"), "a"}, {"b.txt", ip(own), "b"}};
    files.insert(files.end(), more.begin(), more.end());
    return first_rule(files);
  };
  CHECK(given("10.0.0.6/24", {}) == "none");
  CHECK(given("10.0.3.6/24", {}) == "networks-differ");
  const std::string over_a = "default via 10.0.0.1 dev eth0 proto dhcp metric 100\n";
  const std::string over_b = "default via 10.0.3.1 dev eth0 proto dhcp metric 100\n";
  CHECK(given("10.0.3.6/24", {{"ra.txt", routes("10.0.0.0/24", over_a), "a"},
                              {"rb.txt", routes("10.0.3.0/24", over_b), "b"}}) == "none");
  CHECK(given("10.0.3.6/24", {{"ra.txt", routes("10.0.0.0/24", over_a), "a"},
                              {"rb.txt", routes("10.0.3.0/24", ""), "b"}}) ==
        "nodes-without-a-way");
  const std::string table =
      "Kernel IP routing table\n"
      "Destination     Gateway         Genmask         Flags Metric Ref    Use Iface\n"
      "0.0.0.0         10.0.3.1        0.0.0.0         UG    100    0        0 eth0\n"
      "10.0.3.0        0.0.0.0         255.255.255.0   U     0      0        0 eth0\n";
  CHECK(given("10.0.3.6/24",
              {{"ra.txt", routes("10.0.0.0/24", over_a), "a"}, {"rb.txt", table, "b"}}) == "none");
}

TEST_CASE("dumps of single ranks are compared", "[faults][check]") {
  const auto dump = [](const std::string& rank, const std::string& world, const std::string& host) {
    return "HOSTNAME=" + host + "\nRANK=" + rank + "\nLOCAL_RANK=0\nWORLD_SIZE=" + world +
           "\nMASTER_ADDR=a\nMASTER_PORT=29500\n";
  };
  CHECK(first_rule({{"0.env", dump("0", "2", "a"), ""}, {"1.env", dump("1", "2", "b"), ""}}) ==
        "none");
  // A sample of a larger job says nothing of its size.
  CHECK(first_rule({{"0.env", dump("0", "64", "a"), ""}, {"9.env", dump("9", "64", "b"), ""}}) ==
        "none");
  CHECK(first_rule({{"0.env", dump("0", "2", "a"), ""}, {"1.env", dump("0", "2", "b"), ""}}) ==
        "rank-variable-repeated");
  CHECK(first_rule({{"hosts", "a slots=1\nb slots=1\n", ""},
                    {"0.env", dump("0", "4", "a"), ""},
                    {"1.env", dump("1", "4", "b"), ""}}) == "world-size-variable-wrong");
  CHECK(first_rule({{"0.env", dump("0", "2", "a"), ""},
                    {"1.env", dump("1", "2", "b") + "NCCL_ALGO=Ring\n", ""}}) ==
        "variable-differs");
}

TEST_CASE("a training script says what it does", "[faults][check]") {
  const std::string script =
      "import torch\nfrom torch.utils.data import DistributedSampler\n"
      "torch.cuda.set_device(local_rank)\nmodel = DDP(model)\nsampler = DistributedSampler(data)\n";
  const std::vector<ClusterFile> files = {
      {"run.sh", "torchrun --nnodes 1 --nproc-per-node 4 train.py\n", ""},
      {"train.py", script, ""}};
  CHECK(first_rule(files) == "epoch-not-set");
  std::vector<ClusterFile> called = files;
  called[1].text += "sampler.set_epoch(epoch)\n";
  CHECK(first_rule(called) == "none");
  called[1].text += "torch.save(model, 'm.pt')\n";
  CHECK(first_rule(called) == "wrapped-model-saved");
}

TEST_CASE("fixes are written into the files that assign the variable", "[faults][check]") {
  const std::vector<ClusterFile> files = {
      {"run.sh", replaced_all(kScript, "NCCL_DEBUG=WARN", "NCCL_P2P_DISABLE=1"), ""},
      {"a-ip.txt", kIpAddr0, "a"}};
  const auto collected = collect(files, shipped_rules().tables());
  REQUIRE(collected);
  const pb::CheckReport report = check(collected->document, shipped_rules(), "files");
  INFO(all_findings(report));
  const auto repaired = repaired_files(files, *collected, report);
  REQUIRE(repaired.size() == 2);
  CHECK(repaired[0].find("NCCL_P2P_DISABLE") == std::string::npos);
  CHECK(repaired[0].find("torchrun --nnodes=2") != std::string::npos);
  CHECK(repaired[1].empty());
  CHECK(with_variable("A=1\nB=2\n", "B", "3 x", false) == "A=1\nB=3 x\n");
  CHECK(with_variable("#!/bin/sh\nexport A=1\nrun\n", "B", "3 x", true) ==
        "#!/bin/sh\nexport B='3 x'\nexport A=1\nrun\n");
}

// A word in quotes can be empty; the first byte of such a word was looked at.
TEST_CASE("words of nothing in a cluster's files are words", "[faults][check]") {
  const auto nothing = collect(std::vector<ClusterFile>{{"x", "{\n  \"warnings\": \"\"\n}\n", ""}},
                               shipped_rules().tables());
  REQUIRE_FALSE(nothing);
  CHECK(nothing.error().code == Code::kBadInput);
  CHECK(read_routes("\"\" dev eth0\n10.0.0.0/8 dev ens5\n").size() == 1);
}

TEST_CASE("files that say nothing are refused or named", "[faults][check]") {
  const auto nothing =
      collect(std::vector<ClusterFile>{{"x", "Lorem ipsum dolor\n", ""}}, shipped_rules().tables());
  REQUIRE_FALSE(nothing);
  CHECK(nothing.error().code == Code::kBadInput);
  const auto some = collect(
      std::vector<ClusterFile>{{"x", "Lorem ipsum dolor\n", ""}, {"e", "RANK=0\nA=1\n", ""}},
      shipped_rules().tables());
  REQUIRE(some);
  CHECK(some->findings.count("file-not-understood") == 1);
}

}  // namespace rehearse::check_files_test
