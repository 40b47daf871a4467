// SPDX-License-Identifier: Apache-2.0
// Profiles of TensorFlow, Keras and JAX: XSpace protobuf (<host>.xplane.pb) and TensorBoard's trace viewer
// JSON (<host>.trace.json.gz). One file is one host; every GPU (or TPU) of it with work becomes a rank, host
// threads go with the GPU they launch on. Lines that repeat others (steps, name scopes, XLA modules) are
// not work. Collectives are NCCL kernels without sizes.
#pragma once

#include <string_view>

#include "base/error.hpp"
#include "traces/import/part.hpp"

namespace rehearse::traces::tensorflow {

[[nodiscard]] bool sniff_xspace(std::string_view head);
// Reads the input several times over, so that memory follows the operations and not the file.
[[nodiscard]] Result<FilePart> read_xspace(Source& source, ReadContext& context);

[[nodiscard]] bool sniff_trace_json(std::string_view head);
[[nodiscard]] Result<FilePart> read_trace_json(Source& source, ReadContext& context);

}  // namespace rehearse::traces::tensorflow
