// SPDX-License-Identifier: Apache-2.0
// A cursor over one line of text: takes words, numbers and literals from its front. A taking
// function that returns nothing (or false) leaves the cursor where it was. Blanks before what is
// taken are skipped. Holds a view: the text outlives it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace rehearse::traces {

class Scan {
 public:
  explicit Scan(std::string_view text) : rest_(text) {}
  [[nodiscard]] std::string_view rest() const { return rest_; }
  void skip_blanks();
  [[nodiscard]] bool at_end();
  // Exactly `text`.
  bool literal(std::string_view text);
  // Moves behind the next `text`, wherever it is.
  bool after(std::string_view text);
  // Decimal with sign; fails when it does not fit.
  std::optional<int64_t> integer();
  std::optional<uint64_t> natural();
  // Hexadecimal digits, with or without 0x.
  std::optional<uint64_t> hexadecimal();
  // Decimal number with fraction or exponent; finite ones only.
  std::optional<double> number();
  // Up to the next blank.
  std::optional<std::string_view> word();

 private:
  std::string_view rest_;
};

[[nodiscard]] std::string_view trimmed(std::string_view text);

}  // namespace rehearse::traces
