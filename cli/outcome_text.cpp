// SPDX-License-Identifier: Apache-2.0
#include "cli/outcome_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/markup.hpp"
#include "base/sparkline.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "cli/outcome_groups.hpp"
#include "cli/table.hpp"

namespace rehearse::cli {
namespace {

constexpr int kMostRows = 8;

std::string title(const Terminal& terminal, const char* text) {
  return "\n" + terminal.styled(Style::kBold, text) + "\n";
}

std::string share_of(int64_t part, int64_t whole) {
  return whole > 0 ? fmt::format("{:.1f} %",
                                 100.0 * static_cast<double>(part) / static_cast<double>(whole))
                   : "";
}

// A patch as written over several lines on one.
std::string on_one_line(const std::string& patch) {
  std::string out;
  for (const std::string& line : split(patch, '\n')) {
    const size_t begin = line.find_first_not_of(' ');
    if (begin == std::string::npos) continue;
    if (!out.empty()) out += out.ends_with(':') ? " " : ", ";
    out += line.substr(begin);
  }
  return out;
}

// Same text from many ranks: one line with the ranks.
std::string error_lines(const pb::Outcome& outcome, const Terminal& terminal) {
  const std::vector<SameText> texts = same_texts(outcome);
  std::string out;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (i == kMostRows) {
      out += fmt::format("  and {} more\n", texts.size() - kMostRows);
      break;
    }
    out += terminal.styled(Style::kDim, fmt::format("  rank {}: ", format_ranks(texts[i].ranks)));
    // Further lines of one text stand below its first.
    out += fmt::format("{}\n", fmt::join(split(texts[i].text, '\n'), "\n    "));
  }
  return out;
}

// Every step as a block: "▇█▇▇ 56.9 ms - 57.4 ms".
std::string steps_line(const pb::StepTimes& times) {
  if (times.each_size() < 3) return "";
  const std::vector<double> each(times.each().begin(), times.each().end());
  return fmt::format("{} {} - {}", sparkline(each), format_duration(times.min()),
                     format_duration(times.max()));
}

std::string breakdown(const pb::Outcome& outcome, const Terminal& terminal) {
  if (outcome.breakdown().empty()) return "";
  struct Part {
    const char* name;
    int64_t (pb::RankBreakdown::*value)() const;
  };
  static const std::vector<Part> kParts = {
      {"compute", &pb::RankBreakdown::compute},
      {"communication", &pb::RankBreakdown::communication},
      {"waiting for others", &pb::RankBreakdown::wait},
      {"host", &pb::RankBreakdown::host},
      {"idle", &pb::RankBreakdown::idle},
      {"hidden communication", &pb::RankBreakdown::overlapped}};
  const auto& ranks = outcome.breakdown();
  int64_t step = 0;
  for (const auto& rank : ranks) step += rank.step();
  Table table({{"where a step goes"},
               {"mean", Align::kRight},
               {"share", Align::kRight},
               {"least", Align::kRight},
               {"most", Align::kRight},
               {"on rank", Align::kRight}});
  for (const Part& part : kParts) {
    int64_t sum = 0;
    const pb::RankBreakdown *least = &ranks[0], *most = &ranks[0];
    for (const auto& rank : ranks) {
      const int64_t value = (rank.*part.value)();
      sum += value;
      if (value < (least->*part.value)()) least = &rank;
      if (value > (most->*part.value)()) most = &rank;
    }
    if (sum == 0) continue;
    table.add({part.name, format_duration(sum / ranks.size()), share_of(sum, step),
               format_duration((least->*part.value)()), format_duration((most->*part.value)()),
               fmt::format("{}", most->rank())});
  }
  return "\n" + table.text(terminal);
}

std::string waits(const pb::Outcome& outcome, const Terminal& terminal) {
  if (outcome.waits().empty()) return "";
  const std::vector<SameWait> rows = same_waits(outcome);
  Table table({{"waiting"}, {"for ranks"}, {"in"}, {"communicator"}, {"sequence", Align::kRight}});
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i == kMostRows) {
      table.add({fmt::format("and {} more", rows.size() - kMostRows)});
      break;
    }
    const pb::Wait& wait = *rows[i].wait;
    table.add({format_ranks(rows[i].ranks), format_ranks(rows[i].wanted), wait.operation(),
               wait.communicator(),
               wait.communicator().empty() ? "" : fmt::format("{}", wait.sequence())});
  }
  return "\n" + table.text(terminal);
}

