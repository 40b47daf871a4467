// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/text.hpp"
#include "faults/check/expression_terms.hpp"

namespace rehearse::faults {
namespace {

using Term = Expression::Term;
using TermKind = Term::Kind;
using Part = std::shared_ptr<const Term>;

constexpr int kDeepest = 64;

bool is_word_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
}

// Recursive descent; each function leaves `at_` behind what it read.
class ExpressionParser {
 public:
  explicit ExpressionParser(std::string_view text) : text_(text) {}

  Result<Part> whole() {
    RH_TRY(Part term, either());
    skip();
    if (at_ < text_.size()) return unexpected("the end");
    return term;
  }

  std::set<std::string> names;

 private:
  [[nodiscard]] tl::unexpected<Error> unexpected(std::string_view wanted) const {
    const std::string_view rest = text_.substr(std::min(at_, text_.size()), 20);
    return fail(Code::kBadInput,
                fmt::format("{} expected{}", wanted,
                            rest.empty() ? " at the end" : ", not " + in_quotes(rest)),
                fmt::format("column {}", at_ + 1),
                "see faults/check/expression.hpp for the language");
  }

  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }

  // Takes the word or sign when it comes next.
  bool take(std::string_view what) {
    skip();
    if (text_.substr(at_, what.size()) != what) return false;
    const size_t end = at_ + what.size();
    if (is_word_char(what.back()) && end < text_.size() && is_word_char(text_[end])) return false;
    at_ = end;
    return true;
  }

  static Part make(TermKind kind, std::string text, std::vector<Part> parts = {}) {
    return std::make_shared<const Term>(Term{kind, std::move(text), std::move(parts), nullptr});
  }

  Result<Part> either() {
    RH_TRY(Part left, both());
    while (take("or")) {
      RH_TRY(Part right, both());
      left = make(TermKind::kOperator, "or", {left, right});
    }
    return left;
  }

  Result<Part> both() {
    RH_TRY(Part left, negation());
    while (take("and")) {
      RH_TRY(Part right, negation());
      left = make(TermKind::kOperator, "and", {left, right});
    }
    return left;
  }

  Result<Part> negation() {
    if (++depth_ > kDeepest) return fail(Code::kLimit, "the condition is nested too deeply");
    Result<Part> out = take("not") ? negated() : comparison();
    --depth_;
    return out;
  }

  Result<Part> negated() {
    RH_TRY(Part inner, negation());
    return make(TermKind::kOperator, "not", {inner});
  }

  Result<Part> comparison() {
    RH_TRY(Part left, sum());
    for (const char* sign : {"==", "!=", "<=", ">=", "<", ">", "in", "matches"}) {
      if (!take(sign)) continue;
      RH_TRY(Part right, sum());
      if (std::string_view(sign) == "matches") return matching(left, right);
      return make(TermKind::kOperator, sign, {left, right});
    }
    return left;
  }

  [[nodiscard]] Result<Part> matching(const Part& left, const Part& right) const {
    if (right->kind != TermKind::kConstant) return unexpected("a constant regular expression");
    try {
      Term term{TermKind::kOperator, "matches", {left, right}, nullptr};
      term.pattern = std::make_shared<const std::regex>(right->text);
      return std::make_shared<const Term>(std::move(term));
    } catch (const std::regex_error& error) {
      return fail(Code::kBadInput,
                  fmt::format("'{}' is not a regular expression: {}", right->text, error.what()),
                  fmt::format("column {}", at_ + 1));
    }
  }

  Result<Part> sum() {
    RH_TRY(Part left, product());
    while (true) {
      const char* sign = take("+") ? "+" : take("-") ? "-" : nullptr;
      if (sign == nullptr) return left;
      RH_TRY(Part right, product());
      left = make(TermKind::kOperator, sign, {left, right});
    }
  }

  Result<Part> product() {
    RH_TRY(Part left, primary());
    while (true) {
      const char* sign = take("*") ? "*" : take("/") ? "/" : nullptr;
      if (sign == nullptr) return left;
      RH_TRY(Part right, primary());
      left = make(TermKind::kOperator, sign, {left, right});
    }
  }

  Result<Part> primary() {
    skip();
    if (take("(")) {
      RH_TRY(Part inner, either());
      if (!take(")")) return unexpected(")");
      return inner;
    }
    if (take("[")) {
      RH_TRY(std::vector<Part> parts, arguments("]"));
      return make(TermKind::kList, "", std::move(parts));
    }
    if (at_ < text_.size() && text_[at_] == '\'') return quoted();
    size_t end = at_;
    while (end < text_.size() && is_word_char(text_[end])) ++end;
    std::string word(text_.substr(at_, end - at_));
    const bool joins =
        word == "and" || word == "or" || word == "not" || word == "in" || word == "matches";
    if (word.empty() || joins) return unexpected("a name or value");
    if (std::isdigit(static_cast<unsigned char>(word.front())) != 0) {
      if (!as_number(word)) return unexpected("a number");
      at_ = end;
      return make(TermKind::kConstant, std::move(word));
    }
    if (end < text_.size() && text_[end] == '(') return call(std::move(word), end);
    at_ = end;
    names.insert(word);
    return make(TermKind::kName, std::move(word));
  }

  Result<Part> quoted() {
    const size_t end = text_.find('\'', at_ + 1);
    if (end == text_.npos) return unexpected("a closing quote");
    std::string word(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return make(TermKind::kConstant, std::move(word));
  }

  Result<Part> call(std::string name, size_t bracket) {
    const int wanted = function_arity(name);
    if (wanted < 0) {
      const std::string near = nearest(name, function_names());
      return fail(Code::kBadInput, fmt::format("there is no function '{}'", name),
                  fmt::format("column {}", at_ + 1),
                  near.empty() ? "functions are " + join_words(function_names())
                               : "did you mean " + near + "?");
    }
    at_ = bracket + 1;
    RH_TRY(std::vector<Part> parts, arguments(")"));
    if (parts.size() != static_cast<size_t>(wanted)) {
      return fail(Code::kBadInput,
                  fmt::format("{} takes {} values, not {}", name, wanted, parts.size()),
                  fmt::format("column {}", at_));
    }
    return make(TermKind::kCall, std::move(name), std::move(parts));
  }

  Result<std::vector<Part>> arguments(std::string_view closing) {
    std::vector<Part> parts;
    if (take(closing)) return parts;
    while (true) {
      RH_TRY(Part part, either());
      parts.push_back(std::move(part));
      if (take(closing)) return parts;
      if (!take(",")) return unexpected(fmt::format("',' or '{}'", closing));
    }
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Result<Expression> Expression::parse(std::string_view text) {
  ExpressionParser parser(text);
  RH_TRY(Part root, parser.whole());
  Expression out;
  out.root_ = std::move(root);
  out.names_ = std::move(parser.names);
  return out;
}

Result<Template> Template::parse(std::string_view text) {
  Template out;
  size_t at = 0;
  while (true) {
    const size_t open = text.find('{', at);
    out.texts_.emplace_back(text.substr(at, open == text.npos ? text.npos : open - at));
    if (open == text.npos) return out;
    const size_t close = text.find('}', open);
    if (close == text.npos) {
      return fail(Code::kBadInput, "a brace is not closed", fmt::format("column {}", open + 1));
    }
    RH_TRY(Expression part, Expression::parse(text.substr(open + 1, close - open - 1)));
    out.parts_.push_back(std::move(part));
    at = close + 1;
  }
}

}  // namespace rehearse::faults
