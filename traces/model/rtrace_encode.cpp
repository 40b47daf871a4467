// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "traces/model/rtrace_block.hpp"

namespace rehearse::traces {
namespace {

// A column of zeros is left out.
template <typename Column>
void drop_if_zero(Column* column) {
  for (const auto value : *column) {
    if (value != 0) return;
  }
  column->Clear();
}

int64_t difference(int64_t value, int64_t previous) {
  return static_cast<int64_t>(static_cast<uint64_t>(value) - static_cast<uint64_t>(previous));
}

tl::unexpected<Error> bug(size_t op, const std::string& what) {
  return fail(Code::kInternal, fmt::format("operation {} cannot be written: {}", op, what));
}

struct Encoder {
  const Operations& ops;
  const BlockContext& context;
  pb::OperationBlock& block;
  std::vector<int64_t> sequences;  // last one per communicator

  Result<bool> detail(size_t i);
  Result<void> call(size_t i, const Call& call);
  void drop_zero_columns();
};

Result<void> Encoder::call(size_t i, const Call& call) {
  if (call.communicator >= context.communicators.size()) {
    return bug(
        i, fmt::format("communicator {} of {}", call.communicator, context.communicators.size()));
  }
  const size_t members = context.communicators[call.communicator].members.size();
  if (call.peer < -1 || (members > 0 && call.peer >= static_cast<int64_t>(members))) {
    return bug(i, fmt::format("peer {} of {} members", call.peer, members));
  }
  if (call.bytes_in < 0 || call.bytes_out < 0) return bug(i, "negative bytes of a call");
  pb::CallColumns& out = *block.mutable_calls();
  out.add_communicator(call.communicator);
  out.add_sequence(difference(call.sequence, sequences[call.communicator]));
  sequences[call.communicator] = call.sequence;
  out.add_collective(static_cast<uint32_t>(call.collective));
  out.add_bytes_in(static_cast<uint64_t>(call.bytes_in));
  out.add_bytes_out(static_cast<uint64_t>(call.bytes_out));
  out.add_dtype(static_cast<uint32_t>(call.dtype));
  out.add_reduction(static_cast<uint32_t>(call.reduction));
  out.add_peer(call.peer);
  out.add_group(call.group);
  return {};
}

// True when the operation took a row.
Result<bool> Encoder::detail(size_t i) {
  if (ops.detail[i] == 0) return false;
  if (const Call* c = ops.call(i)) {
    if (auto done = call(i, *c); !done) return tl::unexpected(done.error());
  } else if (const Copy* copy = ops.copy(i)) {
    if (copy->bytes < 0) return bug(i, "negative bytes of a copy");
    block.mutable_copies()->add_direction(static_cast<uint32_t>(copy->direction));
    block.mutable_copies()->add_bytes(static_cast<uint64_t>(copy->bytes));
  } else if (const Sync* sync = ops.sync(i)) {
    if (sync->stream_lane < -1 || sync->stream_lane >= static_cast<int64_t>(context.lanes.size())) {
      return bug(i, fmt::format("stream lane {} of {}", sync->stream_lane, context.lanes.size()));
    }
    block.mutable_syncs()->add_sync(static_cast<uint32_t>(sync->sync));
    block.mutable_syncs()->add_stream_lane(sync->stream_lane);
    block.mutable_syncs()->add_event(sync->event);
  } else if (const Memory* memory = ops.mem(i)) {
    block.mutable_memory()->add_bytes(memory->bytes);
    block.mutable_memory()->add_address(memory->address);
  } else {
    return bug(i, fmt::format("detail {} that its kind ({}) does not have", ops.detail[i],
                              name_of(ops.kind[i])));
  }
  return true;
}

void Encoder::drop_zero_columns() {
  drop_if_zero(block.mutable_kind());
  drop_if_zero(block.mutable_lane());
  drop_if_zero(block.mutable_name());
  drop_if_zero(block.mutable_start());
  drop_if_zero(block.mutable_duration());
  drop_if_zero(block.mutable_correlation());
  drop_if_zero(block.mutable_detail());
  if (block.has_calls()) {
    pb::CallColumns& calls = *block.mutable_calls();
    drop_if_zero(calls.mutable_communicator());
    drop_if_zero(calls.mutable_sequence());
    drop_if_zero(calls.mutable_collective());
    drop_if_zero(calls.mutable_bytes_in());
    drop_if_zero(calls.mutable_bytes_out());
    drop_if_zero(calls.mutable_dtype());
    drop_if_zero(calls.mutable_reduction());
    drop_if_zero(calls.mutable_peer());
    drop_if_zero(calls.mutable_group());
  }
  if (block.has_copies()) {
    drop_if_zero(block.mutable_copies()->mutable_direction());
    drop_if_zero(block.mutable_copies()->mutable_bytes());
  }
  if (block.has_syncs()) {
    drop_if_zero(block.mutable_syncs()->mutable_sync());
    drop_if_zero(block.mutable_syncs()->mutable_stream_lane());
    drop_if_zero(block.mutable_syncs()->mutable_event());
  }
  if (block.has_memory()) {
    drop_if_zero(block.mutable_memory()->mutable_bytes());
    drop_if_zero(block.mutable_memory()->mutable_address());
  }
}

// Dependencies of operations [first, first + count).
Result<void> encode_dependencies(const Operations& ops, size_t first, size_t count,
                                 pb::OperationBlock& block) {
  if (first == 0 && !std::is_sorted(ops.dependencies.begin(), ops.dependencies.end())) {
    return bug(0, "dependencies are not in order (Operations::sort)");
  }
  const auto begin = static_cast<uint32_t>(first), end = static_cast<uint32_t>(first + count);
  auto at =
      std::lower_bound(ops.dependencies.begin(), ops.dependencies.end(), Dependency{begin, 0});
  for (; at != ops.dependencies.end() && at->op < end; ++at) {
    if (at->on >= at->op) {
      return bug(at->op, fmt::format("it depends on operation {}", at->on));
    }
    block.add_dependent(at->op - begin);
    block.add_waits_back(at->op - at->on);
  }
  return {};
}

bool columns_agree(const Operations& ops) {
  const size_t n = ops.size();
  return ops.lane.size() == n && ops.name.size() == n && ops.start.size() == n &&
         ops.duration.size() == n && ops.correlation.size() == n && ops.detail.size() == n;
}

}  // namespace

Result<void> encode_block(const Operations& ops, size_t first, size_t count,
                          const BlockContext& context, pb::OperationBlock& block) {
  if (!columns_agree(ops)) return fail(Code::kInternal, "columns of operations differ in length");
  Encoder encoder{ops, context, block, std::vector<int64_t>(context.communicators.size(), 0)};
  std::vector<int64_t> correlations(context.lanes.size() * kOpKinds, 0);
  const auto room = static_cast<int>(count);
  block.set_count(static_cast<uint32_t>(count));
  for (auto* column :
       {block.mutable_kind(), block.mutable_lane(), block.mutable_name(), block.mutable_detail()}) {
    column->Reserve(room);
  }
  block.mutable_start()->Reserve(room);
  block.mutable_duration()->Reserve(room);
  block.mutable_correlation()->Reserve(room);
  Nanos previous = 0;
  for (size_t i = first; i < first + count; ++i) {
    const size_t lane = ops.lane[i];
    if (lane >= context.lanes.size()) {
      return bug(i, fmt::format("lane {} of {}", lane, context.lanes.size()));
    }
    if (ops.name[i] >= context.strings) {
      return bug(i, fmt::format("name {} of {} strings", ops.name[i], context.strings));
    }
    if (ops.start[i] <= -kMaxTime || ops.start[i] >= kMaxTime || ops.duration[i] < 0 ||
        ops.duration[i] >= kMaxDuration) {
      return bug(i, fmt::format("start {} ns, duration {} ns", ops.start[i], ops.duration[i]));
    }
    if (i > 0 && ops.start[i] < ops.start[i - 1]) {
      return bug(i, "it starts before the one before it (Operations::sort)");
    }
    const auto kind = static_cast<size_t>(ops.kind[i]);
    block.add_kind(static_cast<uint32_t>(kind));
    block.add_lane(static_cast<uint32_t>(lane));
    block.add_name(ops.name[i]);
    block.add_start(ops.start[i] - previous);
    previous = ops.start[i];
    block.add_duration(static_cast<uint64_t>(ops.duration[i]));
    int64_t& correlation = correlations[lane * kOpKinds + kind];
    block.add_correlation(difference(ops.correlation[i], correlation));
    correlation = ops.correlation[i];
    RH_TRY(const bool row, encoder.detail(i));
    block.add_detail(row ? 1 : 0);
  }
  encoder.drop_zero_columns();
  return encode_dependencies(ops, first, count, block);
}

}  // namespace rehearse::traces
