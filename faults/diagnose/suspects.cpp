// SPDX-License-Identifier: Apache-2.0
#include "faults/diagnose/suspects.hpp"

#include <fmt/format.h>
#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "base/text.hpp"
#include "faults/diagnose/call_orders.hpp"
#include "faults/diagnose/deviations.hpp"
#include "faults/diagnose/error_texts.hpp"
#include "faults/diagnose/observable.hpp"

namespace rehearse::faults {
namespace {

constexpr double kLate = 0.04;  // of a step: more than noise
// Of a step: more than the noise of the noisiest of many ranks.
constexpr double kSurelyLate = 0.1;
constexpr size_t kFew = 4;
constexpr size_t kLinksPerKind = 2;
constexpr int64_t kFarLonger = 3;  // times the usual step

template <typename T>
void add_once(std::vector<T>& list, const T& value) {
  if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
}

// Figures of an aspect by rank.
std::map<uint32_t, double> by_rank(const Changes& changes, Aspect aspect) {
  std::map<uint32_t, double> out;
  const auto found = changes.find(aspect);
  if (found == changes.end()) return out;
  for (const auto& [key, change] : found->second) {
    if (key.starts_with("rank ")) {
      out[static_cast<uint32_t>(std::stoul(key.substr(5)))] = change.value;
    }
  }
  return out;
}

// Time without work on the GPU: the host is late, or nobody knows.
std::map<uint32_t, double> held_up(const Changes& changes) {
  std::map<uint32_t, double> out = by_rank(changes, Aspect::kHost);
  for (const auto& [rank, value] : by_rank(changes, Aspect::kIdle)) out[rank] += value;
  return out;
}

double lower_quartile(const std::map<uint32_t, double>& values) {
  std::vector<double> sorted;
  sorted.reserve(values.size());
  for (const auto& [rank, value] : values) sorted.push_back(value);
  std::sort(sorted.begin(), sorted.end());
  return sorted.empty() ? 0 : sorted[sorted.size() / 4];
}

// Ranks above the lower quartile by more than noise, latest first: a whole slow node of two must not become
// the norm.
std::vector<std::pair<double, uint32_t>> late_ranks(const std::map<uint32_t, double>& values) {
  const double normal = lower_quartile(values);
  std::vector<std::pair<double, uint32_t>> late;
  for (const auto& [rank, value] : values) {
    if (value - normal > kLate) late.emplace_back(value - normal, rank);
  }
  std::sort(late.begin(), late.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  return late;
}

std::map<uint32_t, uint32_t> nodes_of(const pb::Scenario& document) {
  std::map<uint32_t, uint32_t> out;
  for (const pb::RankLaunch& rank : document.launch().ranks()) out[rank.rank()] = rank.node();
  return out;
}

// Ranks that are late together as a stage of a pipeline: a block of ranks, as long as its start says, in a job
// that has one. Ranks that were not recorded belong to it where their recorded neighbours do.
std::optional<std::string> stage_of(const std::vector<uint32_t>& together,
                                    const std::map<uint32_t, double>& recorded,
                                    const pb::Scenario& document) {
  const auto ranks = static_cast<uint32_t>(document.launch().ranks_size());
  const uint32_t stages = document.trace().synth().pp();
  if (together.empty() || ranks == 0 || stages < 2 || ranks % stages != 0) return std::nullopt;
  const uint32_t size = ranks / stages, first = together.front() / size * size;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const bool inside = rank >= first && rank < first + size;
    const bool late = std::binary_search(together.begin(), together.end(), rank);
    if (recorded.count(rank) && inside != late) return std::nullopt;
  }
  return fmt::format("{}-{}", first, first + size - 1);
}

// "node1/mlx5_0/tx" and "node1/gpu3/nvlink-out": the device at the link's end.
void add_link(const std::string& link, const pb::Scenario& document, Suspects& out) {
  add_once(out.links, link);
  const std::vector<std::string> parts = split(link, '/');
  if (parts.size() < 2) return;
  const auto& nodes = document.platform().nodes();
  for (int n = 0; n < nodes.size(); ++n) {
    const auto node = static_cast<uint32_t>(n);
    if (parts[0] != nodes[n].name() && parts[0] != fmt::format("node{}", n)) continue;
    add_once(out.nodes, node);
    for (int i = 0; i < nodes[n].nics_size(); ++i) {
      if (nodes[n].nics(i).name() == parts[1]) add_once(out.nics, {node, static_cast<uint32_t>(i)});
    }
    for (int i = 0; i < nodes[n].gpus_size(); ++i) {
      if (nodes[n].gpus(i).name() == parts[1] || parts[1] == fmt::format("gpu{}", i)) {
        add_once(out.gpus, {node, static_cast<uint32_t>(i)});
      }
    }
  }
}

// Those who are waited for and wait for nobody; where all wait in a cycle, those most waited for.
void add_wanted(const pb::Outcome& outcome, Suspects& out) {
  std::set<uint32_t> waiting;
  for (const pb::Wait& wait : outcome.waits()) waiting.insert(wait.rank());
  std::vector<std::tuple<bool, double, uint32_t>> sorted;
  for (const auto& [rank, share] : waited_for(outcome)) {
    sorted.emplace_back(waiting.count(rank) > 0, -share, rank);
  }
  std::sort(sorted.begin(), sorted.end());
  size_t in_cycle = 0;
  for (const auto& [waits, share, rank] : sorted) {
    if (waits && (in_cycle++ >= kFew || share > -1)) break;
    add_once(out.ranks, rank);
  }
}

// Of who left no dump, where others did, nobody knows what it did.
void add_without_dump(const pb::Outcome& outcome, Suspects& out) {
  if (outcome.flight_records().empty()) return;
  std::set<uint32_t> dumped;
  for (const pb::FlightRecorder& recorder : outcome.flight_records())
    dumped.insert(recorder.rank());
  for (uint32_t rank = 0; rank < outcome.ranks() && out.ranks.size() < 4 * kFew; ++rank) {
    if (!dumped.contains(rank)) add_once(out.ranks, rank);
  }
}

// When those stopped who are waited for and wait for nobody: between the last call that ended with them and the first that
// waits for them. Their peers may go on for long in other groups.
std::optional<int64_t> stop_of_wanted(const pb::Outcome& outcome) {
  std::set<uint32_t> wanted;
  for (const auto& [rank, share] : waited_for(outcome)) wanted.insert(rank);
  for (const pb::Wait& wait : outcome.waits()) wanted.erase(wait.rank());
  const auto any_wanted = [&](const auto& ranks) {
    return std::any_of(ranks.begin(), ranks.end(),
                       [&](uint32_t rank) { return wanted.contains(rank); });
  };
  std::optional<int64_t> first;
  for (const pb::Wait& wait : outcome.waits()) {
    if (wait.since_ns() <= 0 || !any_wanted(wait.for_ranks())) continue;
    first = std::min(first.value_or(wait.since_ns()), wait.since_ns());
  }
  if (!first) return std::nullopt;
  int64_t before = 0;
  for (const pb::FlightRecorder& recorder : outcome.flight_records()) {
    std::set<std::string> with_them;
    for (const pb::FlightGroup& group : recorder.groups()) {
      if (any_wanted(group.ranks())) with_them.insert(group.name());
    }
    for (const pb::FlightEntry& entry : recorder.entries()) {
      if (entry.completed_ns() <= *first && with_them.contains(entry.group_name())) {
        before = std::max(before, entry.completed_ns());
      }
    }
  }
  return before > 0 ? (before + *first) / 2 : *first;
}

std::optional<uint32_t> number_behind(const std::string& text, size_t at, const char* word) {
  const size_t begin = text.find(word, at);
  if (begin == std::string::npos) return std::nullopt;
  const char* digits = text.data() + begin + std::char_traits<char>::length(word);
  uint32_t number = 0;
  const auto read = std::from_chars(digits, text.data() + text.size(), number);
  return read.ec == std::errc{} ? std::optional(number) : std::nullopt;
}

void add_named_ranks(const std::string& text, uint32_t ranks, Suspects& out) {
  for (const uint32_t rank : ranks_named_in(text)) {
    if (rank < ranks) add_once(out.ranks, rank);
  }
}

// An adapter, and the GPUs on its PCIe switch: what goes over it passes their slots too.
void add_named_adapter(const std::string& text, const pb::Scenario& document, Suspects& out) {
  const size_t at = text.find(kOfNode);
  if (at == std::string::npos) return;
  const auto node = number_behind(text, at, kOfNode);
  const auto nic = number_behind(text, at, " adapter ");
  if (!node || !nic) return;
  add_once(out.nodes, *node);
  add_once(out.nics, {*node, *nic});
  if (*node >= static_cast<uint32_t>(document.platform().nodes_size())) return;
  const pb::Node& where = document.platform().nodes(static_cast<int>(*node));
  if (*nic >= static_cast<uint32_t>(where.nics_size())) return;
  const std::string& above = where.nics(static_cast<int>(*nic)).pcie().parent();
  for (int i = 0; !above.empty() && i < where.gpus_size(); ++i) {
    if (where.gpus(i).pcie().parent() == above)
      add_once(out.gpus, {*node, static_cast<uint32_t>(i)});
  }
}

void from_failure(const pb::Outcome& outcome, Suspects& out) {
  if (const pb::Wait* call = stuck_call(outcome)) out.sequence = call->sequence();
  if (const auto other = most_deviating(outcome)) {
    add_once(out.ranks, other->rank);
    out.sequence = other->nth;
  }
  if (const auto order = only_other_order(outcome)) {
    add_once(out.ranks, order->rank);
    out.pair = order->pair;
  }
  // Who does not run what the others wait in, or runs what nobody else does.
  std::vector<uint32_t> odd;
  for (const Deviation& row : deviations(outcome)) {
    if (row.running != 0) add_once(odd, row.rank);
  }
  for (const uint32_t rank : odd.size() <= kFew ? odd : std::vector<uint32_t>{}) {
    add_once(out.ranks, rank);
  }
  add_wanted(outcome, out);
  // Who waits for all others has made a call that nobody else made.
  std::map<uint32_t, size_t> waits_for;
  for (const pb::Wait& wait : outcome.waits()) {
    waits_for[wait.rank()] = std::max(waits_for[wait.rank()], size_t(wait.for_ranks_size()));
  }
  if (waits_for.size() <= kFew) {
    for (const auto& [rank, count] : waits_for) add_once(out.ranks, rank);
  }
  if (outcome.has_first_failure()) add_once(out.ranks, outcome.first_failure().rank());
  add_without_dump(outcome, out);
  // Of a start that failed: the ranks in the rarest state.
  std::map<std::string, std::vector<uint32_t>> states;
  for (const pb::RankBringUp& rank : outcome.bring_up().ranks()) {
    states[rank.state() + rank.text().substr(0, 24)].push_back(rank.rank());
  }
  std::vector<const std::vector<uint32_t>*> groups;
  groups.reserve(states.size());
  for (const auto& [state, ranks] : states) groups.push_back(&ranks);
  std::stable_sort(groups.begin(), groups.end(),
                   [](const auto* a, const auto* b) { return a->size() < b->size(); });
  for (const auto* group : groups) {
    for (size_t i = 0; i < std::min(group->size(), kFew); ++i) add_once(out.ranks, (*group)[i]);
  }
  // Most gave up the same call: what they waited for are those who say nothing.
  std::set<uint32_t> said;
  for (const pb::ErrorText& error : outcome.error_text()) said.insert(error.rank());
  if (outcome.waits().empty() && said.size() > 1) {
    std::vector<uint32_t> silent;
    for (uint32_t rank = 0; rank < outcome.ranks(); ++rank) {
      if (!said.count(rank)) silent.push_back(rank);
    }
    if (silent.size() <= 2 * kFew) {
      for (const uint32_t rank : silent) add_once(out.ranks, rank);
    }
  }
  for (const uint32_t rank : said) {
    if (out.ranks.size() < 2 * kFew) add_once(out.ranks, rank);
  }
  // Few who say something have trouble of their own.
  if (said.size() <= 2 * kFew) {
    for (const uint32_t rank : said) add_once(out.ranks, rank);
  }
  for (const pb::ErrorText& error : outcome.error_text()) {
    if (out.ranks.size() < 4 * kFew) add_named_ranks(error.text(), outcome.ranks(), out);
  }
  // What disagreed at the call that the others wait in: who came with another size.
  std::map<int64_t, std::vector<uint32_t>> sizes;
  for (const pb::Wait& wait : outcome.waits()) sizes[wait.elements_in()].push_back(wait.rank());
  if (sizes.size() > 1) {
    for (const auto& [size, ranks] : sizes) {
      if (ranks.size() <= 2) {
        for (const uint32_t rank : ranks) out.ranks.insert(out.ranks.begin(), rank);
      }
    }
  }
}

// Adapters that error texts name, on the node of who says so.
void from_named_adapters(const pb::Outcome& outcome, const pb::Scenario& document, Suspects& out) {
  const auto node_of = nodes_of(document);
  for (const pb::ErrorText& error : outcome.error_text()) {
    const auto node = node_of.find(error.rank());
    if (node == node_of.end()) continue;
    const auto& nics = document.platform().nodes(static_cast<int>(node->second)).nics();
    for (int i = 0; i < nics.size(); ++i) {
      const size_t at = error.text().find(nics[i].name());
      if (nics[i].name().empty() || at == std::string::npos) continue;
      const size_t end = at + nics[i].name().size();
      // mlx5_1 is not mlx5_10.
      if (end < error.text().size() && std::isdigit(static_cast<unsigned char>(error.text()[end])))
        continue;
      add_once(out.nodes, node->second);
      add_once(out.nics, {node->second, static_cast<uint32_t>(i)});
    }
  }
}

// Ranks of which nothing was recorded, where others were.
void add_unrecorded(const std::map<uint32_t, double>& recorded, const pb::Scenario& document,
                    Suspects& out) {
  if (recorded.empty()) return;
  for (const pb::RankLaunch& rank : document.launch().ranks()) {
    if (!recorded.count(rank.rank()) && out.ranks.size() < 4 * kFew) {
      add_once(out.ranks, rank.rank());
    }
  }
}

// Whether a rank that was recorded computes or idles longer than the others by more than noise can.
bool surely_late(const Changes& changes) {
  const auto any = [](const std::map<uint32_t, double>& values) {
    const auto late = late_ranks(values);
    return !late.empty() && late.front().first > kSurelyLate;
  };
  return any(by_rank(changes, Aspect::kCompute)) || any(held_up(changes));
}

void from_times(const Changes& changes, const pb::Scenario& document, Suspects& out) {
  const auto node_of = nodes_of(document);
  for (const Aspect aspect : {Aspect::kCompute, Aspect::kHost, Aspect::kMemory}) {
    const auto values = aspect == Aspect::kHost ? held_up(changes) : by_rank(changes, aspect);
    const auto late = late_ranks(values);
    // Nobody who was recorded is late for sure.
    if (aspect == Aspect::kCompute && !surely_late(changes)) {
      add_unrecorded(values, document, out);
    }
    for (size_t i = 0; i < std::min(late.size(), kFew); ++i) add_once(out.ranks, late[i].second);
    if (late.empty()) continue;
    // Those within half of the latest are late together.
    std::vector<uint32_t> together;
    for (const auto& [excess, rank] : late) {
      if (excess > 0.5 * late.front().first) together.push_back(rank);
    }
    std::sort(together.begin(), together.end());
    if (auto stage = stage_of(together, values, document)) add_once(out.groups, *stage);
    std::map<uint32_t, size_t> on_node, of_node;
    for (const auto& [rank, value] : values) ++of_node[node_of.count(rank) ? node_of.at(rank) : 0];
    for (const uint32_t rank : together) ++on_node[node_of.count(rank) ? node_of.at(rank) : 0];
    for (const auto& [node, count] : on_node) {
      if (2 * count > of_node[node]) add_once(out.nodes, node);
    }
  }
  // All wait more than before but one: it is what they wait for.
  const auto waits = by_rank(changes, Aspect::kWait);
  const auto least = std::min_element(
      waits.begin(), waits.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (waits.size() > 2 && lower_quartile(waits) > kLate &&
      least->second < 0.5 * lower_quartile(waits)) {
    add_once(out.ranks, least->first);
  }
  add_unrecorded(by_rank(changes, Aspect::kCompute), document, out);
}

void from_links(const Changes& changes, const pb::Scenario& document, Suspects& out) {
  const auto found = changes.find(Aspect::kLinks);
  if (found == changes.end()) return;
  std::map<std::string, std::vector<std::pair<double, std::string>>> by_kind;
  for (const auto& [name, change] : found->second) {
    by_kind[name.substr(name.rfind('/') + 1)].emplace_back(-change.value, name);
  }
  std::vector<std::pair<double, std::string>> busier;
  for (auto& [kind, links] : by_kind) {
    std::sort(links.begin(), links.end());
    for (size_t i = 0; i < std::min(links.size(), kLinksPerKind); ++i) {
      if (links[i].first < -0.02) busier.push_back(links[i]);
    }
  }
  std::sort(busier.begin(), busier.end());
  for (size_t i = 0; i < std::min(busier.size(), 2 * kFew); ++i) {
    add_link(busier[i].second, document, out);
  }
}

// NICs that carry nothing although most do.
void from_unused_nics(const pb::Outcome& outcome, const pb::Scenario& document, Suspects& out) {
  std::set<std::string> used;  // "node1/mlx5_0"
  for (const pb::LinkUse& link : outcome.links()) {
    if (link.bytes() > 0) used.insert(link.name().substr(0, link.name().rfind('/')));
  }
  std::vector<std::pair<uint32_t, uint32_t>> unused;
  size_t all = 0;
  const auto& nodes = document.platform().nodes();
  for (int n = 0; n < nodes.size(); ++n) {
    for (int i = 0; i < nodes[n].nics_size(); ++i, ++all) {
      const std::string& nic = nodes[n].nics(i).name();
      if (used.count(nodes[n].name() + "/" + nic) || used.count(fmt::format("node{}/{}", n, nic))) {
        continue;
      }
      unused.emplace_back(n, i);
    }
  }
  if (unused.size() * 2 >= all) return;
  for (const auto& nic : unused) add_once(out.nics, nic);
}

// When it stopped. Peers of who crashes go on for a while, but not beyond the step in which it happened.
int64_t end_of_run(const pb::Outcome& outcome) {
  const pb::StepTimes& steps = outcome.step_time_ns();
  if (outcome.verdict() != pb::CRASH || steps.each().empty()) return outcome.last_progress_ns();
  return std::min(outcome.last_progress_ns(), (2 * steps.each_size() + 1) * steps.mean() / 2);
}

// When the one step began that took far longer than all others together would make it.
std::optional<int64_t> begin_of_long_step(const pb::Outcome& outcome) {
  const auto& each = outcome.step_time_ns().each();
  const auto longest = std::max_element(each.begin(), each.end());
  if (each.size() < 2 || *longest < kFarLonger * outcome.step_time_ns().p50()) return std::nullopt;
  return std::accumulate(each.begin(), longest, int64_t{0}) + outcome.step_time_ns().min() / 2;
}

}  // namespace

Suspects find_suspects(const pb::Outcome& outcome, const Changes& changes,
                       const pb::Scenario& document, double pace) {
  Suspects out;
  for (const pb::Culprit& culprit : outcome.culprits()) {
    if (culprit.has_node()) add_once(out.nodes, culprit.node());
  }
  for (const pb::OutcomeFinding& finding : outcome.findings()) {
    add_named_ranks(finding.first(), outcome.ranks(), out);
    add_named_adapter(finding.first(), document, out);
  }
  if (outcome.verdict() == pb::HANG || outcome.verdict() == pb::CRASH) {
    from_named_adapters(outcome, document, out);
    from_failure(outcome, out);
    const auto sizes = by_rank(changes, Aspect::kSize);
    if (sizes.size() == 1) out.size_ratio = std::exp(sizes.begin()->second);
    const auto stopped =
        outcome.verdict() == pb::HANG ? stop_of_wanted(outcome) : std::optional<int64_t>{};
    out.moment = std::llround(pace * static_cast<double>(stopped.value_or(end_of_run(outcome))));
    out.steps =
        steps_told(outcome).value_or(static_cast<uint32_t>(outcome.step_time_ns().each_size()));
  }
  if (const auto begin = begin_of_long_step(outcome)) {
    out.moment = std::llround(pace * static_cast<double>(*begin));
  }
  from_times(changes, document, out);
  from_links(changes, document, out);
  from_unused_nics(outcome, document, out);
  const auto& ranks = document.launch().ranks();
  for (const uint32_t rank : std::vector<uint32_t>(out.ranks)) {
    const auto entry = std::find_if(ranks.begin(), ranks.end(),
                                    [&](const pb::RankLaunch& r) { return r.rank() == rank; });
    if (entry == ranks.end()) {
      std::erase(out.ranks, rank);
      continue;
    }
    add_once(out.nodes, entry->node());
    add_once(out.gpus, {entry->node(), entry->gpu()});
  }
  return out;
}

void add_configured(const pb::Launch& configured, const pb::Launch& healthy, Suspects& suspects) {
  std::map<uint32_t, const pb::RankLaunch*> usual;
  for (const pb::RankLaunch& rank : healthy.ranks()) usual[rank.rank()] = &rank;
  std::vector<uint32_t> ranks, nodes;
  for (const pb::RankLaunch& rank : configured.ranks()) {
    const auto found = usual.find(rank.rank());
    if (found == usual.end() ||
        google::protobuf::util::MessageDifferencer::Equals(rank, *found->second))
      continue;
    add_once(ranks, rank.rank());
    add_once(nodes, rank.node());
  }
  for (const uint32_t rank : suspects.ranks) add_once(ranks, rank);
  for (const uint32_t node : suspects.nodes) add_once(nodes, node);
  suspects.ranks = std::move(ranks);
  suspects.nodes = std::move(nodes);
}

std::string straggler_kind(const Changes& changes, const pb::Scenario& document) {
  const auto compute = by_rank(changes, Aspect::kCompute);
  const auto host = held_up(changes);
  const auto late = late_ranks(compute), held = late_ranks(host);
  const auto all = [](const std::map<uint32_t, double>& values) {
    return values.size() > 1 && lower_quartile(values) > kLate;
  };
  const auto& who = late.empty() ? held : late;
  if (who.empty()) return all(compute) || all(host) ? "everyone" : "";
  if (who.size() == 1) return "fixed-rank";
  double most = who.front().first, least = who.back().first;
  if (late.empty()) return who.size() * 2 > host.size() ? "random" : "rotating";
  const auto node_of = nodes_of(document);
  std::map<uint32_t, size_t> on_node, of_node;
  for (const auto& [rank, value] : compute) ++of_node[node_of.count(rank) ? node_of.at(rank) : 0];
  for (const auto& [excess, rank] : who) ++on_node[node_of.count(rank) ? node_of.at(rank) : 0];
  const bool alike = least > 0.5 * most;
  if (!alike) return who.front().first > 2.5 * who[1].first ? "fixed-rank" : "random";
  const bool whole_nodes = std::all_of(on_node.begin(), on_node.end(),
                                       [&](const auto& n) { return n.second == of_node[n.first]; });
  if (whole_nodes && on_node.size() == 1) return "fixed-node";
  return who.size() * 4 >= compute.size() ? "fixed-stage" : "random";
}

}  // namespace rehearse::faults
