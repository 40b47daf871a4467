// SPDX-License-Identifier: Apache-2.0
#include "traces/import/clock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <numeric>

#include "base/units.hpp"

namespace rehearse::traces {
namespace {

constexpr Nanos kAgree = 20'000;
constexpr Nanos kFarthestClock = Nanos{1} << 59;
constexpr Nanos kSameRun = 60'000'000'000;  // hosts with NTP are milliseconds apart
constexpr size_t kDriftPoints = 8;
constexpr int kRefinements = 6;
constexpr double kMostDrift = 1e-3;  // quartz is good for 1e-4

bool synchronises(Collective c) {
  return c == Collective::kAllReduce || c == Collective::kAllGather ||
         c == Collective::kReduceScatter || c == Collective::kBarrier;
}

// One collective as seen by the clocks that took part: the last end per clock.
struct Meeting {
  std::vector<std::pair<uint32_t, Nanos>> ends;  // clock, its end; ascending by clock
  bool held_out = false;
};

struct Line {
  Nanos offset = 0;  // at the middle of the recording
  double drift = 0;
  [[nodiscard]] Nanos at(Nanos time, Nanos middle) const {
    return offset + static_cast<Nanos>(std::llround(drift * static_cast<double>(time - middle)));
  }
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return 0.5 * (*middle + *std::max_element(values.begin(), middle));
}

struct Point {
  double x = 0, y = 0;  // time from the middle, what is to be added there; both ns
};

// A line through points of which some are far off: median of slopes over half the range, then least
// squares over what is near.
std::pair<double, double> robust_line(std::vector<Point> points) {
  std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.x < b.x; });
  std::vector<double> ys;
  ys.reserve(points.size());
  for (const Point& p : points) ys.push_back(p.y);
  double offset = median(ys), drift = 0;
  if (points.size() < kDriftPoints) return {offset, drift};
  const size_t half = points.size() / 2;
  std::vector<double> slopes;
  for (size_t i = 0; i + half < points.size(); ++i) {
    const double dx = points[i + half].x - points[i].x;
    if (dx > 0) slopes.push_back((points[i + half].y - points[i].y) / dx);
  }
  if (slopes.empty()) return {offset, drift};
  drift = median(slopes);
  std::vector<double> rest(points.size());
  const auto residuals = [&] {
    for (size_t i = 0; i < points.size(); ++i) rest[i] = points[i].y - drift * points[i].x;
    offset = median(rest);
    for (double& r : rest) r -= offset;
  };
  residuals();
  for (int round = 0; round < 2; ++round) {
    std::vector<double> size(rest.size());
    std::transform(rest.begin(), rest.end(), size.begin(), [](double r) { return std::abs(r); });
    const double reach = 3 * 1.4826 * median(size) + 1;
    double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
    for (size_t i = 0; i < points.size(); ++i) {
      if (std::abs(rest[i]) > reach) continue;
      n += 1;
      sx += points[i].x;
      sy += points[i].y;
      sxx += points[i].x * points[i].x;
      sxy += points[i].x * points[i].y;
    }
    const double spread = n * sxx - sx * sx;
    if (2 * n < kDriftPoints || spread <= 0) break;
    drift = (n * sxy - sx * sy) / spread;
    offset = (sy - drift * sx) / n;
    for (size_t i = 0; i < points.size(); ++i) rest[i] = points[i].y - drift * points[i].x - offset;
  }
  // A drift smaller than the noise would show by chance is none.
  std::vector<double> size(rest.size());
  std::transform(rest.begin(), rest.end(), size.begin(), [](double r) { return std::abs(r); });
  const double noise = 1.4826 * median(size);
  const double reach = points.back().x - points.front().x;
  const double uncertain = noise * std::sqrt(12.0 / static_cast<double>(points.size()));
  if (std::abs(drift) * reach < 4 * uncertain || std::abs(drift) > kMostDrift)
    return {median(ys), 0};
  return {offset, drift};
}

class Alignment {
 public:
  explicit Alignment(const Trace& trace) : trace_(trace) {
    assign_clocks();
    collect();
  }

