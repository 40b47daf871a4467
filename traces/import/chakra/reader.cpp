// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "traces/import/chakra/builder.hpp"
#include "traces/import/chakra/chakra.hpp"
#include "traces/import/json_stream.hpp"
#include "traces/import/rank_of_name.hpp"
#include "traces/import/wire.hpp"

namespace rehearse::traces::chakra {
namespace {

constexpr size_t kMostNode = 64 << 20;
constexpr uint64_t kProgressEvery = 1 << 16;

// The length-delimited message at the front of `head`; nothing when it is not all there.
std::optional<std::string_view> take_message(std::string_view& head) {
  uint64_t length = 0;
  for (size_t i = 0; i < head.size() && i < 5; ++i) {
    const auto byte = static_cast<unsigned char>(head[i]);
    length |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
    if (byte >= 0x80) continue;
    if (length > head.size() - i - 1) return std::nullopt;
    const std::string_view message = head.substr(i + 1, length);
    head.remove_prefix(i + 1 + length);
    return message;
  }
  return std::nullopt;
}

bool printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) >= 0x20 || c == '\n'; });
}

// GlobalMetadata, then a Node with a name and a type that exists.
bool is_protobuf(std::string_view head) {
  // Text has none of these; every node has.
  if (std::none_of(head.begin(), head.end(), [](char c) { return c >= 0 && c < '\t'; }))
    return false;
  const auto first = take_message(head);
  if (!first) return false;
  const auto metadata = parse_metadata(*first);
  if (!metadata || !printable(metadata->schema)) return false;
  for (const Attribute& a : metadata->attributes) {
    if (a.name.size() > 256 || !printable(a.name)) return false;
  }
  // Some bytes that parse as metadata are no evidence; attributes or a node are.
  const bool told = !metadata->attributes.empty();
  if (head.empty()) return told;
  const auto second = take_message(head);
  Node node;
  if (!second) return told;
  return parse_node(*second, node) && node.type <= kCheckpoint && printable(node.name) &&
         (told || (!node.name.empty() && node.type != kInvalid));
}

bool has(std::string_view head, std::string_view text) {
  return head.find(text) != std::string_view::npos;
}

bool is_graph(std::string_view head) {
  return has(head, "\"workload_graph\"") &&
         (has(head, "\"NodeType\"") || has(head, "\"data_deps\"") || has(head, "\"Id\""));
}

// The jsonizer prints one message after the other, without a list around them.
bool is_jsonized(std::string_view head) {
  return !has(head, "\"traceEvents\"") && !has(head, "\"nodes\"") && has(head, "_NODE\"") &&
         (has(head, "\"type\": \"COMP_NODE\"") || has(head, "\"type\": \"COMM_") ||
          has(head, "\"type\": \"METADATA_NODE\"") || has(head, "\"type\": \"MEM_"));
}

Result<void> ended_early(uint64_t nodes, const std::string& where, ReadContext& context) {
  const std::string what = fmt::format("the file ends inside a node: {} nodes are whole", nodes);
  if (context.cut_files == CutFiles::kRefuse || nodes == 0) {
    return fail(Code::kBadInput, what, where,
                nodes == 0
                    ? "copy or write it again"
                    : "copy or write it again, or take what is whole with --allow-truncated");
  }
  context.findings.add("file-cut", Severity::kDataLoss, where, what);
  return {};
}

Result<void> look_up(uint64_t nodes, const Builder& builder, const std::string& file,
                     ReadContext& context) {
  if (builder.held_bytes() > context.most_held) {
    return fail(Code::kLimit,
                fmt::format("its nodes and dependencies need more than {} MiB to be joined",
                            context.most_held >> 20),
                fmt::format("{}: node {}", file, nodes), "write fewer steps into one file");
  }
  if (nodes % kProgressEvery != 0) return {};
  if (context.reporter.interrupted()) return fail(Code::kInterrupted, "interrupted");
  context.reporter.progress("nodes", nodes, 0);
  return {};
}

struct Contents {
  FileMetadata metadata;
  RankPart rank;
  uint64_t nodes = 0;
  std::string members;  // of the JSON object around the graph
};

void unreadable(const std::string& where, ReadContext& context) {
  context.findings.add("node-unreadable", Severity::kDataLoss, where,
                       "nodes that cannot be parsed are left out; the file may be damaged");
}

