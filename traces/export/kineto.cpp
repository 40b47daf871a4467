// SPDX-License-Identifier: Apache-2.0
#include "traces/export/kineto.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "traces/export/kineto_text.hpp"
#include "traces/import/names.hpp"

namespace rehearse::traces {
namespace {

constexpr uint32_t kProcess =
    100'000;                         // plus the rank: apart from the device numbers used for GPUs
constexpr size_t kListedRanks = 30;  // PyTorch cuts rank lists there

class KinetoText {
 public:
  KinetoText(const RankTrace& rank, const KinetoContext& context)
      : rank_(rank), context_(context), process_(kProcess + rank.rank) {}

  std::string take() {
    head();
    for (size_t i = 0; i < rank_.ops.size(); ++i) operation(i);
    lane_names();
    out_ += "\n]}\n";
    return std::move(out_);
  }

 private:
  struct Record {
    int64_t correlation = -1;
    int64_t stream = -1;
  };

  template <typename... T>
  void print(fmt::format_string<T...> format, T&&... values) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<T>(values)...);
  }

  [[nodiscard]] int64_t stream_id(int32_t lane) const {
    return lane < 0 || static_cast<size_t>(lane) >= rank_.lanes.size()
               ? -1
               : rank_.lanes[static_cast<size_t>(lane)].id;
  }
  [[nodiscard]] const char* comma() { return std::exchange(first_, false) ? "" : ","; }

  void head();
  void groups();
  void lane_names();
  void operation(size_t i);
  // Opens an "X" event up to its arguments.
  void event(const char* category, std::string_view name, size_t i, bool on_gpu);
  void runtime_call(size_t i);
  void gpu_work(size_t i);
  void call_arguments(const Call& call);
  void synchronisation(size_t i, const Sync& sync);
  void memory(size_t i, const Memory& memory);
  void flow(char phase, size_t i, bool on_gpu);

  const RankTrace& rank_;
  const KinetoContext& context_;
  uint32_t process_;
  std::unordered_map<uint64_t, Record> records_;  // the latest record of each event
  Bytes allocated_ = 0;
  std::string out_;
  bool first_ = true;
};

void KinetoText::head() {
  const bool synthetic = context_.header.synthetic();
  print(
      "{{\"schemaVersion\": 1, \"synthetic\": {}, \"traceName\": {},\n",
      synthetic ? "true" : "false",
      json_string(synthetic ? "synthetic: " + context_.header.producer() : context_.header.job()));
  if (const auto source = context_.header.cloned_from().find(rank_.rank);
      source != context_.header.cloned_from().end()) {
    print("\"clonedFrom\": {},\n", source->second);
  }
  // Of the other GPUs only their number is known.
  std::string devices;
  for (uint32_t id = 0; id < std::max(rank_.visible_gpus, rank_.gpu + 1); ++id) {
    if (id != rank_.gpu && rank_.visible_gpus <= rank_.gpu) continue;
    if (!devices.empty()) devices += ", ";
    devices += fmt::format("{{\"id\": {}, \"name\": {}, \"totalGlobalMem\": {}}}", id,
                           json_string(rank_.gpu_model), rank_.gpu_memory);
  }
  print("\"deviceProperties\": [{}],\n", devices);
  groups();
  out_ += "\"displayTimeUnit\": \"ms\", \"baseTimeNanoseconds\": 0,\n\"traceEvents\": [";
}

void KinetoText::groups() {
  std::string list;
  size_t count = 0;
  for (const Communicator& c : context_.communicators) {
    if (std::find(c.members.begin(), c.members.end(), rank_.rank) == c.members.end()) continue;
    list += fmt::format(
        "{}{{\"pg_name\": {}, \"pg_desc\": {}, \"backend_config\": {}, \"pg_size\": {}, "
        "\"ranks\": [{}]}}",
        count++ == 0 ? "" : ", ", json_string(c.id), json_string(c.description),
        json_string("cuda:" + c.backend), c.members.size(), fmt::join(c.members, ", "));
  }
  print(
      "\"distributedInfo\": {{\"backend\": \"nccl\", \"rank\": {}, \"world_size\": {}, "
      "\"pg_count\": {}, \"pg_config\": [{}], \"nccl_version\": {}}},\n",
      rank_.rank, context_.header.world_size(), count, list,
      json_string(context_.header.nccl_version()));
}

void KinetoText::event(const char* category, std::string_view name, size_t i, bool on_gpu) {
  print(
      "{}\n{{\"ph\": \"X\", \"cat\": \"{}\", \"name\": {}, \"pid\": {}, \"tid\": {}, \"ts\": {}, "
      "\"dur\": {}, \"args\": {{",
      comma(), category, json_string(name), on_gpu ? rank_.gpu : process_,
      rank_.lanes[rank_.ops.lane[i]].id, kineto_time(rank_.ops.start[i]),
      kineto_time(rank_.ops.duration[i]));
}

