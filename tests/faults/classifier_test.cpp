// SPDX-License-Identifier: Apache-2.0
#include "faults/symptoms/classifier.hpp"

#include <catch2/catch.hpp>
#include <functional>
#include <string>

namespace rehearse::classifier_test {
using namespace rehearse;
using namespace rehearse::faults;

namespace {

struct Case {
  std::string what;
  std::function<void(pb::Outcome&)> shows;
  std::string expected;
};

void finding(pb::Outcome& o, const char* id) { o.add_findings()->set_id(id); }

void steps(pb::Outcome& o, int64_t mean, int64_t baseline) {
  o.mutable_step_time_ns()->set_mean(mean);
  if (baseline > 0) o.mutable_baseline_step_time_ns()->set_mean(baseline);
}

void transport(pb::Outcome& o, const char* used, const char* offered) {
  pb::CommunicatorUse& use = *o.add_communicators();
  use.set_id("world");
  use.set_transport(used);
  use.set_offered(offered);
}

void fails(pb::Outcome& o, pb::Verdict verdict, pb::Phase phase, const char* text = "",
           const char* communicator = "") {
  o.set_verdict(verdict);
  o.mutable_first_failure()->set_phase(phase);
  o.mutable_first_failure()->set_communicator(communicator);
  if (*text) o.add_error_text()->set_text(text);
}

void ranks(pb::Outcome& o, int late, int64_t excess) {
  for (int r = 0; r < 16; ++r) {
    pb::RankBreakdown& rank = *o.add_breakdown();
    rank.set_rank(static_cast<uint32_t>(r));
    rank.set_step(100 + excess);
    rank.set_compute(r < late ? 100 + excess : 100);
  }
}

}  // namespace

TEST_CASE("the classifier gives each outcome the category a practitioner would",
          "[faults][symptoms]") {
  using O = pb::Outcome;
  const auto oom = [](O& o) {
    fails(o, pb::CRASH, pb::TRAINING);
    o.mutable_memory()->add_ranks()->set_peak(81);
    o.mutable_memory()->mutable_ranks(0)->set_capacity(80);
  };
  const Case cases[] = {
      {"nothing wrong", [](O& o) { steps(o, 100, 100); }, "healthy"},
      {"5 % slower is noise", [](O& o) { steps(o, 105, 100); }, "healthy"},
      {"6 % slower is not", [](O& o) { steps(o, 106, 100); }, "D2.2"},
      {"faster is healthy", [](O& o) { steps(o, 50, 100); }, "healthy"},
      {"one late rank, no baseline", [](O& o) { ranks(o, 1, 20); }, "D2.2"},
      {"half of the ranks busier is a layout", [](O& o) { ranks(o, 8, 20); }, "healthy"},
      {"a little late", [](O& o) { ranks(o, 1, 5); }, "healthy"},
      {"sockets", [](O& o) { transport(o, "NET/Socket", "NET/IB/GDRDMA"); }, "B3"},
      {"no GPUDirect", [](O& o) { transport(o, "NET/IB", "NET/IB/GDRDMA"); }, "B3"},
      {"shared memory", [](O& o) { transport(o, "SHM", "P2P/NVL"); }, "B3"},
      {"network inside a node", [](O& o) { transport(o, "NET/IB/GDRDMA", "P2P/NVL"); }, "B3"},
      {"as offered", [](O& o) { transport(o, "NET/Socket", "NET/Socket"); }, "healthy"},
      {"unknown words decide nothing", [](O& o) { transport(o, "CARRIER", "NET/IB"); }, "healthy"},
      {"finding of a fallback", [](O& o) { finding(o, "transport-fallback"); }, "B3"},
      {"wrong device", [](O& o) { finding(o, "unexpected-device"); }, "D2.6"},
      {"hang in training", [](O& o) { fails(o, pb::HANG, pb::TRAINING); }, "D2.1"},
      {"hang without phase", [](O& o) { o.set_verdict(pb::HANG); }, "D2.1"},
      {"hang at rendezvous", [](O& o) { fails(o, pb::HANG, pb::RENDEZVOUS); }, "B2"},
      {"hang at set-up", [](O& o) { fails(o, pb::HANG, pb::BOOTSTRAP); }, "B2"},
      {"hang before step 1", [](O& o) { fails(o, pb::HANG, pb::PREPARATION); }, "C4"},
      {"ranks run out of data",
       [](O& o) {
         fails(o, pb::HANG, pb::TRAINING);
         finding(o, "uneven-steps");
       },
       "C6"},
      {"crash in a collective", [](O& o) { fails(o, pb::CRASH, pb::TRAINING, "", "world"); },
       "D1.1"},
      {"remote NCCL error",
       [](O& o) { fails(o, pb::CRASH, pb::TRAINING, "NCCL error: remote process exited"); },
       "D1.1"},
      {"OOM text",
       [](O& o) { fails(o, pb::CRASH, pb::TRAINING, "torch.cuda: CUDA out of memory. Tried"); },
       "D1.5"},
      {"OOM account", oom, "D1.5"},
      {"port taken",
       [](O& o) { fails(o, pb::CRASH, pb::RENDEZVOUS, "errno: 98 - Address already in use"); },
       "B1"},
      {"store barrier",
       [](O& o) { fails(o, pb::CRASH, pb::RENDEZVOUS, "Timed out initializing process group"); },
       "B2"},
      {"two ranks on a GPU",
       [](O& o) { fails(o, pb::REJECTED, pb::BOOTSTRAP, "NCCL WARN Duplicate GPU detected"); },
       "B1"},
      {"ordinal",
       [](O& o) { fails(o, pb::CRASH, pb::STARTING, "CUDA error: invalid device ordinal"); }, "C5"},
      {"import", [](O& o) { fails(o, pb::CRASH, pb::STARTING, "ImportError: libmpi.so.40"); },
       "A2"},
      {"does not start", [](O& o) { fails(o, pb::REJECTED, pb::STARTING); }, "A1"},
      {"initial broadcast", [](O& o) { fails(o, pb::CRASH, pb::PREPARATION, "", "world"); }, "C3"},
      {"saving", [](O& o) { fails(o, pb::CRASH, pb::CHECKPOINTING); }, "D1.6"},
      {"segfault",
       [](O& o) { fails(o, pb::CRASH, pb::TRAINING, "Segmentation fault (core dumped)"); }, "D1.7"},
      {"unexplained crash", [](O& o) { fails(o, pb::CRASH, pb::TRAINING); }, "D1.12"},
      {"size-1 groups",
       [](O& o) {
         o.set_verdict(pb::WRONG_SEMANTICS);
         finding(o, "effective-world-size");
       },
       "D2.3"},
      {"learning rate",
       [](O& o) {
         o.set_verdict(pb::WRONG_SEMANTICS);
         finding(o, "learning-rate");
       },
       "D2.5"},
      {"other semantics", [](O& o) { o.set_verdict(pb::WRONG_SEMANTICS); }, "D2.4"},
  };
  for (const Case& c : cases) {
    pb::Outcome outcome;
    outcome.set_verdict(pb::COMPLETED);
    c.shows(outcome);
    INFO(c.what);
    const pb::Symptom symptom = classify(outcome);
    CHECK(symptom.id() == c.expected);
    CHECK(symptom.label() == symptom_label(c.expected));
    CHECK((symptom.reasons_size() > 0 || !outcome.has_first_failure()));
    // A finding that does not say where leaves no end that waits for it.
    for (const std::string& reason : symptom.reasons()) CHECK_FALSE(reason.ends_with(": "));
  }
}

TEST_CASE("the classifier does not look at the patches of a run", "[faults][symptoms]") {
  pb::Outcome outcome;
  outcome.set_verdict(pb::COMPLETED);
  steps(outcome, 130, 100);
  const pb::Symptom plain = classify(outcome);
  outcome.add_patches("launch.ranks[8-15].env.NCCL_IB_DISABLE=1");
  outcome.mutable_symptom()->set_id("B3");
  CHECK(classify(outcome).SerializeAsString() == plain.SerializeAsString());
}

TEST_CASE("a hang is explained by who waits for whom", "[faults][symptoms]") {
  pb::Outcome outcome;
  outcome.set_verdict(pb::HANG);
  pb::Wait& wait = *outcome.add_waits();
  wait.set_rank(0);
  wait.add_for_ranks(5);
  wait.set_communicator("world");
  wait.set_sequence(7);
  wait.set_operation("all-reduce");
  const std::string reason = classify(outcome).reasons(0);
  CHECK(reason.find("sequence 7") != reason.npos);
  CHECK(reason.find("for rank 5") != reason.npos);
}

namespace {

pb::Outcome completed() {
  pb::Outcome out;
  out.set_verdict(pb::COMPLETED);
  return out;
}

std::string all_reasons(const pb::Outcome& outcome) {
  std::string out;
  const pb::Symptom symptom = classify(outcome);
  for (const std::string& reason : symptom.reasons()) out += reason + "\n";
  return out;
}

// `late` of `ranks` compute `excess` longer than the others' 100 of a step.
pb::Outcome with_late(int ranks, int late, int64_t excess, bool on_host = false) {
  pb::Outcome out = completed();
  for (int r = 0; r < ranks; ++r) {
    pb::RankBreakdown& row = *out.add_breakdown();
    row.set_rank(static_cast<uint32_t>(r));
    row.set_step(1000);
    row.set_compute(500);
    row.set_host(100);
    if (r < late && on_host) row.set_host(100 + excess);
    if (r < late && !on_host) row.set_compute(500 + excess);
  }
  return out;
}

}  // namespace

TEST_CASE("a rank stands out by more than a tenth of a step, alone among at least three",
          "[faults][symptoms]") {
  CHECK(classify(with_late(4, 1, 101)).id() == "D2.2");
  CHECK(classify(with_late(4, 1, 101, true)).id() == "D2.2");
  CHECK(classify(with_late(4, 1, 100)).id() == kHealthy);
  CHECK(classify(with_late(8, 2, 300)).id() == "D2.2");
  CHECK(classify(with_late(8, 3, 300)).id() == kHealthy);
  CHECK(classify(with_late(3, 1, 900)).id() == kHealthy);
  CHECK(classify(with_late(2, 1, 900)).id() == kHealthy);
  CHECK(all_reasons(with_late(8, 2, 300)) == "rank 0,1 keeps the others waiting\n");
  // Compared with the median rank, not with the least busy: 5, 4 and 3 of twelve are ever busier by 80.
  pb::Outcome stairs = with_late(12, 0, 0);
  for (int r = 5; r < 12; ++r) stairs.mutable_breakdown(r)->set_compute(r < 9 ? 580 : 660);
  CHECK(classify(stairs).id() == kHealthy);
  // Less work than the others is no reason to wait for.
  CHECK(classify(with_late(8, 2, -300)).id() == kHealthy);
}

TEST_CASE("steps are compared where there are two, with how much they differ",
          "[faults][symptoms]") {
  pb::Outcome outcome = completed();
  steps(outcome, 1'060'000, 1'000'000);
  CHECK(all_reasons(outcome) == "a step takes 1.06 ms instead of 1.00 ms (+6.0 %)\n");
  steps(outcome, 900'000, 1'000'000);
  CHECK(all_reasons(outcome) == "a step takes 900 us instead of 1.00 ms (-10.0 %)\n");
  // Without one of them, ranks are looked at.
  outcome = with_late(8, 1, 300);
  steps(outcome, 0, 1'000'000);
  CHECK(classify(outcome).id() == "D2.2");
  outcome = with_late(8, 1, 300);
  steps(outcome, 1'000'000, 0);
  CHECK(classify(outcome).id() == "D2.2");
  outcome = completed();
  steps(outcome, 1'000'000, 0);
  CHECK(classify(outcome).id() == kHealthy);
  // With both they are not.
  outcome = with_late(8, 1, 300);
  steps(outcome, 1'000'000, 1'000'000);
  CHECK(classify(outcome).id() == kHealthy);
}

TEST_CASE("a hang names how many wait, for whom or over what", "[faults][symptoms]") {
  pb::Outcome outcome;
  outcome.set_verdict(pb::HANG);
  CHECK(all_reasons(outcome) == "no rank makes progress\n");
  for (const uint32_t rank : {3U, 3U, 4U}) {
    pb::Wait& wait = *outcome.add_waits();
    wait.set_rank(rank);
    wait.set_operation("connect");
  }
  CHECK(all_reasons(outcome) == "2 ranks wait; rank 3 in connect and nobody comes\n");
  outcome.mutable_waits(0)->set_communicator("world");
  CHECK(
      all_reasons(outcome) ==
      "2 ranks wait; rank 3 in connect (communicator world, sequence 0) whose members disagree\n");
  outcome.add_culprits()->set_kind("rank");
  CHECK(all_reasons(outcome).find("disagree") != std::string::npos);
  outcome.add_culprits()->set_kind("link");
  CHECK(all_reasons(outcome).find("over a link that is down") != std::string::npos);
  outcome.mutable_waits(0)->add_for_ranks(5);
  outcome.mutable_waits(0)->add_for_ranks(6);
  CHECK(all_reasons(outcome).find("for rank 5,6") != std::string::npos);
  outcome.mutable_first_failure()->set_phase(pb::TRAINING);
  CHECK(all_reasons(outcome).find("it happened in training") != std::string::npos);
  // A phase of a later version has no word.
  outcome.mutable_first_failure()->set_phase(static_cast<pb::Phase>(7));
  CHECK(all_reasons(outcome).ends_with("it happened in \n"));
}

TEST_CASE("a crash is explained by who failed first, in what and when", "[faults][symptoms]") {
  pb::Outcome outcome;
  outcome.set_verdict(pb::CRASH);
  CHECK(all_reasons(outcome).empty());
  outcome.mutable_first_failure()->set_rank(3);
  CHECK(all_reasons(outcome) == "rank 3 failed first\n");
  outcome.mutable_first_failure()->set_operation("all-reduce");
  outcome.mutable_first_failure()->set_phase(pb::CHECKPOINTING);
  CHECK(all_reasons(outcome) == "rank 3 failed first in all-reduce during checkpointing\n");
  outcome.add_error_text()->set_text("nothing that is known");
  outcome.add_error_text()->set_text("torch.cuda.OutOfMemoryError: cuda OUT OF memory");
  outcome.mutable_error_text(1)->set_rank(6);
  CHECK(classify(outcome).id() == "D1.5");
  CHECK(all_reasons(outcome).ends_with("rank 6 says 'CUDA out of memory'\n"));
  finding(outcome, "memory-grows");
  CHECK(classify(outcome).id() == "D1.9");
  // Growth that did not end in a lack of memory explains nothing.
  outcome.mutable_error_text()->DeleteSubrange(1, 1);
  CHECK(classify(outcome).id() == "D1.6");
}

TEST_CASE("memory is out when more is needed than there is, where that is known",
          "[faults][symptoms]") {
  const auto with = [](int64_t peak, int64_t capacity) {
    pb::Outcome out;
    fails(out, pb::CRASH, pb::TRAINING);
    out.mutable_memory()->add_ranks();  // one of which nothing is known
    pb::RankMemory& rank = *out.mutable_memory()->add_ranks();
    rank.set_rank(2);
    rank.set_peak(peak);
    rank.set_capacity(capacity);
    return out;
  };
  CHECK(classify(with(1025, 1024)).id() == "D1.5");
  CHECK(all_reasons(with(2048, 1024)).ends_with("rank 2 needs 2.00 KiB of 1.00 KiB\n"));
  CHECK(classify(with(1024, 1024)).id() == "D1.12");
  CHECK(classify(with(1024, 0)).id() == "D1.12");
  CHECK(classify(with(1, -1)).id() == "D1.12");
  CHECK(classify(with(2, 1)).id() == "D1.5");
}

TEST_CASE("the same words mean something else in another phase", "[faults][symptoms]") {
  const std::pair<pb::Phase, const char*> phases[] = {
      {pb::STARTING, "B1"},           {pb::RENDEZVOUS, "B1"}, {pb::BOOTSTRAP, "B1"},
      {pb::PREPARATION, "C2"},        {pb::TRAINING, "D1.9"}, {pb::CHECKPOINTING, "D1.9"},
      {pb::PHASE_UNSPECIFIED, "D1.9"}};
  for (const auto& [phase, expected] : phases) {
    pb::Outcome outcome;
    fails(outcome, pb::CRASH, phase, "OSError: [Errno 12] Cannot allocate memory");
    INFO(pb::Phase_Name(phase));
    CHECK(classify(outcome).id() == expected);
  }
  // Without words the phase alone speaks, and whether it was in a call.
  const std::tuple<pb::Phase, const char*, const char*> silent[] = {
      {pb::STARTING, "", "A1"},        {pb::STARTING, "world", "A1"},
      {pb::RENDEZVOUS, "", "B1"},      {pb::BOOTSTRAP, "world", "B1"},
      {pb::PREPARATION, "", "C1"},     {pb::PREPARATION, "world", "C3"},
      {pb::CHECKPOINTING, "", "D1.6"}, {pb::TRAINING, "", "D1.12"},
      {pb::TRAINING, "world", "D1.1"}};
  for (const auto& [phase, communicator, expected] : silent) {
    pb::Outcome outcome;
    fails(outcome, pb::CRASH, phase, "", communicator);
    INFO(pb::Phase_Name(phase) << " " << communicator);
    CHECK(classify(outcome).id() == expected);
  }
}

TEST_CASE("transports are ordered inside a node and between nodes", "[faults][symptoms]") {
  const auto is = [](const char* words, bool between_nodes, int rank) {
    const TransportClass found = transport_class(words);
    INFO(words);
    CHECK(found.between_nodes == between_nodes);
    CHECK(found.rank == rank);
  };
  is("NET/Socket", true, 0);
  is("NET/IB", true, 1);
  is("NET/IB/GDRDMA", true, 2);
  is("NET/AWS Libfabric/GDRDMA", true, 2);
  is("SHM", false, 0);
  is("P2P/PHB", false, 1);
  is("P2P/NVL", false, 2);
  is("NVLS", false, 2);
  CHECK(transport_class("carrier pigeons").rank < 0);
  const auto verdict = [](const char* used, const char* offered) {
    pb::Outcome out = completed();
    transport(out, used, offered);
    return classify(out).id();
  };
  CHECK(verdict("P2P/PHB", "P2P/NVL") == "B3");
  CHECK(verdict("SHM", "P2P/PHB") == "B3");
  CHECK(verdict("NET/Socket", "NET/IB") == "B3");
  CHECK(verdict("NET/IB", "SHM") == "B3");
  CHECK(verdict("P2P/NVL", "SHM") == kHealthy);
  CHECK(verdict("P2P/NVL", "NET/IB/GDRDMA") == kHealthy);
  CHECK(verdict("NET/IB/GDRDMA", "NET/IB") == kHealthy);
  CHECK(verdict("NET/IB", "unknown") == kHealthy);
  // Of several, each that is slower is named.
  pb::Outcome out = completed();
  transport(out, "P2P/NVL", "P2P/NVL");
  transport(out, "SHM", "P2P/NVL");
  out.mutable_communicators(1)->set_id("second");
  CHECK(all_reasons(out) == "communicator second uses SHM where the platform offers P2P/NVL\n");
}

TEST_CASE("a rule that names a category decides for runs that are refused or wrong",
          "[faults][symptoms]") {
  for (const pb::Verdict verdict : {pb::REJECTED, pb::WRONG_SEMANTICS}) {
    pb::Outcome outcome;
    outcome.set_verdict(verdict);
    finding(outcome, "says-nothing");
    finding(outcome, "a-rule");
    outcome.mutable_findings(1)->set_category("B2");
    outcome.mutable_findings(1)->set_first("rank 3");
    CHECK(classify(outcome).id() == "B2");
    CHECK(all_reasons(outcome) == "a-rule: rank 3\n");
  }
  // Of a run that went as it was told it does not.
  pb::Outcome outcome = completed();
  finding(outcome, "a-rule");
  outcome.mutable_findings(0)->set_category("B2");
  CHECK(classify(outcome).id() == kHealthy);
}

}  // namespace rehearse::classifier_test
