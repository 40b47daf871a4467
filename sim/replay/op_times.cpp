// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/op_times.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace rehearse::sim {
namespace {

// Zeroed memory that costs nothing where nobody writes to it.
std::shared_ptr<int64_t[]> untouched(size_t entries) {
  auto* data = static_cast<int64_t*>(std::calloc(std::max<size_t>(1, entries), sizeof(int64_t)));
  if (data == nullptr) throw std::bad_alloc();
  return {data, [](int64_t* at) { std::free(at); }};
}

}  // namespace

OpTimes::OpTimes(const traces::RankProgram& rank)
    : data_(untouched(rank.size())), repeat_(rank.repeat), size_(rank.size()) {
  if (repeat_ == nullptr) {
    at_ = {0, static_cast<OpId>(size_), 0, 0};
  } else {
    lanes_.resize(repeat_->lanes());
  }
}

std::vector<Nanos> OpTimes::all() const {
  std::vector<Nanos> out;
  out.reserve(size_);
  for (OpId op = 0; op < size_; ++op) out.push_back((*this)[op]);
  return out;
}

OpTimes::Stretch OpTimes::stretch_of(OpId op) const {
  const traces::Repeat::Stretch found = repeat_->stretch_of(op);
  const Stretch own{found.first, found.length, 0, 0};
  if (!found.repeated || found.copy >= settled_) return own;
  const Alike& alike = alike_[found.copy * lanes_.size() + found.lane];
  return {found.first, found.length, (found.copy - alike.copy) * found.length, alike.shift};
}

void OpTimes::settle(uint32_t copies) {
  for (; settled_ < copies; ++settled_) {
    for (size_t lane = 0; lane < lanes_.size(); ++lane) settle_lane(lane, settled_);
  }
  at_ = {};
}

void OpTimes::settle_lane(size_t lane, uint32_t copy) {
  LaneOf& of = lanes_[lane];
  const OpId length = repeat_->steps(lane);
  const int64_t* own = data_.get() + repeat_->steps_begin(lane, copy);
  const int64_t* like = data_.get() + repeat_->steps_begin(lane, of.like);
  bool alike = copy > 0 && length > 0;
  for (OpId i = 1; i < length && alike; ++i) alike = own[i] - own[0] == like[i] - like[0];
  if (!alike) {
    of.like = copy;
    alike_.push_back({copy, 0});
    return;
  }
  alike_.push_back({of.like, like[0] - own[0]});  // both are inverted
  const OpId first = repeat_->steps_begin(lane, copy);
  let_go(of, first, first + length);
}

// Whole pages of memory, of neighbouring copies together.
void OpTimes::let_go(LaneOf& of, OpId first, OpId past) {
  if (of.until != first) of.from = first;
  of.until = past;
  released_ += past - first;
  static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto address = [&](OpId op) { return reinterpret_cast<uintptr_t>(data_.get() + op); };
  const uintptr_t begin =
      (std::max(address(of.from), address(first) / page * page) + page - 1) / page * page;
  const uintptr_t end = address(past) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace rehearse::sim
