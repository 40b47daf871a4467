// SPDX-License-Identifier: Apache-2.0
// Any bytes as a table of operations, with every kind of column; whole and as one that may be cut.
#include <string>

#include "base/document.hpp"
#include "tests/fuzz/reader_fuzz.hpp"
#include "traces/import/csv/csv.hpp"
#include "traces/import/csv/job.hpp"

using namespace rehearse;
using namespace rehearse::traces;

namespace {

constexpr std::string_view kMapping = R"(
times: within-step
order: serial
columns: {rank: r, step: s, operation: o, start: {column: t, unit: us}, duration: {column: d, unit: us}, bytes: b}
operations:
  k: kernel
  h: host
  a: {kind: all-reduce, same: [g]}
  p: {kind: send, same: [g], toward: b, shift: 1, wrap: true}
  q: {kind: receive, same: [g], toward: b, shift: -1}
)";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  pb::TableMapping mapping;
  if (!read_document(kMapping, "mapping", mapping)) __builtin_trap();
  const std::string text = "r,s,o,t,d,b,g\n" + std::string(fuzz_bytes(data, size));
  read_any_bytes(text, csv::read, &mapping);
  return 0;
}
