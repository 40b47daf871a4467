// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "base/install.hpp"
#include "tests/temporary_folder.hpp"
#include "validation/fault_pair_checks.hpp"
#include "validation/pairs/reading.hpp"

namespace rehearse::validation::pairs_test {
namespace {

PublishedPair pair() {
  PublishedPair out;
  out.id = "X1";
  out.before = 20;
  out.after = 40;
  out.fault_class = "no_GDRDMA";
  out.cause = "nvidia-peermem not loaded";
  out.fix = "modprobe nvidia-peermem";
  out.metric = "busbw GB/s @1GiB all_reduce";
  out.hardware = "2 nodes x 8 A100 SXM4, 4x HDR200";
  out.nccl = "2.19.3";
  return out;
}

pb::PairModel read(const PublishedPair& pair) {
  const auto reader = PairReader::shipped_words();
  REQUIRE(reader);
  const auto model = reader->read(pair);
  if (!model) FAIL(model.error().what);
  return *model;
}

std::string refusal(const PublishedPair& pair) {
  const auto reader = PairReader::shipped_words();
  REQUIRE(reader);
  const auto model = reader->read(pair);
  REQUIRE_FALSE(model);
  return model.error().what;
}

std::string notes_of(const Check& check) {
  std::string out;
  for (const std::string& note : check.assumptions) out += note + "\n";
  return out;
}

}  // namespace

TEST_CASE("a pair that says enough is read from its words", "[validation][pairs]") {
  const pb::PairModel model = read(pair());
  CHECK(model.platform() == "dgx-a100");
  CHECK(model.nodes() == 2);
  CHECK(model.gpus_per_node() == 8);
  CHECK(model.collective() == "all_reduce");
  CHECK(model.bytes() == int64_t{1} << 30);
  CHECK(model.before().nccl_version() == "2.19.3");
  CHECK(model.before().set().at("nodes[*].nics[*].gpudirect") == "false");
  CHECK(model.after().set().count("nodes[*].nics[*].gpudirect") == 0);
  for (const auto* state : {&model.before(), &model.after()}) {
    CHECK(state->set().at("nodes[*].nics[*].bandwidth") == "200Gbps");
    CHECK(state->set().at("nodes[*].nics[1,3,5,7].down") == "true");
  }
}

TEST_CASE("variables are read where they stand", "[validation][pairs]") {
  PublishedPair one = pair();
  one.fault_class = "transport_forced_off";
  one.cause = "NCCL_P2P_DISABLE=1 set in the image";
  one.fix = "remove NCCL_P2P_DISABLE=1, QPS_PER_CONNECTION=4";
  one.hardware = "1 node x 8 H100";
  const pb::PairModel model = read(one);
  CHECK(model.platform() == "dgx-h100");
  CHECK(model.nodes() == 1);
  CHECK(model.before().env().at("NCCL_P2P_DISABLE") == "1");
  CHECK(model.after().env().count("NCCL_P2P_DISABLE") == 0);
  CHECK(model.after().env().at("NCCL_IB_QPS_PER_CONNECTION") == "4");
}

TEST_CASE("ports that are lost, slow or not used are read from the cause", "[validation][pairs]") {
  PublishedPair one = pair();
  one.hardware = "4 nodes x 8 H100, 8x400G NDR";
  one.fault_class = "ports";
  one.cause = "1 port now Ethernet and 3 ports trained to 100G";
  auto before = read(one).before().set();
  CHECK(before.at("nodes[*].nics[7-7].down") == "true");
  CHECK(before.at("nodes[*].nics[4-6].bandwidth") == "100Gbps");
  one.cause = "only four of eight NICs configured";
  before = read(one).before().set();
  CHECK(before.at("nodes[*].nics[1,3,5,7].down") == "true");
}

TEST_CASE("machines are read as people write them", "[validation][pairs]") {
  PublishedPair one = pair();
  const auto sized = [&](const char* hardware, const char* platform, uint32_t nodes,
                         uint32_t gpus) {
    INFO(hardware);
    one.hardware = hardware;
    const pb::PairModel model = read(one);
    CHECK(model.platform() == platform);
    CHECK(model.nodes() == nodes);
    CHECK(model.gpus_per_node() == gpus);
  };
  sized("4 nodes x 8 B200, 8x400G NDR", "dgx-b200", 4, 8);
  sized("8 x AWS p5 (8 H100, EFA)", "aws-p5", 8, 8);
  sized("2x p3dn (8 V100), EFA 100G", "aws-p3dn", 2, 8);
  sized("8 nodes x 4 GH200, Slingshot", "gh200-quad", 8, 4);
  sized("2x GB10", "dgx-spark", 2, 1);
  sized("1 host 4x V100 SXM2", "dgx1-v100", 1, 4);
  sized("3 servers with DGX A100, 8x CX-6 100G", "dgx-a100", 3, 8);
}

TEST_CASE("a pair that does not say enough is refused with what is missing",
          "[validation][pairs][refusal]") {
  PublishedPair one = pair();
  one.hardware = "a cluster";
  CHECK_THAT(refusal(one), Catch::Contains("hardware"));
  one = pair();
  one.hardware = "A100 SXM4 machines";
  CHECK_THAT(refusal(one), Catch::Contains("number of nodes"));
  one = pair();
  one.after.reset();
  CHECK_THAT(refusal(one), Catch::Contains("no number"));
  one = pair();
  one.fault_class = one.cause = "unresolved";
  CHECK_THAT(refusal(one), Catch::Contains("mechanisms"));
  one = pair();
  one.metric = "s/step";
  CHECK_THAT(refusal(one), Catch::Contains("training"));
}

TEST_CASE("a list of pairs that is no list, a folder or not there is told",
          "[validation][pairs][refusal]") {
  const tests::TemporaryFolder scratch;
  CHECK(read_published_pairs(scratch.path).error().code == Code::kMissingInput);
  CHECK(read_published_pairs(scratch.path / "none").error().code == Code::kMissingInput);
  std::ofstream(scratch.path / "deep") << std::string(1'000'000, '[');
  CHECK(read_published_pairs(scratch.path / "deep").error().code == Code::kBadInput);
}

TEST_CASE("any file of pairs is judged, what is not predicted is named", "[validation][pairs]") {
  const tests::TemporaryFolder scratch;
  const auto file = scratch.path / "pairs.json";
  std::ofstream(file) << R"([
    {"id": "X1", "fault_class": "no_GDRDMA", "cause": "GDR off", "fix": "enable GDR", "metric": "busbw GB/s all_reduce 1GB",
     "before": 90, "after": 160, "hardware": "2 nodes x 8 A100 SXM4, 8x HDR200", "nccl": "2.19.3", "source": "here"},
    {"id": "X2", "cause": "unknown", "fix": "reboot", "metric": "busbw", "before": 1, "after": 2, "hardware": "laptop"},
    {"id": "X3", "before": "hang", "after": "ok"}, 7, {"before": 1}])";
  const Check check = pair_check(file);
  CHECK_FALSE(check.skipped);
  REQUIRE(check.rows.size() == 1);
  CHECK(check.rows[0].predicted > 1);
  CHECK(check.rows[0].measured == Approx(160.0 / 90));
  std::string notes;
  for (const std::string& note : check.assumptions) notes += note + "\n";
  CHECK_THAT(notes, Catch::Contains("X2 is not predicted"));
  CHECK_THAT(notes, Catch::Contains("X3 is not predicted"));

  // How to predict a pair may stand beside the list.
  std::ofstream(scratch.path / "fault_pairs.yaml") << R"(pairs:
  - id: X1
    use: given-size
    why: half of the ports
    model: {platform: dgx-a100, nodes: 2, collective: all_reduce, bytes: 1GiB, before: {set: {"nodes[*].nics[4-7].down": "true"}}}
)";
  const Check given = pair_check(file);
  CHECK(given.skipped);
  std::string told;
  for (const std::string& note : given.assumptions) told += note + "\n";
  CHECK_THAT(told, Catch::Contains("the size of the fault was an input"));
}

