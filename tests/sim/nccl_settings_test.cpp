// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/nccl_fixture.hpp"

namespace rehearse::nccl_settings_test {
using namespace rehearse;
using namespace rehearse::sim;
using namespace rehearse::sim::testing;

namespace {

constexpr auto kAr = Function::kAllReduce;
constexpr auto kAg = Function::kAllGather;

Error error_of(const Environment& environment) {
  const auto settings = parse_settings(environment, NcclVersion{});
  REQUIRE(!settings.has_value());
  return settings.error();
}

Settings settings_of(const Environment& environment) {
  const auto settings = parse_settings(environment, NcclVersion{});
  REQUIRE(settings.has_value());
  return *settings;
}

Switch algorithm(const Settings& s, Function f, Algorithm a) {
  return s.algorithms[index_of(f)][index_of(a)];
}

Switch protocol(const Settings& s, Function f, Protocol p) {
  return s.protocols[index_of(f)][index_of(p)];
}

}  // namespace

TEST_CASE("without environment everything is NCCL's default", "[nccl][settings]") {
  const Settings s = settings_of({{"NCCL_DEBUG", "INFO"}, {"PATH", "/bin"}});
  CHECK(algorithm(s, kAr, Algorithm::kRing) == Switch::kAuto);
  CHECK(!s.selection_given);
  CHECK(s.step_bytes(Protocol::kLl) == 65536);
  CHECK(s.step_bytes(Protocol::kLl128) == 614400);
  CHECK(s.step_bytes(Protocol::kSimple) == 524288);
  CHECK(s.notes.empty());
}

TEST_CASE("an algorithm list switches off what it does not name", "[nccl][settings]") {
  const Settings s = settings_of({{"NCCL_ALGO", "ring,COLLNETDIRECT"}});
  CHECK(s.selection_given);
  for (const Function f : kCollectives) {
    CHECK(algorithm(s, f, Algorithm::kRing) == Switch::kOn);
    CHECK(algorithm(s, f, Algorithm::kCollnetDirect) == Switch::kOn);
    CHECK(algorithm(s, f, Algorithm::kTree) == Switch::kOff);
    CHECK(algorithm(s, f, Algorithm::kNvls) == Switch::kOff);
  }
}

TEST_CASE("a caret inverts a list and a function limits it", "[nccl][settings]") {
  const Settings s =
      settings_of({{"NCCL_PROTO", "^LL128;allreduce:LL128"}, {"NCCL_ALGO", "AllGather:^Ring,PAT"}});
  CHECK(protocol(s, kAg, Protocol::kLl128) == Switch::kOff);
  CHECK(protocol(s, kAg, Protocol::kLl) == Switch::kOn);
  CHECK(protocol(s, kAr, Protocol::kLl128) == Switch::kOn);
  CHECK(protocol(s, kAr, Protocol::kSimple) == Switch::kOff);
  CHECK(algorithm(s, kAg, Algorithm::kRing) == Switch::kOff);
  CHECK(algorithm(s, kAg, Algorithm::kPat) == Switch::kOff);
  CHECK(algorithm(s, kAg, Algorithm::kNvls) == Switch::kOn);
  CHECK(algorithm(s, kAr, Algorithm::kRing) == Switch::kAuto);
}

TEST_CASE("a later list overrules the first one for its function", "[nccl][settings]") {
  const Settings s = settings_of(
      {{"NCCL_ALGO", "ring,collnetdirect;allreduce:tree,collnetdirect;broadcast:ring"}});
  CHECK(algorithm(s, kAr, Algorithm::kTree) == Switch::kOn);
  CHECK(algorithm(s, kAr, Algorithm::kRing) == Switch::kOff);
  CHECK(algorithm(s, kAg, Algorithm::kRing) == Switch::kOn);
  CHECK(algorithm(s, Function::kBroadcast, Algorithm::kCollnetDirect) == Switch::kOff);
}

TEST_CASE("names NCCL does not know are errors that list the known ones", "[nccl][settings]") {
  const Error algo = error_of({{"NCCL_ALGO", "Ring,Butterfly"}});
  CHECK(algo.code == Code::kBadInput);
  CHECK(algo.where == "NCCL_ALGO");
  CHECK(algo.what.find("Butterfly") != std::string::npos);
  CHECK(algo.fix.find("NVLSTree") != std::string::npos);
  CHECK(error_of({{"NCCL_PROTO", "LL64"}}).where == "NCCL_PROTO");
  CHECK(error_of({{"NCCL_PROTO", "allreduced:LL"}}).what.find("allreduced") != std::string::npos);
  CHECK(error_of({{"NCCL_ALGO", "Ring;Tree"}}).what.find("lacks its function") !=
        std::string::npos);
  CHECK(error_of({{"NCCL_ALGO", "COLLNET_DIRECT"}}).code == Code::kBadInput);
  CHECK(error_of({{"NCCL_ALGO", "allreduce:"}}).code == Code::kBadInput);
}

TEST_CASE("a slip in a selection is told with the name that was meant", "[nccl][settings]") {
  CHECK(error_of({{"NCCL_PROTO", "simpel"}}).fix.find("is SIMPLE meant?") == 0);
  CHECK(error_of({{"NCCL_ALGO", "Ring;alreduce:Tree"}}).fix.find("is AllReduce meant?") == 0);
  const auto refused = refused_selection({{"NCCL_PROTO", "LL,simpel"}}, NcclVersion{2, 24, 3});
  REQUIRE(refused);
  CHECK(refused->variable == "NCCL_PROTO");
  CHECK(refused->value == "LL,simpel");
  CHECK(refused->slip.token == "simpel");
  CHECK(refused->slip.nearest == "SIMPLE");
  CHECK_FALSE(refused_selection({{"NCCL_PROTO", "LL,simpel"}}, NcclVersion{2, 23, 4}));
  CHECK_FALSE(refused_selection({{"NCCL_PROTO", "LL,Simple"}}, NcclVersion{}));
  CHECK_FALSE(refused_selection({}, NcclVersion{}));
}

TEST_CASE("before 2.24 NCCL passes over names it does not know", "[nccl][settings]") {
  const NcclVersion old{2, 21, 5};
  const auto some = parse_settings({{"NCCL_PROTO", "LL,simpel"}}, old);
  REQUIRE(some);
  CHECK(protocol(*some, kAr, Protocol::kLl) == Switch::kOn);
  CHECK(protocol(*some, kAr, Protocol::kSimple) == Switch::kOff);
  REQUIRE(some->notes.size() == 1);
  CHECK(some->notes[0].find("simpel") != std::string::npos);
  // Functions were not known either: the whole word is one name.
  const auto function = parse_settings({{"NCCL_ALGO", "allreduce:tree"}}, old);
  REQUIRE(function);
  CHECK(algorithm(*function, kAr, Algorithm::kTree) == Switch::kOff);
  CHECK(leaves_nothing({{"NCCL_PROTO", "simpel"}}));
  CHECK_FALSE(leaves_nothing({{"NCCL_PROTO", "simpel,LL"}}));
  CHECK_FALSE(leaves_nothing({{"NCCL_ALGO", "rng"}}));

  // Without a protocol no call is possible; a list of algorithms that names none is ignored.
  const NcclModel none = model_of(nodes_of(2, 8), {{"NCCL_PROTO", "simpel"}}, old);
  CHECK_FALSE(choose(none, call_of(kAr, 1 << 20)));
  const NcclModel ignored = model_of(nodes_of(2, 8), {{"NCCL_ALGO", "rng"}}, old);
  const NcclModel both = model_of(nodes_of(2, 8), {{"NCCL_ALGO", "ring,tree"}}, old);
  for (std::int64_t count = 1; count < 1 << 26; count *= 16) {
    CHECK(choice_of(ignored, call_of(kAr, count)).algorithm ==
          choice_of(both, call_of(kAr, count)).algorithm);
  }
  CHECK(choice_of(ignored, call_of(kAr, 256)).algorithm == Algorithm::kTree);
}

TEST_CASE("empty lists and stray separators change nothing", "[nccl][settings]") {
  const Settings empty = settings_of({{"NCCL_ALGO", ""}});
  CHECK(algorithm(empty, kAr, Algorithm::kTree) == Switch::kAuto);
  const Settings stray = settings_of({{"NCCL_ALGO", "Ring,,Tree;"}});
  CHECK(algorithm(stray, kAr, Algorithm::kTree) == Switch::kOn);
  CHECK(algorithm(stray, kAr, Algorithm::kNvls) == Switch::kOff);
}

TEST_CASE("a protocol list decides what runs", "[nccl][settings]") {
  const NcclModel model = model_of(nodes_of(2, 8), {{"NCCL_PROTO", "Simple;AllGather:^Simple"}});
  for (std::int64_t count = 1; count < 1 << 24; count *= 16) {
    CHECK(choice_of(model, call_of(kAr, count)).protocol == Protocol::kSimple);
    CHECK(choice_of(model, call_of(kAg, count)).protocol != Protocol::kSimple);
  }
}

TEST_CASE("what follows a number is passed over, with a note", "[nccl][settings]") {
  const Settings s = settings_of({{"NCCL_BUFFSIZE", "8388608 bytes"}, {"NCCL_PAT_ENABLE", "-2"}});
  CHECK(s.buffer_bytes[2] == 8388608);
  CHECK(s.pat_enable == 2);
  REQUIRE(s.notes.size() == 1);
  CHECK(s.notes[0].find("NCCL_BUFFSIZE=8388608 bytes") != std::string::npos);
  // So a size with a unit is a size of a few bytes.
  CHECK(error_of({{"NCCL_BUFFSIZE", "4M"}}).where == "NCCL_BUFFSIZE");
}

TEST_CASE("numbers that are out of range keep the default", "[nccl][settings]") {
  CHECK(settings_of({{"NCCL_BUFFSIZE", "99999999999999999999"}}).buffer_bytes[2] == 4194304);
}

TEST_CASE("sizes NCCL cannot work with are refused", "[nccl][settings]") {
  for (const char* name : {"NCCL_BUFFSIZE", "NCCL_LL_BUFFSIZE", "NCCL_LL128_BUFFSIZE",
                           "NCCL_NVLS_CHUNKSIZE", "NCCL_P2P_NET_CHUNKSIZE"}) {
    INFO(name);
    CHECK(error_of({{name, "7"}}).where == name);
    CHECK(error_of({{name, "-5"}}).code == Code::kBadInput);
    CHECK(error_of({{name, "99999999999"}}).code == Code::kBadInput);
  }
}

TEST_CASE("the other variables are read", "[nccl][settings]") {
  const Settings s = settings_of({{"NCCL_NET_OVERHEAD", "2500"},
                                  {"NCCL_LL128_C2C", "0"},
                                  {"NCCL_NVLSTREE_MAX_CHUNKSIZE", "65536"},
                                  {"NCCL_NCHANNELS_PER_NET_PEER", "4"},
                                  {"NCCL_ALLOC_P2P_NET_LL_BUFFERS", "1"},
                                  {"NCCL_P2P_LL_THRESHOLD", "0"},
                                  {"NCCL_CTA_POLICY", "1"}});
  CHECK(*s.net_overhead_us == Approx(2.5));
  CHECK(!s.ll128_c2c);
  CHECK(s.nvls_tree_max_chunk_bytes == 65536);
  CHECK(s.channels_per_net_peer == 4);
  CHECK(s.p2p_net_ll_buffers);
  CHECK(s.p2p_ll_threshold_bytes == 0);
  CHECK(s.prefer_few_channels);
}

}  // namespace rehearse::nccl_settings_test
