// SPDX-License-Identifier: Apache-2.0
// Any bytes into the reader of TensorFlow profiles, in both forms.
#include "tests/fuzz/reader_fuzz.hpp"
#include "traces/import/tensorflow/tensorflow.hpp"

using namespace rehearse::traces;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  read_any_bytes(fuzz_bytes(data, size), tensorflow::read_xspace);
  read_any_bytes(fuzz_bytes(data, size), tensorflow::read_trace_json);
  return 0;
}