Result<Contents> read_protobuf(Source& source, ReadContext& context) {
  using Next = WireStream::Next;
  WireStream stream(source, kMostNode);
  Contents out;
  uint64_t length = 0;
  std::string_view message;
  RH_TRY(Next got, stream.varint(length));
  if (got == Next::kOk) {
    RH_TRY(got, stream.bytes(length, message));
  }
  auto metadata = got == Next::kOk ? parse_metadata(message) : std::nullopt;
  if (!metadata) {
    return fail(Code::kBadInput, "the file ends inside its metadata", source.name() + ": byte 0",
                "copy or write it again");
  }
  out.metadata = std::move(*metadata);
  Builder builder(context, source.name(), out.metadata);
  Node node;
  uint64_t empty = 0;
  for (;; ++out.nodes) {
    const uint64_t at = stream.offset();
    const auto where = [&] {
      return fmt::format("{}: byte {}, node {}", source.name(), at, out.nodes);
    };
    RH_TRY(got, stream.varint(length));
    if (got == Next::kEnd) break;
    if (got == Next::kOk) {
      RH_TRY(got, stream.bytes(length, message));
    }
    if (got != Next::kOk) {
      if (auto cut = ended_early(out.nodes, where(), context); !cut)
        return tl::unexpected(cut.error());
      break;
    }
    // One node may have nothing but the number 0; more are zero bytes where nodes should be.
    if (message.empty() && empty++ > 0) {
      return fail(Code::kBadInput, "zero bytes where nodes should be", where(),
                  "cut the file there, or copy it again");
    }
    if (parse_node(message, node)) {
      builder.add(node, at, out.nodes);
    } else {
      unreadable(where(), context);
    }
    if (auto go_on = look_up(out.nodes, builder, source.name(), context); !go_on)
      return tl::unexpected(go_on.error());
  }
  out.rank = builder.finish();
  return out;
}

Result<Contents> read_json(Source& source, ReadContext& context) {
  const bool sequence = !is_graph(source.head());
  JsonStream stream(source, sequence ? "" : "workload_graph", {});
  Contents out;
  Builder builder(context, source.name(), out.metadata);
  JsonNodes parser;
  Node node;
  Element element;
  for (;;) {
    RH_TRY(const JsonStream::Next got, stream.next(element));
    if (got == JsonStream::Next::kEnd) break;
    if (got == JsonStream::Next::kCut) {
      if (auto cut = ended_early(stream.count(), stream.where(stream.offset()), context); !cut) {
        return tl::unexpected(cut.error());
      }
      break;
    }
    const bool metadata = sequence && element.number == 0 && !has(element.text, "\"type\"");
    if (metadata) continue;
    if (parser.parse(element, node)) {
      builder.add(node, element.offset, element.number);
    } else {
      unreadable(stream.where(element.offset), context);
    }
    if (auto go_on = look_up(stream.count(), builder, source.name(), context); !go_on)
      return tl::unexpected(go_on.error());
  }
  stream.tell_trailing(context.findings);
  out.nodes = stream.count();
  out.members = stream.members();
  out.rank = builder.finish();
  return out;
}

std::optional<uint32_t> number_of(const FileMetadata& metadata, std::string_view key) {
  const Attribute* a = metadata.attribute(key);
  if (a == nullptr || !a->number || *a->number < 0 || *a->number >= (1 << 24)) return std::nullopt;
  return static_cast<uint32_t>(*a->number);
}

}  // namespace

bool sniff(std::string_view head) {
  const size_t first = head.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (first != std::string_view::npos && head[first] == '{' &&
      (is_graph(head) || is_jsonized(head))) {
    return true;
  }
  return is_protobuf(head);
}

Result<FilePart> read(Source& source, ReadContext& context) {
  RH_TRY(Contents contents,
         is_protobuf(source.head()) ? read_protobuf(source, context) : read_json(source, context));
  if (contents.rank.trace.ops.size() == 0) {
    return fail(Code::kBadInput,
                fmt::format("none of its {} nodes is an operation", contents.nodes), source.name(),
                "write the trace again with Chakra's converter");
  }
  FilePart part;
  const FileMetadata& metadata = contents.metadata;
  part.framework = metadata.text("framework");
  part.job = metadata.text("job");
  part.nccl_version = metadata.text("nccl_version");
  part.synthetic = number_of(metadata, "synthetic").value_or(0) != 0;
  part.world_size = number_of(metadata, "world_size");
  const auto members = nlohmann::json::parse(contents.members, nullptr, false);
  if (!part.world_size && members.is_object() && members.contains("ngpus") &&
      members["ngpus"].is_number_unsigned() && members["ngpus"] > 0 && members["ngpus"] < 1 << 24) {
    part.world_size = members["ngpus"].get<uint32_t>();
  }
  if (members.is_object() && members.contains("workload_name") &&
      members["workload_name"].is_string()) {
    part.job = members["workload_name"].get<std::string>();
  }
  auto rank = number_of(metadata, "rank");
  if (!rank) {
    rank = rank_of_chakra_name(source.name());
    if (!rank) rank = rank_of_name(source.name());
    if (rank) {
      context.findings.add("rank-from-name", Severity::kInfo, source.name(),
                           "the file does not tell its rank; it is taken from the file's name");
    }
  }
  contents.rank.rank_known = rank.has_value();
  contents.rank.cloned_from = number_of(metadata, "cloned_from");
  contents.rank.trace.rank = rank.value_or(0);
  if (part.world_size && rank && *part.world_size <= *rank) part.world_size = *rank + 1;
  part.ranks.push_back(std::move(contents.rank));
  return part;
}

}  // namespace rehearse::traces::chakra
