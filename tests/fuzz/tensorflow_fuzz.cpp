// SPDX-License-Identifier: Apache-2.0
// Any bytes into the reader of TensorFlow profiles, in both forms, as a whole file and as one that may be cut.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "traces/import/tensorflow/tensorflow.hpp"

using namespace rehearse;
using namespace rehearse::traces;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const CutFiles cut : {CutFiles::kRefuse, CutFiles::kAccept}) {
    for (const auto read : {tensorflow::read_xspace, tensorflow::read_trace_json}) {
      auto source = Source::over(bytes, "fuzz", {.max_bytes = 64 << 20});
      if (!source) continue;
      Strings strings;
      Findings findings;
      SilentReporter silent;
      ReadContext context{strings, findings, silent, cut};
      const auto part = read(*source, context);
      if (!part && part.error().what.empty()) __builtin_trap();
    }
  }
  return 0;
}
