// SPDX-License-Identifier: Apache-2.0
// What messages say of a process and of a communicator, once it is known of which.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "traces/import/nccl_log/log_builder.hpp"
#include "traces/import/scan.hpp"

namespace rehearse::traces::nccl_log {
namespace {

// "GPU Direct RDMA Enabled for HCA 0 'mlx5_0'", older: "... for GPU 1b000 / HCA 0 (distance ..".
bool gpu_direct_fact(std::string_view text, pb::NcclProcess& process) {
  const size_t at = text.find("GPU Direct RDMA ");
  if (at == std::string_view::npos) return false;
  Scan scan(text.substr(at));
  const bool enabled = text.find("Enabled", at) != std::string_view::npos;
  if (!scan.after("HCA ")) return false;
  const auto index = scan.natural();
  if (!index) return false;
  std::string name = fmt::format("{}", *index);
  if (scan.literal("'")) name = std::string(scan.rest().substr(0, scan.rest().find('\'')));
  (*process.mutable_gpu_direct())[name] = enabled;
  return true;
}

constexpr std::array<std::string_view, 5> kChannelLabels = {
    "coll channels", "collnet channels", "nvls channels", "p2p channels", "p2p channels per peer"};

uint32_t* channel_count(std::string_view label, std::array<uint32_t, 5>& counts) {
  const auto it = std::find(kChannelLabels.begin(), kChannelLabels.end(), label);
  return it == kChannelLabels.end() ? nullptr
                                    : &counts[static_cast<size_t>(it - kChannelLabels.begin())];
}

bool tells_channels(std::string_view text) {
  return text.find(" coll channels, ") != std::string_view::npos ||
         text.find(" coll channels:") != std::string_view::npos;
}

// "24 coll channels, 24 collnet channels, 16 nvls channels, 32 p2p channels, 32 p2p channels per
// peer"; which of them there are depends on the version. AMD's since 2.27 has the numbers behind:
// "comm:0x2b, nRanks:2, nNodes:1, coll channels:2 collnet channels:2, ...".
bool channels_fact(std::string_view text, pb::NcclCommunicator& facts) {
  if (!tells_channels(text)) return false;
  std::array<uint32_t, 5> counts{};
  for (size_t i = 0; i < kChannelLabels.size(); ++i) {
    Scan behind(text);
    if (!behind.after(fmt::format(" {}:", kChannelLabels[i]))) continue;
    if (const auto n = behind.natural(); n && *n <= 4096) counts[i] = static_cast<uint32_t>(*n);
  }
  Scan scan(text);
  while (const auto n = scan.natural()) {
    const std::string_view label = trimmed(scan.rest().substr(0, scan.rest().find(',')));
    if (uint32_t* count = channel_count(label, counts); count != nullptr && *n <= 4096) {
      *count = static_cast<uint32_t>(*n);
    }
    if (!scan.after(",")) break;
  }
  if (counts[0] == 0) return false;
  facts.set_coll_channels(counts[0]);
  facts.set_collnet_channels(counts[1]);
  facts.set_nvls_channels(counts[2]);
  facts.set_p2p_channels(counts[3]);
  facts.set_p2p_channels_per_peer(counts[4]);
  return true;
}

// "CPU/0-2 (1/2/-1)" of the topology that NCCL prints: architecture, vendor and model in its numbers. "" for any other line.
std::string cpu_vendor_in(std::string_view text) {
  constexpr std::array<std::string_view, 4> kX86 = {"", "intel", "amd", "zhaoxin"};
  Scan scan(text);
  if (!scan.literal("CPU/") || !scan.after(" (")) return {};
  const auto arch = scan.natural();
  if (!arch || !scan.literal("/")) return {};
  const auto vendor = scan.natural();
  if (*arch == 2) return "power";
  if (*arch == 3) return "arm";
  return *arch == 1 && vendor && *vendor < kX86.size() ? std::string(kX86[*vendor]) : std::string();
}

}  // namespace

bool LogBuilder::process_fact(std::string_view text, uint32_t index) {
  pb::NcclProcess& process = *log_.mutable_processes(static_cast<int>(index));
  if (const auto version = version_in(text)) {
    process.set_nccl_version(version->first);
    process.set_cuda_version(version->second);
    return true;
  }
  if (const auto variable = variable_in(text)) {
    (*process.mutable_environment())[variable->first] = variable->second;
    return true;
  }
  if (std::string vendor = cpu_vendor_in(text); !vendor.empty()) {
    process.set_cpu_vendor(std::move(vendor));
    return true;
  }
  Scan scan(text);
  if (scan.literal("cudaDriverVersion ")) {
    const auto driver = scan.natural();
    if (!driver || *driver > INT32_MAX) return false;
    process.set_cuda_driver(static_cast<int32_t>(*driver));
    return true;
  }
  if (scan.literal("Bootstrap")) {
    scan.literal(":");
    if (!scan.literal("Using ")) return false;
    scan.literal("[0]");
    process.set_bootstrap(std::string(scan.word().value_or("")));
    return true;
  }
  if (scan.literal("Using network ")) {
    std::string network(scan.word().value_or(""));
    if (network == "AWS" && scan.literal("Libfabric")) network += " Libfabric";
    process.set_network(std::move(network));
    return true;
  }
  if (text.starts_with("NET/") && gpu_direct_fact(text, process)) return true;
  if (text.starts_with("NET/IB : No device found")) {
    process.set_ib_no_device(true);
    return true;
  }
  if (text.starts_with("NET/") && scan.after(" : Using ")) {
    const auto nics = nics_in(scan.rest());
    if (nics.empty()) return false;
    process.mutable_nics()->Assign(nics.begin(), nics.end());
    return true;
  }
  if (scan.literal("P2P not supported between GPU")) {
    const auto a = scan.natural();
    if (!a || !scan.literal("and GPU")) return false;
    const auto b = scan.natural();
    if (!b) return false;
    const std::string pair = fmt::format("{}-{}", *a, *b);
    const auto& known = process.no_peer_access();
    if (std::find(known.begin(), known.end(), pair) == known.end()) {
      process.add_no_peer_access(pair);
    }
    return true;
  }
  return false;
}

bool LogBuilder::could_be_group_fact(std::string_view text) {
  constexpr std::array<std::string_view, 14> kStarts = {
      "Channel ",      "Ring ",         "Trees ",
      "Tree ",         "NVLS ",         "Pattern ",
      "=== System",    "Connected all", "threadThresholds",
      "P2P Chunksize", "Init timings",  "Algorithm",
      "Protocol",      "Latency/AlgBw"};
  const std::string_view start = trimmed(text);
  const auto begins = [&](std::string_view with) { return start.starts_with(with); };
  return std::any_of(kStarts.begin(), kStarts.end(), begins) ||
         text.find(" Bytes -> ") != std::string_view::npos || tells_channels(text) ||
         text.find('|') != std::string_view::npos;
}

void LogBuilder::merge_row(Group& group, std::string key, const pb::NcclConnection& row) {
  const auto [it, fresh] = group.seen.try_emplace(std::move(key), group.facts.connections_size());
  if (fresh) {
    *group.facts.add_connections() = row;
  } else {
    auto* known = group.facts.mutable_connections(static_cast<int>(it->second));
    known->set_count(known->count() + 1);
  }
}

bool LogBuilder::group_fact(Group& group, std::string_view text, uint64_t line) {
  pb::NcclCommunicator& facts = group.facts;
  if (auto choice = choice_in(text)) {
    std::string key = fmt::format("choice {} {} {} {} {} {} {}", choice->collective(),
                                  choice->bytes(), choice->algorithm(), choice->protocol(),
                                  choice->channel_lo(), choice->channel_hi(), choice->kernel());
    const auto [it, fresh] = group.seen.try_emplace(std::move(key), facts.choices_size());
    if (fresh) {
      *facts.add_choices() = std::move(*choice);
    } else {
      auto* known = facts.mutable_choices(static_cast<int>(it->second));
      known->set_count(known->count() + 1);
    }
    return true;
  }
  if (auto connection = connection_in(text)) {
    merge_row(group,
              fmt::format("via {} {} {} {} {} {}", connection->channel(), connection->connection(),
                          connection->from(), connection->to(), connection->direction(),
                          connection->via()),
              *connection);
    return true;
  }
  if (auto ring = ring_in(text)) {
    facts.set_ring_channels(std::max(facts.ring_channels(), ring->second));
    const auto [it, fresh] =
        group.seen.try_emplace(fmt::format("ring {}", ring->first.channel()), facts.rings_size());
    if (fresh) {
      *facts.add_rings() = std::move(ring->first);
    } else if (facts.rings(static_cast<int>(it->second)).SerializeAsString() !=
               ring->first.SerializeAsString()) {
      odd("nccl-rings-differ", line, "two communicators without names are taken as one");
    }
    return true;
  }
  const auto add_once = [&](std::string_view kind, const auto& hop, auto* rows) {
    const std::string key = fmt::format("{} {} {}", kind, hop.channel(), hop.rank());
    if (group.seen.try_emplace(key, 0).second) *rows->Add() = hop;
  };
  if (const auto hop = ring_hop_in(text)) {
    add_once("hop", *hop, facts.mutable_hops());
    return true;
  }
  if (const auto hops = trees_in(text, "Trees "); !hops.empty()) {
    for (const auto& hop : hops) add_once("tree", hop, facts.mutable_trees());
    return true;
  }
  if (const auto hop = tree_in(text)) {
    add_once("tree", *hop, facts.mutable_trees());
    return true;
  }
  if (const auto hops = trees_in(text, "NVLS Trees "); !hops.empty()) {
    for (const auto& hop : hops) add_once("nvls tree", hop, facts.mutable_nvls_trees());
    return true;
  }
  if (const auto search = search_in(text)) {
    if (group.seen.try_emplace("search " + search->SerializeAsString(), 0).second) {
      *facts.add_searches() = *search;
    }
    return true;
  }
  Scan scan(text);
  if (scan.literal("NVLS multicast support is ")) {
    facts.set_nvls_available(!scan.literal("not"));
    return true;
  }
  if (text.starts_with("NVLS comm ") && scan.after(" nHeads ")) {
    const auto heads = scan.natural();
    if (heads && *heads <= 4096) facts.set_nvls_heads(static_cast<uint32_t>(*heads));
    return heads.has_value();
  }
  if (scan.literal("=== System : maxBw ")) {
    const auto max = scan.number();
    if (!max || !scan.literal("totalBw ")) return false;
    facts.set_max_bw(*max);
    facts.set_total_bw(scan.number().value_or(0));
    return true;
  }
  if (scan.literal("Connected all rings")) {
    if (scan.after("PXN ")) facts.set_ring_pxn(scan.integer().value_or(0) != 0);
    if (scan.after("GDR ")) facts.set_ring_gdr(scan.integer().value_or(0) != 0);
    return true;
  }
  if (scan.literal("Connected all")) return true;
  if (scan.literal("threadThresholds ")) {
    if (facts.thread_thresholds().empty()) {
      facts.set_thread_thresholds(std::string(trimmed(scan.rest())));
    }
    return true;
  }
  if (scan.literal("P2P Chunksize set to ")) {
    const auto chunk = scan.natural();
    if (chunk) facts.set_p2p_chunk(*chunk);
    return chunk.has_value();
  }
  if (scan.literal("Init timings")) {
    if (!scan.after(" rank ")) return false;
    const auto rank = scan.natural();
    if (!rank || *rank > INT32_MAX || !scan.after(" total ")) return false;
    const auto seconds = scan.number();
    const auto known = group.rank_index.find(static_cast<int>(*rank));
    if (!seconds || known == group.rank_index.end()) return false;
    facts.mutable_ranks(known->second)->set_init_seconds(*seconds);
    return true;
  }
  return channels_fact(text, facts) ||
         read_tuning_row(text, group.columns, facts) != TuningRow::kNone;
}

}  // namespace rehearse::traces::nccl_log
