// SPDX-License-Identifier: Apache-2.0
// The many spellings of collectives and element types in traces, logs and kernel names. Pure
// functions.
#pragma once

#include <optional>
#include <string_view>

#include "traces/model/trace.hpp"

namespace rehearse::traces {

// "allreduce", "_allgather_base", "nccl:all_to_all", "ALLTOALLV", "send 0->3", ...
[[nodiscard]] std::optional<Collective> collective_of(std::string_view name);

// True for the device kernels of NCCL and RCCL ("ncclDevKernel_...", "ncclKernel_...", "rccl...",
// "mscclKernel..."), mangled ("_Z29ncclDevKernel_...") and as templates ("void rccl...") too.
[[nodiscard]] bool is_nccl_kernel(std::string_view kernel);
// True for kernels of what else moves data between GPUs: DeepEP, NVSHMEM, MSCCL++, user buffers of Transformer
// Engine, all-reduces of inference engines and of PyTorch's symmetric memory.
[[nodiscard]] bool is_other_communication(std::string_view kernel);
// What the name of a kernel of NCCL says: nothing for generic kernels, kAllToAll for SendRecv (its usual
// use).
[[nodiscard]] std::optional<Collective> collective_of_kernel(std::string_view kernel);

// "Float", "c10::BFloat16", "long int", "Tensor(float)", "torch.float16", ...; kUnknown otherwise.
[[nodiscard]] DType dtype_of(std::string_view name);
// Bytes of one element of the type so called, also of types that no collective of NCCL has (16-bit
// integers, complex and quantised numbers), which frameworks send as others; 0 when not known.
[[nodiscard]] int element_bytes(std::string_view name);

// True for those that combine values, which NCCL nearly always does by summing.
[[nodiscard]] bool is_reducing(Collective collective);
// True for those that one rank begins or ends for all the others.
[[nodiscard]] bool is_rooted(Collective collective);

}  // namespace rehearse::traces
