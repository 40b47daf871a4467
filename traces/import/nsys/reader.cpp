// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>

#include "base/text.hpp"
#include "traces/import/activity/builder.hpp"
#include "traces/import/limits.hpp"
#include "traces/import/nsys/database.hpp"
#include "traces/import/nsys/nsys.hpp"
#include "traces/import/nsys/payload.hpp"
#include "traces/import/nsys/strings.hpp"
#include "traces/import/rank_of_name.hpp"
#include "traces/model/utf8.hpp"

namespace rehearse::traces::nsys {
namespace {

using activity::Builder;
using activity::GpuWork;
using activity::Place;
using activity::Span;

constexpr const char* kKernels = "CUPTI_ACTIVITY_KIND_KERNEL";
constexpr const char* kCopies = "CUPTI_ACTIVITY_KIND_MEMCPY";
constexpr const char* kMemsets = "CUPTI_ACTIVITY_KIND_MEMSET";
constexpr const char* kGraphs = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE";
constexpr const char* kRuntime = "CUPTI_ACTIVITY_KIND_RUNTIME";
constexpr const char* kSync = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION";
constexpr const char* kEvents = "CUPTI_ACTIVITY_KIND_CUDA_EVENT";
constexpr const char* kOverhead = "CUPTI_ACTIVITY_KIND_OVERHEAD";
constexpr const char* kProfiler = "PROFILER_OVERHEAD";
constexpr const char* kMemory = "CUDA_GPU_MEMORY_USAGE_EVENTS";
constexpr const char* kNvtx = "NVTX_EVENTS";
constexpr std::array<const char*, 11> kUsed = {kKernels,  kCopies, kMemsets, kGraphs,
                                               kRuntime,  kSync,   kEvents,  kOverhead,
                                               kProfiler, kMemory, kNvtx};
constexpr std::array<const char*, 4> kGpuTables = {kKernels, kCopies, kMemsets, kGraphs};
// Beyond this, a sum with a time might overflow.
constexpr size_t kMostProcesses = 65536;

// Tables that say nothing about operations.
bool is_descriptive(std::string_view table) {
  for (const std::string_view prefix :
       {"ENUM_", "TARGET_INFO_", "META_DATA_", "EXPORT_", "ANALYSIS_", "NVTX_PAYLOAD_",
        "DIAGNOSTIC_", "StringIds", "ThreadNames", "PROCESSES", "ProcessStreams",
        "UnwindMethodType"}) {
    if (table.starts_with(prefix)) return true;
  }
  return false;
}

int64_t process_of(int64_t global_id) {
  return static_cast<int64_t>(static_cast<uint64_t>(global_id) >> 24);
}
int64_t pid_of(int64_t process) { return process & 0xffffff; }
int64_t tid_of(int64_t global_id) { return global_id & 0xffffff; }

struct CopyKind {
  const char* name;
  CopyDirection direction;
};
CopyKind copy_kind(int64_t kind) {
  switch (kind) {
    case 1:
    case 3:
    case 11:
      return {"Memcpy HtoD", CopyDirection::kHostToDevice};
    case 2:
    case 4:
    case 12:
      return {"Memcpy DtoH", CopyDirection::kDeviceToHost};
    case 5:
    case 6:
    case 7:
    case 8:
    case 13:
      return {"Memcpy DtoD", CopyDirection::kDeviceToDevice};
    case 9:
      return {"Memcpy HtoH", CopyDirection::kUnknown};
    case 10:
      return {"Memcpy PtoP", CopyDirection::kPeer};
    default:
      return {"Memcpy", CopyDirection::kUnknown};
  }
}

struct Gpu {
  std::string name;
  Bytes memory = 0;
};

class Reader {
 public:
  Reader(Database& database, Source& source, ReadContext& context)
      : database_(database),
        source_(source),
        context_(context),
        strings_(database, context.strings) {}

