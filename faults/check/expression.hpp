// SPDX-License-Identifier: Apache-2.0
// The conditions of the static check's rules.
//
//   NAME                an environment variable of the rank: capital letters
//   name, a.b           a fact (faults/check/facts.hpp)
//   12, 0.5, 'text'     constants;  [a, b]  a list
//   == != < <= > >=     numbers where both sides are numbers; == and != compare text otherwise
//   x in LIST           LIST is [...], or text with commas
//   x matches 'regex'   the regex is found in x (ECMAScript)
//   + - * /             of numbers
//   and or not ( )
//   f(x, ...)           functions, see below
//
// What is not known is neither true nor false: a comparison with it is unknown, `and`, `or` and `not` carry that on,
// and a rule whose condition is unknown says nothing.
//
//   set(x) unset(x)       is there a value
//   surely(x)             x holds; false where it is not known
//   older(a, b) newer(a, b)  of versions: 2.9 is older than 2.14
//   within(v, from, below)   version v is in [from, below); an empty bound is none
//   differs(x)            ranks have different values of x (no value is a value; values of NCCL's variables count as
//                         what it makes of them: sim/nccl/variables.hpp)
//   values(x)             the values of ranks, as text: "1 on rank 8-15, unset on rank 0-7"
//   distinct(x)           how many different values ranks have
//   any(x) all(x) count(x)   over ranks;  min(x) max(x)  of the numbers that ranks have
//   value(x)              the fact whose name is x
//   bytes(x) lower(x) host(x) port(x) items(x)  parts and forms of text
//   starts(x, y) contains(x, y)
//
// An Expression is immutable; evaluation is pure.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace rehearse::faults {

// Text; conditions are "true" and "false"; nullopt is not known.
using Value = std::optional<std::string>;

// Where names get their values.
class Scope {
 public:
  virtual ~Scope() = default;
  [[nodiscard]] virtual Value get(std::string_view name) const = 0;
  // Scopes of all ranks of the job, in order.
  [[nodiscard]] virtual std::vector<const Scope*> ranks() const = 0;
};

class Expression {
 public:
  struct Term;
  // kBadInput with "column N" in `where`.
  [[nodiscard]] static Result<Expression> parse(std::string_view text);
  [[nodiscard]] Value evaluate(const Scope& scope) const;
  [[nodiscard]] bool holds(const Scope& scope) const { return evaluate(scope) == "true"; }
  // Every fact and variable it names.
  [[nodiscard]] const std::set<std::string>& names() const { return names_; }

 private:
  std::shared_ptr<const Term> root_;  // shared by copies of an expression, never changed
  std::set<std::string> names_;
};

// Text with expressions in braces.
class Template {
 public:
  [[nodiscard]] static Result<Template> parse(std::string_view text);
  // What is not known becomes "unset".
  [[nodiscard]] std::string fill(const Scope& scope) const;
  // The same, or not known when a part of it is not.
  [[nodiscard]] Value fill_known(const Scope& scope) const;
  [[nodiscard]] std::set<std::string> names() const;

 private:
  std::vector<std::string> texts_;  // one more than parts_
  std::vector<Expression> parts_;
};

// -1, 0, 1: versions as lists of numbers; letters after them are ignored.
[[nodiscard]] int compare_versions(std::string_view a, std::string_view b);
// The whole text as a number.
[[nodiscard]] std::optional<double> as_number(const Value& value);
[[nodiscard]] std::optional<uint32_t> whole_number(std::string_view text);
[[nodiscard]] std::string number_text(double number);

}  // namespace rehearse::faults
