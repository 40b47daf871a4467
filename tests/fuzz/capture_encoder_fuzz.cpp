// SPDX-License-Identifier: Apache-2.0
// Records of any content through the encoder of captures: libprotobuf reads what it wrote, the check is right,
// no record is longer than one may be, and texts that had to be clipped end with a whole character.
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "tests/fuzz/reader_fuzz.hpp"
#include "traces/capture_file/encoder.hpp"
#include "traces/proto/capture.pb.h"

using namespace rehearse;
namespace cf = rehearse::capture_file;

namespace {

// Takes fields from the front of the input; zeros when it is used up.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : left_(bytes) {}
  template <typename T>
  T number() {
    T value{};
    const size_t n = std::min(sizeof value, left_.size());
    std::memcpy(&value, left_.data(), n);
    left_.remove_prefix(n);
    return value;
  }
  // Two bytes of length, then the text; long ones repeat what is left.
  std::string text() {
    const size_t length = number<uint16_t>();
    std::string out;
    while (out.size() < length && !left_.empty()) out += left_;
    out.resize(std::min(out.size(), length));
    left_.remove_prefix(std::min(left_.size(), length));
    return out;
  }
  [[nodiscard]] bool done() const { return left_.empty(); }

 private:
  std::string_view left_;
};

// Decodes what one put() wrote.
pb::CaptureRecord decoded(std::span<const uint8_t> bytes) {
  pb::CaptureFile file;
  if (!file.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) __builtin_trap();
  if (file.records_size() != 1 || bytes.size() > cf::kLongestRecord + 3) __builtin_trap();
  return file.records(0);
}

// `kept` is `text`, or its beginning up to a whole character.
void check_text(const std::string& kept, const std::string& text, size_t longest) {
  if (kept.size() > longest || text.compare(0, kept.size(), kept) != 0) __builtin_trap();
  if (text.size() <= longest && kept != text) __builtin_trap();
  if (invalid_utf8(text) == std::string::npos && invalid_utf8(kept) != std::string::npos) {
    __builtin_trap();
  }
}

void one(Fields& in, cf::Encoder& encoder) {
  const std::string a = in.text(), b = in.text();
  switch (in.number<uint8_t>() % 6) {
    case 0: {
      const cf::String record{in.number<uint32_t>(), a};
      if (encoder.put(record))
        check_text(decoded(encoder.bytes()).string().text(), a, cf::kLongestText);
      break;
    }
    case 1: {
      const cf::Variable record{a, b};
      if (!encoder.put(record)) break;
      const pb::CaptureRecord read = decoded(encoder.bytes());
      check_text(read.variable().name(), a, cf::kLongestName);
      check_text(read.variable().value(), b, cf::kLongestText);
      break;
    }
    case 2: {
      cf::Session record;
      record.origin = in.number<int64_t>();
      record.host = a;
      record.program = b;
      record.rank = in.number<int64_t>();
      if (!encoder.put(record)) break;
      const pb::CaptureRecord read = decoded(encoder.bytes());
      if (read.session().origin() != record.origin) __builtin_trap();
      check_text(read.session().host(), a, cf::kLongestName);
      break;
    }
    case 3: {
      cf::Kernel record;
      record.start = in.number<int64_t>();
      record.duration = in.number<uint64_t>();
      record.name = in.number<uint32_t>();
      record.correlation = in.number<uint64_t>();
      record.grid = {in.number<uint32_t>(), in.number<uint32_t>(), in.number<uint32_t>()};
      if (!encoder.put(record)) break;
      const pb::CaptureRecord read = decoded(encoder.bytes());
      if (read.kernel().start() != record.start || read.kernel().duration() != record.duration ||
          read.kernel().correlation() != record.correlation ||
          read.kernel().grid_z() != record.grid.z) {
        __builtin_trap();
      }
      break;
    }
    case 4: {
      cf::Range record;
      record.start = in.number<int64_t>();
      record.duration = in.number<int64_t>();
      record.bytes = in.number<int64_t>();
      record.peer = in.number<int64_t>();
      if (!encoder.put(record)) break;
      const pb::CaptureRecord read = decoded(encoder.bytes());
      if (read.range().has_bytes() != (record.bytes >= 0)) __builtin_trap();
      if (record.bytes >= 0 && static_cast<int64_t>(read.range().bytes()) != record.bytes) {
        __builtin_trap();
      }
      break;
    }
    default: {
      std::vector<float> cost(in.number<uint8_t>());
      for (float& c : cost) c = in.number<float>();
      const cf::Tuning record{.communicator = in.number<uint64_t>(), .cost = cost};
      if (!encoder.put(record)) break;
      const pb::CaptureRecord read = decoded(encoder.bytes());
      if (static_cast<size_t>(read.tuning().cost_size()) != std::min(cost.size(), cf::kMostCosts)) {
        __builtin_trap();
      }
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Fields in(traces::fuzz_bytes(data, size));
  // Of the size that the first byte says, so that some records do not fit.
  std::vector<uint8_t> memory(size_t{in.number<uint8_t>()} << 8);
  cf::Encoder encoder(memory);
  while (!in.done()) {
    one(in, encoder);
    encoder.clear();
  }
  return 0;
}
