// SPDX-License-Identifier: Apache-2.0
#include "traces/capture/blocks.hpp"

#include <algorithm>

#include "traces/capture/pages.hpp"

namespace rehearse::capture {

bool Blocks::prepare(size_t bytes) {
  lock_.unlock();
  if (memory_ == nullptr) {
    count_ = std::max<size_t>(bytes / kBlockBytes, 2);
    memory_ = map_pages<Block>(count_);
  }
  fresh_ = 0;
  free_ = first_ = last_ = nullptr;
  return memory_ != nullptr;
}

Block* Blocks::take() {
  if (!lock_.lock()) return nullptr;
  Block* block = free_;
  if (block != nullptr) {
    free_ = block->next;
  } else if (fresh_ < count_) {
    block = memory_ + fresh_++;
  }
  lock_.unlock();
  if (block != nullptr) block->used = block->records = 0;
  return block;
}

void Blocks::give_back(Block* block) {
  if (!lock_.lock()) return;
  block->next = free_;
  free_ = block;
  lock_.unlock();
}

void Blocks::queue(Block* full) {
  if (!lock_.lock()) return;
  full->next = nullptr;
  (last_ == nullptr ? first_ : last_->next) = full;
  last_ = full;
  lock_.unlock();
}

Block* Blocks::queued() {
  if (!lock_.lock()) return nullptr;
  Block* const all = first_;
  first_ = last_ = nullptr;
  lock_.unlock();
  return all;
}

}  // namespace rehearse::capture
