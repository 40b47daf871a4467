// SPDX-License-Identifier: Apache-2.0
#include "traces/import/lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace rehearse::traces {

constexpr size_t kBuffer = size_t{256} << 10;

LineReader::LineReader(Source& source, size_t max_line)
    : source_(source), max_line_(max_line), buffer_(kBuffer) {}

Result<bool> LineReader::fill() {
  RH_TRY(end_, source_.read({buffer_.data(), buffer_.size()}));
  pos_ = 0;
  return end_ > 0;
}

Result<bool> LineReader::next(std::string_view& line) {
  line_.clear();
  bool any = false, cut = false;
  while (true) {
    if (pos_ == end_) {
      RH_TRY(const bool more, fill());
      if (!more) break;
    }
    any = true;
    const char* begin = buffer_.data() + pos_;
    const auto* stop = static_cast<const char*>(std::memchr(begin, '\n', end_ - pos_));
    const size_t length = stop == nullptr ? end_ - pos_ : static_cast<size_t>(stop - begin);
    const size_t kept = std::min(length, max_line_ - line_.size());
    line_.append(begin, kept);
    cut = cut || kept < length;
    pos_ += length + (stop == nullptr ? 0 : 1);
    if (stop != nullptr) break;
  }
  if (!any) return false;
  if (!line_.empty() && line_.back() == '\r') line_.pop_back();
  cut_lines_ += cut ? 1 : 0;
  ++number_;
  line = line_;
  return true;
}

std::string LineReader::where() const {
  return fmt::format("{}: line {}", source_.name(), number_);
}

}  // namespace rehearse::traces
