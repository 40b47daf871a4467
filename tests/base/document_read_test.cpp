// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <chrono>

#include "base/atomic_file.hpp"
#include "base/document.hpp"
#include "tests/base/document_test.pb.h"

namespace rehearse::document_read_test {
using namespace rehearse;
using pb::test::Card;
using pb::test::Machine;

namespace {

Machine read(std::string_view text, const Catalogue& catalogue = {}) {
  Machine machine;
  const auto ok = read_document(text, "m.yaml", machine, catalogue);
  INFO((ok ? "" : ok.error().message()));
  REQUIRE(ok);
  return machine;
}

Error refused(std::string_view text, const Catalogue& catalogue = {}) {
  Machine machine;
  const auto ok = read_document(text, "m.yaml", machine, catalogue);
  INFO(text);
  REQUIRE(!ok);
  return ok.error();
}

bool says(const Error& error, std::string_view text) {
  UNSCOPED_INFO(error.message());
  return error.message().find(text) != std::string::npos;
}

// Knows the card "fast" and the machine "box", which has two of them.
Result<std::unique_ptr<google::protobuf::Message>> catalogue(
    const google::protobuf::Descriptor& type, std::string_view id) {
  if (type.name() == "Card" && id == "fast") {
    auto card = std::make_unique<Card>();
    card->set_name("fast card");
    card->set_bandwidth(25e9);
    card->add_lanes(1);
    card->add_lanes(2);
    return card;
  }
  if (type.name() == "Machine" && id == "box") {
    auto machine = std::make_unique<Machine>();
    machine->set_name("box");
    machine->set_memory(1024);
    machine->add_cards()->set_name("a");
    machine->add_cards()->set_name("b");
    (*machine->mutable_env())["A"] = "1";
    return machine;
  }
  return fail(Code::kMissingInput, "no " + std::string(id), {}, "did you mean 'fast'?");
}

}  // namespace

TEST_CASE("a document fills every kind of field", "[document]") {
  const Machine m = read(R"(
name: node0
cards:
  - {name: mlx5_0, bandwidth: 200Gbps, latency: 1.5us}
  - name: mlx5_1
    down: yes
env: {NCCL_DEBUG: INFO, NCCL_IB_DISABLE: 1, EMPTY: }
slots: {left: {name: l}}
weights: {7: 0.5}
memory: 80GiB
timeout: 30min
flops: 312TFLOPS
clock: 1410MHz
addresses: 10.0.0.1/16
ports: [29500, 0x10]
colours: [red, dark-blue]
colour: Dark_Blue
rank: 0
command: "run: it"
share: 0.25
offset: -3
seed: 18446744073709551615
ratio: 0.1
sizes: [25MiB, 4096]
)");
  CHECK(m.cards_size() == 2);
  CHECK(m.cards(0).bandwidth() == 25e9);
  CHECK(m.cards(0).latency() == 1500);
  CHECK(m.cards(1).down());
  CHECK(m.env().at("NCCL_IB_DISABLE") == "1");
  CHECK(m.env().at("EMPTY").empty());
  CHECK(m.slots().at("left").name() == "l");
  CHECK(m.weights().at(7) == 0.5);
  CHECK(m.memory() == 85899345920);
  CHECK(m.timeout() == 1800000000000);
  CHECK(m.flops() == 312e12);
  CHECK(m.clock() == 1410e6);
  CHECK(m.addresses(0) == "10.0.0.1/16");
  CHECK(m.ports(1) == 16);
  CHECK(m.colours(1) == pb::test::DARK_BLUE);
  CHECK(m.colour() == pb::test::DARK_BLUE);
  CHECK((m.has_rank() && m.rank() == 0));
  CHECK(!m.has_label());
  CHECK(m.command() == "run: it");
  CHECK(m.offset() == -3);
  CHECK(m.seed() == 18446744073709551615u);
  CHECK(m.ratio() == 0.1f);
  CHECK(m.sizes(0) == 26214400);
}

TEST_CASE("JSON reads as a document", "[document]") {
  const Machine m =
      read("{\"name\": \"x\", \"cards\": [{\"bandwidth\": \"1GB/s\"}], \"down\": true}\n");
  CHECK(m.cards(0).bandwidth() == 1e9);
  CHECK(m.down());
}

TEST_CASE("an empty document changes nothing", "[document]") {
  for (const char* text : {"", "\n", "# only a comment\n", "---\n", "{}", "~"}) {
    CAPTURE(text);
    CHECK(read(text).ByteSizeLong() == 0);
  }
}

TEST_CASE("an unknown key names the nearest right one and its place", "[document]") {
  const Error error = refused("name: x\ncards:\n  - bandwith: 1GB/s\n");
  CHECK(error.code == Code::kBadInput);
  CHECK(error.where == "m.yaml:3:5");
  CHECK(says(error, "Card has no key 'bandwith'"));
  CHECK(says(error, "did you mean 'bandwidth'?"));
  CHECK(says(refused("zzzzzzzzz: 1"), "the keys are like, name"));
}

TEST_CASE("every error has its line and column", "[document]") {
  CHECK(refused("name: x\nmemory: much\n").where == "m.yaml:2:9");
  CHECK(refused("cards: [{down: maybe}]").where == "m.yaml:1:16");
  CHECK(refused("name: [a\n").where.starts_with("m.yaml:"));
  for (const char* text :
       {"name: \"abc", "name: \"abc\n", "name: 'abc\n\n", "\"name: x\n", "env: {a: \"b}\n"}) {
    CHECK(refused(text).code == Code::kBadInput);
  }
  CHECK(read("name: \"abc\"\n").name() == "abc");
  CHECK(read("name: |+\n  abc\n\n").name() == "abc\n\n");
  CHECK(refused("a: b: c").where == "m.yaml:1:5");
  CHECK(refused("name: x\n\xff").where == "m.yaml:2:1");
  CHECK(refused("name: *nobody").code == Code::kBadInput);
}

TEST_CASE("values of the wrong shape or size are refused", "[document]") {
  CHECK(says(refused("memory: -5MB"), "memory must be at least 0"));
  CHECK(says(refused("cards: [{bandwidth: -5Gbps}]"), "bandwidth must be above 0"));
  CHECK(says(refused("cards: [{bandwidth: 0}]"), "bandwidth must be above 0"));
  CHECK(says(refused("cards: [{bandwidth: 100}]"), "100Gbps"));
  CHECK(says(refused("timeout: 5"), "timeout: '5' has no unit"));
  CHECK(says(refused("share: 1.5"), "share must be at most 1"));
  CHECK(says(refused("ports: [70000]"), "ports must be at most 65535"));
  CHECK(says(refused("ports: [-1]"), "at least 0"));
  CHECK(says(refused("weights: {1: -1}"), "weights must be at least 0"));
  CHECK(says(refused("rank: 4294967296"), "at most 4294967295"));
  CHECK(says(refused("offset: 1.5"), "whole number"));
  CHECK(says(refused("seed: 99999999999999999999"), "too large"));
  CHECK(says(refused("share: nan"), "must be a number"));
  CHECK(says(refused("share: inf"), "must be a number"));
  CHECK(says(refused("share: ''"), "must be a number"));
  CHECK(says(refused("colour: dark-blu"), "did you mean 'dark-blue'?"));
  CHECK(says(refused("colour: unspecified"), "is not one of"));
  CHECK(says(refused("colour: colour-unspecified"), "is not one of"));
  CHECK(says(refused("name: [a, b]"), "must be a single value, not a list"));
  CHECK(says(refused("slow_down: 5"), "SlowDown must be a mapping"));
  CHECK(says(refused("env: [a]"), "env must be a mapping"));
  CHECK(says(refused("[1, 2]"), "Machine must be a mapping, not a list"));
  CHECK(says(refused("? [a]\n: b"), "must be a name"));
  CHECK(says(refused("name: !secret x"), "tag"));
}

TEST_CASE("a key written twice is refused, in either spelling", "[document]") {
  CHECK(says(refused("name: a\nname: b"), "written twice, first at m.yaml:1:1"));
  CHECK(says(refused("slow-down: {}\nslow_down: {}"), "written twice"));
  CHECK(says(refused("env: {A: 1, A: 2}"), "written twice"));
  CHECK(says(refused("weights: {1: 1, 01: 2}"), "written twice"));
}

TEST_CASE("two members of a choice exclude each other", "[document]") {
  const Error error = refused("slow_down: {factor: 2}\ncommand: x");
  CHECK(says(error, "'slow_down' and 'command' exclude each other"));
  CHECK(error.where == "m.yaml:2:1");
}

TEST_CASE("like starts from the catalogue at any depth", "[document]") {
  const Machine m =
      read("like: box\nmemory: 2kB\nspare: fast\nenv: {B: 2}\nslots: {x: {like: fast, name: mine}}",
           catalogue);
  CHECK(m.like().empty());
  CHECK(m.name() == "box");
  CHECK(m.memory() == 2000);
  CHECK(m.cards_size() == 2);
  CHECK(m.spare().bandwidth() == 25e9);
  CHECK(m.env().size() == 2);
  CHECK(m.slots().at("x").name() == "mine");
  CHECK(m.slots().at("x").bandwidth() == 25e9);
}

TEST_CASE("a list beside like replaces the inherited list", "[document]") {
  const Machine m = read("cards: [{like: fast, lanes: [9]}]\nlike: box\n", catalogue);
  REQUIRE(m.cards_size() == 1);
  CHECK(m.name() == "box");
  CHECK(m.cards(0).lanes_size() == 1);
  CHECK(m.cards(0).name() == "fast card");
  CHECK(read("like: box\ncards: []", catalogue).cards_size() == 0);
  CHECK(read("like: box\ncards:", catalogue).cards_size() == 0);
}

TEST_CASE("an unknown catalogue entry is told with its place", "[document]") {
  const Error error = refused("cards:\n- like: fsat", catalogue);
  CHECK(error.code == Code::kMissingInput);
  CHECK(error.where == "m.yaml:2:9");
  CHECK(says(error, "did you mean 'fast'?"));
  CHECK(says(refused("like: [a]", catalogue), "name of a catalogue entry"));
}

TEST_CASE("without a catalogue like is text", "[document]") {
  CHECK(read("spare: fast").spare().like() == "fast");
  CHECK(read("box").like() == "box");
}

TEST_CASE("a document is merged over what is there", "[document]") {
  Machine m = read("name: a\nmemory: 1kB\nenv: {A: 1}\nspare: {name: s}");
  REQUIRE(read_document("memory: 2kB\nenv: {A: 2, B: 3}\nspare: {down: true}", "n", m));
  CHECK(m.name() == "a");
  CHECK(m.memory() == 2000);
  CHECK(m.env().at("A") == "2");
  CHECK(m.env().size() == 2);
  CHECK(m.spare().name() == "s");
  CHECK(m.spare().down());
}

TEST_CASE("anchors are shared and bombs are defused", "[document]") {
  const Machine m = read("spare: &card {name: x}\ncards: [*card, *card]");
  CHECK(m.cards(1).name() == "x");
  std::string bomb = "parts:\n- &a0 {name: x}\n";
  for (int i = 1; i < 12; ++i) {
    bomb += "- &a" + std::to_string(i) + " {parts: [";
    for (int k = 0; k < 10; ++k) bomb += (k ? ", *a" : "*a") + std::to_string(i - 1);
    bomb += "]}\n";
  }
  const auto start = std::chrono::steady_clock::now();
  CHECK(refused(bomb).code == Code::kLimit);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(30));
  CHECK(refused("&a {parts: [*a]}").code == Code::kLimit);
  std::string text = "name: &t " + std::string(100000, 'x') + "\naddresses: [";
  for (int i = 0; i < 10000; ++i) text += "*t, ";
  CHECK(refused(text + "]").code == Code::kLimit);
}

