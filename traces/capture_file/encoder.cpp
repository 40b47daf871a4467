// SPDX-License-Identifier: Apache-2.0
#include "traces/capture_file/encoder.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>

#include "traces/capture_file/wire.hpp"

namespace rehearse::capture_file {
namespace {

// At most `most` bytes, without half a UTF-8 character at the end.
std::string_view clip(std::string_view text, size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<uint8_t>(text[most]) & 0xc0) == 0x80) --most;
  return text.substr(0, most);
}

// Where the check field of a record and the message inside it begin.
constexpr size_t kCheck = 3, kTag = 8;
constexpr size_t head_of(uint32_t field) { return field < 16 ? kTag + 3 : kTag + 4; }

// A length in two bytes whatever it is, so that it can be filled in later.
void put_length(uint8_t* at, size_t length) {
  at[0] = static_cast<uint8_t>(length | 0x80);
  at[1] = static_cast<uint8_t>(length >> 7);
}

}  // namespace

uint32_t check_of(std::span<const uint8_t> bytes) {
  return static_cast<uint32_t>(XXH3_64bits(bytes.data(), bytes.size()));
}

uint8_t* Encoder::room_for(uint32_t field, size_t message_bytes) {
  const size_t head = head_of(field);
  if (memory_.size() - used_ < head + message_bytes) return nullptr;
  return memory_.data() + used_ + head;
}

bool Encoder::close(uint32_t field, uint8_t* end) {
  uint8_t* const record = memory_.data() + used_;
  const size_t head = head_of(field);
  record[0] = 1 << 3 | 2;
  put_length(record + 1, static_cast<size_t>(end - record) - kCheck);
  record[kCheck] = 1 << 3 | 5;
  if (field < 16) {
    record[kTag] = static_cast<uint8_t>(field << 3 | 2);
  } else {
    put_length(record + kTag, field << 3 | 2);
  }
  put_length(record + head - 2, static_cast<size_t>(end - record) - head);
  const uint32_t check = check_of({record + kTag, end});
  for (size_t i = 0; i < 4; ++i) record[kCheck + 1 + i] = static_cast<uint8_t>(check >> (8 * i));
  used_ = static_cast<size_t>(end - memory_.data());
  ++records_;
  return true;
}

bool Encoder::put(const Session& r) {
  uint8_t* const at = room_for(2, 16 * kWidestNumber + 4 * (kLongestName + 4));
  if (at == nullptr) return false;
  Wire w(at);
  w.text(1, kMagic);
  w.number(2, kVersion);
  w.integer(3, r.origin);
  w.number(4, r.process);
  w.text(5, clip(r.host, kLongestName));
  w.present(6, r.rank);
  w.present(7, r.world_size);
  w.present(8, r.local_rank);
  w.text(9, clip(r.program, kLongestName));
  w.text(10, clip(r.library, kLongestName));
  w.number(11, r.cupti_version);
  w.number(12, r.nccl_version);
  return close(2, w.end());
}

bool Encoder::put(const String& r) {
  const std::string_view text = clip(r.text, kLongestText);
  uint8_t* const at = room_for(3, 2 * kWidestNumber + text.size());
  if (at == nullptr) return false;
  Wire w(at);
  w.number(1, r.id);
  w.text(2, text);
  return close(3, w.end());
}

bool Encoder::put(const Kernel& r) {
  uint8_t* const at = room_for(4, 18 * kWidestNumber);
  if (at == nullptr) return false;
  Wire w(at);
  w.zigzag(1, r.start);
  w.number(2, r.duration);
  w.number(3, r.name);
  w.number(4, r.device);
  w.number(5, r.stream);
  w.number(6, r.correlation);
  w.number(7, r.context);
  w.number(8, r.grid.x);
  w.number(9, r.grid.y);
  w.number(10, r.grid.z);
  w.number(11, r.block.x);
  w.number(12, r.block.y);
  w.number(13, r.block.z);
  w.number(14, r.registers);
  w.number(15, r.static_shared);
  w.number(16, r.dynamic_shared);
  w.number(17, r.graph_node);
  w.number(18, r.graph);
  return close(4, w.end());
}

bool Encoder::put(const Api& r) {
  uint8_t* const at = room_for(5, 7 * kWidestNumber);
  if (at == nullptr) return false;
  Wire w(at);
  w.zigzag(1, r.start);
  w.number(2, r.duration);
  w.number(3, r.name);
  w.number(4, r.thread);
  w.number(5, r.correlation);
  w.integer(6, r.result);
  w.number(7, r.driver ? 1 : 0);
  return close(5, w.end());
}

