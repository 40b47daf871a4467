// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "cli/explanation.hpp"
#include "cli/table.hpp"

namespace rehearse::cli {
namespace {

using sim::Explanation;

constexpr size_t kFewChannels = 4;
constexpr size_t kFewRanks = 32;
constexpr size_t kFewPairs = 8;

std::string microseconds(double us) {
  return format_duration(static_cast<Nanos>(std::llround(us * 1000)));
}

std::string nodes_of(const Explanation& e) {
  return fmt::format("{} rank{} on {} node{}", format_count(e.ranks), e.ranks == 1 ? "" : "s",
                     format_count(e.nodes), e.nodes == 1 ? "" : "s");
}

// "float32 sum"; without the operation where nothing is reduced.
std::string elements_of(const Explanation& e) {
  return e.collective.find("reduce") == std::string::npos ? e.type : e.type + " " + e.reduction;
}

// "297 us", or why there is no time.
std::string time_of(const Explanation& e) {
  if (!e.never) return format_duration(e.time);
  return e.dissent.empty() ? "for ever: a link is down" : "for ever: ranks plan it differently";
}

std::string band_of(const Explanation& e, const ExplanationFrame& frame) {
  if (e.never) return "";
  if (!frame.accuracy) return "unvalidated on this hardware";
  const auto& a = *frame.accuracy;
  return fmt::format("{} to {}: 8 of 10 of {} measured calls on {} lie within such a band",
                     format_duration(static_cast<Nanos>(static_cast<double>(e.time) * a.low)),
                     format_duration(static_cast<Nanos>(static_cast<double>(e.time) * a.high)),
                     format_count(a.rows), a.platform);
}

std::string heading(const Explanation& e, const ExplanationFrame& frame, const Terminal& t) {
  std::string out = t.styled(Style::kBold, fmt::format("{} of {} takes {}", e.collective,
                                                       format_bytes(e.bytes), time_of(e)));
  if (!e.never && e.time > 0) {
    out +=
        fmt::format(": {} algbw, {} busbw, {} on {} channel{}", format_bandwidth(e.algorithm_rate),
                    format_bandwidth(e.bus_rate), e.chosen, e.channels, e.channels == 1 ? "" : "s");
  }
  out += fmt::format("\n{} of {}, {}, NCCL {}", nodes_of(e), frame.platform, elements_of(e),
                     e.nccl_version);
  if (!e.version_exact) out += fmt::format(" (constants of {})", e.constants_from);
  out += "\n" + band_of(e, frame) + "\n";
  return out;
}

std::string section(const Terminal& t, const std::string& title) {
  return "\n" + t.styled(Style::kBold, title) + "\n";
}

std::string comparison(const Explanation& e, const Terminal& t) {
  if (e.variants.empty()) return "";
  std::string out = section(t, "what NCCL compares");
  Table table({{""},
               {"algorithm"},
               {"protocol"},
               {"latency", Align::kRight},
               {"bandwidth", Align::kRight},
               {"NCCL computes", Align::kRight},
               {"channels", Align::kRight},
               {"threads", Align::kRight},
               {"we predict", Align::kRight}});
  for (const auto& v : e.variants) {
    if (!v.available) continue;
    table.add({v.chosen ? "->" : "", std::string(name_of(v.algorithm)),
               std::string(name_of(v.protocol)), microseconds(v.latency_us),
               format_bandwidth(v.bandwidth), microseconds(v.nccl_time_us),
               std::to_string(v.channels), std::to_string(v.threads), format_duration(v.time)});
  }
  out += table.text(t);
  out += e.why + "\n";
  const auto fastest =
      std::min_element(e.variants.begin(), e.variants.end(), [](const auto& a, const auto& b) {
        if (a.available != b.available) return a.available;
        return a.time < b.time;
      });
  if (fastest != e.variants.end() && fastest->available && !fastest->chosen &&
      static_cast<double>(fastest->time) < 0.9 * static_cast<double>(e.time)) {
    out += fmt::format(
        "by our own model {} {} would take {} ({:.0f} % less)\n", name_of(fastest->algorithm),
        name_of(fastest->protocol), format_duration(fastest->time),
        (1 - static_cast<double>(fastest->time) / static_cast<double>(e.time)) * 100);
  }
  // One line per reason; protocols of one algorithm together.
  std::vector<std::pair<std::string, std::vector<std::string>>> off;
  for (const auto& v : e.variants) {
    if (v.available || v.why_not == "NCCL has no such kernel" ||
        v.why_not == "it has the SIMPLE protocol only") {
      continue;
    }
    const std::string name = fmt::format("{} {}", name_of(v.algorithm), name_of(v.protocol));
    const auto same = std::find_if(off.begin(), off.end(),
                                   [&](const auto& row) { return row.first == v.why_not; });
    if (same == off.end()) {
      off.push_back({v.why_not, {name}});
    } else {
      same->second.push_back(name);
    }
  }
  for (const auto& [why, names] : off) out += fmt::format("off: {}: {}\n", join_words(names), why);
  return out;
}

std::string execution(const Explanation& e, const Terminal& t) {
  std::string out = section(t, "how it runs");
  Table table({{""}, {""}});
  const std::string of = e.channels_offered > 0 ? fmt::format(" of {}", e.channels_offered) : "";
  table.add({"channels", fmt::format("{}{}", e.channels, of)});
  if (e.threads > 0) table.add({"threads", fmt::format("{} of each channel's block", e.threads)});
  if (e.chunks.chunk_bytes > 0) {
    table.add({"chunks", fmt::format("{} each, in slices of {}", format_bytes(e.chunks.chunk_bytes),
                                     format_bytes(e.chunks.slice_bytes))});
    table.add({"steps", fmt::format("{} loop{} of {} step{}",
                                    format_count(static_cast<uint64_t>(e.chunks.loops)),
                                    e.chunks.loops == 1 ? "" : "s",
                                    format_count(static_cast<uint64_t>(e.chunks.steps_per_loop)),
                                    e.chunks.steps_per_loop == 1 ? "" : "s")});
  }
  if (e.gpu_buffers + e.host_buffers > 0) {
    table.add({"buffers", fmt::format("{} of GPU memory, {} of host memory on the rank with most",
                                      format_bytes(e.gpu_buffers), format_bytes(e.host_buffers))});
  }
  if (!e.inside.empty() && e.ranks > e.nodes && e.inside_ways.empty()) {
    table.add({"inside a node", e.inside});
  }
  for (const auto& [way, pairs] : e.inside_ways) {
    std::vector<std::string> few(
        pairs.begin(),
        pairs.begin() + static_cast<std::ptrdiff_t>(std::min(pairs.size(), kFewPairs)));
    if (few.size() < pairs.size()) few.push_back(fmt::format("{} more", pairs.size() - few.size()));
    table.add({"inside a node", fmt::format("{} from {}", way, join_words(few))});
  }
  if (!e.between.empty()) table.add({"between nodes", e.between});
  const std::string& used = e.between.empty() ? e.inside : e.between;
  if (!e.offered.empty() && e.offered != used) {
    table.add({"the hardware offers", e.offered});
  }
  out += table.text(t);
  if (!e.dissent.empty()) out += t.styled(Style::kYellow, e.dissent) + "\n";
  for (const auto& fallback : e.fallbacks) {
    out += t.styled(Style::kYellow,
                    fmt::format("{} instead of {}: {}", fallback.to, fallback.from, fallback.why)) +
           "\n";
  }
  return out;
}

std::string ranks_in_order(const std::vector<uint32_t>& ranks, const std::string& between,
                           bool all) {
  std::string out;
  const size_t shown = all ? ranks.size() : std::min(ranks.size(), kFewRanks);
  for (size_t i = 0; i < shown; ++i) out += fmt::format("{}{}", i == 0 ? "" : between, ranks[i]);
  if (shown < ranks.size()) out += fmt::format("{}... {} ranks", between, ranks.size());
  return out;
}

// A tree as nested lists of children: "0(1(2,3),4)".
void nest(const std::vector<int>& parent, int node, int depth, std::string& out) {
  out += std::to_string(node);
  std::vector<int> children;
  for (size_t r = 0; r < parent.size(); ++r) {
    if (parent[r] == node) children.push_back(static_cast<int>(r));
  }
  if (children.empty()) return;
  if (depth > 64) {
    out += "(...)";
    return;
  }
  out += "(";
  for (size_t i = 0; i < children.size(); ++i) {
    if (i > 0) out += ",";
    nest(parent, children[i], depth + 1, out);
  }
  out += ")";
}

size_t in_tree(const sim::ExplainedChannel& channel) {
  return static_cast<size_t>(std::count_if(channel.parent.begin(), channel.parent.end(),
                                           [](int p) { return p != sim::kNotInTree; }));
}

const char* title_of(sim::GraphKind kind) {
  switch (kind) {
    case sim::GraphKind::kRings:
      return "rings";
    case sim::GraphKind::kTrees:
      return "trees";
    case sim::GraphKind::kHeads:
      return "heads of each node, which reduce a slice each";
    case sim::GraphKind::kHeadTrees:
      return "trees between nodes, two for each head of a node";
  }
  return "rings";
}

std::string graphs(const Explanation& e, const ExplanationFrame& frame, const Terminal& t) {
  if (e.graph.empty()) return "";
  const bool heads = e.graph_kind == sim::GraphKind::kHeads;
  std::string out = section(t, title_of(e.graph_kind));
  const size_t shown =
      frame.every_channel ? e.graph.size() : std::min(e.graph.size(), kFewChannels);
  for (size_t i = 0; i < shown; ++i) {
    const auto& channel = e.graph[i];
    std::string line;
    if (channel.parent.empty()) {
      line = ranks_in_order(channel.ring, heads ? ", " : " > ", frame.every_channel);
    } else if (in_tree(channel) <= kFewRanks || frame.every_channel) {
      const auto root = std::find(channel.parent.begin(), channel.parent.end(), -1);
      nest(channel.parent, static_cast<int>(root - channel.parent.begin()), 0, line);
    } else {
      line = fmt::format("{} ranks; -v shows them", in_tree(channel));
    }
    out += fmt::format("{:>3}  {}", channel.channel, line);
    std::vector<std::string> adapters = channel.adapters;
    adapters.erase(std::unique(adapters.begin(), adapters.end()), adapters.end());
    if (!adapters.empty() && (heads || adapters.size() <= 4)) out += "  by " + join_words(adapters);
    out += "\n";
  }
  if (shown < e.graph.size()) {
    out += fmt::format("     and {} more; -v shows all\n", e.graph.size() - shown);
  }
  return out;
}

std::string ways(const Explanation& e, const Terminal& t) {
  if (e.pairs.empty()) return "";
  std::string out = section(t, "how messages of the first rank get there");
  Table table({{""}, {""}});
  for (const auto& pair : e.pairs) {
    std::string way = pair.transport;
    if (!pair.adapter.empty()) way += " by " + pair.adapter;
    if (pair.through >= 0) {
      way += fmt::format(" through the GPU of rank {}{}", pair.through,
                         pair.adapter.empty() ? "" : " (PXN)");
    }
    table.add({fmt::format("to {}", format_ranks(pair.peers)), way});
  }
  return out + table.text(t);
}

std::string account(const Explanation& e, const Terminal& t) {
  std::string out = section(t, "where the time goes");
  Table table({{""}, {"", Align::kRight}, {""}});
  for (const auto& part : e.latency) {
    table.add({part.what, microseconds(static_cast<double>(part.count) * part.each_us),
               part.count == 1
                   ? ""
                   : fmt::format("{} x {}", format_count(static_cast<uint64_t>(part.count)),
                                 microseconds(part.each_us))});
  }
  if (!e.never) {
    table.add({"bytes", format_duration(e.transfer_time),
               e.bound == "latency" || e.bound == "launches" ? "" : "bound by " + e.bound});
    if (e.bound == "launches") {
      table.add({"wait for the host's launches",
                 format_duration(e.time - e.latency_time - e.transfer_time), ""});
    }
    table.add({"together", format_duration(e.time), ""});
  }
  out += table.text(t);
  if (e.links.empty()) return out;
  out += section(t, "the slowest link of each kind");
  Table links({{"link"},
               {"carries", Align::kRight},
               {"at", Align::kRight},
               {"of data sheet", Align::kRight},
               {"takes", Align::kRight}});
  for (const auto& link : e.links) {
    links.add({link.name, format_bytes(static_cast<Bytes>(link.bytes)),
               link.effective > 0 ? format_bandwidth(link.effective) : "down",
               format_bandwidth(link.data_sheet),
               link.effective > 0 ? format_duration(link.time) : "never"});
  }
  if (e.channel_time > 0) {
    links.add({"its channels' own rate", "", "", "", format_duration(e.channel_time)});
  }
  return out + links.text(t);
}

}  // namespace

std::string explanation_text(const Explanation& e, const ExplanationFrame& frame,
                             const Terminal& t) {
  return heading(e, frame, t) + comparison(e, t) + execution(e, t) + graphs(e, frame, t) +
         ways(e, t) + account(e, t);
}

std::string sweep_text(const std::vector<Explanation>& rows, const ExplanationFrame& frame,
                       const Terminal& t) {
  if (rows.empty()) return "";
  const Explanation& e = rows.front();
  std::string out =
      t.styled(Style::kBold, fmt::format("{} on {} of {}, {}, NCCL {}", e.collective, nodes_of(e),
                                         frame.platform, elements_of(e), e.nccl_version)) +
      "\n";
  out += frame.accuracy ? fmt::format(
                              "8 of 10 of {} measured calls on {} took {:.2f} to {:.2f} of the "
                              "time predicted\n\n",
                              format_count(frame.accuracy->rows), frame.accuracy->platform,
                              frame.accuracy->low, frame.accuracy->high)
                        : "unvalidated on this hardware\n\n";
  Table table({{"size", Align::kRight},
               {"algorithm"},
               {"channels", Align::kRight},
               {"threads", Align::kRight},
               {"time", Align::kRight},
               {"algbw", Align::kRight},
               {"busbw", Align::kRight},
               {"bound by"}});
  for (const Explanation& row : rows) {
    table.add({format_bytes(row.bytes), row.chosen, std::to_string(row.channels),
               row.threads > 0 ? std::to_string(row.threads) : "", time_of(row),
               format_bandwidth(row.algorithm_rate), format_bandwidth(row.bus_rate), row.bound});
  }
  return out + table.text(t);
}

}  // namespace rehearse::cli