  [[nodiscard]] size_t meetings() const { return meetings_.size(); }
  [[nodiscard]] size_t clocks() const { return clocks_; }
  [[nodiscard]] uint32_t clock_of(size_t rank) const { return clock_[rank]; }
  [[nodiscard]] Nanos middle() const { return middle_; }
  [[nodiscard]] const std::vector<bool>& reached() const { return reached_; }
  [[nodiscard]] const std::vector<Line>& lines() const { return lines_; }

  // 95th percentile of the distance of ends to the middle of their meeting; of all where none is held out.
  [[nodiscard]] Nanos residual(bool held_out_only) const {
    std::vector<Nanos> away;
    for (const Meeting& m : meetings_) {
      if (held_out_only && !m.held_out) continue;
      std::vector<double> ends = aligned(m);
      const double centre = median(ends);
      for (const double end : ends) away.push_back(static_cast<Nanos>(std::abs(end - centre)));
    }
    if (away.empty()) return held_out_only ? residual(false) : 0;
    std::sort(away.begin(), away.end());
    return away[std::min(away.size() - 1, away.size() * 95 / 100)];
  }

  // How far the worst clock is from the others: the upper quartile of its distances.
  [[nodiscard]] Nanos disagreement() const {
    std::vector<std::vector<double>> away(clocks_);
    for (const Meeting& m : meetings_) {
      const std::vector<double> ends = aligned(m);
      const double centre = median(ends);
      for (size_t i = 0; i < ends.size(); ++i) {
        away[m.ends[i].first].push_back(std::abs(ends[i] - centre));
      }
    }
    double worst = 0;
    for (std::vector<double>& list : away) {
      if (list.empty()) continue;
      const auto quartile = list.begin() + static_cast<std::ptrdiff_t>(list.size() * 3 / 4);
      std::nth_element(list.begin(), quartile, list.end());
      worst = std::max(worst, *quartile);
    }
    return static_cast<Nanos>(worst);
  }

  void fit() {
    hold_out();
    span();
    for (int i = 0; i < kRefinements; ++i) refine();
  }

 private:
  void assign_clocks() {
    std::map<std::string, uint32_t> hosts;
    for (const RankTrace& r : trace_.ranks) {
      const std::string key = r.host.empty() ? fmt::format("rank {}", r.rank) : "host " + r.host;
      clock_.push_back(hosts.emplace(key, static_cast<uint32_t>(hosts.size())).first->second);
    }
    clocks_ = hosts.size();
    lines_.assign(clocks_, {});
  }

  void collect() {
    std::map<std::pair<uint32_t, int64_t>, std::map<uint32_t, Nanos>> ends;
    Nanos first = 0, last = 0;
    bool any = false;
    for (size_t r = 0; r < trace_.ranks.size(); ++r) {
      const Operations& ops = trace_.ranks[r].ops;
      for (size_t op = 0; op < ops.size(); ++op) {
        const Call* c = ops.call(op);
        if (c == nullptr || !synchronises(c->collective)) continue;
        const Nanos end = ops.start[op] + ops.duration[op];
        auto& slot = ends[{c->communicator, c->sequence}].emplace(clock_[r], end).first->second;
        slot = std::max(slot, end);
        first = any ? std::min(first, end) : end;
        last = any ? std::max(last, end) : end;
        any = true;
      }
    }
    middle_ = first + (last - first) / 2;
    for (const auto& [key, by_clock] : ends) {
      if (by_clock.size() < 2) continue;
      Meeting m;
      m.ends.assign(by_clock.begin(), by_clock.end());
      meetings_.push_back(std::move(m));
    }
    std::stable_sort(meetings_.begin(), meetings_.end(), [](const Meeting& a, const Meeting& b) {
      return a.ends.front().second < b.ends.front().second;
    });
  }