bool Encoder::put(const Copy& r) {
  uint8_t* const at = room_for(6, 11 * kWidestNumber);
  if (at == nullptr) return false;
  Wire w(at);
  w.zigzag(1, r.start);
  w.number(2, r.duration);
  w.number(3, r.bytes);
  w.number(4, r.kind);
  w.number(5, r.device);
  w.number(6, r.stream);
  w.number(7, r.correlation);
  w.number(8, r.context);
  w.present(9, r.from_device);
  w.present(10, r.to_device);
  w.number(11, r.graph_node);
  return close(6, w.end());
}

bool Encoder::put(const Fill& r) {
  uint8_t* const at = room_for(7, 8 * kWidestNumber);
  if (at == nullptr) return false;
  Wire w(at);
  w.zigzag(1, r.start);
  w.number(2, r.duration);
  w.number(3, r.bytes);
  w.number(4, r.device);
  w.number(5, r.stream);
  w.number(6, r.correlation);
  w.number(7, r.context);
  w.number(8, r.graph_node);
  return close(7, w.end());
}

bool Encoder::put(const Wait& r) {
  uint8_t* const at = room_for(8, 8 * kWidestNumber);
  if (at == nullptr) return false;
  Wire w(at);
  w.zigzag(1, r.start);
  w.number(2, r.duration);
  w.number(3, r.type);
  w.number(4, r.correlation);
  w.present(5, r.stream);
  w.number(6, r.event);
  w.number(7, r.context);
  w.number(8, r.event_sync);
  return close(8, w.end());
}

bool Encoder::put(const Event& r) {
  uint8_t* const at = room_for(9, 7 * kWidestNumber);
  if (at == nullptr) return false;
  Wire w(at);
  w.number(1, r.correlation);
  w.number(2, r.event);
  w.number(3, r.stream);
  w.number(4, r.context);
  w.number(5, r.device);
  w.number(6, r.event_sync);
  w.zigzag(7, r.at);
  return close(9, w.end());
}

bool Encoder::put(const Correlation& r) {
  uint8_t* const at = room_for(10, 3 * kWidestNumber);
  if (at == nullptr) return false;
  Wire w(at);
  w.number(1, r.kind);
  w.number(2, r.external);
  w.number(3, r.correlation);
  return close(10, w.end());
}

bool Encoder::put(const Range& r) {
  uint8_t* const at = room_for(11, 14 * kWidestNumber);
  if (at == nullptr) return false;
  Wire w(at);
  w.zigzag(1, r.start);
  w.present(2, r.duration);
  w.number(3, r.thread);
  w.number(4, r.domain);
  w.number(5, r.name);
  w.number(6, r.process_wide ? 1 : 0);
  w.number(7, r.communicator);
  w.present(8, r.bytes);
  w.present(9, r.reduction);
  w.present(10, r.root);
  w.present(11, r.peer);
  w.present(12, r.ranks);
  w.present(13, r.rank);
  w.present(14, r.device);
  return close(11, w.end());
}

bool Encoder::put(const NcclStart& r) {
  uint8_t* const at = room_for(12, 22 * kWidestNumber);
  if (at == nullptr) return false;
  Wire w(at);
  w.number(1, r.id);
  w.number(2, r.type);
  w.number(3, r.parent);
  w.zigzag(4, r.at);
  w.number(5, r.thread);
  w.number(6, r.communicator);
  w.number(7, r.function);
  w.number(8, r.count);
  w.number(9, r.datatype);
  w.present(10, r.root);
  w.present(11, r.sequence);
  w.number(12, r.channels);
  w.number(13, r.warps);
  w.number(14, r.algorithm);
  w.number(15, r.protocol);
  w.number(16, r.channel);
  w.number(17, r.steps);
  w.number(18, r.chunk);
  w.number(19, r.send ? 1 : 0);
  w.number(20, r.graph_captured ? 1 : 0);
  w.number(21, r.step);
  w.number(22, r.gpu_time);
  return close(12, w.end());
}

bool Encoder::put(const NcclState& r) {
  uint8_t* const at = room_for(13, 5 * kWidestNumber);
  if (at == nullptr) return false;
  Wire w(at);
  w.number(1, r.id);
  w.number(2, r.state);
  w.zigzag(3, r.at);
  w.number(4, r.bytes);
  w.number(5, r.gpu_time);
  return close(13, w.end());
}

bool Encoder::put(const NcclStop& r) {
  uint8_t* const at = room_for(14, 2 * kWidestNumber);
  if (at == nullptr) return false;
  Wire w(at);
  w.number(1, r.id);
  w.zigzag(2, r.at);
  return close(14, w.end());
}

