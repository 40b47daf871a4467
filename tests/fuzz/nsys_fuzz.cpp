// SPDX-License-Identifier: Apache-2.0
// Any bytes as an Nsight Systems export.
#include "tests/fuzz/reader_fuzz.hpp"
#include "traces/import/nsys/nsys.hpp"

using namespace rehearse::traces;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  read_any_bytes(fuzz_bytes(data, size), nsys::read);
  return 0;
}
