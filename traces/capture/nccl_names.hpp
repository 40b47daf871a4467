// SPDX-License-Identifier: Apache-2.0
// NCCL's enumerations as the texts that its newer plugin versions pass. "" for numbers that are not known.
#pragma once

#include <cstdint>

namespace rehearse::capture::nccl {

[[nodiscard]] const char* function_name(uint32_t function);
[[nodiscard]] const char* datatype_name(uint32_t datatype);
[[nodiscard]] const char* algorithm_name(uint32_t algorithm);
[[nodiscard]] const char* protocol_name(uint32_t protocol);

}  // namespace rehearse::capture::nccl
