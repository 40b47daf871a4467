// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <simdjson.h>

#include <charconv>
#include <set>

#include "traces/import/flight_recorder/flight_recorder.hpp"
#include "traces/import/flight_recorder/pickle.hpp"
#include "traces/import/json_text.hpp"
#include "traces/import/rank_of_name.hpp"

namespace rehearse::traces::flight_recorder {
namespace {

namespace dom = simdjson::dom;
using Kind = Value::Kind;
constexpr size_t kMostDumpBytes = size_t{256} << 20;
constexpr int kMaxDepth = 64;

Result<std::string> whole_text(Source& source) {
  std::string out;
  std::vector<char> piece(size_t{256} << 10);
  while (true) {
    RH_TRY(const size_t length, source.read({piece.data(), piece.size()}));
    if (length == 0) return out;
    if (out.size() + length > kMostDumpBytes) {
      return fail(Code::kLimit, "a dump of more than 256 MiB", source.name(),
                  "lower TORCH_FR_BUFFER_SIZE");
    }
    out.append(piece.data(), length);
  }
}

bool convert(const dom::element& in, Values& values, int depth, ValueId& out) {
  if (depth > kMaxDepth) return false;
  Value value;
  switch (in.type()) {
    case dom::element_type::ARRAY:
      value.kind = Kind::kList;
      for (const dom::element item : dom::array(in)) {
        ValueId id = 0;
        if (!convert(item, values, depth + 1, id)) return false;
        value.items.push_back(id);
      }
      break;
    case dom::element_type::OBJECT:
      value.kind = Kind::kDict;
      for (const auto& [key, item] : dom::object(in)) {
        ValueId id = 0;
        if (!convert(item, values, depth + 1, id)) return false;
        value.items.push_back(values.add({.kind = Kind::kText, .text = std::string(key)}));
        value.items.push_back(id);
      }
      break;
    case dom::element_type::INT64:
      value = {.kind = Kind::kInteger, .integer = in.get_int64().value_unsafe()};
      break;
    case dom::element_type::UINT64:
      value = {.kind = Kind::kFloat, .number = static_cast<double>(in.get_uint64().value_unsafe())};
      break;
    case dom::element_type::DOUBLE:
      value = {.kind = Kind::kFloat, .number = in.get_double().value_unsafe()};
      break;
    case dom::element_type::STRING:
      value = {.kind = Kind::kText, .text = std::string(in.get_string().value_unsafe())};
      break;
    case dom::element_type::BOOL:
      value = {.kind = Kind::kBool, .integer = in.get_bool().value_unsafe() ? 1 : 0};
      break;
    case dom::element_type::NULL_VALUE:
      break;
  }
  out = values.add(std::move(value));
  return true;
}

Result<ValueId> from_json(std::string_view text, const std::string& name, Values& values) {
  dom::parser parser(kMostDumpBytes);
  dom::element document;
  if (const auto error = parse_json(parser, text, document)) {
    return fail(Code::kBadInput,
                fmt::format("no whole JSON document: {}", simdjson::error_message(error)), name,
                "the dump was cut or changed; copy it again");
  }
  ValueId root = 0;
  if (!convert(document, values, 0, root)) {
    return fail(Code::kBadInput, fmt::format("JSON nested deeper than {}", kMaxDepth), name,
                "a flight recorder dump is not; copy it again");
  }
  return root;
}

std::optional<uint32_t> number_at_end_of(std::string_view name) {
  size_t first = name.size();
  while (first > 0 && name[first - 1] >= '0' && name[first - 1] <= '9') --first;
  uint32_t rank = 0;
  const char* end = name.data() + name.size();
  if (first == name.size() || name.size() - first > 7 ||
      std::from_chars(name.data() + first, end, rank).ec != std::errc{}) {
    return std::nullopt;
  }
  return rank;
}

// PyTorch writes <prefix><rank>; whoever collects the files may have put an extension behind it.
std::optional<uint32_t> rank_at_end_of(std::string_view name) {
  if (const auto rank = number_at_end_of(name)) return rank;
  const size_t dot = name.rfind('.');
  return dot == name.npos ? std::nullopt : number_at_end_of(name.substr(0, dot));
}

// The one rank that is in all groups of a dump: a process records those that it is a member of.
std::optional<uint32_t> rank_in_all_groups(const pb::FlightRecorder& recorder) {
  std::set<uint32_t> in_all;
  bool first = true;
  for (const pb::FlightGroup& group : recorder.groups()) {
    if (group.ranks().empty()) continue;
    const std::set<uint32_t> members(group.ranks().begin(), group.ranks().end());
    if (first) in_all = members;
    first = false;
    std::erase_if(in_all, [&](uint32_t rank) { return !members.contains(rank); });
  }
  return in_all.size() == 1 ? std::optional(*in_all.begin()) : std::nullopt;
}

// What the name says in words goes first, then what the dump says itself; a bare number may count the processes of a node.
std::optional<uint32_t> rank_of_dump(const std::string& name, const pb::FlightRecorder& recorder) {
  if (const auto rank = rank_of_name(name)) return rank;
  if (recorder.has_rank()) return recorder.rank();
  if (const auto rank = rank_in_all_groups(recorder)) return rank;
  return rank_at_end_of(name);
}

}  // namespace

bool sniff_json(std::string_view head) {
  const size_t start = head.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos) return false;
  // The entries alone, as PyTorch 2.2 dumped them.
  if (head[start] == '[') {
    return head.find("\"profiling_name\"") != std::string_view::npos &&
           (head.find("\"record_id\"") != std::string_view::npos ||
            head.find("\"seq_id\"") != std::string_view::npos);
  }
  if (head[start] != '{') return false;
  const bool entries =
      head.find("\"profiling_name\"") != std::string_view::npos && has_top_key(head, "entries");
  return entries || has_top_key(head, "pg_config") || has_top_key(head, "pg_status");
}

