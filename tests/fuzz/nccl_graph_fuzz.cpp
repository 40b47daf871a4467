// SPDX-License-Identifier: Apache-2.0
// Any bytes into the importer of NCCL graph files.
#include <optional>

#include "tests/fuzz/platform_fuzz.hpp"

using namespace rehearse::platforms;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  import_any_bytes(data, size, [](const std::string& text, const Machines& machines) {
    return import_nccl_graph({"fuzz", text}, std::nullopt, machines);
  });
  return 0;
}
