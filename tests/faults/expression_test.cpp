// SPDX-License-Identifier: Apache-2.0
#include "faults/check/expression.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <string>

namespace rehearse::expression_test {
using namespace rehearse;
using namespace rehearse::faults;

namespace {

using Map = std::map<std::string, std::string, std::less<>>;

class Names final : public Scope {
 public:
  explicit Names(Map values) : values_(std::move(values)) {}
  [[nodiscard]] Value get(std::string_view name) const override {
    const auto at = values_.find(name);
    return at == values_.end() ? std::nullopt : Value(at->second);
  }
  [[nodiscard]] std::vector<const Scope*> ranks() const override { return ranks_; }
  std::vector<const Scope*> ranks_;

 private:
  Map values_;
};

std::string value_of(const std::string& text, const Scope& scope) {
  const auto parsed = Expression::parse(text);
  if (!parsed) return "refused: " + parsed.error().what;
  return parsed->evaluate(scope).value_or("unknown");
}

}  // namespace

TEST_CASE("conditions compare numbers, text and versions", "[faults][check]") {
  const Names scope(
      Map{{"ranks", "16"}, {"NCCL_ALGO", "Ring"}, {"nccl_version", "2.9.6"}, {"list", "a,b,4"}});
  const std::pair<const char*, const char*> rows[] = {
      {"ranks == 16", "true"},
      {"ranks == '16.0'", "true"},
      {"ranks > 9 and ranks < 100", "true"},
      {"NCCL_ALGO == 'Ring'", "true"},
      {"NCCL_ALGO != 'Tree' and not (NCCL_ALGO == 'Tree')", "true"},
      {"older(nccl_version, '2.14')", "true"},
      {"newer('2.14.3', '2.14')", "true"},
      {"older('2.14', '2.14.0')", "false"},
      {"within(nccl_version, '2.0', '2.9.6')", "false"},
      {"within(nccl_version, '', '')", "true"},
      {"NCCL_ALGO in ['Tree', 'Ring']", "true"},
      {"4 in list", "true"},
      {"'c' in list", "false"},
      {"items(list)", "3"},
      {"NCCL_ALGO matches '^R.n'", "true"},
      {"ranks * 2 + 1 - 3 / 2", "31.5"},
      {"ranks / 0", "unknown"},
      {"host('10.0.0.1:29500')", "10.0.0.1"},
      {"host('[fd00::1]:29500')", "fd00::1"},
      {"host('fd00::1')", "fd00::1"},
      {"port('a:12')", "12"},
      {"port('a')", "unknown"},
      {"bytes('64MiB')", "67108864"},
      {"value('ranks')", "16"},
  };
  for (const auto& [text, expected] : rows) {
    INFO(text);
    CHECK(value_of(text, scope) == expected);
  }
}

TEST_CASE("what is not known is neither true nor false", "[faults][check]") {
  const Names scope(Map{{"ranks", "16"}});
  const std::pair<const char*, const char*> rows[] = {
      {"nodes == 2", "unknown"},
      {"not (nodes == 2)", "unknown"},
      {"nodes != 2", "unknown"},
      {"nodes == 2 and ranks == 1", "false"},
      {"nodes == 2 and ranks == 16", "unknown"},
      {"nodes == 2 or ranks == 16", "true"},
      {"nodes == 2 or ranks == 1", "unknown"},
      {"unset(nodes)", "true"},
      {"set(ranks)", "true"},
      {"surely(nodes == 2)", "false"},
      {"not surely(nodes == 2)", "true"},
      {"nodes + 1", "unknown"},
      {"nodes in [1, 2]", "unknown"},
  };
  for (const auto& [text, expected] : rows) {
    INFO(text);
    CHECK(value_of(text, scope) == expected);
  }
}

TEST_CASE("functions over ranks see every rank", "[faults][check]") {
  Names first(Map{{"rank", "0"}, {"A", "1"}}), second(Map{{"rank", "1"}}),
      third(Map{{"rank", "2"}, {"A", "4"}});
  first.ranks_ = {&first, &second, &third};
  CHECK(value_of("differs(A)", first) == "true");
  CHECK(value_of("differs(B)", first) == "false");
  CHECK(value_of("distinct(A)", first) == "3");
  CHECK(value_of("count(set(A))", first) == "2");
  CHECK(value_of("max(A) - min(A)", first) == "3");
  CHECK(value_of("any(A == 4) and not all(A == 4)", first) == "true");
  CHECK(value_of("values(A)", first) == "1 on rank 0, unset on rank 1, 4 on rank 2");
}

TEST_CASE("nesting and nonsense are refused, not followed", "[faults][check]") {
  const Names scope(Map{});
  std::string nested(10000, '(');
  nested += '1';
  nested.append(10000, ')');
  CHECK(value_of(nested, scope).find("refused") == 0);
  CHECK(value_of(std::string(5000, '['), scope).find("refused") == 0);
  for (const char* text : {"", "1 2", "a b", "'open", "f(", "[1,", "and", "1 ==", "not", "x = 1",
                           "set()", "set(a, b)"}) {
    INFO(text);
    CHECK(value_of(text, scope).find("refused") == 0);
  }
}

TEST_CASE("templates fill in expressions", "[faults][check]") {
  const Names scope(Map{{"ranks", "16"}});
  const auto parsed = Template::parse("{ranks} ranks, {ranks - 1} others, {nodes} nodes");
  REQUIRE(parsed);
  CHECK(parsed->fill(scope) == "16 ranks, 15 others, unset nodes");
  CHECK_FALSE(Template::parse("{ranks"));
}

}  // namespace rehearse::expression_test