void KinetoText::flow(char phase, size_t i, bool on_gpu) {
  if (rank_.ops.correlation[i] == 0) return;
  print(
      ",\n{{\"ph\": \"{}\", \"id\": {}, \"pid\": {}, \"tid\": {}, \"ts\": {}, \"cat\": \"ac2g\", "
      "\"name\": \"ac2g\"{}}}",
      phase, rank_.ops.correlation[i], on_gpu ? rank_.gpu : process_,
      rank_.lanes[rank_.ops.lane[i]].id, kineto_time(rank_.ops.start[i]),
      phase == 'f' ? ", \"bp\": \"e\"" : "");
}

void KinetoText::runtime_call(size_t i) {
  const std::string& name = context_.strings.at(rank_.ops.name[i]);
  event("cuda_runtime", name, i, false);
  print("\"External id\": {0}, \"cbid\": {1}, \"correlation\": {0}}}}}", rank_.ops.correlation[i],
        callback_id(name));
}

void KinetoText::call_arguments(const Call& call) {
  const int size = std::max(1, size_of(call.dtype));
  print(
      ", \"Collective name\": \"{}\", \"In msg nelems\": {}, \"Out msg nelems\": {}, "
      "\"dtype\": \"{}\", \"In split size\": \"[]\", \"Out split size\": \"[]\", \"Seq\": {}",
      kineto_name(call.collective), call.bytes_in / size, call.bytes_out / size,
      kineto_name(call.dtype), call.sequence);
  if (call.communicator >= context_.communicators.size()) return;
  const Communicator& c = context_.communicators[call.communicator];
  const bool cut = c.members.size() > kListedRanks;
  const auto listed = static_cast<ptrdiff_t>(cut ? kListedRanks - 1 : c.members.size());
  print(
      ", \"Group size\": {}, \"Process Group Name\": {}, \"Process Group Description\": {}, "
      "\"Process Group Ranks\": \"[{}{}]\"",
      c.members.size(), json_string(c.id), json_string(c.description),
      fmt::join(c.members.begin(), c.members.begin() + listed, ", "),
      cut ? fmt::format(", ..., {}", c.members.back()) : "");
  // For point-to-point and rooted calls PyTorch gives the peer or root here, else the rank itself.
  const auto self = std::find(c.members.begin(), c.members.end(), rank_.rank) - c.members.begin();
  if (call.peer >= 0 || !is_rooted(call.collective))
    print(", \"Rank\": {}", call.peer >= 0 ? call.peer : static_cast<int32_t>(self));
  const bool known = call.peer >= 0 && static_cast<size_t>(call.peer) < c.members.size();
  if (is_point_to_point(call.collective) && known)
    print(", \"{} Rank\": {}", call.collective == Collective::kSend ? "Dst" : "Src",
          c.members[static_cast<size_t>(call.peer)]);
}

void KinetoText::gpu_work(size_t i) {
  const OpKind kind = rank_.ops.kind[i];
  const char* category = kind == OpKind::kCopy     ? "gpu_memcpy"
                         : kind == OpKind::kMemset ? "gpu_memset"
                                                   : "kernel";
  event(category, context_.strings.at(rank_.ops.name[i]), i, true);
  print(
      "\"External id\": {0}, \"device\": {1}, \"context\": 1, \"stream\": {2}, \"correlation\": "
      "{0}",
      rank_.ops.correlation[i], rank_.gpu, rank_.lanes[rank_.ops.lane[i]].id);
  if (const Copy* copy = rank_.ops.copy(i)) print(", \"bytes\": {}", copy->bytes);
  if (const Call* call = rank_.ops.call(i)) call_arguments(*call);
  out_ += "}}";
  flow('f', i, true);
}

void KinetoText::synchronisation(size_t i, const Sync& sync) {
  runtime_call(i);
  const int64_t stream = stream_id(sync.stream_lane);
  if (sync.sync == SyncKind::kRecord) {
    if (sync.event != 0) records_[sync.event] = {rank_.ops.correlation[i], stream};
    return;
  }
  const char* kind = sync.sync == SyncKind::kWaitEvent ? "Stream Wait Event"
                     : sync.sync == SyncKind::kEvent   ? "Event Sync"
                     : sync.sync == SyncKind::kStream  ? "Stream Sync"
                                                       : "Context Sync";
  print(
      ",\n{{\"ph\": \"X\", \"cat\": \"cuda_sync\", \"name\": \"{0}\", \"pid\": {1}, \"tid\": {2}, "
      "\"ts\": {3}, \"dur\": {4}, \"args\": {{\"External id\": {5}, \"cuda_sync_kind\": \"{0}\"",
      kind, rank_.gpu, stream, kineto_time(rank_.ops.start[i]), kineto_time(rank_.ops.duration[i]),
      rank_.ops.correlation[i]);
  if (sync.sync == SyncKind::kWaitEvent || sync.sync == SyncKind::kEvent) {
    // CUDA waits for the latest record of the event before this call.
    const auto found = records_.find(sync.event);
    const Record record = found == records_.end() ? Record{} : found->second;
    print(
        ", \"wait_on_stream\": {}, \"wait_on_cuda_event_record_corr_id\": {}, "
        "\"wait_on_cuda_event_id\": {}",
        record.stream, record.correlation, sync.event);
  }
  print(", \"stream\": {}, \"correlation\": {}, \"device\": {}, \"context\": 1}}}}", stream,
        rank_.ops.correlation[i], rank_.gpu);
}

