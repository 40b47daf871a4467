// SPDX-License-Identifier: Apache-2.0
#include "faults/check/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "base/text.hpp"
#include "sim/scenario/scenario.hpp"

namespace rehearse::faults {
namespace {

// A subject's own facts before those of its place.
class SubjectScope final : public Scope {
 public:
  SubjectScope(const Facts& facts, Place place, FactMap extra,
               const std::vector<const Scope*>& ranks)
      : facts_(facts), place_(place), extra_(std::move(extra)), ranks_(ranks) {}

  [[nodiscard]] Value get(std::string_view name) const override {
    if (const auto at = extra_.find(name); at != extra_.end()) return at->second;
    return facts_.get(place_, name);
  }
  [[nodiscard]] std::vector<const Scope*> ranks() const override { return ranks_; }

 private:
  const Facts& facts_;
  Place place_;
  FactMap extra_;
  const std::vector<const Scope*>& ranks_;
};

// Everything of a rule that reads the same is one finding.
struct Group {
  pb::CheckFinding finding;
  std::set<size_t> ranks, nodes;  // positions
  std::map<std::string, std::string> set;
};

std::string severity_word(pb::CheckRule::Severity severity) {
  switch (severity) {
    case pb::CheckRule::ERROR:
      return "error";
    case pb::CheckRule::WARNING:
      return "warning";
    default:
      return "info";
  }
}

std::string node_names(const Facts& facts, const std::set<size_t>& nodes) {
  std::string out;
  for (size_t n : nodes) {
    if (n < facts.nodes()) {
      out += (out.empty() ? "" : ", ") + *facts.get({.node = n, .rank = {}}, "node.name");
    }
  }
  return out;
}

std::string where_text(const Facts& facts, const Group& group) {
  if (group.ranks.empty()) return group.nodes.empty() ? "job" : node_names(facts, group.nodes);
  std::vector<uint32_t> ranks;
  std::set<size_t> nodes;
  for (size_t r : group.ranks) {
    ranks.push_back(facts.document().launch().ranks(static_cast<int>(r)).rank());
    nodes.insert(facts.node_of(r));
  }
  std::sort(ranks.begin(), ranks.end());
  const std::string on = node_names(facts, nodes);
  return fmt::format("rank {}{}", format_ranks(ranks),
                     on.empty() || nodes.size() > 4 ? "" : " (" + on + ")");
}

// One assignment for all ranks where every rank has the same.
std::map<std::string, std::string> folded_assignments(
    const Facts& facts, const std::map<std::string, std::string>& set) {
  constexpr std::string_view kRank = "launch.ranks[rank=";
  std::map<std::pair<std::string, std::string>, std::vector<std::string>>
      by_tail;  // tail and value: paths
  std::map<std::string, std::string> out;
  for (const auto& [path, value] : set) {
    const size_t close = path.find(']');
    if (path.starts_with(kRank) && close != path.npos) {
      by_tail[{path.substr(close + 1), value}].push_back(path);
    } else {
      out[path] = value;
    }
  }
  for (const auto& [tail, paths] : by_tail) {
    if (paths.size() == facts.ranks() && facts.ranks() > 1) {
      out["launch.ranks[*]" + tail.first] = tail.second;
    } else {
      for (const std::string& path : paths) out[path] = tail.second;
    }
  }
  return out;
}

class Checker {
 public:
  Checker(const Facts& facts, const Rules& rules) : facts_(facts), rules_(rules) {
    for (size_t r = 0; r < facts.ranks(); ++r) {
      owned_.push_back(std::make_unique<SubjectScope>(
          facts, Place{.node = facts.node_of(r), .rank = r}, FactMap{}, ranks_));
    }
    for (const auto& scope : owned_) ranks_.push_back(scope.get());
  }

  void apply(const Rule& rule, std::vector<pb::CheckFinding>& findings) {
    std::vector<Group> groups;
    for (const auto& [place, extra] : subjects(*rule.each)) {
      const SubjectScope scope(facts_, place, extra, ranks_);
      if (!rule.when.holds(scope)) continue;
      Group& group = group_of(groups, rule, scope);
      if (place.rank) {
        group.ranks.insert(*place.rank);
      } else if (place.node) {
        group.nodes.insert(*place.node);
      }
      for (const auto& [path, value] : rule.set) {
        const Value where = path.fill_known(scope), what = value.fill_known(scope);
        if (where && what) group.set[*where] = *what;
      }
    }
    for (Group& group : groups) {
      group.finding.set_where(where_text(facts_, group));
      for (const auto& [path, value] : folded_assignments(facts_, group.set)) {
        (*group.finding.mutable_set())[path] = value;
      }
      findings.push_back(std::move(group.finding));
    }
  }

