// SPDX-License-Identifier: Apache-2.0
#include "traces/model/trace.hpp"

#include <algorithm>
#include <array>

namespace rehearse::traces {

const char* name_of(OpKind kind) {
  static constexpr std::array<const char*, kOpKinds> kNames = {
      "host", "launch", "kernel", "copy",       "memset",
      "call", "sync",   "memory", "annotation", "graph-launch"};
  return kNames[static_cast<size_t>(kind)];
}

const char* name_of(Collective collective) {
  static constexpr std::array<const char*, kCollectives> kNames = {
      "all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all",
      "gather",     "scatter",    "barrier",        "send",      "recv"};
  return kNames[static_cast<size_t>(collective)];
}

namespace {

struct DTypeFacts {
  const char* name;
  int size;
};
constexpr std::array<DTypeFacts, 13> kDTypes = {{{"unknown", 0},
                                                 {"int8", 1},
                                                 {"uint8", 1},
                                                 {"int32", 4},
                                                 {"uint32", 4},
                                                 {"int64", 8},
                                                 {"uint64", 8},
                                                 {"fp16", 2},
                                                 {"bf16", 2},
                                                 {"fp32", 4},
                                                 {"fp64", 8},
                                                 {"fp8", 1},
                                                 {"bool", 1}}};

template <typename T>
const T* detail_of(const std::vector<T>& table, uint32_t detail) {
  return detail == 0 || detail > table.size() ? nullptr : &table[detail - 1];
}

}  // namespace

const char* name_of(DType dtype) { return kDTypes[static_cast<size_t>(dtype)].name; }
int size_of(DType dtype) { return kDTypes[static_cast<size_t>(dtype)].size; }

void Operations::reserve(size_t n) {
  kind.reserve(n);
  lane.reserve(n);
  name.reserve(n);
  start.reserve(n);
  duration.reserve(n);
  correlation.reserve(n);
  detail.reserve(n);
}

size_t Operations::add(OpKind k, LaneId l, uint32_t name_id, Nanos begin, Nanos length,
                       int64_t corr) {
  kind.push_back(k);
  lane.push_back(static_cast<uint16_t>(l));
  name.push_back(name_id);
  start.push_back(begin);
  duration.push_back(length);
  correlation.push_back(corr);
  detail.push_back(0);
  return kind.size() - 1;
}

size_t Operations::add_call(LaneId l, uint32_t name_id, Nanos begin, Nanos length, int64_t corr,
                            const Call& c) {
  const size_t op = add(OpKind::kCall, l, name_id, begin, length, corr);
  calls.push_back(c);
  detail[op] = static_cast<uint32_t>(calls.size());
  return op;
}

size_t Operations::add_copy(LaneId l, uint32_t name_id, Nanos begin, Nanos length, int64_t corr,
                            const Copy& c) {
  const size_t op = add(OpKind::kCopy, l, name_id, begin, length, corr);
  copies.push_back(c);
  detail[op] = static_cast<uint32_t>(copies.size());
  return op;
}

size_t Operations::add_sync(LaneId l, uint32_t name_id, Nanos begin, Nanos length, int64_t corr,
                            const Sync& s) {
  const size_t op = add(OpKind::kSync, l, name_id, begin, length, corr);
  syncs.push_back(s);
  detail[op] = static_cast<uint32_t>(syncs.size());
  return op;
}

size_t Operations::add_memory(LaneId l, uint32_t name_id, Nanos at, const Memory& m) {
  const size_t op = add(OpKind::kMemory, l, name_id, at, 0, 0);
  memory.push_back(m);
  detail[op] = static_cast<uint32_t>(memory.size());
  return op;
}

const Call* Operations::call(size_t op) const {
  return kind[op] == OpKind::kCall ? detail_of(calls, detail[op]) : nullptr;
}
const Sync* Operations::sync(size_t op) const {
  return kind[op] == OpKind::kSync ? detail_of(syncs, detail[op]) : nullptr;
}
const Copy* Operations::copy(size_t op) const {
  return kind[op] == OpKind::kCopy ? detail_of(copies, detail[op]) : nullptr;
}
const Memory* Operations::mem(size_t op) const {
  return kind[op] == OpKind::kMemory ? detail_of(memory, detail[op]) : nullptr;
}

Strings::Strings() { intern(""); }

uint32_t Strings::intern(std::string_view text) {
  if (auto found = ids_.find(text); found != ids_.end()) return found->second;
  const auto id = static_cast<uint32_t>(values_.size());
  values_.emplace_back(text);
  ids_.emplace(values_.back(), id);
  return id;
}

size_t Trace::operations() const {
  size_t n = 0;
  for (const RankTrace& r : ranks) n += r.ops.size();
  return n;
}

}  // namespace rehearse::traces
