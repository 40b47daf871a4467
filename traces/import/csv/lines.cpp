// SPDX-License-Identifier: Apache-2.0
#include "traces/import/csv/lines.hpp"

#include <fmt/format.h>

namespace rehearse::traces::csv {
namespace {

constexpr size_t kBlock = 256 << 10;
constexpr size_t kLongestLine = 1 << 20;

}  // namespace

Result<int> Lines::byte() {
  if (at_ == size_) {
    if (block_.empty()) block_.resize(kBlock);
    RH_TRY(size_, source_.read(block_));
    at_ = 0;
    if (size_ == 0) return -1;
  }
  return static_cast<unsigned char>(block_[at_++]);
}

Result<Lines::Next> Lines::next() {
  for (;;) {
    used_ = 0;
    number_ = next_number_;
    size_t length = 0;
    bool quoted = false, any = false, after_quote = false;
    std::string* field = nullptr;
    const auto open = [&] {
      if (used_ == fields_.size()) fields_.emplace_back();
      field = &fields_[used_++];
      field->clear();
    };
    open();
    int c = 0;
    for (;;) {
      auto got = byte();
      if (!got) {
        if (source_.cut()) return Next::kCut;
        return tl::unexpected(std::move(got).error());
      }
      c = *got;
      if (c < 0) break;
      if (++length > kLongestLine) {
        return fail(Code::kLimit, "a line of more than 1 MiB",
                    fmt::format("{}:{}", source_.name(), number_), "check the quotes of the file");
      }
      if (c == '\n') ++next_number_;
      if (quoted) {
        if (c == '"') {
          quoted = false;
          after_quote = true;
        } else {
          field->push_back(static_cast<char>(c));
        }
        continue;
      }
      if (c == '"' && (field->empty() || after_quote)) {
        if (after_quote) field->push_back('"');
        quoted = true;
        after_quote = false;
        any = true;
        continue;
      }
      after_quote = false;
      if (c == '\n') break;
      if (c == '\r') continue;
      any = true;
      if (c == separator_) {
        open();
      } else {
        field->push_back(static_cast<char>(c));
      }
    }
    newline_ = c == '\n';
    if (quoted) return Next::kCut;
    if (any) return Next::kLine;
    if (c < 0) return Next::kEnd;
  }
}

}  // namespace rehearse::traces::csv