bool sniff_pickle(std::string_view head) {
  using namespace std::string_view_literals;
  // Protocols 0 and 1 do not tell their number: a dict or list that is remembered first.
  for (const std::string_view begin :
       {"(dp0\n"sv, "(dp1\n"sv, "(lp0\n"sv, "(lp1\n"sv, "}q\x00"sv, "]q\x00"sv}) {
    if (head.starts_with(begin)) return true;
  }
  return head.size() >= 3 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5 &&
         (head[2] == '}' || head[2] == '\x95' || head[2] == '(' || head[2] == ']' ||
          head[2] == 'c');
}

Result<FilePart> read(Source& source, ReadContext& context) {
  const bool pickle = sniff_pickle(source.head());
  RH_TRY(const std::string text, whole_text(source));
  Values values;
  RH_TRY(const ValueId root,
         pickle ? unpickle(text, source.name(), values) : from_json(text, source.name(), values));
  pb::Evidence evidence;
  evidence.set_source(source.name().substr(source.name().rfind('/') + 1));
  RH_TRY(*evidence.mutable_flight_recorder(),
         to_recorder(values, root, source.name(), context.findings));
  pb::FlightRecorder& recorder = *evidence.mutable_flight_recorder();
  if (const auto rank = rank_of_dump(evidence.source(), recorder)) {
    recorder.set_rank(*rank);
  } else {
    context.findings.add("flight-recorder-rank-unknown", Severity::kWarning, source.name(),
                         "a dump does not tell its rank; put it into the name (rank3.json)");
  }
  if (recorder.entries().empty()) {
    context.findings.add("flight-recorder-empty", Severity::kWarning, source.name(),
                         "the rank had no call in its recorder: it may hang before any");
  }
  FilePart part;
  part.framework = "pytorch";
  part.nccl_version = recorder.nccl_version();
  part.evidence.push_back(std::move(evidence));
  return part;
}

}  // namespace rehearse::traces::flight_recorder
