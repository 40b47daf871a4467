// SPDX-License-Identifier: Apache-2.0
// Any bytes into the flight recorder reader, JSON or pickle.
#include "tests/fuzz/reader_fuzz.hpp"
#include "traces/import/flight_recorder/flight_recorder.hpp"

using namespace rehearse::traces;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  read_any_bytes(fuzz_bytes(data, size), flight_recorder::read);
  return 0;
}
