// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "traces/model/rtrace_block.hpp"
#include "traces/model/rtrace_format.hpp"

namespace rehearse::traces {
namespace {

// Last value of each enum that is stored.
constexpr uint32_t kLastDType = static_cast<uint32_t>(DType::kBool);
constexpr uint32_t kLastReduction = static_cast<uint32_t>(Reduction::kProduct);
constexpr uint32_t kLastDirection = static_cast<uint32_t>(CopyDirection::kPeer);
constexpr uint32_t kLastSync = static_cast<uint32_t>(SyncKind::kDevice);

int64_t sum(int64_t value, int64_t difference) {
  return static_cast<int64_t>(static_cast<uint64_t>(value) + static_cast<uint64_t>(difference));
}

template <typename Column>
bool fits(const Column& column, size_t rows) {
  return column.empty() || static_cast<size_t>(column.size()) == rows;
}

// Calls put(i, value) for each value of a column that is present; false when one is above `last`.
template <typename Column, typename Put>
bool each(const Column& column, uint64_t last, const Put& put) {
  uint64_t largest = 0;
  size_t i = 0;
  for (const auto value : column) {
    largest = std::max<uint64_t>(largest, value);
    put(i++, value);
  }
  return largest <= last;
}

// Rows per kind of operation that has a table.
using Rows = std::array<uint32_t, kOpKinds>;

Result<void> decode_calls(const pb::CallColumns& in, size_t rows, const BlockContext& context,
                          std::vector<Call>& out) {
  if (!fits(in.communicator(), rows) || !fits(in.sequence(), rows) ||
      !fits(in.collective(), rows) || !fits(in.bytes_in(), rows) || !fits(in.bytes_out(), rows) ||
      !fits(in.dtype(), rows) || !fits(in.reduction(), rows) || !fits(in.peer(), rows) ||
      !fits(in.group(), rows)) {
    return bad_input(fmt::format("columns of calls that are not {} long", rows));
  }
  if (rows == 0) return {};
  if (context.communicators.empty()) return bad_input("calls in a file without communicators");
  const size_t base = out.size();
  // A column left out is zero; a peer left out is member 0, unlike that of a new Call.
  out.resize(base + rows, Call{.peer = 0});
  Call* const calls = out.data() + base;
  constexpr uint64_t kMaxBytes = INT64_MAX;
  bool ok = each(in.communicator(), context.communicators.size() - 1,
                 [&](size_t i, uint32_t v) { calls[i].communicator = v; });
  if (!ok) return bad_input("call on a communicator that is not in the file");
  ok = each(in.collective(), kCollectives - 1,
            [&](size_t i, uint32_t v) { calls[i].collective = static_cast<Collective>(v); });
  ok &= each(in.dtype(), kLastDType,
             [&](size_t i, uint32_t v) { calls[i].dtype = static_cast<DType>(v); });
  ok &= each(in.reduction(), kLastReduction,
             [&](size_t i, uint32_t v) { calls[i].reduction = static_cast<Reduction>(v); });
  ok &= each(in.bytes_in(), kMaxBytes,
             [&](size_t i, uint64_t v) { calls[i].bytes_in = static_cast<Bytes>(v); });
  ok &= each(in.bytes_out(), kMaxBytes,
             [&](size_t i, uint64_t v) { calls[i].bytes_out = static_cast<Bytes>(v); });
  if (!ok) return bad_input("call with a type or size that does not exist");
  for (int i = 0; i < in.group_size(); ++i) calls[i].group = in.group(i);
  for (int i = 0; i < in.peer_size(); ++i) calls[i].peer = in.peer(i);
  for (size_t i = 0; i < rows; ++i) {
    const size_t members = context.communicators[calls[i].communicator].members.size();
    if (calls[i].peer < -1 || (members > 0 && calls[i].peer >= static_cast<int64_t>(members))) {
      return bad_input(
          fmt::format("call with peer {} on a communicator of {} members", calls[i].peer, members));
    }
  }
  if (in.sequence().empty()) return {};
  std::vector<int64_t> sequences(context.communicators.size(), 0);
  for (size_t i = 0; i < rows; ++i) {
    int64_t& last = sequences[calls[i].communicator];
    last = sum(last, in.sequence(static_cast<int>(i)));
    calls[i].sequence = last;
  }
  return {};
}

Result<void> decode_copies(const pb::CopyColumns& in, size_t rows, std::vector<Copy>& out) {
  if (!fits(in.direction(), rows) || !fits(in.bytes(), rows)) {
    return bad_input(fmt::format("columns of copies that are not {} long", rows));
  }
  const size_t base = out.size();
  out.resize(base + rows);
  bool ok = each(in.direction(), kLastDirection, [&](size_t i, uint32_t v) {
    out[base + i].direction = static_cast<CopyDirection>(v);
  });
  ok &= each(in.bytes(), INT64_MAX,
             [&](size_t i, uint64_t v) { out[base + i].bytes = static_cast<Bytes>(v); });
  return ok ? Result<void>() : bad_input("copy with a direction or size that does not exist");
}

Result<void> decode_syncs(const pb::SyncColumns& in, size_t rows, size_t lanes,
                          std::vector<Sync>& out) {
  if (!fits(in.sync(), rows) || !fits(in.stream_lane(), rows) || !fits(in.event(), rows)) {
    return bad_input(fmt::format("columns of synchronisations that are not {} long", rows));
  }
  const size_t base = out.size();
  out.resize(base + rows, Sync{.sync = SyncKind::kRecord, .stream_lane = 0, .event = 0});
  const bool ok = each(in.sync(), kLastSync, [&](size_t i, uint32_t v) {
    out[base + i].sync = static_cast<SyncKind>(v);
  });
  if (!ok) return bad_input("synchronisation of unknown type");
  for (int i = 0; i < in.stream_lane_size(); ++i) {
    const int32_t lane = in.stream_lane(i);
    if (lane < -1 || lane >= static_cast<int64_t>(lanes)) {
      return bad_input(fmt::format("synchronisation with stream lane {} of {}", lane, lanes));
    }
    out[base + static_cast<size_t>(i)].stream_lane = lane;
  }
  for (int i = 0; i < in.event_size(); ++i) out[base + static_cast<size_t>(i)].event = in.event(i);
  return {};
}

Result<void> decode_memory(const pb::MemoryColumns& in, size_t rows, std::vector<Memory>& out) {
  if (!fits(in.bytes(), rows) || !fits(in.address(), rows)) {
    return bad_input(fmt::format("columns of memory events that are not {} long", rows));
  }
  const size_t base = out.size();
  out.resize(base + rows);
  for (int i = 0; i < in.bytes_size(); ++i) out[base + static_cast<size_t>(i)].bytes = in.bytes(i);
  for (int i = 0; i < in.address_size(); ++i)
    out[base + static_cast<size_t>(i)].address = in.address(i);
  return {};
}

Result<void> decode_times(const pb::OperationBlock& block, size_t base, Operations& ops) {
  Nanos start = 0;
  const Nanos before = base > 0 ? ops.start[base - 1] : -kMaxTime + 1;
  bool ok = true;
  size_t at = base;
  for (const int64_t difference : block.start()) {
    const Nanos next = sum(start, difference);
    ok &= next > -kMaxTime && next < kMaxTime && (at == base || next >= start);
    start = next;
    ops.start[at++] = next;
  }
  if (!ok || (ops.size() > base && ops.start[base] < before)) {
    return bad_input("operations that are not in order of start");
  }
  if (!each(block.duration(), kMaxDuration - 1,
            [&](size_t i, uint64_t v) { ops.duration[base + i] = static_cast<Nanos>(v); })) {
    return bad_input("operation that lasts longer than any run");
  }
  return {};
}

Result<void> decode_dependencies(const pb::OperationBlock& block, size_t base, Operations& ops) {
  if (block.dependent_size() != block.waits_back_size()) {
    return bad_input("columns of dependencies that differ in length");
  }
  uint32_t previous = 0;
  for (int i = 0; i < block.dependent_size(); ++i) {
    const uint32_t dependent = block.dependent(i), back = block.waits_back(i);
    const size_t op = base + dependent;
    if (dependent < previous || dependent >= block.count() || back == 0 || back > op) {
      return bad_input("dependency on an operation that is not before it");
    }
    previous = dependent;
    ops.dependencies.push_back({static_cast<uint32_t>(op), static_cast<uint32_t>(op - back)});
  }
  return {};
}

// Numbers the rows that the operations of this block take.
Result<Rows> decode_details(const pb::OperationBlock& block, size_t base, Operations& ops) {
  Rows next{};
  next[static_cast<size_t>(OpKind::kCall)] = static_cast<uint32_t>(ops.calls.size());
  next[static_cast<size_t>(OpKind::kCopy)] = static_cast<uint32_t>(ops.copies.size());
  next[static_cast<size_t>(OpKind::kSync)] = static_cast<uint32_t>(ops.syncs.size());
  next[static_cast<size_t>(OpKind::kMemory)] = static_cast<uint32_t>(ops.memory.size());
  const Rows first = next;
  const bool ok = each(block.detail(), 1, [&](size_t i, uint32_t takes) {
    uint32_t& row = next[static_cast<size_t>(ops.kind[base + i])];
    row += takes;
    ops.detail[base + i] = takes == 0 ? 0 : row;
  });
  if (!ok) return bad_input("operation with a detail that is neither the next row nor none");
  Rows rows{};
  for (size_t kind = 0; kind < rows.size(); ++kind) {
    rows[kind] = next[kind] - first[kind];
    switch (static_cast<OpKind>(kind)) {
      case OpKind::kCall:
      case OpKind::kCopy:
      case OpKind::kSync:
      case OpKind::kMemory:
        break;
      default:
        if (rows[kind] > 0) return bad_input("operation with a detail that its kind does not have");
    }
  }
  return rows;
}

}  // namespace

Result<void> decode_block(const pb::OperationBlock& block, const BlockContext& context,
                          Operations& ops) {
  const size_t base = ops.size();
  const size_t n = block.count();
  if (n > kOperationsPerBlock) {
    return bad_input(
        fmt::format("block of {} operations; none has more than {}", n, kOperationsPerBlock));
  }
  if (!fits(block.kind(), n) || !fits(block.lane(), n) || !fits(block.name(), n) ||
      !fits(block.start(), n) || !fits(block.duration(), n) || !fits(block.correlation(), n) ||
      !fits(block.detail(), n)) {
    return bad_input(fmt::format("columns of operations that are not {} long", n));
  }
  if (n > 0 && context.lanes.empty()) return bad_input("operations of a rank without lanes");
  ops.kind.resize(base + n);
  ops.lane.resize(base + n);
  ops.name.resize(base + n);
  ops.start.resize(base + n);
  ops.duration.resize(base + n);
  ops.correlation.resize(base + n);
  ops.detail.resize(base + n);
  if (!each(block.kind(), kOpKinds - 1,
            [&](size_t i, uint32_t v) { ops.kind[base + i] = static_cast<OpKind>(v); })) {
    return bad_input("operation of unknown kind");
  }
  if (!each(block.lane(), context.lanes.size() - 1,
            [&](size_t i, uint32_t v) { ops.lane[base + i] = static_cast<uint16_t>(v); })) {
    return bad_input(
        fmt::format("operation on a lane beyond the {} of its rank", context.lanes.size()));
  }
  if (!each(block.name(), context.strings - 1,
            [&](size_t i, uint32_t v) { ops.name[base + i] = v; })) {
    return bad_input(fmt::format("operation with a name beyond the {} strings", context.strings));
  }
  if (auto done = decode_times(block, base, ops); !done) return done;
  if (!block.correlation().empty()) {
    std::vector<int64_t> last(context.lanes.size() * kOpKinds, 0);
    for (size_t i = 0; i < n; ++i) {
      int64_t& correlation =
          last[ops.lane[base + i] * size_t{kOpKinds} + static_cast<size_t>(ops.kind[base + i])];
      correlation = sum(correlation, block.correlation(static_cast<int>(i)));
      ops.correlation[base + i] = correlation;
    }
  }
  RH_TRY(const Rows rows, decode_details(block, base, ops));
  const auto rows_of = [&](OpKind kind) { return size_t{rows[static_cast<size_t>(kind)]}; };
  if (auto done = decode_calls(block.calls(), rows_of(OpKind::kCall), context, ops.calls); !done) {
    return done;
  }
  if (auto done = decode_copies(block.copies(), rows_of(OpKind::kCopy), ops.copies); !done)
    return done;
  if (auto done =
          decode_syncs(block.syncs(), rows_of(OpKind::kSync), context.lanes.size(), ops.syncs);
      !done) {
    return done;
  }
  if (auto done = decode_memory(block.memory(), rows_of(OpKind::kMemory), ops.memory); !done) {
    return done;
  }
  return decode_dependencies(block, base, ops);
}

std::string complaint_about(const RankTrace& rank, size_t strings) {
  // Lane numbers of operations are 16 bits.
  if (rank.lanes.size() > 65'536)
    return fmt::format("rank {} with {} lanes", rank.rank, rank.lanes.size());
  for (const Lane& lane : rank.lanes) {
    if (lane.name >= strings) {
      return fmt::format("lane of rank {} with name {} of {} strings", rank.rank, lane.name,
                         strings);
    }
  }
  for (const Step& step : rank.steps) {
    if (step.start > step.end || step.start <= -kMaxTime || step.end >= kMaxTime) {
      return fmt::format("step {} of rank {} from {} to {} ns", step.number, rank.rank, step.start,
                         step.end);
    }
  }
  if (rank.clock_offset <= -kMaxClockOffset || rank.clock_offset >= kMaxClockOffset) {
    return fmt::format("clock offset {} ns of rank {}", rank.clock_offset, rank.rank);
  }
  if (rank.gpu_memory < 0) return fmt::format("negative GPU memory of rank {}", rank.rank);
  return {};
}

}  // namespace rehearse::traces
