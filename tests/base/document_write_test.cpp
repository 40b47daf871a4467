// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "base/document.hpp"
#include "tests/base/document_samples.hpp"

namespace rehearse::document_write_test {
using namespace rehearse;
using pb::test::Machine;

TEST_CASE("a document is written in field order with units and without defaults", "[document]") {
  Machine m;
  m.set_name("node: 0");
  auto* card = m.add_cards();
  card->set_name("mlx5_0");
  card->set_bandwidth(12.5e9);
  m.add_cards();
  m.mutable_spare()->set_latency(1500);
  (*m.mutable_env())["B"] = "1";
  (*m.mutable_env())["A"] = "";
  (*m.mutable_slots())["s"].set_down(true);
  m.set_memory(80ll << 30);
  m.add_ports(1);
  m.add_ports(2);
  m.add_colours(pb::test::DARK_BLUE);
  m.set_rank(0);
  m.mutable_slow_down();
  CHECK(write_document(m) == R"(name: "node: 0"
cards:
  - name: mlx5_0
    bandwidth: 12.5GB/s
  - {}
spare:
  latency: 1.5us
env:
  A: ""
  B: "1"
slots:
  s:
    down: true
memory: 80GiB
ports: [1, 2]
colours: [dark-blue]
rank: 0
slow_down: {}
)");
  CHECK(write_document(Machine()) == "{}\n");
}

TEST_CASE("what is written reads back as the same message", "[document]") {
  Random random(11, "documents");
  for (int i = 0; i < 500; ++i) {
    Machine before, after;
    test::fill(before, random);
    const std::string text = write_document(before);
    CAPTURE(i, text);
    const auto ok = read_document(text, "written.yaml", after);
    INFO((ok ? "" : ok.error().message()));
    REQUIRE(ok);
    REQUIRE(test::canonical(after) == test::canonical(before));
    REQUIRE(write_document(after) == text);
  }
}

TEST_CASE("any bytes give a message or an error", "[document]") {
  Random random(5, "bytes");
  for (int i = 0; i < 3000; ++i) {
    Machine before;
    test::fill(before, random);
    std::string text = write_document(before);
    for (uint64_t n = 1 + random.below(4); n > 0; --n) {
      const size_t at = random.below(text.size());
      switch (random.below(3)) {
        case 0:
          text[at] = static_cast<char>(random.next());
          break;
        case 1:
          text.erase(at, 1 + random.below(20));
          if (text.empty()) text = "x";
          break;
        default:
          text.insert(at, test::random_text(random));
      }
    }
    Machine after;
    const auto ok = read_document(text, "mutated.yaml", after);
    if (!ok) {
      CAPTURE(text);
      REQUIRE(ok.error().where.starts_with("mutated.yaml"));
      REQUIRE(!ok.error().what.empty());
    }
  }
}

TEST_CASE("a message on one line reads back as itself", "[document]") {
  pb::test::Order order;
  order.set_what(3);
  CHECK(write_line(order) == "what: 3");
  order.set_group("a, b: {c}");
  CHECK(write_line(order) == "{what: 3, group: \"a, b: {c}\"}");
  CHECK(write_line(pb::test::Order()) == "{}");
  pb::test::Orders orders;
  orders.mutable_last_one()->set_what(7);
  CHECK(write_line(orders) == "last-one: 7");
  *orders.add_orders() = order;
  (*orders.mutable_by_name())["x y"] = order;
  CHECK(write_line(orders) ==
        "{orders: [{what: 3, group: \"a, b: {c}\"}], last-one: 7, by-name: {x y: {what: 3, group: "
        "\"a, b: {c}\"}}}");
  Random random(1, "lines");
  for (int i = 0; i < 300; ++i) {
    pb::test::Machine machine, again;
    test::fill(machine, random);
    const std::string line = write_line(machine);
    INFO(line);
    CHECK(line.find('\n') == std::string::npos);
    REQUIRE(read_document(line, "line", again));
    CHECK(test::canonical(again) == test::canonical(machine));
  }
}

}  // namespace rehearse::document_write_test