void KinetoText::memory(size_t i, const Memory& memory) {
  allocated_ += memory.bytes;
  print(
      "{}\n{{\"ph\": \"i\", \"cat\": \"cpu_instant_event\", \"s\": \"t\", \"name\": \"[memory]\", "
      "\"pid\": {}, \"tid\": {}, \"ts\": {}, \"args\": {{\"Total Allocated\": {}, \"Bytes\": {}, "
      "\"Addr\": {}, \"Device Id\": {}, \"Device Type\": 1}}}}",
      comma(), process_, rank_.lanes[rank_.ops.lane[i]].id, kineto_time(rank_.ops.start[i]),
      allocated_, memory.bytes, memory.address, rank_.gpu);
}

void KinetoText::operation(size_t i) {
  const std::string& name = context_.strings.at(rank_.ops.name[i]);
  const bool on_gpu = rank_.lanes[rank_.ops.lane[i]].kind == LaneKind::kStream;
  switch (rank_.ops.kind[i]) {
    case OpKind::kLaunch:
    case OpKind::kGraphLaunch:
      runtime_call(i);
      flow('s', i, false);
      return;
    case OpKind::kSync:
      if (const Sync* sync = rank_.ops.sync(i)) synchronisation(i, *sync);
      return;
    case OpKind::kMemory:
      if (const Memory* m = rank_.ops.mem(i)) memory(i, *m);
      return;
    case OpKind::kAnnotation:
      event(on_gpu ? "gpu_user_annotation" : "user_annotation", name, i, on_gpu);
      out_ += "}}";
      return;
    default:
      break;
  }
  if (on_gpu) return gpu_work(i);
  const Call* call = rank_.ops.call(i);
  event("cpu_op", call ? "record_param_comms" : name, i, false);
  print("\"External id\": {}", rank_.ops.correlation[i]);
  if (call) call_arguments(*call);
  out_ += "}}";
}

void KinetoText::lane_names() {
  for (const Lane& lane : rank_.lanes) {
    const bool on_gpu = lane.kind == LaneKind::kStream;
    const std::string& name = context_.strings.at(lane.name);
    print(
        "{}\n{{\"name\": \"thread_name\", \"ph\": \"M\", \"ts\": 0.000, \"pid\": {}, \"tid\": {}, "
        "\"args\": {{\"name\": {}}}}}",
        comma(), on_gpu ? rank_.gpu : process_, lane.id,
        json_string(on_gpu ? fmt::format("stream {} {}", lane.id, name) : name));
  }
}

// Deterministic: no name and no time in the gzip header.
Result<std::string> gzip(const std::string& text) {
  z_stream stream{};
  if (deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    return fail(Code::kInternal, "zlib refused to start");
  std::string out(deflateBound(&stream, text.size()), '\0');
  constexpr size_t kPiece = size_t{1} << 30;  // zlib counts in 32 bits
  size_t read = 0;
  int state = Z_OK;
  while (state == Z_OK) {
    if (stream.avail_in == 0 && read < text.size()) {
      const size_t n = std::min(kPiece, text.size() - read);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data() + read));
      stream.avail_in = static_cast<uInt>(n);
      read += n;
    }
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + stream.total_out);
    stream.avail_out = static_cast<uInt>(std::min(kPiece, out.size() - stream.total_out));
    state = deflate(&stream, read == text.size() ? Z_FINISH : Z_NO_FLUSH);
  }
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (state != Z_STREAM_END) return fail(Code::kInternal, "zlib did not finish");
  return out;
}

}  // namespace

std::string kineto_json(const RankTrace& rank, const KinetoContext& context) {
  return KinetoText(rank, context).take();
}

Result<std::filesystem::path> write_kineto(const RankTrace& rank, const KinetoContext& context,
                                           const std::filesystem::path& folder,
                                           Compression compression, Overwrite overwrite) {
  const bool compressed = compression == Compression::kGzip;
  const auto path = folder / fmt::format("rank{}.json{}", rank.rank, compressed ? ".gz" : "");
  std::string text = kineto_json(rank, context);
  if (compressed) {
    RH_TRY(text, gzip(text));
  }
  if (auto written = write_file(path, text, overwrite); !written)
    return tl::unexpected(written.error());
  return path;
}

}  // namespace rehearse::traces
