// SPDX-License-Identifier: Apache-2.0
// Any bytes as a capture file; and, so that the checks do not keep everything out, the same bytes as the
// content of records whose checks are right.
#include <algorithm>
#include <string>

#include "tests/fuzz/reader_fuzz.hpp"
#include "traces/capture_file/encoder.hpp"
#include "traces/import/capture/capture.hpp"

using namespace rehearse;
using namespace rehearse::traces;

namespace {

// Records of `bytes`, each as long as its first byte says, behind a session.
std::string checked(std::string_view bytes) {
  uint8_t memory[1024];
  capture_file::Encoder encoder(memory);
  encoder.put(capture_file::Session{});
  std::string out(encoder.bytes().begin(), encoder.bytes().end());
  while (!bytes.empty()) {
    const size_t length = std::min<size_t>(static_cast<uint8_t>(bytes[0]), bytes.size() - 1);
    const std::string_view content = bytes.substr(1, length);
    bytes.remove_prefix(1 + length);
    const uint32_t check =
        capture_file::check_of({reinterpret_cast<const uint8_t*>(content.data()), content.size()});
    const size_t record = 5 + length;
    out += '\x0a';
    out += static_cast<char>(record | 0x80);
    out += static_cast<char>(record >> 7);
    out += '\x0d';
    for (int i = 0; i < 4; ++i) out += static_cast<char>(check >> (8 * i));
    out += content;
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes = fuzz_bytes(data, size);
  read_any_bytes(bytes, capture::read);
  read_any_bytes(checked(bytes), capture::read);
  return 0;
}
