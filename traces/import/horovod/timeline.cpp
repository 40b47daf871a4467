// SPDX-License-Identifier: Apache-2.0
#include "traces/import/horovod/timeline.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "traces/import/limits.hpp"
#include "traces/import/names.hpp"

namespace rehearse::traces::horovod {
namespace {

constexpr size_t kMostRows = 60'000;
constexpr size_t kDeepest = 64;
constexpr size_t kLongestTensorName = 1024;
constexpr RankId kMostHorovodRank = 1 << 20;

struct Operation {
  std::string_view name;
  std::optional<Collective> collective;
};
constexpr std::array<Operation, 9> kOperations = {{{"ALLREDUCE", Collective::kAllReduce},
                                                   {"ADASUM", Collective::kAllReduce},
                                                   {"ALLGATHER", Collective::kAllGather},
                                                   {"BROADCAST", Collective::kBroadcast},
                                                   {"REDUCESCATTER", Collective::kReduceScatter},
                                                   {"ALLTOALL", Collective::kAllToAll},
                                                   {"BARRIER", Collective::kBarrier},
                                                   {"JOIN", std::nullopt},
                                                   {"ERROR", std::nullopt}}};

const Operation* operation_of(std::string_view name) {
  for (const Operation& o : kOperations) {
    if (o.name == name) return &o;
  }
  return nullptr;
}

// NCCL_ALLREDUCE, MPI_BCAST, GLOO_..., CCL_...: the activities in which bytes travel.
bool moves_data(std::string_view name) {
  for (const std::string_view library : {"NCCL_", "MPI_", "GLOO_", "CCL_", "MLSL_", "DDL_"}) {
    if (name.starts_with(library)) return true;
  }
  return false;
}

std::optional<RankId> rank_of(std::string_view name) {
  RankId rank = 0;
  const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), rank);
  if (name.empty() || error != std::errc() || stop != name.data() + name.size() ||
      rank >= kMostHorovodRank) {
    return std::nullopt;
  }
  return rank;
}

}  // namespace

std::optional<int64_t> elements_of(std::string_view shape) {
  if (shape.size() < 2 || shape.front() != '[' || shape.back() != ']') return std::nullopt;
  int64_t product = 1;
  const char* at = shape.data() + 1;
  const char* const end = shape.data() + shape.size() - 1;
  while (at < end && (*at == ' ' || *at == ',')) ++at;
  while (at < end) {
    int64_t size = 0;
    const auto [stop, error] = std::from_chars(at, end, size);
    if (error != std::errc() || size < 0 || __builtin_mul_overflow(product, size, &product) ||
        product >= (int64_t{1} << 47)) {
      return std::nullopt;
    }
    at = stop;
    while (at < end && (*at == ' ' || *at == ',')) ++at;
  }
  return product;
}

std::string Timeline::at(const Place& place) const {
  return fmt::format("{}: byte {}, event {}", file_, place.offset, place.number);
}

Timeline::Row* Timeline::row_of(int64_t pid, const Place& place) {
  const auto known = rows_.find(pid);
  if (known != rows_.end()) return &known->second;
  if (rows_.size() >= kMostRows) {
    findings_.add("too-many-tensors", Severity::kDataLoss, at(place),
                  "more tensors than a trace can hold rows; they are left out");
    return nullptr;
  }
  Row row;
  const std::string name = fmt::format("tensor {}", pid);
  const auto [id, added] = ids_.emplace(name, static_cast<uint32_t>(tensors_.size()));
  if (added) tensors_.push_back(name);
  row.tensor = id->second;
  return &rows_.emplace(pid, std::move(row)).first->second;
}

void Timeline::metadata(const Event& event, const Place& place) {
  if (event.epoch_micros) {
    if (*event.epoch_micros <= 0 || *event.epoch_micros > kLatest / 1000) {
      findings_.add("bad-base-time", Severity::kWarning, at(place),
                    "the start of the recording makes no sense; times are taken without it");
    } else {
      epoch_ = *event.epoch_micros * 1000;
    }
    return;
  }
  if (event.name != "process_name" || event.label.empty()) return;
  const std::string name(event.label.substr(0, kLongestTensorName));
  if (rows_.size() >= kMostRows && !rows_.contains(event.pid)) {
    row_of(event.pid, place);  // says so
    return;
  }
  const auto [id, added] = ids_.emplace(name, static_cast<uint32_t>(tensors_.size()));
  if (added) tensors_.push_back(name);
  Row& row = rows_[event.pid];
  row.tensor = id->second;
  row.named = true;
}