bool Encoder::put(const Communicator& r) {
  uint8_t* const at = room_for(15, 6 * kWidestNumber + kLongestName);
  if (at == nullptr) return false;
  Wire w(at);
  w.number(1, r.id);
  w.text(2, clip(r.name, kLongestName));
  w.number(3, r.nodes);
  w.number(4, r.ranks);
  w.number(5, r.rank);
  w.zigzag(6, r.at);
  return close(15, w.end());
}

bool Encoder::put(const Graph& r) {
  uint8_t* const at = room_for(16, 7 * kWidestNumber);
  if (at == nullptr) return false;
  Wire w(at);
  w.zigzag(1, r.start);
  w.number(2, r.duration);
  w.number(3, r.graph);
  w.number(4, r.device);
  w.number(5, r.stream);
  w.number(6, r.correlation);
  w.number(7, r.context);
  return close(16, w.end());
}

bool Encoder::put(const Overhead& r) {
  uint8_t* const at = room_for(17, 4 * kWidestNumber);
  if (at == nullptr) return false;
  Wire w(at);
  w.zigzag(1, r.start);
  w.number(2, r.duration);
  w.number(3, r.kind);
  w.number(4, r.thread);
  return close(17, w.end());
}

bool Encoder::put(const Memory& r) {
  uint8_t* const at = room_for(18, 5 * kWidestNumber);
  if (at == nullptr) return false;
  Wire w(at);
  w.zigzag(1, r.at);
  w.zigzag(2, r.bytes);
  w.number(3, r.block);
  w.number(4, r.device);
  w.number(5, r.thread);
  return close(18, w.end());
}

bool Encoder::put(const Thread& r) {
  uint8_t* const at = room_for(19, 2 * kWidestNumber);
  if (at == nullptr) return false;
  Wire w(at);
  w.number(1, r.thread);
  w.number(2, r.name);
  return close(19, w.end());
}

bool Encoder::put(const Device& r) {
  uint8_t* const at = room_for(20, 5 * kWidestNumber + 2 * kLongestName);
  if (at == nullptr) return false;
  Wire w(at);
  w.number(1, r.device);
  w.text(2, clip(r.model, kLongestName));
  w.number(3, r.memory);
  w.text(4, clip(r.bus, kLongestName));
  w.number(5, r.multiprocessors);
  return close(20, w.end());
}

bool Encoder::put(const Variable& r) {
  const std::string_view value = clip(r.value, kLongestText);
  uint8_t* const at = room_for(21, 2 * kWidestNumber + kLongestName + value.size());
  if (at == nullptr) return false;
  Wire w(at);
  w.text(1, clip(r.name, kLongestName));
  w.text(2, value);
  return close(21, w.end());
}

bool Encoder::put(const Clock& r) {
  uint8_t* const at = room_for(22, 3 * kWidestNumber);
  if (at == nullptr) return false;
  Wire w(at);
  w.zigzag(1, r.at);
  w.integer(2, r.monotonic);
  w.number(3, r.gpu);
  return close(22, w.end());
}

bool Encoder::put(const Drops& r) {
  uint8_t* const at = room_for(23, 2 * kWidestNumber);
  if (at == nullptr) return false;
  Wire w(at);
  w.number(1, r.source);
  w.number(2, r.records);
  return close(23, w.end());
}

bool Encoder::put(const Message& r) {
  const std::string_view text = clip(r.text, kLongestText);
  uint8_t* const at = room_for(24, kWidestNumber + text.size());
  if (at == nullptr) return false;
  Wire w(at);
  w.text(1, text);
  return close(24, w.end());
}

bool Encoder::put(const Tuning& r) {
  uint8_t* const at = room_for(25, 9 * kWidestNumber + 4 * kMostCosts);
  if (at == nullptr) return false;
  Wire w(at);
  w.number(1, r.communicator);
  w.number(2, r.function);
  w.number(3, r.bytes);
  w.number(4, r.algorithms);
  w.number(5, r.protocols);
  w.packed(6, r.cost.first(std::min(r.cost.size(), kMostCosts)));
  w.number(7, r.ranks);
  w.number(8, r.nodes);
  w.number(9, r.operations);
  return close(25, w.end());
}

bool Encoder::put(const End& r) {
  uint8_t* const at = room_for(26, kWidestNumber);
  if (at == nullptr) return false;
  Wire w(at);
  w.number(1, r.records);
  return close(26, w.end());
}

bool Encoder::put(const Library& r) {
  uint8_t* const at = room_for(27, 2 * kWidestNumber + kLongestName);
  if (at == nullptr) return false;
  Wire w(at);
  w.text(1, clip(r.name, kLongestName));
  w.number(2, r.version);
  return close(27, w.end());
}

}  // namespace rehearse::capture_file
