// SPDX-License-Identifier: Apache-2.0
// Any bytes into the reader of Horovod timelines.
#include "tests/fuzz/reader_fuzz.hpp"
#include "traces/import/horovod/horovod.hpp"

using namespace rehearse::traces;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  read_any_bytes(fuzz_bytes(data, size), horovod::read);
  return 0;
}
