// SPDX-License-Identifier: Apache-2.0
#include "traces/import/nsys/tables.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "traces/import/activity/copy_kind.hpp"
#include "traces/import/limits.hpp"

namespace rehearse::traces::nsys {
namespace {

using activity::Builder;
using activity::GpuWork;
using activity::Place;
using activity::Span;
using Names = std::span<const char* const>;

constexpr const char* kProcess = "globalPid";
constexpr const char* kThread = "globalTid";

constexpr std::array kKernelColumns = {"deviceId",      "contextId",     "streamId",
                                       "correlationId", "demangledName", "shortName"};
constexpr std::array kCopyColumns = {"deviceId",      "contextId", "streamId",
                                     "correlationId", "bytes",     "copyKind"};
constexpr std::array kGraphColumns = {"deviceId", "contextId", "streamId", "correlationId",
                                      "graphId"};
constexpr std::array kRuntimeColumns = {"correlationId", "nameId"};
constexpr std::array kWaitColumns = {"correlationId", "syncType", "contextId", "streamId",
                                     "eventId"};
constexpr std::array kEventColumns = {"correlationId", "contextId", "streamId", "eventId"};
constexpr std::array kRangeColumns = {"eventType", "text",       "textId",
                                      "jsonText",  "jsonTextId", "binaryData"};
constexpr std::array kOverheadColumns = {"nameId"};
constexpr std::array kMemoryColumns = {"bytes", "memKind", "memoryOperationType", "address",
                                       "deviceId"};

// eventType of NVTX_EVENTS; domains, categories and names of threads are neither.
bool is_range(int64_t type) { return type == 59 || type == 60 || type == 70 || type == 71; }
bool is_mark(int64_t type) { return type == 34 || type == 65; }

}  // namespace

const std::span<const Tables::Description> Tables::kAll = [] {
  static constexpr std::array kDescriptions = {
      Description{kKernels, kProcess, Times::kSpan, kKernelColumns, &Tables::kernel},
      Description{kCopies, kProcess, Times::kSpan, kCopyColumns, &Tables::copy},
      Description{kMemsets, kProcess, Times::kSpan, Names(kGraphColumns).first(4), &Tables::memset},
      Description{kGraphs, kProcess, Times::kSpan, kGraphColumns, &Tables::graph},
      Description{"CUPTI_ACTIVITY_KIND_RUNTIME", kThread, Times::kSpan, kRuntimeColumns,
                  &Tables::runtime},
      Description{"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", kProcess, Times::kOwn, kWaitColumns,
                  &Tables::wait},
      Description{"CUPTI_ACTIVITY_KIND_CUDA_EVENT", kProcess, Times::kOwn, kEventColumns,
                  &Tables::event},
      Description{"NVTX_EVENTS", kThread, Times::kOwn, kRangeColumns, &Tables::range},
      Description{"CUPTI_ACTIVITY_KIND_OVERHEAD", kThread, Times::kSpan, kOverheadColumns,
                  &Tables::overhead},
      Description{"PROFILER_OVERHEAD", kThread, Times::kSpan, kOverheadColumns, &Tables::overhead},
      Description{"CUDA_GPU_MEMORY_USAGE_EVENTS", kProcess, Times::kOwn, kMemoryColumns,
                  &Tables::memory},
  };
  return std::span<const Description>(kDescriptions);
}();

bool holds_operations(std::string_view table) {
  return std::any_of(Tables::kAll.begin(), Tables::kAll.end(),
                     [&](const auto& d) { return table == d.table; });
}

bool has_operations(const Database& database) {
  const std::vector<std::string> tables = database.tables();
  return std::any_of(tables.begin(), tables.end(),
                     [](const std::string& table) { return holds_operations(table); });
}

bool is_descriptive(std::string_view table) {
  for (const std::string_view prefix :
       {"ENUM_", "TARGET_INFO_", "META_DATA_", "EXPORT_", "ANALYSIS_", "NVTX_PAYLOAD_",
        "DIAGNOSTIC_", "StringIds", "ThreadNames", "PROCESSES", "ProcessStreams",
        "UnwindMethodType"}) {
    if (table.starts_with(prefix)) return true;
  }
  return false;
}

Result<void> Tables::read() {
  if (auto loaded = payloads_.load(database_); !loaded) return loaded;
  for (const Description& description : kAll) {
    if (auto done = read(description); !done) return done;
    if (strings_.error()) return tl::unexpected(*strings_.error());
  }
  return {};
}

Result<void> Tables::read(const Description& d) {
  std::vector<const char*> columns = {"start", "end", d.owner};
  columns.insert(columns.end(), d.columns.begin(), d.columns.end());
  const bool ranges = d.use == &Tables::range;
  return database_.each(d.table, columns, [&](const Row& row) {
    if (const int64_t type = row.integer(kFirst, 59); ranges && !is_range(type) && !is_mark(type)) {
      return;
    }
    const auto owner = row.integer(kOwner);
    Builder* const builder = processes_.of(owner);
    if (builder == nullptr) return;
    Record record{row, *builder, {d.table, row.number()}, {}, tid_of(owner.value_or(0))};
    if (d.times == Times::kSpan && !span_of(row, record.place, *builder, record.span)) return;
    (this->*d.use)(record);
  });
}

bool Tables::span_of(const Row& row, const Place& place, Builder& builder, Span& span) const {
  const auto start = row.integer(kStart), end = row.integer(kEnd);
  if (!start || !end || *start > kLatest || *start < -kLatest || *end > kLatest ||
      *end < -kLatest) {
    builder.note("event-without-time", Severity::kDataLoss, place,
                 "records without a time that makes sense are left out");
    return false;
  }
  span = {*start + base_, *end - *start};
  return true;
}

GpuWork Tables::work_of(const Record& r) {
  GpuWork work;
  work.span = r.span;
  work.device = r.row.integer(kFirst, 0);
  work.context = r.row.integer(kFirst + 1, 0);
  work.stream = r.row.integer(kFirst + 2, 0);
  work.correlation = r.row.integer(kFirst + 3, 0);
  return work;
}

uint32_t Tables::name_at(const Row& row, int column) {
  const auto id = row.integer(column);
  return id ? strings_.at(*id) : 0;
}

void Tables::kernel(const Record& r) {
  GpuWork work = work_of(r);
  work.name = name_at(r.row, kFirst + 4);
  if (work.name == 0) work.name = name_at(r.row, kFirst + 5);
  r.builder.kernel(work, r.place);
}

void Tables::copy(const Record& r) {
  GpuWork work = work_of(r);
  const activity::CopyKind kind = activity::copy_kind(r.row.integer(kFirst + 5, 0));
  work.name = context_.strings.intern(kind.name);
  r.builder.copy(work, {kind.direction, std::max<Bytes>(r.row.integer(kFirst + 4, 0), 0)}, r.place);
}

void Tables::memset(const Record& r) {
  GpuWork work = work_of(r);
  work.name = context_.strings.intern("Memset");
  r.builder.memset(work, r.place);
}

// Graphs recorded as a whole; with node tracing their kernels stand in the table of kernels.
void Tables::graph(const Record& r) {
  GpuWork work = work_of(r);
  work.name = context_.strings.intern(fmt::format("CUDA graph {}", r.row.integer(kFirst + 4, 0)));
  r.builder.note("graph-as-one-kernel", Severity::kWarning, r.place,
                 "the kernels and collectives inside are not recorded; record with "
                 "--cuda-graph-trace=node");
  r.builder.kernel(work, r.place);
}

void Tables::runtime(const Record& r) {
  r.builder.api(r.span, name_at(r.row, kFirst + 1), r.thread, r.row.integer(kFirst, 0), r.place);
}

void Tables::wait(const Record& r) {
  r.builder.wait({r.row.integer(kFirst + 1, 0), r.row.integer(kFirst, 0),
                  r.row.integer(kFirst + 2, 0), r.row.integer(kFirst + 3, -1),
                  r.row.integer(kFirst + 4, -1)});
}

void Tables::event(const Record& r) {
  r.builder.event({r.row.integer(kFirst, 0), r.row.integer(kFirst + 1, 0),
                   r.row.integer(kFirst + 2, -1), r.row.integer(kFirst + 3, -1)});
}

void Tables::range(const Record& r) {
  if (is_mark(r.row.integer(kFirst, 59))) {
    r.builder.note("instant-events", Severity::kInfo, r.place,
                   "marks without a duration are not kept");
    return;
  }
  if (!r.row.integer(kEnd)) {
    r.builder.note("range-open", Severity::kInfo, r.place,
                   "ranges that had not ended when recording did are left out");
    return;
  }
  Span span;
  if (!span_of(r.row, r.place, r.builder, span)) return;
  activity::RangeFacts facts;
  std::string_view text = r.row.bytes(kFirst + 1);
  std::string name;
  if (const auto id = r.row.integer(kFirst + 2); text.empty() && id) {
    text = name = strings_.text(*id);
  }
  if (text.starts_with("nccl")) {
    std::string_view json = r.row.bytes(kFirst + 3);
    if (const auto id = r.row.integer(kFirst + 4); json.empty() && id) json = strings_.text(*id);
    bool read = true;
    if (!json.empty()) {
      read = Payloads::from_json(json, facts);
    } else if (const std::string_view bytes = r.row.bytes(kFirst + 5); !bytes.empty()) {
      read = payloads_.from_bytes(bytes, facts);
    }
    if (!read) {
      r.builder.note("payload-unreadable", Severity::kWarning, r.place,
                     "the sizes of these NCCL calls are not known");
      facts = {};
    }
  }
  r.builder.range(span, text, r.thread, facts, r.place);
}

void Tables::overhead(const Record& r) {
  const uint32_t name = name_at(r.row, kFirst);
  r.builder.overhead(r.span, name != 0 ? name : context_.strings.intern("profiler overhead"),
                     r.thread, r.place);
}

void Tables::memory(const Record& r) {
  if (r.row.integer(kFirst + 1, 2) != 2) {
    r.builder.note("host-memory-events", Severity::kInfo, r.place, "only GPU memory is kept");
    return;
  }
  const auto start = r.row.integer(kStart);
  if (!start || *start > kLatest || *start < -kLatest) {
    r.builder.note("event-without-time", Severity::kDataLoss, r.place,
                   "records without a time that makes sense are left out");
    return;
  }
  const Bytes bytes = std::clamp<Bytes>(r.row.integer(kFirst, 0), 0, Bytes{1} << 50);
  const std::pair<int64_t, int64_t> block{r.row.integer(kOwner, 0), r.row.integer(kFirst + 3, 0)};
  const uint64_t number = blocks_.emplace(block, blocks_.size() + 1).first->second;
  r.builder.memory(*start + base_, {r.row.integer(kFirst + 2, 0) == 0 ? bytes : -bytes, number},
                   r.row.integer(kFirst + 4, -1), 0, context_.strings.intern("device memory"),
                   r.place);
}

}  // namespace rehearse::traces::nsys
