// SPDX-License-Identifier: Apache-2.0
#include "traces/import/nccl_log/log_facts.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "traces/evidence/names.hpp"
#include "traces/import/scan.hpp"

namespace rehearse::traces::nccl_log {
namespace {

constexpr size_t kMaxRanks = size_t{1} << 20;

int as_int(std::optional<int64_t> value, int otherwise) {
  return value && *value >= INT32_MIN && *value <= INT32_MAX ? static_cast<int>(*value) : otherwise;
}

// " rank 3" behind some text; `key` includes the blanks around it.
std::optional<int64_t> value_of(std::string_view text, std::string_view key) {
  Scan scan(text);
  return scan.after(key) ? scan.integer() : std::nullopt;
}

std::string word_of(std::string_view text, std::string_view key) {
  Scan scan(text);
  if (!scan.after(key)) return "";
  return std::string(scan.word().value_or(""));
}

// "0[1b000]" or "0[0]" or "0".
std::optional<int> endpoint(Scan& scan) {
  const auto rank = scan.integer();
  if (!rank || *rank < 0 || *rank > INT32_MAX) return std::nullopt;
  if (scan.rest().starts_with("[") && !scan.after("]")) return std::nullopt;
  return static_cast<int>(*rank);
}

// Whether the parts behind "P2P/" or "SHM/" are ones that NCCL prints; text of another process that
// was written over the end of the line is not.
bool whole_path(std::string_view parts) {
  constexpr std::array<std::string_view, 9> kParts = {
      "direct pointer", "direct", "IPC", "CUMEM", "MNNVL", "read", "CE", "indirect", "cuMem"};
  while (!parts.empty()) {
    const size_t slash = std::min(parts.find('/'), parts.size());
    const std::string_view part = parts.substr(0, slash);
    // The rank that an indirect path goes through: "indirect/3[4]".
    const bool through = part.ends_with(']') && part.find('[') != std::string_view::npos;
    if (!through && std::find(kParts.begin(), kParts.end(), part) == kParts.end()) return false;
    parts.remove_prefix(std::min(slash + 1, parts.size()));
  }
  return true;
}

}  // namespace

std::optional<std::pair<std::string, std::string>> version_in(std::string_view text) {
  // AMD's: "RCCL version 2.20.5+hip6.2" and "RCCL version : 2.22.3-develop:abc".
  constexpr std::string_view kBanner = "CCL version ";
  const size_t at = text.find(kBanner);
  if (at == std::string_view::npos || at == 0) return std::nullopt;
  const size_t start = at - 1;
  if (text[start] != 'N' && text[start] != 'R') return std::nullopt;
  Scan scan(text.substr(at + kBanner.size()));
  scan.literal(":");
  const std::string_view word = scan.word().value_or("");
  const size_t end = word.find_first_of("+-");
  if (word.empty() || word[0] < '0' || word[0] > '9') return std::nullopt;
  std::string cuda;
  if (const size_t plus = word.find("+cuda"); plus != std::string_view::npos)
    cuda = word.substr(plus + 5);
  // Behind what a launcher put before it, only the whole form is no sentence about versions.
  const bool whole = !cuda.empty() || word.find("+hip") != std::string_view::npos;
  if (start > 0 && (!whole || text[start - 1] == '_' ||
                    std::isalnum(static_cast<unsigned char>(text[start - 1])) != 0)) {
    return std::nullopt;
  }
  return std::pair(std::string(word.substr(0, end)), cuda);
}

std::pair<std::string_view, std::string> without_comm(std::string_view text) {
  const size_t at = text.rfind(" comm 0x");
  if (at == std::string_view::npos) return {text, ""};
  Scan scan(text.substr(at + 6));
  const std::string_view comm = scan.word().value_or("");
  if (!scan.literal("nRanks ") || !scan.natural()) return {text, ""};
  if (scan.literal("busId ") && !scan.word()) return {text, ""};
  if (!scan.at_end()) return {text, ""};
  return {text.substr(0, at), std::string(comm)};
}

std::optional<std::pair<std::string, std::string>> variable_in(std::string_view text) {
  if (!text.starts_with("NCCL_")) return std::nullopt;
  const size_t blank = text.find(' ');
  if (blank == std::string_view::npos) return std::nullopt;
  const std::string_view name = text.substr(0, blank);
  Scan scan(text.substr(blank));
  if (!scan.literal("set to ") && !scan.literal("set by environment to ") &&
      !scan.literal("set by user to ")) {
    return std::nullopt;
  }
  std::string_view value = trimmed(scan.rest());
  if (value.ends_with('.')) value.remove_suffix(1);
  return std::pair(std::string(name), std::string(value));
}

std::optional<CommLine> comm_line_in(std::string_view text) {
  const size_t at = text.find("comm 0x");
  // Between the start of the message and it stand at most "[Rank 3] " and a function's name.
  if (at == std::string_view::npos || at > 64) return std::nullopt;
  const std::string_view facts = text.substr(at);
  CommLine line;
  line.comm = word_of(facts, "comm ");
  line.rank = as_int(value_of(facts, " rank "), -1);
  if (line.rank < 0) return std::nullopt;
  const auto ranks = value_of(facts, " nranks ");
  line.ranks_total = as_int(ranks ? ranks : value_of(facts, " nRanks "), 0);
  if (line.ranks_total <= line.rank) return std::nullopt;
  line.device = as_int(value_of(facts, " cudaDev "), -1);
  line.nvml_device = as_int(value_of(facts, " nvmlDev "), -1);
  line.bus_id = word_of(facts, " busId ");
  line.comm_id = word_of(facts, " commId ");
  if (line.comm_id.size() > 1 && line.comm_id.ends_with('-')) line.comm_id.pop_back();
  line.parent = word_of(facts, " parent ");
  const auto split = value_of(facts, " splitCount ");
  line.split = as_int(split ? split : value_of(facts, " childCount "), -1);
  line.color = as_int(value_of(facts, " color "), -1);
  line.nodes = as_int(value_of(facts, " nNodes "), 0);
  line.local_ranks = as_int(value_of(facts, " localRanks "), 0);
  line.local_rank = as_int(value_of(facts, " localRank "), -1);
  using What = CommLine::What;
  if (facts.find("Init START") != std::string_view::npos) {
    line.what = What::kStart;
  } else if (facts.find("Init COMPLETE") != std::string_view::npos) {
    line.what = What::kComplete;
  } else if (facts.find("Destroy COMPLETE") != std::string_view::npos) {
    line.what = What::kDestroy;
  } else if (facts.find("Abort COMPLETE") != std::string_view::npos) {
    line.what = What::kAbort;
  } else if (line.nodes == 0) {
    return std::nullopt;
  }
  return line;
}

std::optional<CallLine> call_in(std::string_view text) {
  Scan scan(text);
  const size_t colon = text.find(": opCount ");
  if (colon == std::string_view::npos || colon > 32) return std::nullopt;
  CallLine line;
  line.call.set_collective(collective_name(text.substr(0, colon)));
  if (line.call.collective().empty() || !scan.after(": opCount ")) return std::nullopt;
  const auto op = scan.hexadecimal();
  const auto count = value_of(text, " count ");
  const auto type = value_of(text, " datatype ");
  line.comm = word_of(text, " comm ");
  if (!op || !count || *count < 0 || !type || !line.comm.starts_with("0x")) return std::nullopt;
  line.call.set_op_count(*op);
  line.call.set_count(static_cast<uint64_t>(*count));
  line.call.set_datatype(as_int(type, -1));
  line.call.set_root(as_int(value_of(text, " root "), -1));
  line.ranks_total = as_int(value_of(text, "[nranks="), 0);
  return line;
}

std::optional<std::pair<pb::NcclRing, uint32_t>> ring_in(std::string_view text) {
  Scan scan(text);
  if (!scan.literal("Channel ")) return std::nullopt;
  const auto channel = scan.natural();
  if (!channel || *channel > 1024) return std::nullopt;
  // Before 2.5 the number of channels does not stand there.
  const auto channels = scan.literal("/") ? scan.natural() : std::optional(*channel + 1);
  if (!channels || *channels > 1024 || !scan.literal(":")) return std::nullopt;
  pb::NcclRing ring;
  ring.set_channel(static_cast<uint32_t>(*channel));
  while (!scan.at_end()) {
    const auto rank = scan.natural();
    if (!rank || *rank > kMaxRanks || static_cast<size_t>(ring.ranks_size()) > kMaxRanks) {
      return std::nullopt;
    }
    ring.add_ranks(static_cast<int32_t>(*rank));
  }
  if (ring.ranks().empty()) return std::nullopt;
  return std::pair(std::move(ring), static_cast<uint32_t>(*channels));
}

std::optional<pb::NcclRingHop> ring_hop_in(std::string_view text) {
  Scan scan(text);
  if (!scan.literal("Ring ")) return std::nullopt;
  const auto channel = scan.natural();
  if (!channel || *channel > 1024 || !scan.literal(":")) return std::nullopt;
  const auto previous = scan.integer();
  if (!previous || !scan.literal("->")) return std::nullopt;
  const auto rank = scan.integer();
  if (!rank || !scan.literal("->")) return std::nullopt;
  const auto next = scan.integer();
  if (!next || !scan.at_end()) return std::nullopt;
  pb::NcclRingHop hop;
  hop.set_channel(static_cast<uint32_t>(*channel));
  hop.set_previous(as_int(previous, -1));
  hop.set_rank(as_int(rank, -1));
  hop.set_next(as_int(next, -1));
  return hop;
}

std::vector<pb::NcclTreeHop> trees_in(std::string_view text, std::string_view head) {
  std::vector<pb::NcclTreeHop> out;
  Scan scan(text);
  if (!scan.literal(head)) return out;
  scan.literal(":");
  uint32_t next_channel = 0;
  while (!scan.at_end()) {
    pb::NcclTreeHop hop;
    hop.set_channel(next_channel);
    if (scan.literal("[")) {
      const auto channel = scan.natural();
      if (!channel || *channel > 1024 || !scan.literal("]")) break;
      hop.set_channel(static_cast<uint32_t>(*channel));
    }
    bool whole = true;
    do {
      const auto down = scan.integer();
      whole = down.has_value();
      if (whole && *down >= 0) hop.add_down(as_int(down, -1));
    } while (whole && scan.literal("/"));
    if (!whole || !scan.literal("->")) break;
    const auto rank = scan.integer();
    if (!rank || !scan.literal("->")) break;
    const auto up = scan.integer();
    if (!up) break;
    hop.set_rank(as_int(rank, -1));
    hop.set_up(as_int(up, -1));
    next_channel = hop.channel() + 1;
    // Before 2.8 the tree of the way down followed: "1/-1/-1->0->-1|-1->0->1/-1/-1".
    if (scan.literal("|") && !scan.word()) break;
    out.push_back(std::move(hop));
  }
  return out;
}

std::optional<pb::NcclTreeHop> tree_in(std::string_view text) {
  Scan scan(text);
  if (!scan.literal("Tree ")) return std::nullopt;
  const auto channel = scan.natural();
  if (!channel || *channel > 1024 || !scan.literal(":")) return std::nullopt;
  const auto up = scan.integer();
  if (!up || !scan.literal("->")) return std::nullopt;
  const auto rank = scan.integer();
  if (!rank || !scan.literal("->")) return std::nullopt;
  pb::NcclTreeHop hop;
  hop.set_channel(static_cast<uint32_t>(*channel));
  hop.set_rank(as_int(rank, -1));
  hop.set_up(as_int(up, -1));
  do {
    const auto down = scan.integer();
    if (!down) return std::nullopt;
    if (*down >= 0) hop.add_down(as_int(down, -1));
  } while (scan.literal("/"));
  return hop;
}

std::optional<pb::NcclConnection> connection_in(std::string_view text) {
  Scan scan(text);
  // Before 2.7 a connection is one of a ring.
  if (!scan.literal("Channel ") && !scan.literal("Ring ")) return std::nullopt;
  const auto channel = scan.natural();
  if (!channel || *channel > 1024) return std::nullopt;
  pb::NcclConnection out;
  out.set_channel(static_cast<uint32_t>(*channel));
  out.set_connection(-1);
  out.set_nic(-1);
  out.set_count(1);
  if (scan.literal("/")) out.set_connection(as_int(scan.integer(), -1));
  if (!scan.literal(":")) return std::nullopt;
  const auto from = endpoint(scan);
  if (!from || !scan.literal("->")) return std::nullopt;
  const auto to = endpoint(scan);
  if (!to) return std::nullopt;
  out.set_from(*from);
  out.set_to(*to);
  if (scan.literal("[send]")) out.set_direction("send");
  if (scan.literal("[receive]")) out.set_direction("receive");
  if (!scan.literal("via ")) return std::nullopt;
  const std::string_view via = trimmed(scan.rest());
  const size_t slash = via.find('/');
  // Up to 2.12 SHM has no name.
  const bool unnamed_shm = via == "direct shared memory";
  const std::string_view kind = unnamed_shm ? "SHM" : via.substr(0, slash);
  for (const std::string_view known : {"P2P", "SHM", "NET", "COLLNET", "NVLS"}) {
    if (kind == known) out.set_transport(std::string(known));
  }
  if (out.transport().empty()) return std::nullopt;
  out.set_via(std::string(via));
  if (kind == "P2P" || kind == "SHM") {
    if (slash != std::string_view::npos && !whole_path(via.substr(slash + 1))) return std::nullopt;
  }
  if (kind != "NET" && kind != "COLLNET") return out;
  Scan net(via.substr(slash == std::string_view::npos ? via.size() : slash + 1));
  const size_t next = net.rest().find('/');
  out.set_network(std::string(net.rest().substr(0, next)));
  if (net.after("/")) out.set_nic(as_int(net.integer(), -1));
  out.set_gpu_direct(via.find("/GDRDMA") != std::string_view::npos);
  return out;
}

std::optional<pb::NcclSearch> search_in(std::string_view text) {
  Scan scan(text);
  if (!scan.literal("Pattern ")) return std::nullopt;
  pb::NcclSearch out;
  out.set_pattern(as_int(scan.integer(), -1));
  out.set_cross_nic(as_int(value_of(text, "crossNic "), 0));
  out.set_channels(as_int(value_of(text, "nChannels "), 0));
  Scan bw(text);
  if (!bw.after("bw ") && !bw.after("speed ")) return std::nullopt;
  const auto intra = bw.number();
  if (!intra || !bw.literal("/")) return std::nullopt;
  const auto inter = bw.number();
  if (!inter) return std::nullopt;
  out.set_bw_intra(*intra);
  out.set_bw_inter(*inter);
  Scan type(text);
  if (type.after("type ")) {
    std::string_view pair = type.rest().substr(0, type.rest().find(','));
    const size_t slash = pair.find('/');
    out.set_type_intra(std::string(pair.substr(0, slash)));
    if (slash != std::string_view::npos) out.set_type_inter(std::string(pair.substr(slash + 1)));
  }
  out.set_same_channels(as_int(value_of(text, "sameChannels "), 0));
  return out.pattern() < 0 || out.channels() <= 0 ? std::nullopt : std::optional(out);
}

std::optional<pb::NcclChoice> choice_in(std::string_view text) {
  const size_t at = text.find(" Bytes -> ");
  if (at == std::string_view::npos) return std::nullopt;
  Scan scan(text);
  pb::NcclChoice out;
  out.set_channel_lo(-1);
  out.set_channel_hi(-1);
  out.set_count(1);
  const size_t colon = text.substr(0, at).find(':');
  if (colon != std::string_view::npos) {
    const std::string_view name = text.substr(0, text.find_first_of(" :["));
    out.set_collective(collective_name(name));
    if (out.collective().empty()) return std::nullopt;
    scan = Scan(text.substr(colon + 1));
  }
  const auto bytes = scan.natural();
  if (!bytes || !scan.literal("Bytes ->")) return std::nullopt;
  out.set_bytes(*bytes);
  if (scan.literal("Kernel ")) {
    out.set_kernel(std::string(scan.word().value_or("")));
    out.set_kernel_channels(as_int(value_of(text, "nchannels "), 0));
    return out.kernel().empty() ? std::nullopt : std::optional(out);
  }
  if (!scan.literal("Algo ")) return std::nullopt;
  out.set_algorithm(algorithm_name(scan.word().value_or("")));
  if (!scan.literal("proto ")) return std::nullopt;
  out.set_protocol(protocol_name(scan.word().value_or("")));
  if (out.algorithm().empty() || out.protocol().empty()) return std::nullopt;
  if (scan.literal("time ")) {
    const auto time = scan.number();
    if (!time) return std::nullopt;
    out.set_predicted_us(*time);
  }
  if (scan.literal("channel{Lo..Hi}={")) {
    const auto lo = scan.integer();
    if (!lo || !scan.literal("..")) return std::nullopt;
    const auto hi = scan.integer();
    if (!hi || !scan.literal("}") || *lo < 0 || *hi < *lo || *hi > 1024) return std::nullopt;
    out.set_channel_lo(as_int(lo, -1));
    out.set_channel_hi(as_int(hi, -1));
  } else if (!out.has_predicted_us()) {
    return std::nullopt;  // the line was cut before it says how
  }
  return out;
}

std::vector<pb::NcclNic> nics_in(std::string_view text) {
  std::vector<pb::NcclNic> out;
  Scan scan(text.substr(0, text.find(';')));
  while (scan.after("[")) {
    const auto index = scan.natural();
    if (!index || *index > 4096 || !scan.literal("]")) continue;
    const std::string_view word = scan.word().value_or("");
    const size_t colon = word.find(':');
    pb::NcclNic nic;
    nic.set_index(static_cast<int32_t>(*index));
    nic.set_name(std::string(word.substr(0, colon)));
    if (colon != std::string_view::npos) nic.set_detail(std::string(word.substr(colon + 1)));
    if (!nic.name().empty()) out.push_back(std::move(nic));
  }
  return out;
}

}  // namespace rehearse::traces::nccl_log
