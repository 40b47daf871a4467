// SPDX-License-Identifier: Apache-2.0
#include "traces/export/chakra.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "traces/export/chakra_edges.hpp"
#include "traces/export/kineto_text.hpp"
#include "traces/export/wire_text.hpp"

namespace rehearse::traces {
namespace {

// Field numbers of AttributeProto.
constexpr uint32_t kInt32 = 7, kInt64 = 9, kInt64List = 10, kUint64 = 13, kBool = 27, kText = 29,
                   kTextList = 30;
// NodeType.
constexpr uint64_t kMetadata = 1, kCompute = 4, kSend = 5, kRecv = 6, kCollective = 7;

// CollectiveCommType by Collective; send and recv have node types of their own.
constexpr std::array<uint64_t, kCollectives> kCommTypes = {0, 2, 7, 5, 1, 6, 3, 4, 9, 0, 0};

void attribute(std::string& out, uint32_t outer, std::string_view name, uint32_t field,
               uint64_t value) {
  std::string a;
  put_bytes(a, 1, name);
  put_number(a, field, value);
  put_bytes(out, outer, a);
}
void attribute(std::string& out, uint32_t outer, std::string_view name, std::string_view text) {
  std::string a;
  put_bytes(a, 1, name);
  put_bytes(a, kText, text);
  put_bytes(out, outer, a);
}
void attribute(std::string& out, uint32_t outer, std::string_view name, uint32_t field,
               const std::string& list) {
  std::string a;
  put_bytes(a, 1, name);
  put_bytes(a, field, list);
  put_bytes(out, outer, a);
}

uint64_t micros(Nanos time) { return static_cast<uint64_t>(std::max<Nanos>(0, time) + 500) / 1000; }
uint64_t bits(int64_t value) { return static_cast<uint64_t>(value); }

class ChakraFile {
 public:
  ChakraFile(const RankTrace& rank, const ChakraContext& context)
      : rank_(rank), ops_(rank.ops), context_(context), edges_(chakra_edges(rank)) {}

  [[nodiscard]] std::string metadata() const;
  [[nodiscard]] std::string groups() const;
  // "" for an operation that Chakra has no node for.
  [[nodiscard]] std::string node(uint32_t op) const;

 private:
  void call(std::string& out, const Call& call) const;
  void exact(std::string& out, uint32_t op) const;
  [[nodiscard]] uint64_t type_of(uint32_t op) const;
  [[nodiscard]] static uint64_t id(uint32_t op) { return uint64_t{op} + 1; }