void Timeline::add(const Event& event, const Place& place) {
  if (event.phase == 'M') return metadata(event, place);
  if (event.phase != 'B' && event.phase != 'E' && event.phase != 'X' && event.phase != 'i' &&
      event.phase != 'I') {
    findings_.add("unused-phase", Severity::kInfo, at(place), "not an event that Horovod writes");
    return;
  }
  if (!event.time || *event.time < -kLatest || *event.time > kLatest) {
    findings_.add("event-without-time", Severity::kDataLoss, at(place),
                  "events without a readable ts are left out");
    return;
  }
  if (event.phase == 'i' || event.phase == 'I') {
    if (event.name == "CYCLE_START") {
      cycles_.push_back(*event.time);
    } else {
      findings_.add("instant-events", Severity::kInfo, at(place),
                    "marks other than cycles are not kept");
    }
    return;
  }
  Row* row = row_of(event.pid, place);
  if (row == nullptr) return;
  if (event.phase == 'B') return begin(*row, event, place);
  if (event.phase == 'E') return end(*row, event, place);
  tick(*row, event, place);
}

// While a tensor is negotiated, a mark of no length per rank that is ready; rewritten files give it one.
void Timeline::tick(Row& row, const Event& event, const Place& place) {
  const auto rank = rank_of(event.name);
  if (!rank) {
    findings_.add("instant-events", Severity::kInfo, at(place),
                  "marks other than cycles are not kept");
    return;
  }
  ticks_.push_back({row.tensor, {*rank, *event.time}});
  row.ready.push_back({*rank, *event.time});
}

void Timeline::begin(Row& row, const Event& event, const Place& place) {
  if (row.open.size() >= kDeepest) {
    findings_.add("phases-too-deep", Severity::kDataLoss, at(place), "left out");
    return;
  }
  const std::string name(event.name.substr(0, kLongestTensorName));
  if (row.open.empty()) {
    if (name.starts_with("NEGOTIATE_")) row.ready.clear();
    if (const Operation* operation = operation_of(name)) {
      if (name == "ERROR") {
        findings_.add("collective-failed", Severity::kWarning, at(place),
                      "Horovod answered this tensor with an error");
      }
      if (operation->collective) {
        row.call.emplace();
        row.call->tensor = row.tensor;
        row.call->collective = *operation->collective;
        row.call->name = name;
        row.call->start = row.call->end = *event.time;
        row.moved = false;
      }
    }
  } else if (row.call && moves_data(name) && !row.moved) {
    row.call->name = name;
    row.call->start = *event.time;
  }
  row.open.push_back({name, *event.time});
}

void Timeline::close_call(Row& row, const Event& event, const Place& place) {
  TensorCall& call = *row.call;
  if (!row.moved) call.end = *event.time;
  call.dtype = dtype_of(event.dtype);
  const int width = element_bytes(event.dtype);
  const auto elements = event.shape.empty() ? std::nullopt : elements_of(event.shape);
  if (!event.dtype.empty() && width == 0) {
    findings_.add("unknown-dtype", Severity::kWarning,
                  fmt::format("{}: {}", at(place), event.dtype),
                  "the bytes of these collectives are not known");
  }
  if (!event.shape.empty() && !elements) {
    findings_.add("unknown-shape", Severity::kWarning,
                  fmt::format("{}: {}", at(place), event.shape),
                  "the bytes of these collectives are not known");
  }
  if (elements && width > 0) call.bytes = *elements * width;
  call.ready = std::move(row.ready);
  row.ready.clear();
  calls_.push_back(std::move(call));
  row.call.reset();
}

void Timeline::end(Row& row, const Event& event, const Place& place) {
  if (row.open.empty()) {
    findings_.add("end-without-begin", Severity::kWarning, at(place),
                  "the phase began before the recording, or in the file before this one");
    return;
  }
  const Open open = std::move(row.open.back());
  row.open.pop_back();
  Nanos end = *event.time;
  if (end < open.start) {
    findings_.add("negative-duration", Severity::kWarning, at(place),
                  "taken as 0 ns long; the recording clock went backwards");
    end = open.start;
  }
  phases_.push_back({row.tensor, open.name, open.start, end});
  if (!row.call) return;
  if (!row.open.empty()) {
    // Hierarchical operations move data in several activities: from the first to the last.
    if (moves_data(open.name)) {
      row.moved = true;
      row.call->end = std::max(row.call->start, end);
    }
    return;
  }
  Event at_end = event;
  at_end.time = end;
  close_call(row, at_end, place);
}

void Timeline::finish() {
  uint64_t open = 0;
  for (const auto& [pid, row] : rows_) open += row.open.size();
  if (open > 0) {
    findings_.add("phase-without-end", Severity::kWarning, file_,
                  "the recording ended before these phases did; they are left out", open);
  }
}

}  // namespace rehearse::traces::horovod
