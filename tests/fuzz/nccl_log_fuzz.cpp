// SPDX-License-Identifier: Apache-2.0
// Any bytes into the reader of NCCL logs and nccl-tests output.
#include "tests/fuzz/reader_fuzz.hpp"
#include "traces/import/nccl_log/nccl_log.hpp"

using namespace rehearse::traces;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  read_any_bytes(fuzz_bytes(data, size), nccl_log::read);
  return 0;
}
