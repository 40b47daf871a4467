// SPDX-License-Identifier: Apache-2.0
#include "traces/capture/job.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace rehearse::capture {
namespace {

struct Launcher {
  const char* rank;
  const char* world_size;
  const char* local_rank;
};
// Slurm last: under torchrun its task is a node, not a rank.
constexpr std::array<Launcher, 7> kLaunchers = {
    {{"RANK", "WORLD_SIZE", "LOCAL_RANK"},
     {"HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK"},
     {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
     {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK"},
     {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
     {"PMIX_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
     {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"}}};

constexpr std::array<std::string_view, 14> kPrefixes = {
    "NCCL_",    "TORCH_NCCL_", "TORCHELASTIC_", "HOROVOD_",          "GLOO_",
    "UCX_",     "FI_",         "PMI_",          "OMPI_COMM_WORLD_",  "OMPI_MCA_btl",
    "OMP_PROC", "OMP_PLACES",  "TF_GPU_",       "TORCH_DISTRIBUTED_"};
constexpr std::array<std::string_view, 38> kExact = {"RANK",
                                                     "WORLD_SIZE",
                                                     "LOCAL_RANK",
                                                     "LOCAL_WORLD_SIZE",
                                                     "GROUP_RANK",
                                                     "GROUP_WORLD_SIZE",
                                                     "ROLE_RANK",
                                                     "NODE_RANK",
                                                     "MASTER_ADDR",
                                                     "MASTER_PORT",
                                                     "CUDA_VISIBLE_DEVICES",
                                                     "CUDA_DEVICE_ORDER",
                                                     "CUDA_DEVICE_MAX_CONNECTIONS",
                                                     "CUDA_LAUNCH_BLOCKING",
                                                     "CUDA_MODULE_LOADING",
                                                     "NVIDIA_VISIBLE_DEVICES",
                                                     "OMP_NUM_THREADS",
                                                     "MKL_NUM_THREADS",
                                                     "PYTORCH_CUDA_ALLOC_CONF",
                                                     "PYTORCH_ALLOC_CONF",
                                                     "XLA_FLAGS",
                                                     "TF_CONFIG",
                                                     "TF_NUM_INTEROP_THREADS",
                                                     "TF_FORCE_GPU_ALLOW_GROWTH",
                                                     "MV2_COMM_WORLD_RANK",
                                                     "MV2_COMM_WORLD_SIZE",
                                                     "PMIX_RANK",
                                                     "SLURM_JOB_ID",
                                                     "SLURM_STEP_ID",
                                                     "SLURM_PROCID",
                                                     "SLURM_LOCALID",
                                                     "SLURM_NODEID",
                                                     "SLURM_NTASKS",
                                                     "SLURM_JOB_NUM_NODES",
                                                     "SLURM_JOB_NODELIST",
                                                     "SLURM_CPUS_PER_TASK",
                                                     "SLURM_GPUS_ON_NODE",
                                                     "SLURM_CPU_BIND"};
// Variables of an allowed family may still hold what nobody should read.
constexpr std::array<std::string_view, 6> kSecrets = {"SECRET", "TOKEN",      "PASS",
                                                      "KEY",    "CREDENTIAL", "COOKIE"};

// -1 when it is not a number that a rank can have.
int64_t number_of(const char* variable) {
  const char* const value = std::getenv(variable);
  if (value == nullptr || *value == 0) return -1;
  char* end = nullptr;
  const long number = std::strtol(value, &end, 10);
  return *end == 0 && number >= 0 && number < (1 << 24) ? number : -1;
}

}  // namespace

Place place_in_job() {
  for (const Launcher& l : kLaunchers) {
    const int64_t rank = number_of(l.rank);
    if (rank >= 0) return {rank, number_of(l.world_size), number_of(l.local_rank)};
  }
  return {};
}

bool is_recorded_variable(std::string_view name) {
  const auto holds = [&](std::string_view word) {
    return name.find(word) != std::string_view::npos;
  };
  if (std::any_of(kSecrets.begin(), kSecrets.end(), holds)) return false;
  if (std::find(kExact.begin(), kExact.end(), name) != kExact.end()) return true;
  return std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](std::string_view p) { return name.starts_with(p); });
}

}  // namespace rehearse::capture
