// SPDX-License-Identifier: Apache-2.0
// Any bytes into the importer of tables of nvidia-smi.
#include "tests/fuzz/platform_fuzz.hpp"

using namespace rehearse::platforms;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  import_any_bytes(data, size, [](const std::string& text, const Machines& machines) {
    return import_nvidia_smi({"fuzz", text}, machines, {});
  });
  return 0;
}
