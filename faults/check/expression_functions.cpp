// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "base/text.hpp"
#include "base/units.hpp"
#include "faults/check/expression_terms.hpp"
#include "sim/nccl/variables.hpp"

namespace rehearse::faults {
namespace {

using Term = Expression::Term;
using Arguments = std::vector<Value>;

Value yes_or_no(bool value) { return value ? "true" : "false"; }

// One value per rank.
std::vector<Value> of_ranks(const Term& term, const Scope& scope) {
  std::vector<Value> out;
  for (const Scope* rank : scope.ranks()) out.push_back(evaluate_term(term, *rank));
  return out;
}

// Values of a variable of NCCL count as what it makes of them, so "Ring" and "ring" are one.
void as_meant(const Term& term, std::vector<Value>& values) {
  if (term.kind != Term::Kind::kName || sim::find_variable(term.text) == nullptr) return;
  for (Value& value : values) {
    std::string meaning = sim::meaning_of(term.text, value.value_or(""));
    if (value || !meaning.empty()) value = std::move(meaning);
  }
}

Value distinct_values(const std::vector<Value>& values) {
  std::vector<Value> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  const auto end = std::unique(sorted.begin(), sorted.end());
  return number_text(static_cast<double>(end - sorted.begin()));
}

Value listed_values(const Term& term, const Scope& scope) {
  std::vector<std::pair<std::string, std::vector<uint32_t>>> groups;  // in order of first rank
  for (const Scope* rank : scope.ranks()) {
    const std::string shown = evaluate_term(term, *rank).value_or("unset");
    auto at =
        std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == shown; });
    if (at == groups.end()) at = groups.insert(at, {shown, {}});
    at->second.push_back(static_cast<uint32_t>(as_number(rank->get("rank")).value_or(0)));
  }
  std::string out;
  for (const auto& [shown, ranks] : groups) {
    out += fmt::format("{}{} on rank {}", out.empty() ? "" : ", ", shown, format_ranks(ranks));
  }
  return out;
}

Value extreme(const std::vector<Value>& values, bool largest) {
  std::optional<double> best;
  for (const Value& value : values) {
    const auto number = as_number(value);
    if (number && (!best || (largest ? *number > *best : *number < *best))) best = number;
  }
  if (!best) return std::nullopt;
  return number_text(*best);
}

// Functions that look at every rank; they get terms, not values.
Value over_ranks(const Term& term, const Scope& scope) {
  const Term& what = *term.parts[0];
  if (term.text == "values") return listed_values(what, scope);
  std::vector<Value> values = of_ranks(what, scope);
  if (term.text == "differs" || term.text == "distinct") as_meant(what, values);
  const auto holds = [](const Value& value) { return value == "true"; };
  if (term.text == "differs") return yes_or_no(distinct_values(values) != "1" && !values.empty());
  if (term.text == "distinct") return distinct_values(values);
  if (term.text == "any") return yes_or_no(std::any_of(values.begin(), values.end(), holds));
  if (term.text == "all") return yes_or_no(std::all_of(values.begin(), values.end(), holds));
  if (term.text == "count") {
    return number_text(static_cast<double>(std::count_if(values.begin(), values.end(), holds)));
  }
  return extreme(values, term.text == "max");
}

// "host:29500", "[fd00::1]:29500".
Value host_of(const std::string& text) {
  const size_t colon = text.rfind(':');
  const bool bare_v6 = std::count(text.begin(), text.end(), ':') > 1 && text.front() != '[';
  std::string out = colon == text.npos || bare_v6 ? text : text.substr(0, colon);
  if (out.size() > 1 && out.front() == '[' && out.back() == ']')
    out = out.substr(1, out.size() - 2);
  return out;
}

Value port_of(const std::string& text) {
  const Value host = host_of(text);
  const size_t colon = text.rfind(':');
  if (colon == text.npos || *host == text) return std::nullopt;
  return text.substr(colon + 1);
}

using Function = Value (*)(const Arguments&);

struct FunctionRow {
  std::string_view name;
  int arity = 1;
  Function run = nullptr;  // nullptr: it gets terms
};

// With values that are all known, except for set, unset and within.
constexpr FunctionRow kFunctions[] = {
    {"set", 1, [](const Arguments& a) { return yes_or_no(a[0].has_value()); }},
    {"unset", 1, [](const Arguments& a) { return yes_or_no(!a[0].has_value()); }},
    {"surely", 1, [](const Arguments& a) { return yes_or_no(a[0] == "true"); }},
    {"within", 3,
     [](const Arguments& a) -> Value {
       if (!a[0]) return std::nullopt;
       const bool above = !a[1] || a[1]->empty() || compare_versions(*a[0], *a[1]) >= 0;
       const bool below = !a[2] || a[2]->empty() || compare_versions(*a[0], *a[2]) < 0;
       return yes_or_no(above && below);
     }},
    {"older", 2, [](const Arguments& a) { return yes_or_no(compare_versions(*a[0], *a[1]) < 0); }},
    {"newer", 2, [](const Arguments& a) { return yes_or_no(compare_versions(*a[0], *a[1]) > 0); }},
    {"bytes", 1,
     [](const Arguments& a) -> Value {
       const auto parsed = parse_bytes(*a[0]);
       if (!parsed) return std::nullopt;
       return number_text(static_cast<double>(*parsed));
     }},
    {"lower", 1, [](const Arguments& a) { return Value(lower_case(*a[0])); }},
    {"host", 1, [](const Arguments& a) { return a[0]->empty() ? a[0] : host_of(*a[0]); }},
    {"port", 1, [](const Arguments& a) { return a[0]->empty() ? Value() : port_of(*a[0]); }},
    {"items", 1,
     [](const Arguments& a) -> Value {
       return number_text(a[0]->empty() ? 0 : static_cast<double>(split(*a[0], ',').size()));
     }},
    {"starts", 2, [](const Arguments& a) { return yes_or_no(a[0]->starts_with(*a[1])); }},
    {"contains", 2,
     [](const Arguments& a) { return yes_or_no(a[0]->find(*a[1]) != std::string::npos); }},
    {"value", 1, nullptr},
    {"differs", 1, nullptr},
    {"values", 1, nullptr},
    {"distinct", 1, nullptr},
    {"any", 1, nullptr},
    {"all", 1, nullptr},
    {"count", 1, nullptr},
    {"min", 1, nullptr},
    {"max", 1, nullptr},
};

const FunctionRow* find_function(std::string_view name) {
  const auto at = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                               [&](const FunctionRow& row) { return row.name == name; });
  return at == std::end(kFunctions) ? nullptr : at;
}

}  // namespace

int function_arity(std::string_view name) {
  const FunctionRow* row = find_function(name);
  return row == nullptr ? -1 : row->arity;
}

const std::vector<std::string>& function_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const FunctionRow& row : kFunctions) out.emplace_back(row.name);
    return out;
  }();
  return names;
}

Value evaluate_call(const Term& term, const Scope& scope) {
  const FunctionRow& row = *find_function(term.text);
  if (row.run == nullptr && term.text != "value") return over_ranks(term, scope);
  Arguments values;
  for (const auto& part : term.parts) values.push_back(evaluate_term(*part, scope));
  if (row.run == nullptr) return values[0] ? scope.get(*values[0]) : std::nullopt;
  const bool takes_unknown =
      row.name == "set" || row.name == "unset" || row.name == "surely" || row.name == "within";
  const bool known =
      std::all_of(values.begin(), values.end(), [](const Value& v) { return v.has_value(); });
  return known || takes_unknown ? row.run(values) : std::nullopt;
}

}  // namespace rehearse::faults
