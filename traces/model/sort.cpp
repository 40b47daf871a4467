// SPDX-License-Identifier: Apache-2.0
// Sorts the columns of operations with a bounded amount of memory beside them: stretches of kStretch
// operations are sorted by themselves, then neighbours are merged. Only the part in which two neighbours
// overlap is merged, which is short in recordings that are nearly in order; a part that is longer than
// kStretch is cut in two by rotating what lies between, as std::inplace_merge does without a buffer.
#include <algorithm>
#include <numeric>

#include "traces/model/trace.hpp"

namespace rehearse::traces {
namespace {

constexpr size_t kStretch = size_t{1} << 20;

class Sorter {
 public:
  explicit Sorter(Operations& ops) : ops_(ops) {}

  void sort() {
    const size_t n = ops_.size();
    for (size_t first = 0; first < n; first += kStretch) {
      sort_stretch(first, std::min(n, first + kStretch));
    }
    for (size_t width = kStretch; width < n; width *= 2) {
      for (size_t first = 0; first + width < n; first += 2 * width) {
        merge(first, first + width, std::min(n, first + 2 * width));
      }
    }
  }

 private:
  [[nodiscard]] bool before(size_t a, size_t b) const {
    return ops_.start[a] != ops_.start[b] ? ops_.start[a] < ops_.start[b]
                                          : ops_.lane[a] < ops_.lane[b];
  }

  template <typename T>
  void permute(std::vector<T>& column, size_t first) {
    std::vector<T> sorted(order_.size());
    for (size_t i = 0; i < order_.size(); ++i) sorted[i] = column[first + order_[i]];
    std::copy(sorted.begin(), sorted.end(), column.begin() + static_cast<std::ptrdiff_t>(first));
  }

  void permute_all(size_t first) {
    permute(ops_.kind, first);
    permute(ops_.lane, first);
    permute(ops_.name, first);
    permute(ops_.start, first);
    permute(ops_.duration, first);
    permute(ops_.correlation, first);
    permute(ops_.detail, first);
  }

  void sort_stretch(size_t first, size_t last) {
    bool sorted = true;
    for (size_t i = first + 1; sorted && i < last; ++i) sorted = !before(i, i - 1);
    if (sorted) return;
    keys_.resize(last - first);
    for (size_t i = 0; i < keys_.size(); ++i) {
      keys_[i] = {ops_.start[first + i], ops_.lane[first + i], static_cast<uint32_t>(i)};
    }
    sort_keys();
    order_.resize(keys_.size());
    for (size_t i = 0; i < keys_.size(); ++i) order_[i] = keys_[i].index;
    permute_all(first);
  }

  // Recordings are a few ascending lists one behind the other (a thread's operators, then its calls, then
  // kernels): such lists are merged two by two. What has no order at all is sorted.
  void sort_keys() {
    runs_.assign(1, 0);
    for (size_t i = 1; i < keys_.size(); ++i) {
      if (keys_[i] < keys_[i - 1]) runs_.push_back(i);
    }
    if (runs_.size() > keys_.size() / 8) return std::sort(keys_.begin(), keys_.end());
    merged_.resize(keys_.size());
    const auto at = [](std::vector<Key>& keys, size_t i) {
      return keys.begin() + static_cast<std::ptrdiff_t>(i);
    };
    while (runs_.size() > 1) {
      size_t kept = 0;
      for (size_t r = 0; r < runs_.size(); r += 2) {
        const size_t from = runs_[r];
        const size_t middle = r + 1 < runs_.size() ? runs_[r + 1] : keys_.size();
        const size_t to = r + 2 < runs_.size() ? runs_[r + 2] : keys_.size();
        std::merge(at(keys_, from), at(keys_, middle), at(keys_, middle), at(keys_, to),
                   at(merged_, from));
        runs_[kept++] = from;
      }
      runs_.resize(kept);
      keys_.swap(merged_);
    }
  }

