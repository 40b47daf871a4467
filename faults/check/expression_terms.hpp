// SPDX-License-Identifier: Apache-2.0
// The tree of an expression. Private to faults/check.
#pragma once

#include <memory>
#include <regex>
#include <string>
#include <vector>

#include "faults/check/expression.hpp"

namespace rehearse::faults {

struct Expression::Term {
  enum class Kind { kConstant, kName, kList, kCall, kOperator };
  Kind kind = Kind::kConstant;
  std::string text;  // constant, name, function or operator
  std::vector<std::shared_ptr<const Term>> parts;
  std::shared_ptr<const std::regex> pattern;  // of `matches`; shared by copies of an expression
};

// A function by name: how many arguments it takes; -1: there is none.
[[nodiscard]] int function_arity(std::string_view name);
[[nodiscard]] const std::vector<std::string>& function_names();

[[nodiscard]] Value evaluate_term(const Expression::Term& term, const Scope& scope);
[[nodiscard]] Value evaluate_call(const Expression::Term& term, const Scope& scope);

}  // namespace rehearse::faults
