// SPDX-License-Identifier: Apache-2.0
// Any bytes as a stored file: plain, gzip or zstd. All that is whole comes out, never more than the limits, and
// the second reading gives the same as the first.
#include <string>
#include <vector>

#include "tests/fuzz/reader_fuzz.hpp"
#include "traces/import/source.hpp"

using namespace rehearse;
using namespace rehearse::traces;

namespace {

constexpr uint64_t kMost = 8 << 20;

struct Read {
  uint64_t bytes = 0;
  uint64_t sum = 0;  // of the bytes, mixed
  bool whole = false;
  bool operator==(const Read&) const = default;
};

Read read_all(Source& source) {
  Read out;
  std::vector<char> buffer(100'000);
  const uint64_t mark = source.offset();  // a byte order mark, which is no content
  if (mark != 0 && mark != 3) __builtin_trap();
  for (;;) {
    const auto got = source.read(buffer);
    if (!got) {
      if (got.error().what.empty() || got.error().where.empty()) __builtin_trap();
      return out;
    }
    if (*got == 0) break;
    if (out.bytes < source.head().size() && source.head()[out.bytes] != buffer[0]) __builtin_trap();
    out.bytes += *got;
    for (size_t i = 0; i < *got; ++i) out.sum = out.sum * 31 + static_cast<uint8_t>(buffer[i]);
    if (out.bytes + mark != source.offset() || out.bytes > kMost) __builtin_trap();
  }
  out.whole = true;
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto source = Source::over(fuzz_bytes(data, size), "fuzz", {.max_bytes = kMost});
  if (!source) return 0;
  const Read first = read_all(*source);
  auto again = source->again();
  if (!again || read_all(*again) != first) __builtin_trap();
  return 0;
}