  // First of [first, last) that `holds` is true for; it is for all behind.
  template <typename Holds>
  static size_t first_that(size_t first, size_t last, Holds holds) {
    while (first < last) {
      const size_t middle = first + (last - first) / 2;
      holds(middle) ? last = middle : first = middle + 1;
    }
    return first;
  }

  template <typename T>
  static void rotate(std::vector<T>& column, size_t first, size_t middle, size_t last) {
    const auto at = [&](size_t i) { return column.begin() + static_cast<std::ptrdiff_t>(i); };
    std::rotate(at(first), at(middle), at(last));
  }

  void rotate_all(size_t first, size_t middle, size_t last) {
    rotate(ops_.kind, first, middle, last);
    rotate(ops_.lane, first, middle, last);
    rotate(ops_.name, first, middle, last);
    rotate(ops_.start, first, middle, last);
    rotate(ops_.duration, first, middle, last);
    rotate(ops_.correlation, first, middle, last);
    rotate(ops_.detail, first, middle, last);
  }

  // Two sorted neighbours [first, middle) and [middle, last).
  void merge(size_t first, size_t middle, size_t last) {
    if (first == middle || middle == last) return;
    const size_t left = middle - 1, right = middle;
    first = first_that(first, middle, [&](size_t i) { return before(right, i); });
    last = first_that(middle, last, [&](size_t i) { return !before(i, left); });
    if (first == middle || middle == last) return;
    if (last - first <= kStretch) return merge_stretch(first, middle, last);
    size_t cut_left = 0, cut_right = 0;
    if (middle - first > last - middle) {
      cut_left = first + (middle - first) / 2;
      cut_right = first_that(middle, last, [&](size_t i) { return !before(i, cut_left); });
    } else {
      cut_right = middle + (last - middle) / 2;
      cut_left = first_that(first, middle, [&](size_t i) { return before(cut_right, i); });
    }
    rotate_all(cut_left, middle, cut_right);
    const size_t centre = cut_left + (cut_right - middle);
    merge(first, cut_left, centre);
    merge(centre, cut_right, last);
  }

  void merge_stretch(size_t first, size_t middle, size_t last) {
    order_.clear();
    size_t a = first, b = middle;
    while (a < middle || b < last) {
      const bool take_right = a == middle || (b < last && before(b, a));
      order_.push_back(static_cast<uint32_t>((take_right ? b++ : a++) - first));
    }
    permute_all(first);
  }

  struct Key {
    Nanos start = 0;
    uint32_t lane = 0, index = 0;  // in the stretch
    bool operator<(const Key& other) const {
      if (start != other.start) return start < other.start;
      return lane != other.lane ? lane < other.lane : index < other.index;
    }
  };

  Operations& ops_;
  std::vector<uint32_t> order_;
  std::vector<Key> keys_, merged_;
  std::vector<size_t> runs_;  // where ascending lists of keys begin
};

}  // namespace

void Operations::sort() {
  if (dependencies.empty()) return Sorter(*this).sort();
  // Dependencies name operations by index. Where each one is now is found by sorting the indices along,
  // in the place of the correlation ids.
  std::vector<int64_t> ids(size());
  std::iota(ids.begin(), ids.end(), 0);
  const std::vector<int64_t> kept = correlation;
  correlation.swap(ids);
  Sorter(*this).sort();
  std::vector<uint32_t> place(size());
  for (size_t i = 0; i < size(); ++i)
    place[static_cast<size_t>(correlation[i])] = static_cast<uint32_t>(i);
  for (int64_t& id : correlation) id = kept[static_cast<size_t>(id)];
  for (Dependency& d : dependencies) d = {place[d.op], place[d.on]};
  std::sort(dependencies.begin(), dependencies.end(), [](const Dependency& a, const Dependency& b) {
    return a.op != b.op ? a.op < b.op : a.on < b.on;
  });
}

}  // namespace rehearse::traces
