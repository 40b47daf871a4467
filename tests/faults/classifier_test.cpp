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

}  // namespace rehearse::classifier_test
