// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/sparkline.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "traces/inspect/evidence_view.hpp"
#include "traces/inspect/generator_options.hpp"
#include "traces/inspect/inspection.hpp"
#include "traces/inspect/text_table.hpp"

namespace rehearse::traces {
namespace {

// Longest lists; the JSON has all.
constexpr size_t kMaxRows = 16;
constexpr size_t kMaxLate = 5;

std::string share(Nanos part, Nanos whole) {
  return whole <= 0 ? "-"
                    : fmt::format("{:.1f} %",
                                  100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

const char* type_name(size_t type) {
  const auto collective = static_cast<Collective>(type);
  return collective == Collective::kSend ? "send_recv" : name_of(collective);
}

std::string plural(uint64_t n, std::string_view word) {
  return fmt::format("{} {}{}", format_count(n), word, n == 1 ? "" : "s");
}

std::string headline(const Inspection& in) {
  if (in.ranks.empty() && !in.evidence.empty()) {
    return "evidence without a trace: " + evidence_headline(in.evidence) + '\n';
  }
  std::string text = in.header.synthetic() ? "synthetic " : "";
  const std::string framework = printable(in.header.framework());
  if (!framework.empty() && framework != "unknown") text += framework + ' ';
  text += "trace: ";
  const uint64_t world = std::max<uint64_t>(in.header.world_size(), in.ranks.size());
  text += world == in.ranks.size()
              ? plural(in.ranks.size(), "rank")
              : fmt::format("{} of {} ranks", format_count(in.ranks.size()), format_count(world));
  if (in.options.rank) text += fmt::format(" (only rank {})", *in.options.rank);
  if (in.options.step) text += fmt::format(" (only step {})", *in.options.step);
  text += ", " + plural(in.operations, "operation") + ", " + plural(in.collectives, "collective");
  if (in.point_to_point > 0) text += ", " + plural(in.point_to_point, "send/recv pair");
  if (in.steps.per_rank > 0) {
    text += fmt::format(", {} of {} (p50 {}, p99 {})", plural(in.steps.per_rank, "step"),
                        format_duration(in.steps.mean), format_duration(in.steps.p50),
                        format_duration(in.steps.p99));
  }
  return text + '\n';
}

std::string facts(const Inspection& in) {
  std::string out;
  const auto line = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) out += fmt::format("  {:<10} {}\n", name, printable(value));
  };
  line("job", in.header.job());
  if (in.steps.longest.size() >= 3) {
    std::vector<double> steps;
    steps.reserve(in.steps.longest.size());
    for (const auto& [number, longest] : in.steps.longest)
      steps.push_back(static_cast<double>(longest));
    const auto [least, most] = std::minmax_element(steps.begin(), steps.end());
    line("steps", fmt::format("{} {} - {}, the slowest rank of each", sparkline(steps),
                              format_duration(static_cast<Nanos>(*least)),
                              format_duration(static_cast<Nanos>(*most))));
  }
  line("producer", in.header.producer());
  line("nccl", in.header.nccl_version());
  std::string gpus;
  for (const auto& [model, count] : in.gpus) {
    gpus += fmt::format("{}{} x {}", gpus.empty() ? "" : ", ", format_count(count), model);
  }
  line("gpus", gpus);
  std::string kinds;
  for (size_t i = 0; i < in.by_kind.size(); ++i) {
    if (in.by_kind[i] == 0) continue;
    kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", name_of(static_cast<OpKind>(i)),
                         format_count(in.by_kind[i]));
  }
  line("kinds", kinds);
  line("edges", fmt::format("{}, of which {} are inferred", format_count(in.edges),
                            format_count(in.inferred_edges)));
  if (in.header.cloned_from_size() > 0) {
    const auto clones = static_cast<uint64_t>(in.header.cloned_from_size());
    line("clones", clones == 1 ? "1 rank was not recorded: it is a clone"
                               : fmt::format("{} ranks were not recorded: they are clones",
                                             format_count(clones)));
  }
  std::string options;
  for (const auto& [name, value] : generator_options(in.header.synth())) {
    options += fmt::format("{}{}={}", options.empty() ? "" : " ", name,
                           value.is_string() ? value.get<std::string>() : value.dump());
  }
  line("generator", options);
  return out;
}

std::string section(std::string_view title, const TextTable& table, int width) {
  return table.empty() ? std::string() : fmt::format("\n{}\n{}", title, table.render(width));
}

std::string times(const Inspection& in, int width) {
  TextTable table({"rank", "compute", "exposed", "overlapped", "idle", "window"});
  const auto add = [&](const std::string& name, const RankTimes& t) {
    table.add({name, share(t.compute, t.window), share(t.exposed, t.window),
               share(t.overlapped, t.window), share(t.idle, t.window), format_duration(t.window)});
  };
  if (in.times.size() <= kMaxRows) {
    for (const RankTimes& t : in.times) add(std::to_string(t.rank), t);
    return section("time per rank (exposed, overlapped: communication)", table, width);
  }
  RankTimes all;
  for (const RankTimes& t : in.times) {
    all.compute += t.compute;
    all.exposed += t.exposed;
    all.overlapped += t.overlapped;
    all.idle += t.idle;
    all.window += t.window;
  }
  add("all", all);
  const auto exposed_share = [](const RankTimes& t) {
    return t.window <= 0 ? 0.0 : static_cast<double>(t.exposed) / static_cast<double>(t.window);
  };
  const auto [least, most] = std::minmax_element(
      in.times.begin(), in.times.end(),
      [&](const RankTimes& a, const RankTimes& b) { return exposed_share(a) < exposed_share(b); });
  add(fmt::format("{} (waits least)", least->rank), *least);
  add(fmt::format("{} (waits most)", most->rank), *most);
  return section("time of ranks (exposed, overlapped: communication)", table, width);
}

// Not known where no collective of the kind could be split.
std::string time_of(Nanos time, const CollectiveTotals& t) {
  return t.wait == 0 && t.transfer == 0 ? "-" : format_duration(time);
}

std::string members(uint64_t size, uint64_t groups, const std::string& ranks) {
  constexpr size_t kLongest = 16;
  if (groups != 1 || ranks.size() > kLongest) return format_count(size);
  return fmt::format("{} ({})", format_count(size), ranks);
}

// Communicators of the same description and size are one row: a large job has thousands.
std::string communicators(const Inspection& in, int width) {
  struct Group {
    uint64_t count = 0;
    std::string ranks;  // of the first
    TotalsByType totals{};
  };
  std::map<std::pair<std::string, uint64_t>, Group> groups;
  for (const CommunicatorFacts& c : in.communicators) {
    Group& group = groups[{c.description.empty() ? c.id : c.description, c.members.size()}];
    ++group.count;
    if (group.count == 1) group.ranks = format_ranks(c.members);
    for (size_t i = 0; i < c.totals.size(); ++i) {
      group.totals[i].collectives += c.totals[i].collectives;
      group.totals[i].calls += c.totals[i].calls;
      group.totals[i].bytes += c.totals[i].bytes;
      group.totals[i].wait += c.totals[i].wait;
      group.totals[i].transfer += c.totals[i].transfer;
    }
  }
  TextTable table({"communicator", "number", "members", "type", "collectives", "calls", "bytes",
                   "wait", "transfer"});
  size_t rows = 0;
  for (const auto& [key, group] : groups) {
    if (++rows > kMaxRows) break;
    bool first = true;
    for (size_t i = 0; i < group.totals.size(); ++i) {
      const CollectiveTotals& t = group.totals[i];
      if (t.collectives == 0) continue;
      table.add({first ? printable(key.first) : "", first ? format_count(group.count) : "",
                 first ? members(key.second, group.count, group.ranks) : "", type_name(i),
                 format_count(t.collectives), format_count(t.calls), format_bytes(t.bytes),
                 time_of(t.wait, t), time_of(t.transfer, t)});
      first = false;
    }
    if (first) {
      table.add({printable(key.first), format_count(group.count),
                 members(key.second, group.count, group.ranks), "-", "0", "0", "-", "-", "-"});
    }
  }
  std::string out = section("communicators", table, width);
  if (groups.size() > kMaxRows) out += fmt::format("  and {} more\n", groups.size() - kMaxRows);
  return out;
}

std::string kernels(const Inspection& in, int width) {
  TextTable table({"kernel", "count", "total", "mean"});
  for (const KernelTotal& k : in.kernels) {
    table.add({printable(k.name), format_count(k.count), format_duration(k.total),
               format_duration(k.total / static_cast<Nanos>(k.count))});
  }
  return section(in.options.rank
                     ? fmt::format("kernels with the most time, rank {}", *in.options.rank)
                     : "kernels with the most time, all ranks",
                 table, width);
}

std::string late(const Inspection& in, int width) {
  TextTable table({"rank", "times last", "after first", "after next"});
  for (size_t i = 0; i < std::min(in.late.size(), kMaxLate); ++i) {
    const LastArriver& l = in.late[i];
    table.add({std::to_string(l.rank), format_count(l.times), format_duration(l.after_first),
               format_duration(l.after_next)});
  }
  return section("last to start a collective (sums over collectives)", table, width);
}

std::string matched(const Inspection& in, int width) {
  TextTable table({"communicator", "sequence", "type", "bytes", "ranks", "first start",
                   "start spread", "last", "end spread"});
  const Nanos zero = in.matched.empty() ? 0 : in.matched.front().first_start;
  for (const MatchedCollective& m : in.matched) {
    table.add({printable(in.communicators[m.communicator].id), std::to_string(m.sequence),
               name_of(m.collective), format_bytes(m.bytes), format_count(m.ranks),
               "+" + format_duration(m.first_start - zero),
               format_duration(m.last_start - m.first_start), std::to_string(m.last_arriver),
               format_duration(m.last_end - m.first_end)});
  }
  return section("collectives in order of first start", table, width);
}

std::string findings(const Inspection& in) {
  std::string out;
  for (const Finding& f : in.findings.rows()) {
    out += fmt::format("  {} {} x {}: {}; {}\n", name_of(f.severity), format_count(f.count), f.id,
                       printable(f.first), printable(f.advice));
  }
  return out.empty() ? out : "\nfindings\n" + out;
}

}  // namespace

std::string to_text(const Inspection& in, int width) {
  return headline(in) + facts(in) + times(in, width) + communicators(in, width) +
         kernels(in, width) + late(in, width) + matched(in, width) +
         evidence_text(in.evidence, width) + findings(in);
}

}  // namespace rehearse::traces
