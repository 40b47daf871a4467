// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario/transforms.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "base/proto/options.pb.h"
#include "sim/scenario/scenario.hpp"
#include "sim/scenario/timed.hpp"

namespace rehearse::transforms_test {
using namespace rehearse;
using namespace rehearse::sim;

namespace {

const google::protobuf::OneofDescriptor& oneof() {
  return *pb::Patch::descriptor()->FindOneofByName("transform");
}

}  // namespace

TEST_CASE("the table of transforms has one row per field of the schema", "[sim][transform]") {
  REQUIRE(transforms().size() == static_cast<size_t>(oneof().field_count()));
  for (int i = 0; i < oneof().field_count(); ++i) {
    const auto* field = oneof().field(i);
    const Transform& row = transforms()[static_cast<size_t>(i)];
    INFO(field->name());
    CHECK(static_cast<int>(row.field) == field->number());
    std::string name = field->name();
    std::replace(name.begin(), name.end(), '_', '-');
    CHECK(row.name == name);
    CHECK(find_transform(name) == &row);
    CHECK(find_transform(field->name()) == &row);
    pb::Patch patch;
    patch.GetReflection()->MutableMessage(&patch, field);
    CHECK(transform_of(patch) == &row);
    CHECK(acts_on(patch, row.acts_on));
    // What acts on the program or on the document has the function that does so.
    const bool edits = row.acts_on == ActsOn::kProgram;
    const bool applies = row.acts_on == ActsOn::kDocument || row.acts_on == ActsOn::kTrace;
    CHECK((row.edit != nullptr) == edits);
    CHECK((row.apply != nullptr) == applies);
  }
  CHECK(transform_of(pb::Patch()) == nullptr);
  CHECK(find_transform("slow-ranks") == nullptr);
}

TEST_CASE("fields of transforms that count ranks or nodes say so", "[sim][transform]") {
  for (int i = 0; i < oneof().field_count(); ++i) {
    const auto& type = *oneof().field(i)->message_type();
    for (int f = 0; f < type.field_count(); ++f) {
      const std::string& name = type.field(f)->name();
      INFO(type.name() << "." << name);
      const pb::Naming naming = type.field(f)->options().GetExtension(pb::naming);
      CHECK((naming == pb::A_RANK) == (name == "rank"));
      CHECK((naming == pb::SOME_RANKS) == (name == "ranks"));
      CHECK((naming == pb::A_NODE) == (name == "node" || name.ends_with("_node")));
    }
  }
}

TEST_CASE("an interval is refused for each transform that takes none, by name",
          "[sim][transform]") {
  for (const Transform& row : transforms()) {
    INFO(row.name);
    pb::Patch patch;
    patch.GetReflection()->MutableMessage(
        &patch, pb::Patch::descriptor()->FindFieldByNumber(static_cast<int>(row.field)));
    patch.set_from(1);
    const auto good = check_interval(patch);
    CHECK(good.has_value() == row.interval);
    if (good) continue;
    CHECK(good.error().what == std::string(row.name) + " does not take an interval");
    CHECK(good.error().fix == "only assignments, slow-rank and background-traffic do");
  }
}

TEST_CASE("a transform without a parameter that must be given is refused where it is written",
          "[sim][transform]") {
  struct Row {
    const char* text;
    const char* says;
  };
  const Row rows[] = {
      {"skip-collective: {rank: 3}", "p.yaml:1:18: nth of SkipCollective is missing; add nth: ..."},
      {"slow-rank: {slowdown: 2}", "rank or ranks of SlowRank is missing"},
      {"stop-rank: {at: 2s}", "rank or node of StopRank is missing"},
      {"pause-rank: {rank: 3, duration: 1s}", "step or every of PauseRank is missing"},
      {"background-traffic: {from-node: 0, rate: 1Gbps}", "to-node of BackgroundTraffic"},
      {"grow-data-parallel: {}", "factor of GrowDataParallel is missing"},
      {"undo: {rank: 3}", "transform of Undo is missing"},
  };
  for (const Row& row : rows) {
    INFO(row.text);
    const auto patch = parse_patch(row.text, "p.yaml");
    REQUIRE_FALSE(patch);
    INFO(patch.error().message());
    CHECK(patch.error().code == Code::kBadInput);
    CHECK(patch.error().message().find(row.says) != std::string::npos);
  }
  CHECK(parse_patch("skip-collective: {rank: 0, nth: 0}", "p.yaml"));
  CHECK(parse_patch("slow-rank: {ranks: 0-7, slowdown: 2}", "p.yaml"));
  // One that no document says is refused too.
  Scenario scenario;
  pb::Patch made;
  made.mutable_skip_collective()->set_rank(3);
  const auto applied = apply(scenario, made);
  REQUIRE_FALSE(applied);
  CHECK(applied.error().where == "skip-collective");
}

}  // namespace rehearse::transforms_test
