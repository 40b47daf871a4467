// SPDX-License-Identifier: Apache-2.0
// Any bytes into the reader of nccl-tests' report (-J).
#include "tests/fuzz/reader_fuzz.hpp"
#include "traces/import/nccl_tests/nccl_tests.hpp"

using namespace rehearse::traces;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  read_any_bytes(fuzz_bytes(data, size), nccl_tests::read_json);
  return 0;
}
