// SPDX-License-Identifier: Apache-2.0
// The static check on launch scripts and dumps as they are written for Slurm, DeepSpeed, Accelerate and single nodes.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "faults/check/check.hpp"
#include "faults/check/files/collect.hpp"
#include "faults/check/files/launch_script.hpp"
#include "faults/check/files/machine.hpp"

namespace rehearse::check_scripts_test {
using namespace rehearse;
using namespace rehearse::faults;

namespace {

// The first finding that is an error or a warning; "none".
std::string first_rule(const std::vector<ClusterFile>& files) {
  static const auto rules = Rules::load_shipped();
  if (!rules) FAIL(rules.error().message());
  const auto collected = collect(files, rules->tables());
  if (!collected) return "refused: " + collected.error().what;
  const pb::CheckReport report = check(collected->document, *rules, "files");
  return report.findings_size() == 0 || report.findings(0).severity() == "info"
             ? "none"
             : report.findings(0).rule();
}

std::string batch(const std::string& lines, const std::string& command) {
  return "#!/bin/bash\n#SBATCH --nodes=2\n" + lines + command + "\n";
}

std::string torchrun(const std::string& options) {
  return "torchrun --nnodes=2 --master_addr=192.168.1.10 " + options + " main.py\n";
}

std::string slurm_dump(const std::string& node, const std::string& task) {
  return "SLURMD_NODENAME=" + node +
         "\nSLURM_JOB_NODELIST=gpu[01-02]\nSLURM_NTASKS=2\nSLURM_NTASKS_PER_NODE=1\nSLURM_PROCID=" +
         task + "\nSLURM_LOCALID=0\nMASTER_ADDR=gpu01\nMASTER_PORT=29500\n";
}

std::string adapter(const std::string& name, const std::string& state, const std::string& layer) {
  return "CA '" + name + "'\n\tCA type: MT4129\n\tPort 1:\n\t\tState: " + state +
         "\n\t\tRate: 400\n\t\tLink layer: " + layer + "\n";
}

}  // namespace

TEST_CASE("torchrun under srun: one per node, with as many nodes", "[faults][check]") {
  const std::string one = "#SBATCH --ntasks-per-node=1\n#SBATCH --gpus-per-node=8\n";
  const std::string run =
      " --nproc_per_node 8 --rdzv_backend c10d --rdzv_endpoint $head:29500 train.py";
  CHECK(first_rule({{"job.sh", batch(one, "srun torchrun --nnodes 2" + run), ""}}) == "none");
  CHECK(first_rule({{"job.sh", batch(one, "srun torchrun --nnodes 4" + run), ""}}) ==
        "world-size-differs-from-processes");
  const std::string eight = "#SBATCH --ntasks-per-node=8\n#SBATCH --gpus-per-node=8\n";
  CHECK(first_rule({{"job.sh", batch(eight, "srun torchrun --nnodes 2" + run), ""}}) ==
        "world-size-differs-from-processes");
}

TEST_CASE("Slurm gives as many GPUs as it starts tasks", "[faults][check]") {
  const std::string tasks = "#SBATCH --ntasks-per-node=8\n";
  for (const char* gpus : {"--gres=gpu:8", "--gres=gpu:a100:8", "--gpus-per-node=h100:8"}) {
    INFO(gpus);
    const std::string line = tasks + "#SBATCH " + gpus + "\n";
    CHECK(first_rule({{"job.sh", batch(line, "srun python train.py"), ""}}) == "none");
  }
  for (const char* gpus : {"--gres=gpu:4", "--gres=gpu:a100:4(S:0-1)", "--gpus-per-node 4"}) {
    INFO(gpus);
    const std::string line = tasks + "#SBATCH " + gpus + "\n";
    CHECK(first_rule({{"job.sh", batch(line, "srun python train.py"), ""}}) ==
          "more-tasks-than-slurm-gpus");
  }
}

TEST_CASE("dumps of two tasks that have one number", "[faults][check]") {
  const auto dumps = [](const std::string& second) {
    return std::vector<ClusterFile>{{"a.env", slurm_dump("gpu01", "0"), ""},
                                    {"b.env", slurm_dump("gpu02", second), ""}};
  };
  CHECK(first_rule(dumps("1")) == "none");
  CHECK(first_rule(dumps("0")) == "rank-given-twice");
}

TEST_CASE("scripts of single nodes are compared", "[faults][check]") {
  const auto pair = [](const std::string& first, const std::string& second) {
    return first_rule({{"run0.sh", torchrun("--node_rank=0 " + first), "alpha"},
                       {"run1.sh", torchrun("--node_rank=1 " + second), "beta"}});
  };
  CHECK(pair("--nproc_per_node=8", "--nproc_per_node=8") == "none");
  CHECK(pair("--nproc_per_node=8", "--nproc_per_node=4") == "local-world-size-differs");
  CHECK(pair("--nproc_per_node=8 --master_port=29500", "--nproc_per_node=8 --master_port=29501") ==
        "master-port-differs");
}

TEST_CASE("deepspeed and accelerate start what they are told", "[faults][check]") {
  const LaunchScript deepspeed = read_launch_script(
      "deepspeed --hostfile=hosts --num_nodes 2 --num_gpus 8 --master_port 29501 train.py\n");
  CHECK(deepspeed.launcher == pb::TORCHRUN);
  CHECK(deepspeed.nodes == 2u);
  CHECK(deepspeed.processes_per_node == 8u);
  CHECK(deepspeed.master_port == 29501u);
  const LaunchScript accelerate = read_launch_script(
      "accelerate launch --multi_gpu --num_machines 2 --num_processes 16 --machine_rank 1 "
      "--main_process_ip 10.0.0.1 --main_process_port 29500 train.py\n");
  CHECK(accelerate.nodes == 2u);
  CHECK(accelerate.processes_per_node == 8u);
  CHECK(accelerate.node_rank == 1u);
  CHECK(accelerate.master_addr == "10.0.0.1");
  const std::string local =
      "accelerate launch --num_machines 2 --num_processes 16 --main_process_ip localhost "
      "train.py\n";
  CHECK(first_rule({{"run.sh", local, ""}}) == "master-address-loopback");
}

TEST_CASE("ports of the management network may be down beside InfiniBand", "[faults][check]") {
  const auto nodes = [](const std::string& adapters) {
    std::vector<ClusterFile> files;
    for (const char* name : {"alpha", "beta"}) {
      files.push_back({"ibstat.txt", adapters, name});
      files.push_back({"env", "MASTER_ADDR=alpha\nMASTER_PORT=29500\nPATH=/usr/bin\n", name});
    }
    return files;
  };
  const std::string active = adapter("mlx5_0", "Active", "InfiniBand");
  CHECK(first_rule(nodes(active + adapter("mlx5_1", "Down", "Ethernet"))) == "none");
  CHECK(first_rule(nodes(active + adapter("mlx5_1", "Down", "InfiniBand"))) == "adapter-down");
}

TEST_CASE("interfaces in the other forms in which they are printed", "[faults][check]") {
  const std::string forms[] = {
      "lo               UNKNOWN        127.0.0.1/8 ::1/128\n"
      "eno1             UP             10.3.0.1/24 fe80::1234/64\n"
      "docker0          DOWN           172.17.0.1/16\n",
      "1: lo    inet 127.0.0.1/8 scope host lo\\       valid_lft forever\n"
      "2: eno1    inet 10.3.0.1/24 brd 10.3.0.255 scope global eno1\\       valid_lft forever\n"
      "2: eno1    inet6 fe80::1234/64 scope link\n"
      "3: docker0    inet 172.17.0.1/16 scope global docker0\n",
      "lo: flags=73<UP,LOOPBACK,RUNNING>  mtu 65536\n        inet 127.0.0.1  netmask 255.0.0.0\n\n"
      "eno1: flags=4163<UP,BROADCAST,RUNNING,MULTICAST>  mtu 1500\n"
      "        inet 10.3.0.1  netmask 255.255.255.0  broadcast 10.3.0.255\n"
      "        inet6 fe80::1234  prefixlen 64  scopeid 0x20<link>\n\n"
      "docker0: flags=4099<UP,BROADCAST,MULTICAST>  mtu 1500\n"
      "        inet 172.17.0.1  netmask 255.255.0.0\n"};
  for (const std::string& text : forms) {
    INFO(text);
    CHECK(file_kind(text) == FileKind::kIpAddr);
    pb::Node node;
    describe_node(FileKind::kIpAddr, text, "ip.txt", node);
    REQUIRE(node.interfaces_size() == 3);
    CHECK(node.interfaces(0).kind() == pb::LOOPBACK);
    CHECK(node.interfaces(1).name() == "eno1");
    CHECK_FALSE(node.interfaces(1).down());
    REQUIRE(node.interfaces(1).addresses_size() == 1);
    CHECK(node.interfaces(1).addresses(0) == "10.3.0.1/24");
    CHECK(node.interfaces(2).kind() == pb::BRIDGE);
  }
}

TEST_CASE("adapters in the other forms in which they are printed", "[faults][check]") {
  const auto read = [](const std::string& text) {
    CHECK(file_kind(text) == FileKind::kIbstat);
    const auto adapters = read_ibstat(text);
    REQUIRE(adapters.size() == 1);
    CHECK(adapters[0].name() == "mlx5_0");
    return adapters[0];
  };
  const std::string ibstatus =
      "Infiniband device 'mlx5_0' port 1 status:\n\tbase lid:\t 0x1f\n\tstate:\t\t 1: DOWN\n"
      "\tphys state:\t 5: LinkUp\n\trate:\t\t 100 Gb/sec (4X EDR)\n\tlink_layer:\t InfiniBand\n";
  CHECK(read(ibstatus).down());
  CHECK(read(ibstatus).bandwidth() == 12.5e9);
  const std::string devinfo =
      "hca_id:\tmlx5_0\n\ttransport:\t\t\tInfiniBand (0)\n\t\tport:\t1\n"
      "\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n\t\t\tactive_mtu:\t\t1024 (3)\n"
      "\t\t\tlink_layer:\t\tEthernet\n";
  CHECK_FALSE(read(devinfo).down());
  CHECK(read(devinfo).mtu() == 1024);
  CHECK(read(devinfo).kind() == pb::ROCE);
}

TEST_CASE("mpiexec hands on variables in its own way", "[faults][check]") {
  const LaunchScript script = read_launch_script(
      "mpiexec -n 8 -f hosts -genv NCCL_DEBUG=WARN -env NCCL_P2P_DISABLE 1 python x.py\n");
  CHECK(script.launcher == pb::MPIRUN);
  CHECK(script.processes == 8u);
  CHECK(script.variables.at("NCCL_DEBUG") == "WARN");
  CHECK(script.variables.at("NCCL_P2P_DISABLE") == "1");
}

TEST_CASE("a short list of packages is one", "[faults][check]") {
  const std::string head = "Package          Version\n---------------- -------\n";
  const std::string env = "MASTER_ADDR=alpha\nMASTER_PORT=29500\nPATH=/usr/bin\n";
  CHECK(first_rule({{"pip.txt", head + "torch            2.4.0\n", "alpha"},
                    {"pip.txt", head + "torch            2.3.1\n", "beta"},
                    {"env", env, "alpha"},
                    {"env", env, "beta"}}) == "framework-differs-between-nodes");
}

TEST_CASE("a proxy in small letters matters to those who speak HTTP", "[faults][check]") {
  const auto nodes = [](const std::string& framework) {
    std::vector<ClusterFile> files;
    for (const char* rank : {"0", "1"}) {
      files.push_back({"env",
                       "https_proxy=http://proxy:3128\nPATH=/usr/bin\n" + framework + rank + "\n",
                       std::string("host") + rank});
    }
    return files;
  };
  CHECK(first_rule(nodes("HOROVOD_SIZE=2\nHOROVOD_RANK=")) == "proxy-set");
  CHECK(first_rule(nodes("MASTER_ADDR=host0\nMASTER_PORT=29500\nWORLD_SIZE=2\nRANK=")) == "none");
}

}  // namespace rehearse::check_scripts_test
