// SPDX-License-Identifier: Apache-2.0
// Any bytes into the reader of PyTorch execution traces.
#include "tests/fuzz/reader_fuzz.hpp"
#include "traces/import/pytorch_et/pytorch_et.hpp"

using namespace rehearse::traces;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  read_any_bytes(fuzz_bytes(data, size), pytorch_et::read);
  return 0;
}