std::string communicators(const pb::Outcome& outcome, const Terminal& terminal) {
  if (outcome.communicators().empty()) return "";
  Table table({{"communicator"},
               {"ranks", Align::kRight},
               {"nodes", Align::kRight},
               {"transport"},
               {"calls", Align::kRight},
               {"bytes", Align::kRight},
               {"bus bandwidth", Align::kRight},
               {"algorithms"}});
  for (int i = 0; i < std::min(kMostRows, outcome.communicators_size()); ++i) {
    const auto& c = outcome.communicators(i);
    table.add({c.id(), fmt::format("{}", c.ranks()), fmt::format("{}", c.nodes()), c.transport(),
               format_count(static_cast<uint64_t>(c.calls())), format_bytes(c.bytes()),
               format_bandwidth(c.busbw()), c.algorithms()});
  }
  std::string out = "\n" + table.text(terminal);
  if (outcome.communicators_size() > kMostRows) {
    out += fmt::format("and {} more communicators\n", outcome.communicators_size() - kMostRows);
  }
  return out;
}

// What decides how long the run takes, and what would be gained without it.
std::string critical_path(const pb::Outcome& outcome, const Terminal& terminal) {
  if (outcome.critical_path().operations().empty()) return "";
  Table table({{"critical path"},
               {"share", Align::kRight},
               {"a step is shorter without it by", Align::kRight}});
  const auto add = [&](const auto& rows, int most) {
    for (int i = 0; i < std::min(most, rows.size()); ++i) {
      const pb::Blame& row = rows[i];
      // Names of templates go on for lines; run --json has them whole.
      table.add({shortened(row.name(), kLongestName), fmt::format("{:.1f} %", 100 * row.share()),
                 row.has_saving_ns() ? format_duration(row.saving_ns()) : ""});
    }
  };
  add(outcome.critical_path().operations(), 5);
  add(outcome.critical_path().links(), 2);
  add(outcome.critical_path().ranks(), 2);
  return "\n" + table.text(terminal);
}

// The rank whose memory is fullest.
std::string memory(const pb::Outcome& outcome, const Terminal& terminal) {
  const pb::RankMemory* fullest = nullptr;
  const auto filled = [](const pb::RankMemory& rank) {
    return rank.capacity() > 0
               ? static_cast<double>(rank.peak()) / static_cast<double>(rank.capacity())
               : 0.0;
  };
  for (const pb::RankMemory& rank : outcome.memory().ranks()) {
    if (fullest == nullptr || filled(rank) > filled(*fullest)) fullest = &rank;
  }
  if (fullest == nullptr) return "";
  Table table({{fmt::format("memory of rank {}", fullest->rank())},
               {"bytes", Align::kRight},
               {"share", Align::kRight}});
  table.add(
      {"peak", format_bytes(fullest->peak()), share_of(fullest->peak(), fullest->capacity())});
  for (int i = 0; i < std::min(4, fullest->parts_size()); ++i) {
    const pb::MemoryPart& part = fullest->parts(i);
    table.add({"  " + part.name(), format_bytes(part.bytes()),
               share_of(part.bytes(), fullest->capacity())});
  }
  return "\n" + table.text(terminal);
}

std::string links(const pb::Outcome& outcome, const Terminal& terminal) {
  if (outcome.links().empty()) return "";
  Table table({{"busiest links"}, {"bytes", Align::kRight}, {"use", Align::kRight}});
  for (int i = 0; i < std::min(5, outcome.links_size()); ++i) {
    const auto& link = outcome.links(i);
    table.add({link.name(), format_bytes(static_cast<Bytes>(link.bytes())),
               fmt::format("{:.1f} %", 100 * link.utilisation())});
  }
  return "\n" + table.text(terminal);
}

}  // namespace

std::string verdict_name(pb::Verdict verdict) {
  std::string name = pb::Verdict_Name(verdict);
  std::ranges::transform(name, name.begin(), [](unsigned char c) {
    return c == '_' ? '-' : static_cast<char>(std::tolower(c));
  });
  return name;
}

std::string findings_text(const google::protobuf::RepeatedPtrField<pb::OutcomeFinding>& findings,
                          const Terminal& terminal) {
  if (findings.empty()) return "";
  std::string out = title(terminal, "findings");
  for (const pb::OutcomeFinding& f : findings) {
    out +=
        fmt::format("  {}: {} ({}), first at {}{}{}\n", f.severity(), f.id(),
                    format_count(f.count()), f.first(), f.advice().empty() ? "" : ": ", f.advice());
  }
  return out;
}

