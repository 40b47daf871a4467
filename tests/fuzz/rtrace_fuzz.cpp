// SPDX-License-Identifier: Apache-2.0
// Any bytes as a .rtrace, as they are and with the hash of each record made right, so that what is inside is
// reached. What is read can be built into a program.
#include <algorithm>
#include <string>

#include "tests/fuzz/memory_file.hpp"
#include "tests/fuzz/reader_fuzz.hpp"
#include "traces/model/rtrace.hpp"
#include "traces/model/rtrace_format.hpp"
#include "traces/program/program.hpp"

using namespace rehearse;
using namespace rehearse::traces;

namespace {

std::string with_hashes(std::string bytes) {
  for (size_t at = kFileStart; at + kRecordHeader <= bytes.size();) {
    RecordHead head = head_from(std::string_view(bytes).substr(at, kRecordHeader));
    const size_t left = bytes.size() - at - kRecordHeader;
    if (head.length > left) break;
    const std::string_view payload =
        std::string_view(bytes).substr(at + kRecordHeader, head.length);
    head.hash = hash_of(head.type, head.flags, payload);
    const std::string fresh = to_bytes(head);
    std::copy(fresh.begin(), fresh.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
    at += kRecordHeader + head.length;
  }
  return bytes;
}

void read_and_build(std::string_view bytes) {
  const MemoryFile file(bytes);
  SilentReporter silent;
  ReadOptions options;
  options.truncated = Truncated::kAccept;
  options.max_operations = 1'000'000;
  options.threads = 1;
  const auto trace = read_rtrace(file.path(), options, silent);
  if (!trace) {
    if (trace.error().what.empty()) __builtin_trap();
    return;
  }
  const auto program = build_program(*trace);
  if (!program && program.error().what.empty()) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes = fuzz_bytes(data, size);
  read_and_build(bytes);
  read_and_build(with_hashes(std::string(bytes)));
  return 0;
}
