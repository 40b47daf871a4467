// SPDX-License-Identifier: Apache-2.0
#include "faults/check/rules.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/atomic_file.hpp"
#include "base/document.hpp"
#include "base/install.hpp"
#include "base/text.hpp"
#include "faults/symptoms/classifier.hpp"
#include "sim/scenario/scenario.hpp"

namespace rehearse::faults {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostBytes = 4u << 20;

// "file:line" of the rule in its text.
std::string place_of(std::string_view text, const std::string& file, const std::string& id) {
  const size_t at = text.find("id: " + id);
  if (at == text.npos) return file;
  return fmt::format(
      "{}:{}", file,
      std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n') + 1);
}

Result<void> check_names(const std::set<std::string>& names, const SubjectKind& each) {
  const std::vector<std::string> own = split(each.facts, ' ');
  for (const std::string& name : names) {
    if (Facts::is_known(name) || std::find(own.begin(), own.end(), name) != own.end()) continue;
    const std::string near = nearest(name, own);
    return fail(Code::kBadInput, fmt::format("'{}' is not a fact of {}", name, each.name), {},
                near.empty() ? "faults/check/facts.hpp and subjects.cpp list them"
                             : "did you mean " + near + "?");
  }
  return {};
}

Result<Rule> compile(const pb::CheckRule& text) {
  Rule rule;
  rule.text = text;
  rule.each = find_subject_kind(text.each().empty() ? "job" : text.each());
  if (rule.each == nullptr) {
    std::vector<std::string> kinds;
    for (const SubjectKind& kind : subject_kinds()) kinds.emplace_back(kind.name);
    return fail(Code::kBadInput,
                fmt::format("there is nothing called '{}' to look at", text.each()), {},
                "each is one of " + join_words(kinds));
  }
  if (text.severity() == pb::CheckRule::SEVERITY_UNSPECIFIED) {
    return fail(Code::kBadInput, "no severity", {}, "add `severity`: error, warning or info");
  }
  if (text.what().empty() || text.fix().empty() || text.when().empty()) {
    return fail(Code::kBadInput, "a rule has when, what and fix", {}, "add what is missing");
  }
  if (text.category().find('{') == std::string::npos && symptom_label(text.category()).empty()) {
    return fail(Code::kBadInput, fmt::format("no symptom category '{}'", text.category()), {},
                "use the ids of faults/symptoms/categories.yaml, A1 to D2.7");
  }
  if (!text.verdict().empty() && text.verdict() != "rejected" &&
      text.verdict() != "wrong-semantics") {
    return fail(Code::kBadInput, fmt::format("'{}' is not a verdict of a rule", text.verdict()), {},
                "rejected or wrong-semantics");
  }
  RH_TRY(rule.when, Expression::parse(text.when()));
  RH_TRY(rule.what, Template::parse(text.what()));
  RH_TRY(rule.why, Template::parse(text.why()));
  RH_TRY(rule.fix, Template::parse(text.fix()));
  RH_TRY(rule.category, Template::parse(text.category()));
  std::set<std::string> names = rule.when.names();
  for (const Template* part : {&rule.what, &rule.why, &rule.fix, &rule.category})
    names.merge(part->names());
  for (const auto& [path, value] : sim::sorted_assignments(text.set())) {
    RH_TRY(Template left, Template::parse(path));
    RH_TRY(Template right, Template::parse(value));
    names.merge(left.names());
    names.merge(right.names());
    rule.set.emplace_back(std::move(left), std::move(right));
  }
  if (auto known = check_names(names, *rule.each); !known) return tl::unexpected(known.error());
  return rule;
}

}  // namespace

Result<void> Rules::add(std::string_view text, const std::string& file) {
  pb::CheckRules read;
  if (auto done = read_document(text, file, read); !done) return done;
  for (const pb::CheckRule& each : read.rules()) {
    const auto refuse = [&](Error error) {
      error.where =
          place_of(text, file, each.id()) + (error.where.empty() ? "" : ": " + error.where);
      error.what = each.id() + ": " + error.what;
      return tl::unexpected(std::move(error));
    };
    if (each.id().empty()) return fail(Code::kBadInput, "a rule without id", file, "add `id`");
    const bool twice = std::any_of(rules_.begin(), rules_.end(),
                                   [&](const Rule& rule) { return rule.text.id() == each.id(); });
    if (twice)
      return refuse(
          {Code::kBadInput, "there is already a rule of this name", {}, "choose another id"});
    auto rule = compile(each);
    if (!rule) return refuse(std::move(rule).error());
    rules_.push_back(std::move(*rule));
  }
  return {};
}

Result<void> Rules::add_tables(std::string_view text, const std::string& file) {
  pb::CheckTables read;
  if (auto done = read_document(text, file, read); !done) return done;
  tables_.MergeFrom(read);
  return {};
}

Result<Rules> Rules::load_shipped(std::span<const fs::path> extra) {
  Rules out;
  RH_TRY(const fs::path tables, shipped("faults/check/tables"));
  RH_TRY(const auto table_files, yaml_files(tables));
  for (const fs::path& file : table_files) {
    RH_TRY(const std::string text, read_file(file, kMostBytes));
    if (auto done = out.add_tables(text, file.string()); !done) return tl::unexpected(done.error());
  }
  RH_TRY(const fs::path folder, shipped("faults/check/rules"));
  std::vector<fs::path> folders{folder};
  folders.insert(folders.end(), extra.begin(), extra.end());
  for (const fs::path& each : folders) {
    RH_TRY(const auto files, yaml_files(each));
    for (const fs::path& file : files) {
      RH_TRY(const std::string text, read_file(file, kMostBytes));
      if (auto done = out.add(text, file.string()); !done) return tl::unexpected(done.error());
    }
  }
  return out;
}

}  // namespace rehearse::faults
