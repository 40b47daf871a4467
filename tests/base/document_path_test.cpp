// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "base/document.hpp"
#include "tests/base/document_test.pb.h"

namespace rehearse::document_path_test {
using namespace rehearse;
using pb::test::Machine;

namespace {

Machine cluster() {
  Machine m;
  REQUIRE(read_document(R"(
name: cluster
parts:
  - name: node0
    cards: [{name: mlx5_0, bandwidth: 100Gbps}, {name: mlx5_1, bandwidth: 200Gbps}]
  - name: node1
    cards: [{name: mlx5_0, bandwidth: 100Gbps}, {name: mlx5_1, bandwidth: 200Gbps, down: true}]
ports: [1, 2, 3]
slots: {left: {name: l}}
seats: [{rank: 0}, {rank: 1}, {rank: 2}, {rank: 3}]
)",
                        "m.yaml", m));
  return m;
}

int set(Machine& m, std::string_view path, std::string_view value) {
  const auto count = set_path(m, path, value);
  INFO((count ? "" : count.error().message()));
  REQUIRE(count);
  return *count;
}

Error refused(std::string_view path, std::string_view value = "1") {
  Machine m = cluster();
  const std::string before = m.SerializeAsString();
  const auto count = set_path(m, path, value);
  INFO(path);
  REQUIRE(!count);
  CHECK(m.SerializeAsString() == before);
  UNSCOPED_INFO(count.error().message());
  return count.error();
}

bool says(const Error& error, std::string_view text) {
  UNSCOPED_INFO(error.message());
  return error.message().find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("paths select fields, indices, ranges, names and values", "[path]") {
  Machine m = cluster();
  CHECK(set(m, "name", "other") == 1);
  CHECK(m.name() == "other");
  CHECK(set(m, "parts[1].cards[*].bandwidth", "50Gbps") == 2);
  CHECK(m.parts(1).cards(0).bandwidth() == 6.25e9);
  CHECK(m.parts(0).cards(0).bandwidth() == 12.5e9);
  CHECK(set(m, "parts[*].cards[mlx5_1].latency", "2us") == 2);
  CHECK(m.parts(0).cards(1).latency() == 2000);
  CHECK(set(m, "parts[node0].cards[bandwidth=200Gbps].down", "true") == 1);
  CHECK(m.parts(0).cards(1).down());
  CHECK(set(m, "parts[0-1].cards[down=false].latency", "1us") == 2);
  CHECK(set(m, "seats[1-2].env.A", "x") == 2);
  CHECK(set(m, "seats[0,2-3,2].env.B", "x") == 3);
  CHECK(set(m, "seats[rank=3].env.C", "x") == 1);
  CHECK(set(m, "parts[node0,node1].down", "true") == 2);
  CHECK(m.seats(3).env().size() == 2);
  CHECK(set(m, "ports[2]", "9") == 1);
  CHECK(m.ports(2) == 9);
  CHECK(set(m, "slow-down.factor", "2") == 1);
  CHECK(m.slow_down().factor() == 2);
}

TEST_CASE("map entries take the rest of the path as key and any text as value", "[path]") {
  Machine m = cluster();
  CHECK(set(m, "env.NCCL_IB_DISABLE", "1") == 1);
  CHECK(set(m, "env.a.b[0].c", "x") == 1);
  CHECK(set(m, "env[k]", "*: {not yaml") == 1);
  CHECK(set(m, "env.EMPTY", "") == 1);
  CHECK(set(m, "env.Q", "'quoted: #text'") == 1);
  CHECK(set(m, "env.N", "null") == 1);
  CHECK(m.env().at("NCCL_IB_DISABLE") == "1");
  CHECK(m.env().at("a.b[0].c") == "x");
  CHECK(m.env().at("k") == "*: {not yaml");
  CHECK(m.env().at("EMPTY").empty());
  CHECK(m.env().at("Q") == "quoted: #text");
  CHECK(m.env().at("N") == "null");
  CHECK(set(m, "env.NCCL_IB_DISABLE", "0") == 1);
  CHECK(m.env().at("NCCL_IB_DISABLE") == "0");
  CHECK(m.env().size() == 6);
  CHECK(set(m, "weights.3", "0.5") == 1);
  CHECK(m.weights().at(3) == 0.5);
  CHECK(set(m, "slots.left.bandwidth", "1GB/s") == 1);
  CHECK(m.slots().at("left").name() == "l");
  CHECK(m.slots().at("left").bandwidth() == 1e9);
  CHECK(set(m, "slots.right", "{name: r}") == 1);
  CHECK(m.slots().at("right").name() == "r");
  CHECK(says(refused("slots.lfet.name"), "did you mean 'left'?"));
  CHECK(says(refused("env."), "a key of env is missing"));
}

TEST_CASE("whole messages merge and lists replace", "[path]") {
  Machine m = cluster();
  CHECK(set(m, "parts[0].cards[0]", "{bandwidth: 25GB/s}") == 1);
  CHECK(m.parts(0).cards(0).name() == "mlx5_0");
  CHECK(m.parts(0).cards(0).bandwidth() == 25e9);
  CHECK(set(m, "parts[0].cards", "[{name: only}]") == 1);
  CHECK(m.parts(0).cards_size() == 1);
  CHECK(set(m, "ports", "[7, 8]") == 1);
  CHECK(m.ports_size() == 2);
  CHECK(set(m, "ports", "[]") == 1);
  CHECK(m.ports_size() == 0);
  CHECK(set(m, "env", "{A: 1}") == 1);
  CHECK(set(m, "spare", "fast") == 1);
  CHECK(m.spare().like() == "fast");
}

TEST_CASE("a catalogue serves assignments too", "[path]") {
  const Catalogue catalogue =
      [](const google::protobuf::Descriptor&,
         std::string_view) -> Result<std::unique_ptr<google::protobuf::Message>> {
    auto card = std::make_unique<pb::test::Card>();
    card->set_bandwidth(7);
    return card;
  };
  Machine m = cluster();
  REQUIRE(set_path(m, "parts[*].cards[*]", "{like: x, name: n}", catalogue).value() == 4);
  CHECK(m.parts(1).cards(1).bandwidth() == 7);
  CHECK(m.parts(1).cards(1).name() == "n");
  REQUIRE(set_path(m, "spare.like", "x", catalogue));
  CHECK(m.spare().bandwidth() == 7);
}

TEST_CASE("bad paths say what is wrong and where", "[path]") {
  const Error unknown = refused("parts[1].crads[*].bandwidth");
  CHECK(unknown.code == Code::kBadInput);
  CHECK(unknown.where == "parts[1].>>crads<<[*].bandwidth");
  CHECK(says(unknown, "did you mean 'cards'?"));
  const Error past = refused("parts[2].name");
  CHECK(past.where == ">>parts[2]<<.name");
  CHECK(says(past, "parts has 2 elements"));
  CHECK(says(refused("seats[0-99].env.A"), "seats has 4 elements"));
  CHECK(says(refused("seats[3-1].env.A"), "neither an index nor a range"));
  CHECK(says(refused("seats[99999999999].env.A"), "neither an index"));
  CHECK(says(refused("parts[nod1].name"), "did you mean 'node1'?"));
  CHECK(says(refused("parts[0].cards[down=maybe].name"), "true or false"));
  CHECK(says(refused("parts[0].cards[down=true].name"), "no element of cards has down"));
  CHECK(says(refused("parts[0].cards[colour=red].name"), "has no key"));
  CHECK(says(refused("parts[0].parts[*].name"), "parts is empty"));
  CHECK(says(refused("parts.name"), "say which: parts[0], parts[*]"));
  CHECK(says(refused("name[0]"), "is not a list"));
  CHECK(says(refused("name.x"), "without parts"));
  CHECK(says(refused("ports[0].x"), "without parts"));
  CHECK(says(refused("ports[x]"), "has no names"));
  for (const char* path : {"", ".", "name.", ".name", "parts[", "parts[0", "parts[0]x", "parts[]",
                           "parts[0]..name", "[0]", "parts[0,]", "\xff"}) {
    CAPTURE(path);
    CHECK(!refused(path).what.empty());
  }
  CHECK(refused(std::string(100000, 'a')).code == Code::kLimit);
}

TEST_CASE("bad values leave the message as it was", "[path]") {
  const Error negative = refused("parts[1].cards[*].bandwidth", "-5Gbps");
  CHECK(negative.where == "parts[1].cards[*].bandwidth=>>-5Gbps<<");
  CHECK(says(negative, "bandwidth must be above 0"));
  CHECK(says(refused("slow_down.factor", "fast"), "must be a number"));
  CHECK(says(refused("spare", "{nmae: x}"), "did you mean 'name'?"));
  CHECK(says(refused("spare", "{"), "not YAML"));
  CHECK(says(refused("ports", "[1, x]"), "whole number"));
  CHECK(says(refused("env.A", "\xff"), "UTF-8"));
  CHECK(says(refused("parts[0].cards[0]", "[1]"), "must be a mapping"));
  CHECK(says(refused("weights.x", "1"), "whole number"));
}

TEST_CASE("get_path shows values as documents write them", "[path]") {
  Machine m = cluster();
  CHECK(*get_path(m, "parts[0].cards[0].bandwidth") == "12.5GB/s");
  CHECK(*get_path(m, "parts[0].cards[*].name") == "mlx5_0\nmlx5_1");
  CHECK(*get_path(m, "ports") == "[1, 2, 3]");
  CHECK(*get_path(m, "ports[1]") == "2");
  CHECK(*get_path(m, "slots.left") == "name: l");
  CHECK(*get_path(m, "spare.name") == "\"\"");
  CHECK(*get_path(m, "addresses") == "[]");
  CHECK(*get_path(m, "parts[0].cards[1]") == "name: mlx5_1\nbandwidth: 25GB/s");
  CHECK(get_path(m, "env.X").error().what == "env has no entry 'X'");
  CHECK(!get_path(m, "nmae"));
}

TEST_CASE("a path can be asked for its fields", "[document]") {
  const Machine m = cluster();
  const auto names = [&](std::string_view path) {
    std::string out;
    const auto fields = fields_of_path(m, path);
    if (!fields) return fields.error().message();
    for (const auto* field : *fields) out += field->name() + " ";
    return out;
  };
  CHECK(names("parts[*].cards[mlx5_0].bandwidth") == "parts cards bandwidth ");
  CHECK(names("env.A.B") == "env ");
  CHECK(names("ports[1]") == "ports ");
  CHECK(names("parts[7].name").find("there is no parts[7]") != std::string::npos);
}

TEST_CASE("the selection of a path can be exchanged", "[document]") {
  const Machine m = cluster();
  Selected seen;
  const auto exchanged = [&](std::string_view path, std::string_view list,
                             const std::optional<Selected>& by) {
    seen.clear();
    const auto out = reselect(m, path, list, [&](const Selected& now) {
      seen = now;
      return by;
    });
    return out ? *out : out.error().message();
  };
  CHECK(exchanged("parts[node1].cards[*].down", "parts", Selected{0}) == "parts[0].cards[*].down");
  CHECK(seen == Selected{1});
  CHECK(exchanged("parts[*].name", "parts", Selected{0, 1, 2, 5}) == "parts[0-2,5].name");
  CHECK(seen == Selected{0, 1});
  CHECK(exchanged("parts[name=node0].name", "parts", std::nullopt) == "parts[name=node0].name");
  CHECK(seen == Selected{0});
  CHECK(exchanged("parts[0]", "parts", Selected{}).empty());
  CHECK(exchanged("parts[9]", "parts", Selected{0}).find("parts[9]") != std::string::npos);
  CHECK(exchanged("spare.name", "parts", Selected{0}) == "spare.name");
  CHECK(exchanged("partsx[0]", "parts", Selected{0}) == "partsx[0]");
}

}  // namespace rehearse::document_path_test
