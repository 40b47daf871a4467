// SPDX-License-Identifier: Apache-2.0
// Any bytes as a pickle: plain data or a refusal that names the byte. Values name only values that are there.
#include <string>

#include "tests/fuzz/reader_fuzz.hpp"
#include "traces/import/flight_recorder/pickle.hpp"

using namespace rehearse::traces;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  flight_recorder::Values values;
  const auto root = flight_recorder::unpickle(fuzz_bytes(data, size), "fuzz", values);
  if (!root) {
    if (root.error().what.empty() || root.error().where.empty()) __builtin_trap();
    return 0;
  }
  if (*root >= values.size()) __builtin_trap();
  for (size_t i = 0; i < values.size(); ++i) {
    const auto& value = values.at(static_cast<flight_recorder::ValueId>(i));
    for (const auto item : value.items) {
      if (item >= values.size()) __builtin_trap();
    }
    using Kind = flight_recorder::Value::Kind;
    if (value.kind == Kind::kDict && value.items.size() % 2 != 0) __builtin_trap();
    (void)values.find(value, "entries");
  }
  return 0;
}
