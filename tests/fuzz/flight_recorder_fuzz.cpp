// SPDX-License-Identifier: Apache-2.0
// Any bytes into the flight recorder (JSON or pickle) reader; what it takes can be stored.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "traces/evidence/evidence.hpp"
#include "traces/import/flight_recorder/flight_recorder.hpp"

using namespace rehearse;
using namespace rehearse::traces;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto source = Source::over(bytes, "fuzz", {.max_bytes = 64 << 20});
  if (!source) return 0;
  Strings strings;
  Findings findings;
  SilentReporter silent;
  ReadContext context{strings, findings, silent, CutFiles::kRefuse};
  const auto part = flight_recorder::read(*source, context);
  if (!part && part.error().what.empty()) __builtin_trap();
  if (!part) return 0;
  for (const pb::Evidence& evidence : part->evidence) {
    if (!complaint_about(evidence).empty()) __builtin_trap();
  }
  return 0;
}
