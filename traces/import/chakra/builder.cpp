// SPDX-License-Identifier: Apache-2.0
#include "traces/import/chakra/builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "traces/import/kineto/category.hpp"
#include "traces/import/limits.hpp"
#include "traces/import/names.hpp"
#include "traces/model/utf8.hpp"

namespace rehearse::traces::chakra {
namespace {

constexpr std::string_view kGroupsNode = "## process_group:init ##";

// CollectiveCommType of et_def.proto.
constexpr std::array<Collective, 10> kCollectiveTypes = {
    Collective::kAllReduce, Collective::kReduce,        Collective::kAllGather,
    Collective::kGather,    Collective::kScatter,       Collective::kBroadcast,
    Collective::kAllToAll,  Collective::kReduceScatter, Collective::kReduceScatter,
    Collective::kBarrier};

Bytes bytes_of(std::optional<int64_t> size) {
  return size && *size > 0 ? std::min<Bytes>(*size, kMostBytes) : 0;
}

std::optional<OpKind> kind_named(std::string_view text) {
  for (int k = 0; k < kOpKinds; ++k) {
    if (text == name_of(static_cast<OpKind>(k))) return static_cast<OpKind>(k);
  }
  return std::nullopt;
}

int64_t number_of(const FileMetadata& metadata, std::string_view key, int64_t most) {
  const Attribute* a = metadata.attribute(key);
  return a == nullptr || !a->number ? 0 : std::clamp<int64_t>(*a->number, 0, most);
}

}  // namespace

std::optional<RankId> rank_of_chakra_name(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  while (true) {
    const size_t dot = name.find('.');
    if (dot == std::string_view::npos) return std::nullopt;
    name.remove_prefix(dot + 1);
    const std::string_view part = name.substr(0, name.find('.'));
    RankId rank = 0;
    const auto [stop, error] = std::from_chars(part.data(), part.data() + part.size(), rank);
    if (!part.empty() && part.size() < name.size() && error == std::errc() &&
        stop == part.data() + part.size() && rank < kMostRank) {
      return rank;
    }
  }
}

Builder::Builder(ReadContext& context, std::string file, const FileMetadata& metadata)
    : context_(context), file_(std::move(file)), notes_(context.findings, file_) {
  read_metadata(metadata);
}

// What our exporter says about the rank.
void Builder::read_metadata(const FileMetadata& metadata) {
  RankTrace& rank = part_.trace;
  rank.host = metadata.text("host");
  rank.gpu = static_cast<uint32_t>(number_of(metadata, "gpu", 1 << 16));
  rank.gpu_model = metadata.text("gpu_model");
  rank.gpu_memory = number_of(metadata, "gpu_memory", kMostBytes);
  const Attribute* lanes = metadata.attribute("rehearse_lanes");
  if (lanes == nullptr || lanes->texts.empty() || lanes->texts.size() > kMostLanes) return;
  for (const std::string_view text : lanes->texts) {  // "0 4711 name"
    int64_t id = 0;
    const size_t gap = text.find(' ', std::min<size_t>(2, text.size()));
    if (text.size() < 3 || text[0] < '0' || text[0] > '2' || gap == std::string_view::npos ||
        std::from_chars(text.data() + 2, text.data() + gap, id).ec != std::errc()) {
      rank.lanes.clear();
      context_.findings.add("bad-metadata", Severity::kWarning, file_ + ", rehearse_lanes",
                            "the list of lanes is damaged; lanes are taken from the nodes");
      return;
    }
    rank.lanes.push_back({static_cast<LaneKind>(text[0] - '0'), id,
                          context_.strings.intern(clipped(text.substr(gap + 1), 256))});
  }
  exact_ = true;
  if (const Attribute* steps = metadata.attribute("rehearse_steps")) {
    for (size_t i = 0; i + 2 < steps->numbers.size(); i += 3) {
      const Step step{steps->numbers[i], steps->numbers[i + 1], steps->numbers[i + 2]};
      if (step.start > step.end || step.start < -kLatest || step.end > kLatest) continue;
      rank.steps.push_back(step);
    }
  }
  if (const Attribute* env = metadata.attribute("rehearse_env")) {
    for (const std::string_view pair : env->texts) {
      const size_t equals = std::min(pair.find('='), pair.size());
      rank.env.emplace(pair.substr(0, equals), pair.substr(std::min(equals + 1, pair.size())));
    }
  }
}

void Builder::note(const char* id, Severity severity, const Place& place, const char* advice) {
  notes_.add(id, severity, advice, [&] {
    return fmt::format("{}: byte {}, node {}", file_, place.offset, place.number);
  });
}

std::optional<Builder::Exact> Builder::exact_of(const Node& node) const {
  if (!exact_) return std::nullopt;
  const auto kind = kind_named(node.text("rehearse_kind"));
  const auto start = node.number("rehearse_start"), duration = node.number("rehearse_duration"),
             lane = node.number("rehearse_lane");
  if (!kind || !start || !duration || !lane || *lane < 0 ||
      std::cmp_greater_equal(*lane, part_.trace.lanes.size()) || *start < -kLatest ||
      *start > kLatest || *duration < 0 || *duration > kLatest) {
    return std::nullopt;
  }
  return Exact{*kind, *start, *duration, static_cast<LaneId>(*lane)};
}

void Builder::add(const Node& node, uint64_t offset, uint64_t number) {
  const Place place{offset, number};
  if (node.type == kMetadata && node.name == kGroupsNode) {
    if (!parse_groups(node.input_values, groups_)) {
      note("process-groups-unreadable", Severity::kWarning, place,
           "the members of communicators are not known; all ranks are taken");
    }
    return;
  }
  if (part_.trace.ops.size() >= UINT32_MAX - 1) {
    return note("too-many-nodes", Severity::kDataLoss, place, "a rank holds 4 billion operations");
  }
  if (const auto exact = exact_of(node)) return add_exact(node, *exact, place);
  if (exact_) {
    note("inexact-node", Severity::kInfo, place,
         "this node was added or changed by another tool; its times are whole microseconds");
  }
  add_recorded(node, place);
}

bool Builder::times(const Node& node, const Place& place, Nanos& start, Nanos& duration) {
  constexpr uint64_t kMost = static_cast<uint64_t>(kLatest) / 1000;
  duration = 0;
  start = 0;
  if (node.start_micros > kMost) {
    note("node-without-time", Severity::kWarning, place,
         "the start time makes no sense; taken as 0");
  } else {
    start = static_cast<Nanos>(node.start_micros) * 1000;
  }
  if (static_cast<int64_t>(node.duration_micros) < 0) {
    note("negative-duration", Severity::kWarning, place, "taken as 0 ns long");
  } else if (node.duration_micros > kMost) {
    note("duration-too-long", Severity::kWarning, place, "taken as 0 ns long");
  } else {
    duration = static_cast<Nanos>(node.duration_micros) * 1000;
  }
  if (node.start_micros != 0) has_times_ = true;
  return true;
}

bool Builder::lane_of(LaneKind kind, int64_t id, const Place& place, LaneId& lane) {
  const auto found = lanes_.of({kind, 0, 0, id}, part_.trace.lanes);
  if (!found) {
    note("too-many-lanes", Severity::kDataLoss, place,
         "more threads and streams than a trace can hold");
    return false;
  }
  lane = *found;
  return true;
}

void Builder::add_exact(const Node& node, const Exact& exact, const Place& place) {
  has_times_ = true;
  add_operation(node, exact.kind, exact.lane, exact.start, exact.duration, place);
}

void Builder::add_recorded(const Node& node, const Place& place) {
  if (node.type == kInvalid || node.type > kCheckpoint) {
    note("node-of-unknown-type", Severity::kWarning, place, "kept as computation");
  }
  const auto cpu = node.number("is_cpu_op");
  const bool communicates = node.type >= kSend && node.type <= kCollective;
  const bool files = node.type >= kStorage && node.type <= kCheckpoint;
  // Host nodes around a collective repeat its type, not its size.
  const bool described = node.number("comm_size") || node.number("comm_type");
  const bool on_host = node.type == kMetadata ||
                       (cpu && *cpu != 0 && !(communicates && described)) || (!cpu && files);
  OpKind kind = OpKind::kHost;
  if (node.type == kMetadata) {
    kind = OpKind::kAnnotation;
  } else if (!on_host) {
    const bool call = communicates || is_nccl_kernel(node.name);
    const bool copy =
        node.type == kMemoryLoad || node.type == kMemoryStore || node.name.starts_with("Memcpy");
    kind = call                              ? OpKind::kCall
           : copy                            ? OpKind::kCopy
           : node.name.starts_with("Memset") ? OpKind::kMemset
                                             : OpKind::kKernel;
  }
  const auto stream = node.number("stream");
  if (!on_host && stream) has_streams_ = true;
  const int64_t id = (!on_host && stream ? stream : node.number("tid")).value_or(0);
  Nanos start = 0, duration = 0;
  LaneId lane = 0;
  if (!times(node, place, start, duration)) return;
  if (kind == OpKind::kKernel && duration == 0 && node.number("num_ops").value_or(0) > 0) {
    note("computation-without-duration", Severity::kWarning, place,
         "these nodes tell how many operations they do, not how long they take, and take no time "
         "in a "
         "replay; write durations of the GPU into the file");
  }
  if (!lane_of(on_host ? LaneKind::kHostThread : LaneKind::kStream, id, place, lane)) return;
  add_operation(node, kind, lane, start, duration, place);
}

Call Builder::call_of(const Node& node, const Place& place) {
  Call call;
  const auto type = node.number("comm_type");
  if (node.type == kSend || node.type == kRecv) {
    call.collective = node.type == kSend ? Collective::kSend : Collective::kRecv;
  } else if (type && *type >= 0 && std::cmp_less(*type, kCollectiveTypes.size())) {
    call.collective = kCollectiveTypes[static_cast<size_t>(*type)];
  } else if (const auto by_name = is_nccl_kernel(node.name) ? collective_of_kernel(node.name)
                                                            : collective_of(node.name)) {
    call.collective = *by_name;
  } else {
    note("collective-unknown", Severity::kWarning, place, "taken as all-reduce");
  }
  if (type && (*type < 0 || std::cmp_greater_equal(*type, kCollectiveTypes.size()))) {
    note("collective-type-unknown", Severity::kWarning, place,
         "comm_type is none of Chakra's; the node's name is believed");
  }
  call.bytes_in = bytes_of(node.number("comm_size"));
  call.bytes_out = call.bytes_in;
  if (is_reducing(call.collective)) call.reduction = Reduction::kSum;
  const std::string_view dtype = node.text("rehearse_dtype");
  call.dtype = dtype_of(dtype);
  if (!dtype.empty() && dtype != name_of(DType::kUnknown) && call.dtype == DType::kUnknown) {
    note("unknown-dtype", Severity::kWarning, place, "the element type of the call is not known");
  }
  if (const auto reduction = node.number("rehearse_reduction");
      reduction && *reduction >= 0 && *reduction <= static_cast<int64_t>(Reduction::kProduct)) {
    call.reduction = static_cast<Reduction>(*reduction);
  }
  if (const auto group = node.number("rehearse_group")) call.group = static_cast<uint64_t>(*group);
  return call;
}

void Builder::add_operation(const Node& node, OpKind kind, LaneId lane, Nanos start, Nanos duration,
                            const Place& place) {
  Operations& ops = part_.trace.ops;
  if (node.name.size() > kLongestName) {
    note("name-shortened", Severity::kWarning, place, "names are kept up to 16 KiB");
  }
  const uint32_t name = context_.strings.intern(clipped(node.name, kLongestName));
  const int64_t correlation = exact_ ? node.number("rehearse_correlation").value_or(0) : 0;
  const Bytes size = bytes_of(node.number("tensor_size"));
  size_t op = 0;
  switch (kind) {
    case OpKind::kCall: {
      op = ops.add_call(lane, name, start, duration, correlation, call_of(node, place));
      const bool sends = node.type == kSend, receives = node.type == kRecv;
      group_of_call_.emplace_back(node.text("pg_name"));
      peer_rank_.push_back(sends      ? node.number("comm_dst").value_or(-1)
                           : receives ? node.number("comm_src").value_or(-1)
                                      : node.number("rehearse_root").value_or(-1));
      part_.recorded_sequence.push_back(node.number("rehearse_sequence").value_or(-1));
      part_.sized.push_back(node.number("comm_size").has_value());
      const auto out = node.number("rehearse_bytes_out");
      if (out) ops.calls.back().bytes_out = bytes_of(out);
      const auto in = node.number("rehearse_bytes_in");
      if (in) ops.calls.back().bytes_in = bytes_of(in);
      break;
    }
    case OpKind::kCopy: {
      CopyDirection direction = node.type == kMemoryLoad    ? CopyDirection::kHostToDevice
                                : node.type == kMemoryStore ? CopyDirection::kDeviceToHost
                                                            : kineto::direction_of(node.name);
      if (const auto told = node.number("rehearse_direction");
          told && *told >= 0 && *told <= static_cast<int64_t>(CopyDirection::kPeer)) {
        direction = static_cast<CopyDirection>(*told);
      }
      op = ops.add_copy(lane, name, start, duration, correlation, {direction, size});
      break;
    }
    case OpKind::kSync: {
      const auto sync = node.number("rehearse_sync"), stream = node.number("rehearse_sync_lane"),
                 event = node.number("rehearse_event");
      if (!sync || *sync < 0 || *sync > static_cast<int64_t>(SyncKind::kDevice)) {
        op = ops.add(OpKind::kHost, lane, name, start, duration, correlation);
        break;
      }
      const bool known = stream && *stream >= 0 && std::cmp_less(*stream, part_.trace.lanes.size());
      op = ops.add_sync(lane, name, start, duration, correlation,
                        {static_cast<SyncKind>(*sync), known ? static_cast<int32_t>(*stream) : -1,
                         static_cast<uint64_t>(event.value_or(0))});
      break;
    }
    case OpKind::kMemory:
      return note("node-of-unknown-type", Severity::kWarning, place, "left out");
    default:
      op = ops.add(kind, lane, name, start, duration, correlation);
  }
  remember_dependencies(node, op, place);
}

void Builder::remember_dependencies(const Node& node, size_t op, const Place& place) {
  const auto index = static_cast<uint32_t>(op);
  if (!by_id_.emplace(node.id, index).second) {
    note("duplicate-node-id", Severity::kWarning, place,
         "both nodes are kept; dependencies on that id mean the first");
  }
  if (exact_) {
    if (const Attribute* after = node.attribute("rehearse_after")) {
      for (const int64_t id : after->numbers) data_.push_back({index, static_cast<uint64_t>(id)});
    }
    return;
  }
  for (const uint64_t id : node.data) data_.push_back({index, id});
  for (const uint64_t id : node.control) control_.push_back({index, id});
}

}  // namespace rehearse::traces::chakra
