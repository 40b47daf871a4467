// SPDX-License-Identifier: Apache-2.0
// A column of a rank's program: one value per operation. Copies of a column share their values until one of them is
// written to, so that ranks that do the same hold it once (share.hpp). A column may repeat (repeat.hpp): then
// operation o has the value of the written operation it stands for.
//
// Reading is as cheap as reading a vector. Writing through [] makes the values the column's own first, all of
// them: read through a const reference what is not to be written. Not for several threads while one writes.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "traces/program/repeat.hpp"

namespace rehearse::traces {

template <typename T>
class Column {
 public:
  Column() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a column is made of its values
  Column(std::vector<T> values) : values_(std::make_shared<std::vector<T>>(std::move(values))) {
    refresh();
  }
  Column(std::initializer_list<T> values) : Column(std::vector<T>(values)) {}

  [[nodiscard]] size_t size() const { return repeat_ != nullptr ? repeat_->size() : written(); }
  [[nodiscard]] bool empty() const { return size() == 0; }
  [[nodiscard]] T operator[](size_t op) const {
    return repeat_ == nullptr ? data_[op] : repeated(static_cast<OpId>(op));
  }
  [[nodiscard]] T back() const { return (*this)[size() - 1]; }
  // Of the values that are written down, `written()` of them.
  [[nodiscard]] const T* data() const { return data_; }
  [[nodiscard]] size_t written() const { return values_ == nullptr ? 0 : values_->size(); }

  [[nodiscard]] T& operator[](size_t op) { return own()[op]; }
  void push_back(T value) {
    own().push_back(value);
    refresh();
  }
  void assign(size_t n, T value) {
    repeat_ = nullptr;
    values_ = std::make_shared<std::vector<T>>(n, value);
    refresh();
  }
  void resize(size_t n) {
    own().resize(n);
    refresh();
  }
  void clear() { *this = Column(); }

  // As if the values stood there `repeat->copies()` times. With `stride`, those other than the largest T
  // (none) grow by it with each copy: numbers of calls do.
  void repeat(std::shared_ptr<const Repeat> how, T stride = T{}) {
    repeat_ = std::move(how);
    stride_ = stride;
  }
  // Holds the other's values when they are equal.
  bool share(const Column& other) {
    if (repeat_ != nullptr || other.repeat_ != nullptr || written() != other.written())
      return false;
    if (values_ == other.values_) return true;
    if (values_ == nullptr || *values_ != *other.values_) return false;
    values_ = other.values_;
    refresh();
    return true;
  }
  [[nodiscard]] bool shares_with(const Column& other) const { return values_ == other.values_; }

  bool operator==(const Column& other) const {
    if (size() != other.size()) return false;
    for (size_t op = 0; op < size(); ++op) {
      if ((*this)[op] != other[op]) return false;
    }
    return true;
  }

 private:
  [[nodiscard]] T repeated(OpId op) const {
    const Repeat::Place place = repeat_->locate(op);
    const T value = data_[place.source];
    if constexpr (std::is_arithmetic_v<T>) {
      if (stride_ != T{} && value != std::numeric_limits<T>::max()) {
        return static_cast<T>(value + place.copy * stride_);
      }
    }
    return value;
  }
  std::vector<T>& own() {
    if (repeat_ != nullptr) {
      std::vector<T> all(size());
      for (size_t op = 0; op < all.size(); ++op) all[op] = repeated(static_cast<OpId>(op));
      repeat_ = nullptr;
      values_ = std::make_shared<std::vector<T>>(std::move(all));
    } else if (values_ == nullptr) {
      values_ = std::make_shared<std::vector<T>>();
    } else if (values_.use_count() > 1) {
      values_ = std::make_shared<std::vector<T>>(*values_);
    } else {
      return *values_;
    }
    refresh();
    return *values_;
  }
  void refresh() { data_ = values_->data(); }

  std::shared_ptr<std::vector<T>> values_;  // shared: by ranks that do the same
  const T* data_ = nullptr;                 // of values_
  std::shared_ptr<const Repeat> repeat_;
  T stride_{};
};

}  // namespace rehearse::traces
