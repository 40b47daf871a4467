// SPDX-License-Identifier: Apache-2.0
// Any bytes into the NCCL Inspector reader.
#include "tests/fuzz/reader_fuzz.hpp"
#include "traces/import/inspector/inspector.hpp"

using namespace rehearse::traces;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  read_any_bytes(fuzz_bytes(data, size), inspector::read);
  return 0;
}