TEST_CASE("a report that has the id of a listed one is read from its own words",
          "[validation][pairs]") {
  const tests::TemporaryFolder scratch;
  const auto file = scratch.path / "pairs.json";
  const auto gains = [&](const std::string& source) {
    std::ofstream(file)
        << R"([{"id": "FF26", "fault_class": "no_GDRDMA", "cause": "GDR off", "fix": "enable GDR",
      "metric": "busbw GB/s all_reduce 1GB", "before": 90, "after": 160, "hardware": "2 nodes x 8 A100 SXM4, 8x HDR200",
      "source": ")" +
               source + R"("}])";
    const Check check = pair_check(file);
    REQUIRE(check.rows.size() == 1);
    return check.rows[0].what;
  };
  CHECK_THAT(gains("https://github.com/NVIDIA/nccl-tests/issues/22"),
             Catch::Contains("Ring or Tree"));
  CHECK_THAT(gains("https://example.org/another"), Catch::Contains("read from its words"));
}

TEST_CASE("what is read from words is judged only where nothing is written down",
          "[validation][pairs]") {
  const tests::TemporaryFolder scratch;
  const auto file = scratch.path / "pairs.json";
  std::ofstream(file) << R"([
    {"id": "X1", "fault_class": "no_GDRDMA", "cause": "GDR off", "fix": "enable GDR", "metric": "busbw GB/s all_reduce 1GB",
     "before": 90, "after": 160, "hardware": "2 nodes x 8 A100 SXM4, 8x HDR200"},
    {"id": "X2", "metric": "busbw GB/s", "before": 24, "after": 48}])";
  CHECK(pair_check(file).rows.size() == 1);
  std::ofstream(scratch.path / "fault_pairs.yaml") << R"(pairs:
  - id: X2
    use: mechanism
    why: one of two ports
    model: {platform: dgx-a100, nodes: 2, collective: all_reduce, bytes: 1GiB, before: {env: {NCCL_ALGO: Ring, NCCL_IB_HCA: "=mlx5_0"}},
      after: {env: {NCCL_ALGO: Ring, NCCL_IB_HCA: "=mlx5_0,mlx5_4"}}}
)";
  const Check both = pair_check(file);
  REQUIRE(both.rows.size() == 1);
  CHECK_THAT(both.rows[0].what, Catch::Contains("X2"));
  CHECK_THAT(notes_of(both), Catch::Contains("they are not judged") && Catch::Contains("X1"));
  // The commands print both times of the ratio.
  CHECK_THAT(both.rows[0].command,
             Catch::Contains("&&") && Catch::Contains("--env NCCL_IB_HCA==mlx5_0 "));
}