  // One in a few, but none that clocks need to be connected.
  void hold_out() {
    const size_t every = meetings_.size() >= 8 ? 4 : 3;
    if (meetings_.size() < 3) return;
    std::vector<uint32_t> group(clocks_);  // of clocks that the others connect
    std::iota(group.begin(), group.end(), 0u);
    const auto connect = [&](const Meeting& m) {
      bool needed = false;
      for (const auto& [clock, end] : m.ends) {
        const uint32_t joined = group[clock], to = group[m.ends.front().first];
        if (joined == to) continue;
        needed = true;
        std::replace(group.begin(), group.end(), joined, to);
      }
      return needed;
    };
    const auto chosen = [&](size_t i) { return (i + 1) % every == 0; };
    for (size_t i = 0; i < meetings_.size(); ++i) {
      if (!chosen(i)) connect(meetings_[i]);
    }
    for (size_t i = every - 1; i < meetings_.size(); i += every) {
      meetings_[i].held_out = !connect(meetings_[i]);
    }
  }

  [[nodiscard]] std::vector<double> aligned(const Meeting& m) const {
    std::vector<double> out;
    const Nanos origin = m.ends.front().second;
    for (const auto& [clock, end] : m.ends) {
      out.push_back(static_cast<double>(end - origin + lines_[clock].at(end, middle_)));
    }
    return out;
  }

  // Clock 0 and whatever it meets, then what those meet, and so on; each fitted to the one it was
  // met by.
  void span() {
    std::map<std::pair<uint32_t, uint32_t>, std::vector<std::pair<Nanos, Nanos>>> pairs;
    std::vector<std::vector<uint32_t>> neighbours(clocks_);
    for (const Meeting& m : meetings_) {
      if (m.held_out) continue;
      // All against the first is enough to span; the refinement uses everything.
      for (size_t i = 1; i < m.ends.size(); ++i) {
        auto& list = pairs[{m.ends[0].first, m.ends[i].first}];
        if (list.empty()) {
          neighbours[m.ends[0].first].push_back(m.ends[i].first);
          neighbours[m.ends[i].first].push_back(m.ends[0].first);
        }
        list.emplace_back(m.ends[0].second, m.ends[i].second);
      }
    }
    reached_.assign(clocks_, false);
    std::deque<uint32_t> queue = {0};
    reached_[0] = true;
    while (!queue.empty()) {
      const uint32_t known = queue.front();
      queue.pop_front();
      for (const uint32_t next : neighbours[known]) {
        if (reached_[next]) continue;
        const bool swapped = next < known;
        const auto& list = pairs[swapped ? std::pair(next, known) : std::pair(known, next)];
        const Nanos origin = list.front().first - list.front().second;
        std::vector<Point> points;
        for (const auto& [low, high] : list) {
          const Nanos theirs = swapped ? high : low, ours = swapped ? low : high;
          const Nanos target = theirs + lines_[known].at(theirs, middle_);
          const Nanos base = swapped ? -origin : origin;
          points.push_back(
              {static_cast<double>(ours - middle_), static_cast<double>(target - ours - base)});
        }
        const auto [offset, drift] = robust_line(std::move(points));
        lines_[next] = {(swapped ? -origin : origin) + static_cast<Nanos>(std::llround(offset)),
                        drift};
        reached_[next] = true;
        queue.push_back(next);
      }
    }
  }

  // Moves every clock but the first towards the middles of its meetings.
  void refine() {
    std::vector<std::vector<Point>> points(clocks_);
    for (const Meeting& m : meetings_) {
      if (m.held_out) continue;
      const std::vector<double> ends = aligned(m);
      const double centre = median(ends);
      for (size_t i = 0; i < ends.size(); ++i) {
        points[m.ends[i].first].push_back(
            {static_cast<double>(m.ends[i].second - middle_), centre - ends[i]});
      }
    }
    for (size_t c = 0; c < clocks_; ++c) {
      if (!reached_[c] || points[c].empty()) continue;
      const auto [offset, drift] = robust_line(std::move(points[c]));
      lines_[c].offset += static_cast<Nanos>(std::llround(offset));
      lines_[c].drift += drift;
    }
    const Line first = lines_[0];
    for (size_t c = 0; c < clocks_; ++c) {
      if (!reached_[c]) continue;
      lines_[c].offset -= first.offset;
      lines_[c].drift -= first.drift;
    }
  }

