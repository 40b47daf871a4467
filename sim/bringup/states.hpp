// SPDX-License-Identifier: Apache-2.0
// The states that processes walk through, in order. Each looks at all processes that are still well and
// advances them, or leaves trouble in the job; after the first state with trouble nobody goes on.
#pragma once

#include "sim/bringup/job.hpp"

namespace rehearse::sim::bringup {

// Processes are started: agents, daemons and services of the launcher reach each other.
void start_processes(Job& job);
// CUDA_VISIBLE_DEVICES and local rank give a GPU.
void select_devices(Job& job);

// Rendezvous, by framework.
void meet_at_store(Job& job);       // PyTorch: TCPStore or c10d
void meet_in_horovod(Job& job);     // controller over Gloo or MPI
void meet_in_tensorflow(Job& job);  // TF_CONFIG
void join_full_mesh(Job& job);      // Gloo as the backend of PyTorch
void join_mpi(Job& job);            // MPI as the backend of PyTorch
// The world is cut into copies of the model.
void divide_world(Job& job);

// NCCL: who is who on which GPU, interfaces, ring of the bootstrap.
void bootstrap_nccl(Job& job);
// Buffers in shared memory, the network's queue pairs.
void connect_transports(Job& job);
// NCCL_ALGO and NCCL_PROTO are read.
void tune_nccl(Job& job);
// The first collective: what the network loses, settings that must be equal on all ranks.
void move_first_data(Job& job);

// Timeout of init_process_group.
[[nodiscard]] Nanos store_timeout(const pb::Launch& launch);

}  // namespace rehearse::sim::bringup
