// SPDX-License-Identifier: Apache-2.0
#include "traces/import/capture/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "traces/evidence/names.hpp"
#include "traces/import/activity/copy_kind.hpp"
#include "traces/import/limits.hpp"
#include "traces/import/names.hpp"
#include "traces/model/utf8.hpp"

namespace rehearse::traces::capture {
namespace {

using activity::GpuWork;
using activity::Place;
using activity::Span;

constexpr size_t kMostWaiting = 64 << 20;
constexpr int kMostTunerTables = 4096;

// "ncclFloat32", "ncclBfloat16", "ncclFloat8e4m3".
DType nccl_dtype(std::string_view name) {
  if (name.starts_with("nccl")) name.remove_prefix(4);
  return dtype_of(name);
}

Bytes bounded(uint64_t bytes) {
  constexpr uint64_t kMost = uint64_t{1} << 50;
  return static_cast<Bytes>(std::min(bytes, kMost));
}

int64_t id_of(uint64_t id) { return static_cast<int64_t>(id); }

}  // namespace

Session::Session(const pb::CaptureSession& about, Process& process, ReadContext& context,
                 std::string file)
    : process_(process), context_(context), file_(std::move(file)) {
  if (about.origin() > 0 && about.origin() < kLatest) origin_ = about.origin();
}

uint32_t Session::name(uint32_t id) {
  if (id == 0) return 0;
  const auto known = names_.find(id);
  if (known != names_.end()) return known->second;
  missing_ = true;
  return 0;
}

Nanos Session::time(int64_t at) const {
  // Builder refuses what lies outside.
  return at > kLatest || at < -kLatest ? std::numeric_limits<Nanos>::max() : origin_ + at;
}

Span Session::span(int64_t start, uint64_t duration) const {
  return {time(start), static_cast<Nanos>(std::min<uint64_t>(duration, uint64_t{1} << 62))};
}

void Session::add(const pb::CaptureRecord& record, const Place& place) {
  if (record.what_case() == pb::CaptureRecord::kString) {
    names_[record.string().id()] = process_.builder.intern(record.string().text(), place);
    return;
  }
  use(record, place);
}

void Session::use(const pb::CaptureRecord& record, const Place& place) {
  activity::Builder& b = process_.builder;
  // Looked at before anything is added, so that a record can be put off whole.
  const auto named = [&](std::initializer_list<uint32_t> ids) {
    missing_ = false;
    for (const uint32_t id : ids) static_cast<void>(name(id));
    if (!missing_) return true;
    std::string bytes = finishing_ ? "" : record.SerializeAsString();
    if (!finishing_ && waiting_bytes_ + bytes.size() <= kMostWaiting) {
      waiting_bytes_ += bytes.size();
      waiting_.push_back({std::move(bytes), place});
      return false;
    }
    ++nameless_;
    return true;
  };
  switch (record.what_case()) {
    case pb::CaptureRecord::kKernel: {
      const auto& r = record.kernel();
      if (!named({r.name()})) return;
      b.kernel({span(r.start(), r.duration()), name(r.name()), r.device(), r.context(), r.stream(),
                id_of(r.correlation())},
               place);
      return;
    }
    case pb::CaptureRecord::kApi: {
      const auto& r = record.api();
      if (!named({r.name()})) return;
      b.api(span(r.start(), r.duration()), name(r.name()), r.thread(), id_of(r.correlation()),
            place);
      return;
    }
    case pb::CaptureRecord::kCopy: {
      const auto& r = record.copy();
      const activity::CopyKind kind = activity::copy_kind(r.kind());
      b.copy({span(r.start(), r.duration()), context_.strings.intern(kind.name), r.device(),
              r.context(), r.stream(), id_of(r.correlation())},
             {kind.direction, bounded(r.bytes())}, place);
      return;
    }
    case pb::CaptureRecord::kFill: {
      const auto& r = record.fill();
      b.memset({span(r.start(), r.duration()), context_.strings.intern("Memset"), r.device(),
                r.context(), r.stream(), id_of(r.correlation())},
               place);
      return;
    }
    case pb::CaptureRecord::kGraph: {
      const auto& r = record.graph();
      b.note("graph-as-one-kernel", Severity::kWarning, place,
             "the kernels and collectives inside are not recorded; switch node tracing on");
      b.kernel({span(r.start(), r.duration()),
                context_.strings.intern(fmt::format("CUDA graph {}", r.graph())), r.device(),
                r.context(), r.stream(), id_of(r.correlation())},
               place);
      return;
    }
    case pb::CaptureRecord::kWait: {
      const auto& r = record.wait();
      b.wait({r.type(), id_of(r.correlation()), r.context(),
              r.has_stream() ? int64_t{r.stream()} : -1, r.event()});
      return;
    }
    case pb::CaptureRecord::kEvent: {
      const auto& r = record.event();
      b.event({id_of(r.correlation()), r.context(), r.stream(), r.event()});
      return;
    }
    case pb::CaptureRecord::kRange:
      if (named({record.range().name(), record.range().domain()})) range(record.range(), place);
      return;
    case pb::CaptureRecord::kNcclStart: {
      const auto& r = record.nccl_start();
      if (named({r.function(), r.datatype()})) nccl_start(r);
      return;
    }
    case pb::CaptureRecord::kNcclStop:
      nccl_.stop(record.nccl_stop().id(), time(record.nccl_stop().at()));
      return;
    case pb::CaptureRecord::kCorrelation:
      if (record.correlation().kind() == 5) {
        nccl_.tie(id_of(record.correlation().correlation()), record.correlation().external());
      }
      return;
    case pb::CaptureRecord::kCommunicator: {
      const auto& r = record.communicator();
      if (r.ranks() < (1u << 24)) b.nccl().init(r.id(), r.ranks(), r.rank());
      return;
    }
    case pb::CaptureRecord::kOverhead: {
      const auto& r = record.overhead();
      b.overhead(span(r.start(), r.duration()), context_.strings.intern("profiler overhead"),
                 r.thread(), place);
      return;
    }
    case pb::CaptureRecord::kMemory: {
      const auto& r = record.memory();
      const Bytes bytes = std::clamp<Bytes>(r.bytes(), -(Bytes{1} << 50), Bytes{1} << 50);
      b.memory(time(r.at()), {bytes, r.block()}, r.device(), r.thread(),
               context_.strings.intern("device memory"), place);
      return;
    }
    case pb::CaptureRecord::kThread:
      if (named({record.thread().name()})) {
        b.name_thread(record.thread().thread(), name(record.thread().name()));
      }
      return;
    case pb::CaptureRecord::kDevice:
      if (process_.devices.size() < 1024)
        process_.devices[record.device().device()] = record.device();
      return;
    case pb::CaptureRecord::kVariable:
      if (process_.env.size() < 4096) {
        process_.env[to_utf8(record.variable().name())] = to_utf8(record.variable().value());
      }
      return;
    case pb::CaptureRecord::kTuning:
      if (named({record.tuning().function()})) tuning(record.tuning());
      return;
    default:
      finding(record, place);
  }
}

void Session::range(const pb::CaptureRange& r, const Place& place) {
  activity::Builder& b = process_.builder;
  if (!r.has_duration()) {
    b.note("range-open", Severity::kInfo, place,
           "marks, and ranges that had not ended when recording did, are left out");
    return;
  }
  const auto small = [](int64_t v) { return v >= 0 && v < (int64_t{1} << 24); };
  activity::RangeFacts facts;
  facts.call.communicator = r.communicator();
  if (r.has_bytes()) facts.call.message = bounded(r.bytes());
  if (r.has_reduction()) facts.call.reduction = activity::reduction_of(r.reduction());
  if (r.has_root() && small(r.root())) facts.call.peer = r.root();
  if (r.has_peer() && small(r.peer())) facts.call.peer = r.peer();
  if (r.has_ranks() && small(r.ranks())) facts.ranks = r.ranks();
  if (r.has_rank()) facts.rank = r.rank();
  b.range(span(r.start(), r.duration()), text(r.name()), r.thread(), facts, place);
}

void Session::nccl_start(const pb::CaptureNcclStart& r) {
  activity::CallFacts facts;
  facts.communicator = r.communicator();
  if (const auto collective = activity::collective_of_function(text(r.function()))) {
    facts.collective = *collective;
  }
  facts.dtype = nccl_dtype(text(r.datatype()));
  Bytes bytes = 0;
  if (const int size = size_of(facts.dtype);
      size > 0 && !__builtin_mul_overflow(bounded(r.count()), Bytes{size}, &bytes)) {
    facts.message = bytes;
  }
  if (r.has_root() && r.root() >= 0 && r.root() < (1 << 24)) facts.peer = r.root();
  nccl_.start(r, time(r.at()), facts);
}

// Records that say something about the recording itself.
void Session::finding(const pb::CaptureRecord& record, const Place& place) {
  activity::Builder& b = process_.builder;
  switch (record.what_case()) {
    case pb::CaptureRecord::kDrops:
      context_.findings.add(
          "records-dropped", Severity::kDataLoss, file_,
          record.drops().source() == 5
              ? "the disk did not take them; record where there is more room"
              : "buffers were full while recording; record fewer steps or kinds of events",
          std::max<uint64_t>(record.drops().records(), 1));
      return;
    case pb::CaptureRecord::kMessage:
      context_.findings.add("capture-message", Severity::kWarning,
                            fmt::format("{}: {}", file_, to_utf8(record.message().text())),
                            "the capture library could not record all that was asked for");
      return;

    case pb::CaptureRecord::kNcclState:
    case pb::CaptureRecord::kClock:
      return;
    case pb::CaptureRecord::kLibrary:
      if (record.library().name() == "nccl") {
        process_.about.set_nccl_version(record.library().version());
      }
      return;
    case pb::CaptureRecord::kEnd:
      ended_ = true;
      return;
    default:
      b.note("record-unknown", Severity::kDataLoss, place,
             "records of a kind that this version does not know are left out");
  }
}

void Session::tuning(const pb::CaptureTuning& r) {
  pb::TunerTables& all = process_.tuner;
  all.set_calls(all.calls() + 1);
  const std::string collective = collective_name(text(r.function()));
  const uint32_t protocols = r.protocols();
  if (collective.empty() || protocols == 0 || all.tables_size() >= kMostTunerTables ||
      !process_.tuned.emplace(r.communicator(), name(r.function()), r.bytes(), r.operations())
           .second) {
    return;
  }
  pb::TunerTable& table = *all.add_tables();
  if (r.communicator() != 0) table.set_communicator(fmt::format("{:#x}", r.communicator()));
  table.set_collective(collective);
  table.set_bytes(r.bytes());
  table.set_ranks(r.ranks());
  table.set_nodes(r.nodes());
  table.set_operations(r.operations());
  for (int i = 0; i < r.cost_size(); ++i) {
    const auto cell = static_cast<uint32_t>(i);
    const std::string algorithm = algorithm_name(std::to_string(cell / protocols));
    const std::string protocol = protocol_name(std::to_string(cell % protocols));
    if (!(r.cost(i) >= 0) || algorithm.empty() || protocol.empty()) continue;
    pb::TunerCost& cost = *table.add_costs();
    cost.set_algorithm(algorithm);
    cost.set_protocol(protocol);
    cost.set_us(r.cost(i));
  }
}

void Session::finish() {
  finishing_ = true;
  pb::CaptureRecord record;
  for (const Waiting& w : waiting_) {
    if (record.ParseFromString(w.record)) use(record, w.place);
  }
  waiting_ = {};
  if (nccl_.other() > 0) {
    context_.findings.add("nccl-proxy-events", Severity::kInfo, file_,
                          "events of NCCL's proxy, channels and network are not kept",
                          nccl_.other());
  }
  nccl_.finish(process_.builder);
  if (nameless_ > 0) {
    context_.findings.add("name-missing", Severity::kWarning, file_,
                          "names that were lost with the end of the file are empty", nameless_);
  }
}

}  // namespace rehearse::traces::capture