  const RankTrace& rank_;
  const Operations& ops_;
  const ChakraContext& context_;
  ChakraEdges edges_;
};

std::string ChakraFile::metadata() const {
  std::string out;
  const pb::TraceHeader& header = context_.header;
  put_bytes(out, 1, "0.0.4");
  attribute(out, 2, "schema", "1.1.0-chakra.0.0.4");
  attribute(out, 2, "rank", kUint64, rank_.rank);
  attribute(out, 2, "world_size", kUint64, header.world_size());
  attribute(out, 2, "producer", "rehearse: " + header.producer());
  attribute(out, 2, "framework", header.framework());
  attribute(out, 2, "job", header.job());
  attribute(out, 2, "nccl_version", header.nccl_version());
  attribute(out, 2, "synthetic", kBool, header.synthetic() ? 1 : 0);
  if (const auto source = header.cloned_from().find(rank_.rank);
      source != header.cloned_from().end()) {
    attribute(out, 2, "cloned_from", kUint64, source->second);
  }
  attribute(out, 2, "host", rank_.host);
  attribute(out, 2, "gpu", kUint64, rank_.gpu);
  attribute(out, 2, "gpu_model", rank_.gpu_model);
  attribute(out, 2, "gpu_memory", kInt64, bits(rank_.gpu_memory));
  std::string lanes, env;
  for (const Lane& lane : rank_.lanes) {
    put_bytes(lanes, 1,
              fmt::format("{} {} {}", static_cast<int>(lane.kind), lane.id,
                          context_.strings.at(lane.name)));
  }
  attribute(out, 2, "rehearse_lanes", kTextList, lanes);
  for (const auto& [key, value] : rank_.env) {
    put_bytes(env, 1, fmt::format("{}={}", key, value));
  }
  if (!env.empty()) attribute(out, 2, "rehearse_env", kTextList, env);
  std::vector<uint64_t> steps;
  for (const Step& s : rank_.steps) {
    for (const int64_t value : {s.number, s.start, s.end}) steps.push_back(bits(value));
  }
  std::string packed;
  put_numbers(packed, 1, steps);
  if (!steps.empty()) attribute(out, 2, "rehearse_steps", kInt64List, packed);
  return out;
}

std::string ChakraFile::groups() const {
  std::string list;
  for (size_t i = 0; i < context_.communicators.size(); ++i) {
    const Communicator& c = context_.communicators[i];
    list += fmt::format(
        "{}{{\"pg_name\": {}, \"pg_desc\": {}, \"backend_config\": {}, \"pg_size\": {}, "
        "\"ranks\": [{}], \"rehearse_id\": {}}}",
        i == 0 ? "" : ", ", json_string(chakra_group_name(i)), json_string(c.description),
        json_string("cuda:" + c.backend), c.members.size(), fmt::join(c.members, ", "),
        json_string(c.id));
  }
  std::string out, inputs;
  put_bytes(out, 2, "## process_group:init ##");
  put_number(out, 3, kMetadata);
  put_bytes(inputs, 1, "[" + list + "]");
  put_bytes(out, 8, inputs);
  attribute(out, 10, "is_cpu_op", kBool, 1);
  return out;
}

uint64_t ChakraFile::type_of(uint32_t op) const {
  if (ops_.kind[op] == OpKind::kAnnotation) return kMetadata;
  const Call* call = ops_.call(op);
  if (call == nullptr) return kCompute;
  if (call->collective == Collective::kSend) return kSend;
  return call->collective == Collective::kRecv ? kRecv : kCollective;
}

void ChakraFile::call(std::string& out, const Call& call) const {
  const bool p2p = is_point_to_point(call.collective);
  if (!p2p)
    attribute(out, 10, "comm_type", kInt64, kCommTypes[static_cast<size_t>(call.collective)]);
  const bool receives = call.collective == Collective::kRecv;
  const Bytes size = receives ? std::max(call.bytes_in, call.bytes_out) : call.bytes_in;
  attribute(out, 10, "comm_size", kInt64, bits(size));
  attribute(out, 10, "pg_name", chakra_group_name(call.communicator));
  int64_t peer = -1;
  if (call.communicator < context_.communicators.size()) {
    const auto& members = context_.communicators[call.communicator].members;
    if (call.peer >= 0) {
      const auto at = static_cast<size_t>(call.peer);
      peer = at < members.size() ? members[at] : call.peer;
    }
  }
  if (p2p && peer >= 0) {
    const auto self = uint64_t{rank_.rank};
    attribute(out, 10, "comm_src", kInt32, receives ? bits(peer) : self);
    attribute(out, 10, "comm_dst", kInt32, receives ? self : bits(peer));
    attribute(out, 10, "comm_tag", kInt32, bits(call.sequence & 0x7fffffff));
  } else if (peer >= 0) {
    attribute(out, 10, "rehearse_root", kInt64, bits(peer));
  }
  attribute(out, 10, "rehearse_sequence", kInt64, bits(call.sequence));
  if (call.bytes_in != size) attribute(out, 10, "rehearse_bytes_in", kInt64, bits(call.bytes_in));
  attribute(out, 10, "rehearse_bytes_out", kInt64, bits(call.bytes_out));
  attribute(out, 10, "rehearse_dtype", name_of(call.dtype));
  attribute(out, 10, "rehearse_reduction", kInt64, static_cast<uint64_t>(call.reduction));
  if (call.group != 0) attribute(out, 10, "rehearse_group", kInt64, call.group);
}

// What Chakra has no field for.
void ChakraFile::exact(std::string& out, uint32_t op) const {
  attribute(out, 10, "rehearse_kind", name_of(ops_.kind[op]));
  attribute(out, 10, "rehearse_lane", kInt64, ops_.lane[op]);
  attribute(out, 10, "rehearse_start", kInt64, bits(ops_.start[op]));
  attribute(out, 10, "rehearse_duration", kInt64, bits(ops_.duration[op]));
  if (ops_.correlation[op] != 0)
    attribute(out, 10, "rehearse_correlation", kInt64, bits(ops_.correlation[op]));
  if (const Sync* sync = ops_.sync(op)) {
    attribute(out, 10, "rehearse_sync", kInt64, static_cast<uint64_t>(sync->sync));
    attribute(out, 10, "rehearse_sync_lane", kInt64, bits(sync->stream_lane));
    if (sync->event != 0) attribute(out, 10, "rehearse_event", kInt64, sync->event);
  }
  const auto first =
      std::lower_bound(ops_.dependencies.begin(), ops_.dependencies.end(), Dependency{op, 0});
  std::vector<uint64_t> after;
  for (auto d = first; d != ops_.dependencies.end() && d->op == op; ++d) after.push_back(id(d->on));
  std::string packed;
  put_numbers(packed, 1, after);
  if (!after.empty()) attribute(out, 10, "rehearse_after", kInt64List, packed);
}

std::string ChakraFile::node(uint32_t op) const {
  std::string out;
  if (ops_.kind[op] == OpKind::kMemory) return out;
  const Lane& lane = rank_.lanes[ops_.lane[op]];
  const bool on_gpu = lane.kind == LaneKind::kStream;
  put_number(out, 1, id(op));
  put_bytes(out, 2, context_.strings.at(ops_.name[op]));
  put_number(out, 3, type_of(op));
  if (edges_.parent[op] != kNoParent) put_numbers(out, 4, std::array{id(edges_.parent[op])});
  std::vector<uint64_t> data;
  for (uint32_t e = edges_.begin[op]; e < edges_.begin[op + 1]; ++e)
    data.push_back(id(edges_.on[e]));
  put_numbers(out, 5, data);
  if (ops_.start[op] > 0) put_number(out, 6, micros(ops_.start[op]));
  if (ops_.kind[op] != OpKind::kAnnotation) put_number(out, 7, micros(edges_.own[op]));
  attribute(out, 10, "is_cpu_op", kBool, on_gpu ? 0 : 1);
  attribute(out, 10, on_gpu ? "stream" : "tid", kInt64, bits(lane.id));
  if (const Call* c = ops_.call(op)) call(out, *c);
  if (const Copy* copy = ops_.copy(op)) {
    attribute(out, 10, "tensor_size", kUint64, bits(copy->bytes));
    attribute(out, 10, "rehearse_direction", kInt64, static_cast<uint64_t>(copy->direction));
  }
  exact(out, op);
  return out;
}

void put_message(std::string& out, const std::string& message) {
  put_varint(out, message.size());
  out += message;
}

// Gives the messages one after the other, framed.
template <typename Sink>
Result<uint64_t> each_message(const RankTrace& rank, const ChakraContext& context,
                              const Sink& sink) {
  const ChakraFile file(rank, context);
  std::string piece;
  put_message(piece, file.metadata());
  put_message(piece, file.groups());
  uint64_t nodes = 0;
  for (uint32_t op = 0; op < rank.ops.size(); ++op) {
    const std::string node = file.node(op);
    if (node.empty()) continue;
    ++nodes;
    put_message(piece, node);
    if (piece.size() < (size_t{1} << 20)) continue;
    if (Result<void> done = sink(piece); !done) return tl::unexpected(done.error());
    piece.clear();
  }
  if (Result<void> done = sink(piece); !done) return tl::unexpected(done.error());
  return nodes;
}

}  // namespace

std::string chakra_group_name(size_t communicator) { return std::to_string(communicator + 1); }

std::string chakra_groups_json(const std::vector<Communicator>& communicators) {
  std::string out = "{";
  for (size_t i = 0; i < communicators.size(); ++i) {
    out += fmt::format("{}\n  \"{}\": [{}]", i == 0 ? "" : ",", chakra_group_name(i),
                       fmt::join(communicators[i].members, ", "));
  }
  return out + "\n}\n";
}

Result<ChakraWritten> write_chakra(const RankTrace& rank, const ChakraContext& context,
                                   const std::filesystem::path& folder, Overwrite overwrite) {
  ChakraWritten out;
  out.path = folder / fmt::format("trace.{}.et", rank.rank);
  RH_TRY(AtomicFile file, AtomicFile::create(out.path, overwrite));
  RH_TRY(out.nodes,
         each_message(rank, context, [&](const std::string& piece) { return file.write(piece); }));
  out.left_out = rank.ops.size() - out.nodes;
  if (auto done = file.commit(); !done) return tl::unexpected(done.error());
  return out;
}

}  // namespace rehearse::traces
