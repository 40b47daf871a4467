// SPDX-License-Identifier: Apache-2.0
// Plain data as a dump holds it: None, booleans, numbers, texts, lists and dicts. Values live in one
// store and name each other by number, so that data which is shared or even contains itself (a
// pickle can say so) costs no more than its bytes. Not thread-safe while being filled.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse::traces::flight_recorder {

using ValueId = uint32_t;

struct Value {
  enum class Kind : uint8_t { kNone, kBool, kInteger, kFloat, kText, kList, kDict };
  Kind kind = Kind::kNone;
  int64_t integer = 0;  // also of kBool
  double number = 0;
  std::string text{};
  std::vector<ValueId> items{};  // of a list; of a dict key, value, key, value, ...
};

class Values {
 public:
  ValueId add(Value value) {
    values_.push_back(std::move(value));
    return static_cast<ValueId>(values_.size() - 1);
  }
  [[nodiscard]] const Value& at(ValueId id) const { return values_[id]; }
  [[nodiscard]] Value& at(ValueId id) { return values_[id]; }
  [[nodiscard]] size_t size() const { return values_.size(); }
  // The last value under a text key of a dict, or null.
  [[nodiscard]] const Value* find(const Value& dict, std::string_view key) const;

 private:
  std::vector<Value> values_;
};

}  // namespace rehearse::traces::flight_recorder
