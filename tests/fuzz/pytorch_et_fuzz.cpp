// SPDX-License-Identifier: Apache-2.0
// Any bytes into the reader of PyTorch execution traces.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "traces/import/pytorch_et/pytorch_et.hpp"

using namespace rehearse;
using namespace rehearse::traces;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto source = Source::over(bytes, "fuzz", {.max_bytes = 64 << 20});
  if (!source) return 0;
  Strings strings;
  Findings findings;
  SilentReporter silent;
  ReadContext context{strings, findings, silent, CutFiles::kAccept};
  const auto part = pytorch_et::read(*source, context);
  if (!part && part.error().what.empty()) __builtin_trap();
  return 0;
}
