// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "traces/import/devices.hpp"
#include "traces/import/limits.hpp"
#include "traces/import/nsys/nsys.hpp"
#include "traces/import/nsys/processes.hpp"
#include "traces/import/nsys/tables.hpp"
#include "traces/import/rank_of_name.hpp"
#include "traces/model/utf8.hpp"

namespace rehearse::traces::nsys {
namespace {

using activity::Builder;

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
        strings_(database, context.strings),
        processes_(source.name(), context) {}

  Result<FilePart> read() {
    for (const auto step : {&Reader::about, &Reader::operations, &Reader::threads, &Reader::gpus}) {
      if (auto done = (this->*step)(); !done) return tl::unexpected(done.error());
      if (strings_.error()) return tl::unexpected(*strings_.error());
    }
    tell_what_was_left_out();
    return finish();
  }

 private:
  Result<void> about();
  Result<void> operations() {
    if (auto chosen = processes_.choose(database_); !chosen) return chosen;
    return Tables(database_, strings_, processes_, context_, base_).read();
  }
  Result<void> threads();
  Result<void> gpus();
  void tell_what_was_left_out();
  Result<FilePart> finish();
  void describe(int64_t process, RankTrace& trace) const;

  Database& database_;
  Source& source_;
  ReadContext& context_;
  StringIds strings_;
  Processes processes_;
  Nanos base_ = 0;
  std::string host_;
  std::string schema_;
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

Result<void> Reader::threads() {
  constexpr std::array<const char*, 2> kColumns = {"globalTid", "nameId"};
  return database_.each("ThreadNames", kColumns, [&](const Row& row) {
    const auto thread = row.integer(0), name = row.integer(1);
    if (!thread || !name) return;
    Builder* const builder = processes_.known(*thread);
    const uint32_t text = builder != nullptr ? strings_.at(*name) : 0;
    if (text != 0) builder->name_thread(tid_of(*thread), text);
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

void Reader::tell_what_was_left_out() {
  for (const std::string& table : database_.tables()) {
    if (holds_operations(table) || is_descriptive(table) || database_.is_empty(table)) continue;
    context_.findings.add("tables-not-used", Severity::kInfo, source_.name() + ": " + table,
                          "these tables hold no host call, GPU work or range of a rank");
  }
  processes_.tell_what_was_left_out();
  if (strings_.missing() > 0) {
    context_.findings.add("name-missing", Severity::kWarning, source_.name() + ": StringIds",
                          "names that the table of strings does not hold are empty",
                          strings_.missing());
  }
}

void Reader::describe(int64_t process, RankTrace& trace) const {
  trace.host = host_;
  auto gpu = gpus_.find({pid_of(process), trace.gpu});
  if (gpu == gpus_.end()) gpu = gpus_.find({-1, trace.gpu});
  if (gpu == gpus_.end()) return;
  trace.gpu_model = gpu->second.name;
  trace.gpu_memory = gpu->second.memory;
}

Result<FilePart> Reader::finish() {
  struct Ready {
    int64_t process;
    int64_t device;
    Builder* builder;
    std::optional<CommunicatorPlace> place;
  };
  std::vector<Ready> ready;
  for (const auto& [process, b] : processes_.all()) {
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
  if (!known && by_name) {
    context_.findings.add("rank-from-name", Severity::kInfo, source_.name(),
                          "the file does not tell its rank; it is taken from the file's name");
  }
  FilePart part;
  for (const Ready& r : ready) {
    if (r.place) part.world_size = std::max(part.world_size.value_or(0), r.place->size);
    if (r.builder->has_pytorch()) part.framework = "pytorch";
    std::vector<RankPart> ranks = r.builder->finish();
    // NCCL counts GPUs: a place is that of the rank, unless the process has several.
    std::optional<RankId> number = by_name;
    if (known && ranks.size() == 1) number = static_cast<RankId>(r.place->position);
    for (size_t i = 0; i < ranks.size(); ++i) {
      ranks[i].rank_known = number && rank_of_gpu(*number, ranks.size(), i, ranks[i].trace.rank);
      describe(r.process, ranks[i].trace);
      part.ranks.push_back(std::move(ranks[i]));
    }
  }
  return part;
}

// nvprof and the Visual Profiler name their tables like CUPTI too, but number strings and say who did a call otherwise.
bool is_of_nvprof(const Database& database) {
  return database.has("StringTable", "_id_") &&
         (database.has("CUPTI_ACTIVITY_KIND_RUNTIME", "cbid") ||
          database.has("CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL"));
}

}  // namespace

bool sniff(std::string_view head) {
  using namespace std::string_view_literals;
  return head.starts_with("SQLite format 3\0"sv);
}

Result<FilePart> read(Source& source, ReadContext& context) {
  RH_TRY(Database database, Database::open(source, context));
  if (is_of_nvprof(database)) {
    return fail(
        Code::kBadInput, "a database of nvprof or the Visual Profiler, not of Nsight Systems",
        source.name(),
        "nvprof ended with the GPUs of 2017 and is not read; record again with nsys profile "
        "--trace=cuda,nvtx and nsys export --type sqlite, or with torch.profiler");
  }
  if (!has_operations(database) && !database.has("EXPORT_META_DATA") &&
      !database.has("META_DATA_EXPORT")) {
    return fail(Code::kBadInput,
                fmt::format("a SQLite database, but none of Nsight Systems: its {} tables are of "
                            "another kind",
                            database.tables().size()),
                source.name(), "export an .nsys-rep with nsys export --type sqlite");
  }
  return Reader(database, source, context).read();
}

}  // namespace rehearse::traces::nsys
