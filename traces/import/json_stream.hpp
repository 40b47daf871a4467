// SPDX-License-Identifier: Apache-2.0
// The elements of one array of a large JSON document, one after the other in bounded memory: either
// the document is the array, or it is an object one of whose members is. All other members of that
// object are kept as text, whether they stand before or behind. Or the documents of a file that holds
// several, one after the other. Elements are found by counting brackets, not parsed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/finding.hpp"
#include "traces/import/json_scan.hpp"
#include "traces/import/source.hpp"

namespace rehearse::traces {

struct JsonLimits {
  size_t max_element = 64 << 20;  // bytes of one element
  size_t max_members = 64 << 20;  // bytes of all other members together
  uint32_t max_depth = 192;
};

struct Element {
  std::string_view text;  // valid until the next call; 64 more bytes are readable behind it
  uint64_t offset = 0;    // of its first byte in the document
  uint64_t number = 0;    // from 0
};

class JsonStream {
 public:
  enum class Next { kElement, kEnd, kCut };

  // `source` outlives the stream; `key` is the member whose array is streamed, e.g. "traceEvents", or ""
  // when every document of the file is an element.
  JsonStream(Source& source, std::string_view key, const JsonLimits& limits);

  // kEnd: the document is complete. kCut: the input ended inside it (stopped() says where).
  [[nodiscard]] Result<Next> next(Element& element);

  // Other members as one JSON object; complete after kEnd, as far as known after kCut.
  [[nodiscard]] std::string members() const;
  [[nodiscard]] bool saw_array() const { return saw_array_; }
  [[nodiscard]] bool bare_array() const { return bare_; }
  [[nodiscard]] uint64_t count() const { return count_; }
  // A finding when something else than blanks stands behind the document, which is not read.
  void tell_trailing(Findings& findings) const;
  // "file: byte 17, event 3".
  [[nodiscard]] std::string where(uint64_t offset) const;
  [[nodiscard]] uint64_t offset() const { return base_ + pos_; }
  // The document ended between two elements rather than inside one.
  [[nodiscard]] bool between_elements() const { return between_; }

 private:
  enum class State { kStart, kKey, kElements, kBehind, kDone };
  [[nodiscard]] Result<bool> more();                      // reads on; false at the end of input
  [[nodiscard]] Result<bool> skip_blank();                // false at the end of input
  [[nodiscard]] Result<bool> take_value(size_t& length);  // measures the value at pos_
  [[nodiscard]] Result<bool> take_string(size_t& length);
  [[nodiscard]] Result<Next> start();
  [[nodiscard]] Result<Next> key();
  [[nodiscard]] Result<Next> elements(Element& element);
  [[nodiscard]] Result<Next> behind();
  [[nodiscard]] tl::unexpected<Error> unexpected_byte(std::string_view wanted) const;
  [[nodiscard]] Result<Next> cut();

  Source& source_;
  std::string key_;
  JsonLimits limits_;
  std::vector<char> buffer_;
  size_t pos_ = 0, end_ = 0;
  uint64_t base_ = 0;  // document offset of buffer_[0]
  State state_ = State::kStart;
  bool bare_ = false, saw_array_ = false, input_ended_ = false, between_ = false;
  std::optional<uint64_t>
      trailing_;  // offset of the first byte behind the document that is not blank
  uint64_t count_ = 0;
  std::string members_;
};

}  // namespace rehearse::traces
