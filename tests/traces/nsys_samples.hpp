// SPDX-License-Identifier: Apache-2.0
// Small Nsight Systems exports for tests, made from SQL.
#pragma once

#include <string>

namespace rehearse::traces::samples {

// The bytes of a database after these statements.
[[nodiscard]] std::string database(const std::string& sql);

// Global id of a process or thread.
[[nodiscard]] std::string global(int pid, int tid = 0);

// Tables as schema 3.x declares them, with the columns that matter, and the strings 1 "gemm",
// 2 "cudaLaunchKernel", 3 "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
// 4 "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", 5 "cudaGraphLaunch_v10000",
// 6 "cudaStreamWaitEvent_v3020", 7 "cudaEventRecord_v3020", 8 "cudaStreamSynchronize_v3020".
[[nodiscard]] std::string nsys_tables();

// INSERT statements. Times in ns after the start of the session.
[[nodiscard]] std::string kernel(int pid, int device, int stream, int correlation, long start,
                                 long end, int name = 1);
[[nodiscard]] std::string runtime(int pid, int tid, int correlation, long start, long end,
                                  int name = 2);
[[nodiscard]] std::string range(int pid, int tid, long start, long end, const std::string& text,
                                const std::string& json = "");

}  // namespace rehearse::traces::samples
