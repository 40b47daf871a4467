// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <sstream>

#include "base/text.hpp"
#include "cli/study/plan.hpp"

namespace rehearse::cli {
namespace {

// A number and what stands behind it: "25Gbps" -> 25, "Gbps".
std::optional<std::pair<double, std::string>> number_with_unit(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || !std::isfinite(value)) return std::nullopt;
  return std::pair{value, std::string(end)};
}

Result<bool> compare(const std::string& left, const std::string& op, const std::string& right,
                     const std::string& condition, const std::string& where) {
  const auto a = number_with_unit(left), b = number_with_unit(right);
  const bool numbers = a && b && a->second == b->second;
  if (op == "==") return numbers ? a->first == b->first : left == right;
  if (op == "!=") return numbers ? a->first != b->first : left != right;
  if (!numbers) {
    return bad_input(
        fmt::format("{} and {} are no numbers of the same unit", in_quotes(left), in_quotes(right)),
        where, fmt::format("use == or != in {}", in_quotes(condition)));
  }
  if (op == "<") return a->first < b->first;
  if (op == "<=") return a->first <= b->first;
  if (op == ">") return a->first > b->first;
  return a->first >= b->first;
}

}  // namespace

Result<bool> holds(const std::string& condition, const std::vector<std::string>& names,
                   const std::vector<std::string>& values, const std::string& where) {
  static constexpr std::array<std::string_view, 6> kOperators = {"==", "!=", "<", "<=", ">", ">="};
  std::istringstream words(condition);
  bool all = true;
  while (true) {
    std::string name, op, value, joint;
    if (!(words >> name >> op >> value) || std::ranges::find(kOperators, op) == kOperators.end()) {
      return bad_input(fmt::format("{} is no condition", in_quotes(condition)), where,
                       "write `NAME OP VALUE`, OP one of == != < <= > >=, joined by `and`");
    }
    const auto at = std::ranges::find(names, name);
    if (at == names.end()) {
      const std::string meant = nearest(name, names);
      return bad_input(
          fmt::format("there is no axis {}", in_quotes(name)), where,
          meant.empty() ? "one of " + join_words(names) : fmt::format("did you mean {}?", meant));
    }
    RH_TRY(const bool one,
           compare(values[static_cast<size_t>(at - names.begin())], op, value, condition, where));
    all = all && one;
    if (!(words >> joint)) return all;
    if (joint != "and") {
      return bad_input(fmt::format("{} stands where `and` should", in_quotes(joint)), where,
                       "conditions are joined by `and`");
    }
  }
}

}  // namespace rehearse::cli