  Result<FilePart> read() {
    for (const auto step :
         {&Reader::about, &Reader::list_processes, &Reader::kernels, &Reader::copies,
          &Reader::memsets, &Reader::graphs, &Reader::runtime, &Reader::syncs, &Reader::events,
          &Reader::ranges, &Reader::overheads, &Reader::memory, &Reader::threads, &Reader::gpus}) {
      if (auto done = (this->*step)(); !done) return tl::unexpected(done.error());
      if (strings_.error()) return tl::unexpected(*strings_.error());
    }
    unused_tables();
    return finish();
  }

 private:
  using Columns = std::span<const char* const>;

  Result<void> about();
  Result<void> list_processes();
  Result<void> kernels();
  Result<void> copies();
  Result<void> memsets();
  Result<void> graphs();
  Result<void> runtime();
  Result<void> syncs();
  Result<void> events();
  Result<void> ranges();
  Result<void> overheads();
  Result<void> memory();
  Result<void> threads();
  Result<void> gpus();
  void unused_tables();
  Result<FilePart> finish();

  // The process of a global process or thread id; null for one that is not a rank.
  Builder* builder(std::optional<int64_t> global_id) {
    const int64_t process = one_process_ || !global_id ? only_ : process_of(*global_id);
    if (!one_process_ && !global_id) {
      ++without_process_;
      return nullptr;
    }
    const auto known = builders_.find(process);
    if (known != builders_.end()) return known->second.get();
    if (chosen_ && !chosen_->contains(process)) {
      ++other_rows_;
      others_.insert(process);
      return nullptr;
    }
    if (builders_.size() >= kMostProcesses) {
      ++other_rows_;
      return nullptr;
    }
    const std::string where = one_process_
                                  ? source_.name()
                                  : fmt::format("{}, process {}", source_.name(), pid_of(process));
    return builders_.emplace(process, std::make_unique<Builder>(context_, where))
        .first->second.get();
  }

  // Start and end in the first two columns.
  bool span_of(const Row& row, Span& span, Builder& builder, const Place& place) const {
    const auto start = row.integer(0), end = row.integer(1);
    if (!start || !end || *start > kLatest || *start < -kLatest || *end > kLatest ||
        *end < -kLatest) {
      builder.note("event-without-time", Severity::kDataLoss, place,
                   "records without a time that makes sense are left out");
      return false;
    }
    span = {*start + base_, *end - *start};
    return true;
  }

