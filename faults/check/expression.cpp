// SPDX-License-Identifier: Apache-2.0
#include "faults/check/expression.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "base/text.hpp"
#include "faults/check/expression_terms.hpp"

namespace rehearse::faults {
namespace {

using Term = Expression::Term;

// std::regex recurses over its input: longer text is not looked at.
constexpr size_t kLongestMatched = 4096;

Value truth(bool value) { return value ? "true" : "false"; }

Value conjunction(const Term& term, const Scope& scope, std::string_view decisive) {
  Value left = evaluate_term(*term.parts[0], scope);
  if (left == decisive) return left;
  Value right = evaluate_term(*term.parts[1], scope);
  if (right == decisive) return right;
  return left && right ? right : std::nullopt;
}

Value ordered(std::string_view sign, const std::string& left, const std::string& right) {
  const auto a = as_number(left);
  const auto b = as_number(right);
  if (sign == "==") return truth(a && b ? *a == *b : left == right);
  if (sign == "!=") return truth(a && b ? *a != *b : left != right);
  if (!a || !b) return std::nullopt;
  if (sign == "<") return truth(*a < *b);
  if (sign == "<=") return truth(*a <= *b);
  if (sign == ">") return truth(*a > *b);
  return truth(*a >= *b);
}

Value calculated(char sign, const Value& left, const Value& right) {
  const auto a = as_number(left);
  const auto b = as_number(right);
  if (!a || !b || (sign == '/' && *b == 0)) return std::nullopt;
  switch (sign) {
    case '+':
      return number_text(*a + *b);
    case '-':
      return number_text(*a - *b);
    case '*':
      return number_text(*a * *b);
    default:
      return number_text(*a / *b);
  }
}

Value membership(const Term& list, const std::string& wanted, const Scope& scope) {
  if (list.kind == Term::Kind::kList) {
    for (const auto& part : list.parts) {
      const Value each = evaluate_term(*part, scope);
      if (each && ordered("==", wanted, *each) == "true") return truth(true);
    }
    return truth(false);
  }
  const Value text = evaluate_term(list, scope);
  if (!text) return std::nullopt;
  const auto words = split(*text, ',');
  return truth(std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    return ordered("==", wanted, word) == "true";
  }));
}

Value operated(const Term& term, const Scope& scope) {
  if (term.text == "and") return conjunction(term, scope, "false");
  if (term.text == "or") return conjunction(term, scope, "true");
  const Value left = evaluate_term(*term.parts[0], scope);
  if (!left) return std::nullopt;
  if (term.text == "not") return truth(*left != "true");
  if (term.text == "in") return membership(*term.parts[1], *left, scope);
  if (term.text == "matches") {
    if (left->size() > kLongestMatched) return std::nullopt;
    return truth(std::regex_search(*left, *term.pattern));
  }
  const Value right = evaluate_term(*term.parts[1], scope);
  if (!right) return std::nullopt;
  if (std::string_view("+-*/").find(term.text[0]) != std::string_view::npos) {
    return calculated(term.text[0], left, right);
  }
  return ordered(term.text, *left, *right);
}

std::vector<int64_t> version_numbers(std::string_view version) {
  std::vector<int64_t> out;
  size_t at = 0;
  if (!version.empty() && (version[0] == 'v' || version[0] == 'V')) ++at;
  while (at < version.size() && std::isdigit(static_cast<unsigned char>(version[at])) != 0) {
    int64_t number = 0;
    const auto [end, ec] =
        std::from_chars(version.data() + at, version.data() + version.size(), number);
    if (ec != std::errc()) break;
    out.push_back(number);
    at = static_cast<size_t>(end - version.data());
    if (at < version.size() && version[at] == '.') ++at;
  }
  while (!out.empty() && out.back() == 0) out.pop_back();
  return out;
}

}  // namespace

Value evaluate_term(const Term& term, const Scope& scope) {
  switch (term.kind) {
    case Term::Kind::kConstant:
      return term.text;
    case Term::Kind::kName:
      if (term.text == "true" || term.text == "false") return term.text;
      return scope.get(term.text);
    case Term::Kind::kCall:
      return evaluate_call(term, scope);
    case Term::Kind::kOperator:
      return operated(term, scope);
    case Term::Kind::kList:
      return std::nullopt;
  }
  return std::nullopt;
}

Value Expression::evaluate(const Scope& scope) const { return evaluate_term(*root_, scope); }

std::string Template::fill(const Scope& scope) const {
  std::string out = texts_.empty() ? "" : texts_.front();
  for (size_t i = 0; i < parts_.size(); ++i) {
    out += parts_[i].evaluate(scope).value_or("unset");
    out += texts_[i + 1];
  }
  return out;
}

Value Template::fill_known(const Scope& scope) const {
  const bool known = std::all_of(parts_.begin(), parts_.end(), [&](const Expression& part) {
    return part.evaluate(scope).has_value();
  });
  if (!known) return std::nullopt;
  return fill(scope);
}

std::set<std::string> Template::names() const {
  std::set<std::string> out;
  for (const Expression& part : parts_) out.insert(part.names().begin(), part.names().end());
  return out;
}

int compare_versions(std::string_view a, std::string_view b) {
  const auto left = version_numbers(a);
  const auto right = version_numbers(b);
  if (left == right) return 0;
  return left < right ? -1 : 1;
}

std::optional<double> as_number(const Value& value) {
  if (!value || value->empty()) return std::nullopt;
  double number = 0;
  const char* last = value->data() + value->size();
  const auto [end, ec] = std::from_chars(value->data(), last, number);
  if (ec != std::errc() || end != last || !std::isfinite(number)) return std::nullopt;
  return number;
}

std::optional<uint32_t> whole_number(std::string_view text) {
  uint32_t value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (ec != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string number_text(double number) {
  if (std::abs(number) < 1e15 && number == std::nearbyint(number)) {
    return fmt::format("{}", static_cast<int64_t>(number));
  }
  return fmt::format("{:.6g}", number);
}

}  // namespace rehearse::faults