 private:
  using Subjects = std::vector<std::pair<Place, FactMap>>;

  // Several rules look at the same subjects.
  const Subjects& subjects(const SubjectKind& kind) {
    const auto known = subjects_.find(&kind);
    if (known != subjects_.end()) return known->second;
    Subjects& list = subjects_[&kind];
    kind.list(facts_, rules_.tables(), [&list](const Place& place, FactMap extra) {
      list.emplace_back(place, std::move(extra));
    });
    return list;
  }

  static Group& group_of(std::vector<Group>& groups, const Rule& rule, const Scope& scope) {
    pb::CheckFinding finding;
    finding.set_rule(rule.text.id());
    finding.set_severity(severity_word(rule.text.severity()));
    finding.set_what(rule.what.fill(scope));
    finding.set_why(rule.why.fill(scope));
    finding.set_fix(rule.fix.fill(scope));
    finding.set_category(rule.category.fill(scope));
    finding.set_verdict(rule.text.verdict());
    *finding.mutable_faults() = rule.text.faults();
    *finding.mutable_sources() = rule.text.sources();
    for (Group& group : groups) {
      if (group.finding.what() == finding.what() && group.finding.fix() == finding.fix())
        return group;
    }
    groups.push_back({std::move(finding), {}, {}, {}});
    return groups.back();
  }

  const Facts& facts_;
  const Rules& rules_;
  std::vector<std::unique_ptr<Scope>> owned_;
  std::vector<const Scope*> ranks_;
  std::map<const SubjectKind*, Subjects> subjects_;
};

int urgency(const pb::CheckFinding& finding) {
  return finding.severity() == "error" ? 0 : finding.severity() == "warning" ? 1 : 2;
}

// Of the rules that are wanted, errors first.
std::vector<pb::CheckFinding> findings_of(const Facts& facts, const Rules& rules,
                                          bool (*wanted)(const Rule& rule)) {
  std::vector<pb::CheckFinding> out;
  Checker checker(facts, rules);
  for (const Rule& rule : rules.all()) {
    if (wanted(rule)) checker.apply(rule, out);
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return urgency(a) < urgency(b); });
  return out;
}

std::vector<std::string> known_parts(const Facts& facts) {
  const pb::Scenario& document = facts.document();
  std::vector<std::string> out;
  const auto add = [&](size_t count, const char* what) {
    if (count > 0) out.push_back(fmt::format("{} {}{}", count, what, count == 1 ? "" : "s"));
  };
  size_t gpus = 0, nics = 0, interfaces = 0;
  for (const pb::Node& node : document.platform().nodes()) {
    gpus += static_cast<size_t>(node.gpus_size());
    nics += static_cast<size_t>(node.nics_size());
    interfaces += static_cast<size_t>(node.interfaces_size());
  }
  add(facts.ranks(), "rank");
  add(facts.nodes(), "node");
  add(gpus, "GPU");
  add(nics, "adapter");
  add(interfaces, "interface");
  return out;
}

}  // namespace

pb::CheckReport check(const pb::Scenario& document, const Rules& rules, const std::string& subject,
                      uint32_t elsewhere) {
  pb::CheckReport report;
  report.set_schema("rehearse.check/1");
  report.set_subject(subject);
  report.set_rules(static_cast<uint32_t>(rules.all().size()));
  const Facts facts(document, elsewhere);
  for (pb::CheckFinding& finding : findings_of(facts, rules, [](const Rule&) { return true; })) {
    *report.add_findings() = std::move(finding);
  }
  for (std::string& part : known_parts(facts)) report.add_known(std::move(part));
  return report;
}

std::vector<pb::CheckFinding> findings_with_verdict(const pb::Scenario& document,
                                                    const Rules& rules) {
  return findings_of(Facts(document, 0), rules,
                     [](const Rule& rule) { return !rule.text.verdict().empty(); });
}

std::vector<std::pair<std::string, std::string>> fixes_in(const pb::CheckReport& report) {
  std::vector<std::pair<std::string, std::string>> out;
  std::set<std::string> seen;
  for (const pb::CheckFinding& finding : report.findings()) {
    for (const auto& [path, value] : sim::sorted_assignments(finding.set())) {
      if (seen.insert(path).second) out.emplace_back(path, value);
    }
  }
  return out;
}

}  // namespace rehearse::faults