  Database& database_;
  Source& source_;
  ReadContext& context_;
  StringIds strings_;
  Nanos base_ = 0;
  std::string host_;
  std::string schema_;
  bool one_process_ = false;  // kernels do not tell their process
  int64_t only_ = 0;
  std::optional<std::set<int64_t>> chosen_;  // those with GPU work; nothing: all
  std::map<int64_t, std::unique_ptr<Builder>> builders_;
  std::set<int64_t> others_;
  uint64_t other_rows_ = 0, without_process_ = 0;
  std::map<std::pair<int64_t, int64_t>, Gpu> gpus_;  // (pid or -1, CUDA device)
};

Result<void> Reader::about() {
  constexpr std::array<const char*, 2> kNameValue = {"name", "value"};
  for (const char* table : {"EXPORT_META_DATA", "META_DATA_EXPORT"}) {
    auto read = database_.each(table, kNameValue, [&](const Row& row) {
      if (row.bytes(0) == "EXPORT_SCHEMA_VERSION") schema_ = row.bytes(1).substr(0, 64);
    });
    if (!read) return read;
  }
  if (!schema_.empty() && schema_[0] > '3' && schema_[0] <= '9') {
    context_.findings.add(
        "schema-newer", Severity::kWarning, fmt::format("{}: schema {}", source_.name(), schema_),
        "this schema came after those that were tested (3.x); look at the counts");
  }
  constexpr std::array<const char*, 1> kEpoch = {"utcEpochNs"};
  auto start = database_.each("TARGET_INFO_SESSION_START_TIME", kEpoch, [&](const Row& row) {
    const int64_t epoch = row.integer(0, 0);
    if (epoch > 0 && epoch < kLatest) base_ = epoch;
  });
  if (!start) return start;
  auto host = database_.each("TARGET_INFO_SYSTEM_ENV", kNameValue, [&](const Row& row) {
    if (row.bytes(0) == "Hostname") host_ = row.bytes(1).substr(0, 256);
  });
  if (!host) return host;
  host_ = to_utf8(host_);
  if (host_.empty()) host_ = source_.path().stem().string();
  return strings_.load();
}

Result<void> Reader::list_processes() {
  std::set<int64_t> with_gpu;
  bool told = true;
  for (const char* table : kGpuTables) {
    if (!database_.has(table) || database_.is_empty(table)) continue;
    if (!database_.has(table, "globalPid")) told = false;
    constexpr std::array<const char*, 1> kPid = {"globalPid"};
    auto read = database_.each(table, kPid, [&](const Row& row) {
      if (const auto id = row.integer(0); id && with_gpu.size() < kMostProcesses) {
        with_gpu.insert(process_of(*id));
      }
    });
    if (!read) return read;
  }
  if (!told) {
    one_process_ = true;
  } else if (!with_gpu.empty()) {
    chosen_ = std::move(with_gpu);
  }
  return {};
}

Result<void> Reader::kernels() {
  constexpr std::array<const char*, 9> kColumns = {"start",         "end",           "globalPid",
                                                   "deviceId",      "contextId",     "streamId",
                                                   "correlationId", "demangledName", "shortName"};
  return database_.each(kKernels, kColumns, [&](const Row& row) {
    Builder* const b = builder(row.integer(2));
    const Place place{kKernels, row.number()};
    GpuWork work;
    if (b == nullptr || !span_of(row, work.span, *b, place)) return;
    work.device = row.integer(3, 0);
    work.context = row.integer(4, 0);
    work.stream = row.integer(5, 0);
    work.correlation = row.integer(6, 0);
    const auto long_name = row.integer(7), short_name = row.integer(8);
    if (long_name) work.name = strings_.at(*long_name);
    if (work.name == 0 && short_name) work.name = strings_.at(*short_name);
    b->kernel(work, place);
  });
}

Result<void> Reader::copies() {
  constexpr std::array<const char*, 9> kColumns = {"start",         "end",       "globalPid",
                                                   "deviceId",      "contextId", "streamId",
                                                   "correlationId", "bytes",     "copyKind"};
  return database_.each(kCopies, kColumns, [&](const Row& row) {
    Builder* const b = builder(row.integer(2));
    const Place place{kCopies, row.number()};
    GpuWork work;
    if (b == nullptr || !span_of(row, work.span, *b, place)) return;
    work.device = row.integer(3, 0);
    work.context = row.integer(4, 0);
    work.stream = row.integer(5, 0);
    work.correlation = row.integer(6, 0);
    const CopyKind kind = copy_kind(row.integer(8, 0));
    work.name = context_.strings.intern(kind.name);
    b->copy(work, {kind.direction, std::max<Bytes>(row.integer(7, 0), 0)}, place);
  });
}

Result<void> Reader::memsets() {
  constexpr std::array<const char*, 7> kColumns = {
      "start", "end", "globalPid", "deviceId", "contextId", "streamId", "correlationId"};
  return database_.each(kMemsets, kColumns, [&](const Row& row) {
    Builder* const b = builder(row.integer(2));
    const Place place{kMemsets, row.number()};
    GpuWork work;
    if (b == nullptr || !span_of(row, work.span, *b, place)) return;
    work.device = row.integer(3, 0);
    work.context = row.integer(4, 0);
    work.stream = row.integer(5, 0);
    work.correlation = row.integer(6, 0);
    work.name = context_.strings.intern("Memset");
    b->memset(work, place);
  });
}

// Graphs recorded as a whole; with node tracing their kernels stand in the table of kernels.
Result<void> Reader::graphs() {
  constexpr std::array<const char*, 8> kColumns = {
      "start", "end", "globalPid", "deviceId", "contextId", "streamId", "correlationId", "graphId"};
  return database_.each(kGraphs, kColumns, [&](const Row& row) {
    Builder* const b = builder(row.integer(2));
    const Place place{kGraphs, row.number()};
    GpuWork work;
    if (b == nullptr || !span_of(row, work.span, *b, place)) return;
    work.device = row.integer(3, 0);
    work.context = row.integer(4, 0);
    work.stream = row.integer(5, 0);
    work.correlation = row.integer(6, 0);
    work.name = context_.strings.intern(fmt::format("CUDA graph {}", row.integer(7, 0)));
    b->note("graph-as-one-kernel", Severity::kWarning, place,
            "the kernels and collectives inside are not recorded; record with "
            "--cuda-graph-trace=node");
    b->kernel(work, place);
  });
}

Result<void> Reader::runtime() {
  constexpr std::array<const char*, 5> kColumns = {"start", "end", "globalTid", "correlationId",
                                                   "nameId"};
  return database_.each(kRuntime, kColumns, [&](const Row& row) {
    const auto thread = row.integer(2);
    Builder* const b = builder(thread);
    const Place place{kRuntime, row.number()};
    Span span;
    if (b == nullptr || !span_of(row, span, *b, place)) return;
    const auto name = row.integer(4);
    b->api(span, name ? strings_.at(*name) : 0, tid_of(thread.value_or(0)), row.integer(3, 0),
           place);
  });
}

Result<void> Reader::syncs() {
  constexpr std::array<const char*, 7> kColumns = {
      "globalPid", "correlationId", "syncType", "contextId", "streamId", "eventId", "start"};
  return database_.each(kSync, kColumns, [&](const Row& row) {
    if (Builder* const b = builder(row.integer(0))) {
      b->wait({row.integer(2, 0), row.integer(1, 0), row.integer(3, 0), row.integer(4, -1),
               row.integer(5, -1)});
    }
  });
}

Result<void> Reader::events() {
  constexpr std::array<const char*, 5> kColumns = {"globalPid", "correlationId", "contextId",
                                                   "streamId", "eventId"};
  return database_.each(kEvents, kColumns, [&](const Row& row) {
    if (Builder* const b = builder(row.integer(0))) {
      b->event({row.integer(1, 0), row.integer(2, 0), row.integer(3, -1), row.integer(4, -1)});
    }
  });
}

Result<void> Reader::ranges() {
  Payloads payloads;
  if (auto loaded = payloads.load(database_); !loaded) return loaded;
  constexpr std::array<const char*, 9> kColumns = {"start",     "end",        "globalTid",
                                                   "eventType", "text",       "textId",
                                                   "jsonText",  "jsonTextId", "binaryData"};
  return database_.each(kNvtx, kColumns, [&](const Row& row) {
    const int64_t type = row.integer(3, 59);
    // Domains, categories and names of threads are no ranges.
    const bool is_range = type == 59 || type == 60 || type == 70 || type == 71;
    const bool is_mark = type == 34 || type == 65;
    if (!is_range && !is_mark) return;
    const auto thread = row.integer(2);
    Builder* const b = builder(thread);
    if (b == nullptr) return;
    const Place place{kNvtx, row.number()};
    if (is_mark) {
      b->note("instant-events", Severity::kInfo, place, "marks without a duration are not kept");
      return;
    }
    if (!row.integer(1)) {
      b->note("range-open", Severity::kInfo, place,
              "ranges that had not ended when recording did are left out");
      return;
    }
    Span span;
    if (!span_of(row, span, *b, place)) return;
    activity::RangeFacts facts;
    std::string_view text = row.bytes(4);
    std::string name;
    if (const auto id = row.integer(5); text.empty() && id) text = name = strings_.text(*id);
    if (text.starts_with("nccl")) {
      std::string_view json = row.bytes(6);
      if (const auto id = row.integer(7); json.empty() && id) json = strings_.text(*id);
      bool read = true;
      if (!json.empty()) {
        read = Payloads::from_json(json, facts);
      } else if (const std::string_view bytes = row.bytes(8); !bytes.empty()) {
        read = payloads.from_bytes(bytes, facts);
      }
      if (!read) {
        b->note("payload-unreadable", Severity::kWarning, place,
                "the sizes of these NCCL calls are not known");
        facts = {};
      }
    }
    b->range(span, text, tid_of(thread.value_or(0)), facts, place);
  });
}

Result<void> Reader::overheads() {
  constexpr std::array<const char*, 4> kColumns = {"start", "end", "globalTid", "nameId"};
  for (const char* table : {kOverhead, kProfiler}) {
    auto read = database_.each(table, kColumns, [&](const Row& row) {
      const auto thread = row.integer(2);
      Builder* const b = builder(thread);
      const Place place{table, row.number()};
      Span span;
      if (b == nullptr || !span_of(row, span, *b, place)) return;
      const auto name = row.integer(3);
      const uint32_t text = name ? strings_.at(*name) : 0;
      b->overhead(span, text != 0 ? text : context_.strings.intern("profiler overhead"),
                  tid_of(thread.value_or(0)), place);
    });
    if (!read) return read;
  }
  return {};
}

Result<void> Reader::memory() {
  constexpr std::array<const char*, 6> kColumns = {"start",   "globalPid",           "bytes",
                                                   "memKind", "memoryOperationType", "address"};
  std::map<std::pair<int64_t, int64_t>, uint64_t> blocks;
  return database_.each(kMemory, kColumns, [&](const Row& row) {
    const auto id = row.integer(1);
    Builder* const b = builder(id);
    if (b == nullptr) return;
    const Place place{kMemory, row.number()};
    if (row.integer(3, 2) != 2) {
      b->note("host-memory-events", Severity::kInfo, place, "only GPU memory is kept");
      return;
    }
    const auto start = row.integer(0);
    if (!start || *start > kLatest || *start < -kLatest) {
      b->note("event-without-time", Severity::kDataLoss, place,
              "records without a time that makes sense are left out");
      return;
    }
    const Bytes bytes = std::clamp<Bytes>(row.integer(2, 0), 0, Bytes{1} << 50);
    const std::pair<int64_t, int64_t> block{id.value_or(0), row.integer(5, 0)};
    const uint64_t number = blocks.emplace(block, blocks.size() + 1).first->second;
    b->memory(*start + base_, {row.integer(4, 0) == 0 ? bytes : -bytes, number}, 0,
              context_.strings.intern("device memory"), place);
  });
}

Result<void> Reader::threads() {
  constexpr std::array<const char*, 2> kColumns = {"globalTid", "nameId"};
  return database_.each("ThreadNames", kColumns, [&](const Row& row) {
    const auto thread = row.integer(0), name = row.integer(1);
    if (!thread || !name) return;
    const auto known = builders_.find(one_process_ ? only_ : process_of(*thread));
    if (known == builders_.end()) return;
    const uint32_t text = strings_.at(*name);
    if (text != 0) known->second->name_thread(tid_of(*thread), text);
  });
}

Result<void> Reader::gpus() {
  constexpr std::array<const char*, 4> kGpu = {"id", "name", "totalMemory", "cuDevice"};
  std::map<int64_t, Gpu> by_id;
  auto read = database_.each("TARGET_INFO_GPU", kGpu, [&](const Row& row) {
    const Gpu gpu{to_utf8(row.bytes(1).substr(0, 256)), std::max<Bytes>(row.integer(2, 0), 0)};
    by_id[row.integer(0, 0)] = gpu;
    gpus_[{-1, row.integer(3, row.integer(0, 0))}] = gpu;
  });
  if (!read) return read;
  constexpr std::array<const char*, 3> kDevice = {"gpuId", "cudaId", "pid"};
  return database_.each("TARGET_INFO_CUDA_DEVICE", kDevice, [&](const Row& row) {
    const auto gpu = by_id.find(row.integer(0, -1));
    if (gpu != by_id.end()) gpus_[{row.integer(2, -1), row.integer(1, 0)}] = gpu->second;
  });
}

void Reader::unused_tables() {
  for (const std::string& table : database_.tables()) {
    const bool used =
        std::any_of(kUsed.begin(), kUsed.end(), [&](const char* t) { return table == t; });
    if (used || is_descriptive(table) || database_.is_empty(table)) continue;
    context_.findings.add("tables-not-used", Severity::kInfo, source_.name() + ": " + table,
                          "these tables hold no host call, GPU work or range of a rank");
  }
  if (other_rows_ > 0) {
    context_.findings.add("processes-without-gpu-work", Severity::kInfo,
                          fmt::format("{}: {} processes", source_.name(), others_.size()),
                          "rows of processes that put no work on a GPU are left out", other_rows_);
  }
  if (without_process_ > 0) {
    context_.findings.add("rows-without-process", Severity::kDataLoss, source_.name(),
                          "rows that do not tell their process are left out", without_process_);
  }
  if (strings_.missing() > 0) {
    context_.findings.add("name-missing", Severity::kWarning, source_.name() + ": StringIds",
                          "names that the table of strings does not hold are empty",
                          strings_.missing());
  }
}

Result<FilePart> Reader::finish() {
  struct Ready {
    int64_t process;
    int64_t device;
    Builder* builder;
    std::optional<CommunicatorPlace> place;
  };
  std::vector<Ready> ready;
  for (auto& [process, b] : builders_) {
    if (b->operations() == 0) continue;
    ready.push_back({process, b->device(), b.get(), b->nccl().largest()});
  }
  if (ready.empty()) {
    return fail(Code::kBadInput, "the database holds no host call, no GPU work and no range",
                source_.name(),
                "record with nsys profile --trace=cuda,nvtx and export it with nsys export --type "
                "sqlite");
  }
  std::stable_sort(ready.begin(), ready.end(),
                   [](const Ready& a, const Ready& b) { return a.device < b.device; });
  std::set<int64_t> positions;
  bool known = true;
  for (const Ready& r : ready) {
    known = known && r.place && r.place->size == ready.front().place->size &&
            positions.insert(r.place->position).second;
  }
  const auto by_name = ready.size() == 1 ? rank_of_name(source_.name()) : std::nullopt;
  FilePart part;
  for (const Ready& r : ready) {
    if (r.place) part.world_size = std::max(part.world_size.value_or(0), r.place->size);
    if (r.builder->has_pytorch()) part.framework = "pytorch";
    RankPart rank = r.builder->finish();
    rank.rank_known = known || by_name;
    if (known) {
      rank.trace.rank = static_cast<RankId>(r.place->position);
    } else if (by_name) {
      rank.trace.rank = *by_name;
      context_.findings.add("rank-from-name", Severity::kInfo, source_.name(),
                            "the file does not tell its rank; it is taken from the file's name");
    }
    rank.trace.host = host_;
    auto gpu = gpus_.find({pid_of(r.process), rank.trace.gpu});
    if (gpu == gpus_.end()) gpu = gpus_.find({-1, rank.trace.gpu});
    if (gpu != gpus_.end()) {
      rank.trace.gpu_model = gpu->second.name;
      rank.trace.gpu_memory = gpu->second.memory;
    }
    part.ranks.push_back(std::move(rank));
  }
  return part;
}

}  // namespace

bool sniff(std::string_view head) {
  using namespace std::string_view_literals;
  return head.starts_with("SQLite format 3\0"sv);
}

Result<FilePart> read(Source& source, ReadContext& context) {
  RH_TRY(Database database, Database::open(source, context));
  const bool any = std::any_of(kUsed.begin(), kUsed.end(),
                               [&](const char* table) { return database.has(table); }) ||
                   database.has("EXPORT_META_DATA") || database.has("META_DATA_EXPORT");
  if (!any) {
    return fail(Code::kBadInput,
                fmt::format("a SQLite database, but none of Nsight Systems: its {} tables are of "
                            "another kind",
                            database.tables().size()),
                source.name(), "export an .nsys-rep with nsys export --type sqlite");
  }
  return Reader(database, source, context).read();
}

}  // namespace rehearse::traces::nsys