TEST_CASE("size and depth are bounded", "[document]") {
  CHECK(refused(std::string(kMaxDocumentBytes + 1, ' ')).code == Code::kLimit);
  for (const char* open : {"[", "{a: ", "- ", "? ", "parts: {"}) {
    CAPTURE(open);
    std::string deep;
    for (int i = 0; i < 20000; ++i) deep += open;
    const Error error = refused(deep);
    CHECK((error.code == Code::kLimit || error.code == Code::kBadInput));
  }
  std::string parts;
  for (int i = 0; i < 100; ++i) parts += "{parts: ";
  CHECK(refused(parts + std::string(100, '}')).code == Code::kLimit);
}

TEST_CASE("a second document is refused", "[document]") {
  CHECK(says(refused("name: a\n---\nname: b\n"), "a second document"));
}

TEST_CASE("a file that is not there is missing input", "[document]") {
  Machine machine;
  CHECK(read_document_file("/nowhere/x.yaml", machine).error().code == Code::kMissingInput);
}

TEST_CASE("a key that must be given and is not is an error with its place", "[document]") {
  const auto error = [](std::string_view text) {
    pb::test::Orders orders;
    const auto read = read_document(text, "m.yaml", orders);
    return read ? std::string("good") : read.error().message();
  };
  CHECK(error("last-one: {what: 0, by: 0}") == "good");
  CHECK(error("last-one: {what: 0, group: all}") == "good");
  CHECK(error("last-one: {by: 3}") == "m.yaml:1:11: what of Order is missing; add what: ...");
  CHECK(error("orders:\n- {what: 1, by: 1}\n- what: 2\n  note: x\n") ==
        "m.yaml:3:3: by or group of Order is missing; add by: ... or group: ...");
  // A shorthand is one key.
  CHECK(error("last-one: 3") ==
        "m.yaml:1:11: by or group of Order is missing; add by: ... or group: ...");
  CHECK(error("by-name: {x: {}}") == "m.yaml:1:14: what of Order is missing; add what: ...");

  pb::test::Orders made;
  CHECK(check_required(made, "here"));
  made.mutable_last_one()->set_what(3);
  REQUIRE_FALSE(check_required(made, "here"));
  CHECK(check_required(made, "here").error().where == "here");
  made.mutable_last_one()->set_by(0);
  CHECK(check_required(made, "here"));
  made.add_orders();
  CHECK_FALSE(check_required(made, "here"));
}

TEST_CASE("an assignment may leave out what is there, and changes nothing when it may not",
          "[document]") {
  pb::test::Orders orders;
  REQUIRE(read_document("{last-one: {what: 1, by: 2}, orders: [{what: 1, by: 2}]}", "m", orders));
  REQUIRE(set_path(orders, "last_one", "{note: x}"));
  REQUIRE(set_path(orders, "orders[0]", "{note: y}"));
  CHECK(orders.last_one().what() == 1);
  CHECK(orders.orders(0).note() == "y");
  const std::string before = orders.SerializeAsString();
  CHECK_FALSE(set_path(orders, "orders", "[{note: z}]"));
  CHECK_FALSE(set_path(orders, "last_one", "{what: null}"));
  CHECK(orders.SerializeAsString() == before);
}

}  // namespace rehearse::document_read_test