TEST_CASE("pairs that were frozen before they were computed are all predicted",
          "[validation][pairs]") {
  for (const auto& [set, pairs] : {std::pair{"held_out", 26}, {"held_out_second", 22}}) {
    const auto file = shipped(std::string("validation/figures/") + set + "/fault_fix_pairs.json");
    REQUIRE(file);
    const Check check = pair_check(*file);
    CHECK(check.rows.size() == static_cast<size_t>(pairs));
    for (const std::string& note : check.assumptions) {
      CHECK_THAT(note, !Catch::Contains("cannot be predicted"));
    }
  }
}

TEST_CASE("a frozen set is told with what it gave at first sight, without a data folder too",
          "[validation][pairs]") {
  SilentReporter silent;
  const std::vector<Check> checks = fault_pair_checks({}, silent);
  REQUIRE(checks.size() == 1);
  CHECK(checks[0].skipped);
  CHECK_THAT(checks[0].why, Catch::Contains("--data"));
  CHECK_THAT(notes_of(checks[0]),
             Catch::Contains("of 26 further pairs") && Catch::Contains("16 were within") &&
                 Catch::Contains("of 22 further pairs") && Catch::Contains("15 were within"));
}

TEST_CASE("a report of no effect has a right direction too", "[validation][pairs]") {
  const tests::TemporaryFolder scratch;
  const auto file = scratch.path / "pairs.json";
  // NCCL takes rings for it with and without NVLink SHARP.
  const auto judged = [&](const char* after) {
    std::ofstream(file)
        << R"([{"id": "N1", "cause": "NCCL_NVLS_ENABLE=0", "fix": "NCCL_NVLS_ENABLE=1",
      "metric": "busbw GB/s @200MB reduce_scatter", "before": 100, "after": )"
        << after << R"(, "hardware": "1 node x 8 H100 SXM", "nccl": "2.28.9"}])";
    return notes_of(pair_check(file));
  };
  CHECK_THAT(judged("101"), Catch::Contains("right in 1 of 1"));
  CHECK_THAT(judged("100"), Catch::Contains("right in 1 of 1"));
  CHECK_THAT(judged("130"), Catch::Contains("right in 0 of 1"));
}

TEST_CASE("numbers of channels, bytes and switches that reduce are read", "[validation][pairs]") {
  PublishedPair few = pair();
  few.hardware = "1 node x 8 V100";
  few.fault_class = "few channels";
  few.cause = "default, 12 channels";
  few.fix = "NCCL_PROTO=LL with 24 channels";
  few.metric = "time us @1638400 B all_reduce";
  const pb::PairModel model = read(few);
  CHECK(model.bytes() == 1638400);
  CHECK(model.before().env().at("NCCL_MAX_NCHANNELS") == "12");
  CHECK(model.after().env().at("NCCL_MIN_NCHANNELS") == "24");
  CHECK(model.after().env().at("NCCL_PROTO") == "LL");

  PublishedPair chain = pair();
  chain.hardware = "2 x Azure ND96isr H100 v5";
  chain.fault_class = "collnet_chain";
  chain.cause = "NCCL_ALGO=CollnetChain";
  chain.fix = "NCCL_ALGO=CollnetDirect";
  const pb::PairModel through = read(chain);
  CHECK(through.platform() == "azure-ndv5");
  CHECK(through.nodes() == 2);
  CHECK(through.before().set().at("fabric.sharp") == "true");
  CHECK(through.after().env().at("NCCL_COLLNET_ENABLE") == "1");
}

TEST_CASE("a file that is no list of pairs is skipped with the reason", "[validation][pairs]") {
  const tests::TemporaryFolder scratch;
  const auto file = scratch.path / "pairs.json";
  std::ofstream(file) << "{\"pairs\": 3}";
  const Check check = pair_check(file);
  CHECK(check.skipped);
  CHECK_THAT(check.why, Catch::Contains("no JSON list"));
  CHECK(pair_check(scratch.path / "nowhere.json").skipped);
}

}  // namespace rehearse::validation::pairs_test
