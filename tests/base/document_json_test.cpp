// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "base/document.hpp"
#include "tests/base/document_samples.hpp"

namespace rehearse::document_json_test {
using namespace rehearse;
using nlohmann::ordered_json;
using pb::test::Card;
using pb::test::Machine;

TEST_CASE("JSON has every plain field in order and leaves out what is unset and optional",
          "[json]") {
  Card card;
  card.set_bandwidth(12.5e9);
  card.set_latency(9007199254740993);
  CHECK(
      to_json(card).dump() ==
      R"({"like":"","name":"","bandwidth":12500000000.0,"latency":9007199254740993,"down":false,"lanes":[]})");
  Machine m;
  m.set_colour(pb::test::DARK_BLUE);
  m.set_seed(18446744073709551615u);
  m.set_ratio(0.1f);
  (*m.mutable_weights())[10] = 0.1;
  (*m.mutable_weights())[9] = 1;
  const ordered_json json = to_json(m);
  CHECK(json["colour"] == "dark-blue");
  CHECK(json["seed"].dump() == "18446744073709551615");
  CHECK(json["ratio"].dump() == "0.1");
  CHECK(json["weights"].dump() == R"({"9":1.0,"10":0.1})");
  CHECK(!json.contains("rank"));
  CHECK(!json.contains("spare"));
  CHECK(!json.contains("command"));
  m.set_rank(0);
  CHECK(to_json(m)["rank"] == 0);
}

TEST_CASE("from_json is the reverse of to_json, through text", "[json]") {
  Random random(3, "json");
  for (int i = 0; i < 300; ++i) {
    Machine before, after;
    test::fill(before, random);
    const std::string text = to_json(before).dump();
    CAPTURE(i, text);
    const auto ok = from_json(ordered_json::parse(text), after, "x.json");
    INFO((ok ? "" : ok.error().message()));
    REQUIRE(ok);
    REQUIRE(test::canonical(after) == test::canonical(before));
  }
}

TEST_CASE("wrong JSON is refused with a pointer to the place", "[json]") {
  const auto refused = [](const char* text) {
    Machine m;
    const auto ok = from_json(ordered_json::parse(text), m, "x.json");
    REQUIRE(!ok);
    return ok.error();
  };
  const Error unknown = refused(R"({"cards": [{"bandwith": 1}]})");
  CHECK(unknown.where == "x.json: /cards/0/bandwith");
  CHECK(unknown.message().find("did you mean 'bandwidth'?") != std::string::npos);
  CHECK(refused(R"({"memory": 1.5})").where == "x.json: /memory");
  CHECK(refused(R"({"memory": -1})").code == Code::kBadInput);
  CHECK(refused(R"({"colour": "blue"})").code == Code::kBadInput);
  CHECK(refused("[]").code == Code::kBadInput);
  std::string deep;
  for (int i = 0; i < 200; ++i) deep += "{\"parts\":[";
  for (int i = 0; i < 200; ++i) deep += "]}";
  CHECK(refused(deep.c_str()).code == Code::kLimit);
}

}  // namespace rehearse::document_json_test