std::string step_text(const pb::Outcome& outcome) {
  const int64_t now = outcome.step_time_ns().mean();
  const int64_t before = outcome.baseline_step_time_ns().mean();
  const int done = outcome.step_time_ns().each_size();
  if (outcome.verdict() != pb::COMPLETED && outcome.verdict() != pb::VERDICT_UNSPECIFIED &&
      done > 0) {
    const int all = outcome.baseline_step_time_ns().each_size();
    return all > done ? fmt::format("after {} of {} steps", done, all)
                      : fmt::format("after {} whole step{}", done, done == 1 ? "" : "s");
  }
  if (now <= 0) {
    return before > 0 ? fmt::format("no whole step (baseline {})", format_duration(before))
                      : "no whole step";
  }
  std::string band;
  if (outcome.has_step_time_band_ns()) {
    const pb::Band& range = outcome.step_time_band_ns();
    band =
        fmt::format(", {} - {} in 9 of 10 of {} draws from {} ({})", format_duration(range.low()),
                    format_duration(range.high()), range.draws(), range.from(), range.note());
  }
  if (before <= 0) return fmt::format("step time {}{}", format_duration(now), band);
  const double change = 100.0 * (static_cast<double>(now) / static_cast<double>(before) - 1.0);
  return fmt::format("step time {} -> {} ({:+.1f} %){}", format_duration(before),
                     format_duration(now), change, band);
}

std::string outcome_head(const pb::Outcome& outcome, const Terminal& terminal) {
  const bool good = outcome.verdict() == pb::COMPLETED && outcome.symptom().id() == "healthy";
  const Style style = good                                 ? Style::kGreen
                      : outcome.verdict() == pb::COMPLETED ? Style::kYellow
                                                           : Style::kRed;
  std::string out =
      fmt::format("{}: {}, {}\n", outcome.scenario(),
                  terminal.styled(style, verdict_name(outcome.verdict())), step_text(outcome));
  Table table({{""}, {""}});
  table.add({"  ranks", fmt::format("{} on {}{}", format_count(outcome.ranks()), outcome.platform(),
                                    outcome.synthetic() ? ", trace is synthetic" : "")});
  if (const std::string steps = steps_line(outcome.step_time_ns()); !steps.empty()) {
    table.add({"  steps", steps});
  }
  std::string reasons = fmt::format("{}", fmt::join(outcome.symptom().reasons(), "; "));
  std::string symptom = outcome.symptom().id();
  if (outcome.symptom().label() != symptom) symptom += " " + outcome.symptom().label();
  table.add({"  symptom", symptom + (reasons.empty() ? "" : ": ") + reasons});
  for (const auto& patch : outcome.patches()) table.add({"  changed", on_one_line(patch)});
  for (const auto& culprit : outcome.culprits()) {
    table.add({"  culprit", fmt::format("{}: {}", place_of(culprit), culprit.why())});
  }
  if (outcome.verdict() == pb::HANG) {
    table.add({"  last progress", format_duration(outcome.last_progress_ns())});
  }
  if (outcome.has_first_failure()) {
    const auto& f = outcome.first_failure();
    table.add({"  first failure",
               fmt::format("rank {} after {}{}{}", f.rank(), format_duration(f.time_ns()),
                           f.operation().empty() ? "" : " in " + f.operation(),
                           f.communicator().empty()
                               ? ""
                               : fmt::format(" {} of {}", f.sequence(), f.communicator()))});
  }
  out += table.text(terminal);
  return out + error_lines(outcome, terminal);
}

// What checkpoints and failures make of a step, where the scenario says how often nodes fail.
static std::string goodput(const pb::Outcome& outcome, const Terminal& terminal) {
  if (!outcome.has_goodput()) return "";
  const pb::Goodput& good = outcome.goodput();
  const std::string useful =
      good.useful_step_ns() > 0
          ? fmt::format("{} per step that is kept", format_duration(good.useful_step_ns()))
          : "the job fails before it has written a checkpoint";
  return title(terminal, "with failures") + fmt::format(
                                                "  one every {}; a checkpoint stalls for {}; every "
                                                "{} steps: {}; best every {} steps\n",
                                                format_duration(good.job_mtbf_ns()),
                                                format_duration(good.checkpoint_stall_ns()),
                                                good.checkpoint_every(), useful, good.best_every());
}

std::string outcome_text(const pb::Outcome& outcome, const Terminal& terminal) {
  return fit(outcome_head(outcome, terminal) + breakdown(outcome, terminal) +
                 waits(outcome, terminal) + critical_path(outcome, terminal) +
                 communicators(outcome, terminal) + links(outcome, terminal) +
                 memory(outcome, terminal) + goodput(outcome, terminal) +
                 findings_text(outcome.findings(), terminal),
             terminal.width());
}

}  // namespace rehearse::cli