  const Trace& trace_;
  std::vector<uint32_t> clock_;  // per rank
  size_t clocks_ = 0;
  std::vector<Meeting> meetings_;
  std::vector<Line> lines_;    // per clock
  std::vector<bool> reached_;  // per clock
  Nanos middle_ = 0;
};

void shift(RankTrace& rank, const Line& line, Nanos middle) {
  const auto moved = [&](Nanos t) { return t + line.at(t, middle); };
  for (size_t op = 0; op < rank.ops.size(); ++op) {
    const Nanos end = moved(rank.ops.start[op] + rank.ops.duration[op]);
    rank.ops.start[op] = moved(rank.ops.start[op]);
    rank.ops.duration[op] = std::max<Nanos>(end - rank.ops.start[op], 0);
  }
  for (Step& s : rank.steps) {
    s.start = moved(s.start);
    s.end = moved(s.end);
  }
  rank.clock_offset += line.offset;
}

// Times count from 1970, rather than from when a machine or a recording began.
bool is_date(const RankTrace& rank) {
  constexpr Nanos kSince2001 = 1'000'000'000'000'000'000;
  return rank.ops.size() > 0 && rank.ops.start.front() > kSince2001;
}

}  // namespace

ClockFit align_clocks(Trace& trace, Findings& findings) {
  ClockFit fit;
  fit.offset.assign(trace.ranks.size(), 0);
  fit.drift.assign(trace.ranks.size(), 0);
  if (trace.ranks.size() < 2) return fit;
  Alignment alignment(trace);
  fit.collectives = alignment.meetings();
  if (alignment.clocks() < 2) return fit;
  if (fit.collectives == 0) {
    findings.add(
        "clocks-not-aligned", Severity::kWarning, fmt::format("{} ranks", trace.ranks.size()),
        "no collective that ends together was matched across ranks; times of different ranks "
        "cannot be compared");
    return fit;
  }
  fit.residual_before = fit.residual = alignment.residual(false);
  if (alignment.disagreement() > kAgree) {
    alignment.fit();
    fit.residual = alignment.residual(true);
    fit.aligned = true;
    for (size_t r = 0; r < trace.ranks.size(); ++r) {
      const uint32_t clock = alignment.clock_of(r);
      if (!alignment.reached()[clock]) {
        findings.add(
            "clock-not-connected", Severity::kWarning, fmt::format("rank {}", trace.ranks[r].rank),
            "shares no collective with the first rank, not even through others; its times stay as "
            "recorded");
        continue;
      }
      const Line& line = alignment.lines()[clock];
      if (std::abs(line.offset) > kFarthestClock) {
        findings.add("clock-too-far", Severity::kWarning,
                     fmt::format("rank {}", trace.ranks[r].rank),
                     "its times are decades away from the others'; they stay as recorded");
        continue;
      }
      if (std::abs(line.offset) > kSameRun && is_date(trace.ranks[0]) && is_date(trace.ranks[r])) {
        findings.add(
            "clock-minutes-apart", Severity::kWarning,
            fmt::format("rank {}: {}", trace.ranks[r].rank, format_duration(std::abs(line.offset))),
            "clocks of the hosts of one job are seldom that far apart: the files may be of "
            "different "
            "runs; they are matched as if they were of one");
      }
      fit.offset[r] = line.offset;
      fit.drift[r] = line.drift;
      shift(trace.ranks[r], line, alignment.middle());
    }
    findings.add(
        "clocks-aligned", Severity::kInfo,
        fmt::format("ends of {} collectives: {} apart before, {} after (95 %)", fit.collectives,
                    format_duration(fit.residual_before), format_duration(fit.residual)),
        "offset and drift per host were fitted; --as-recorded keeps the recorded times");
  }
  trace.header.set_clock_residual(fit.residual);
  return fit;
}

}  // namespace rehearse::traces
