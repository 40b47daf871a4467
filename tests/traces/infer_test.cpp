// SPDX-License-Identifier: Apache-2.0
// Order that a trace does not record: all event and synchronisation records are taken out of generated
// traces, and the inferred program is compared with the true one, relation by relation.
#include <algorithm>
#include <catch2/catch.hpp>
#include <iostream>

#include "tests/traces/synth_sample.hpp"
#include "traces/program/program.hpp"

namespace rehearse::infer_test {
using namespace rehearse;
using namespace rehearse::traces;

namespace {

// Per operation and stream: how many operations of that stream, from its first, must have ended
// before it. The lanes of a program are ordered, so this is the whole transitive order.
using Clocks = std::vector<std::vector<uint32_t>>;

Clocks clocks_of(const RankProgram& p) {
  const size_t lanes = p.lanes.size();
  Clocks clock(p.size());
  std::vector<OpId> cursor(p.lane_begin.begin(), p.lane_begin.end() - 1);
  const auto lane_of = [&](OpId op) {
    return static_cast<size_t>(std::upper_bound(p.lane_begin.begin(), p.lane_begin.end(), op) -
                               p.lane_begin.begin() - 1);
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t l = 0; l < lanes; ++l) {
      for (; cursor[l] < p.lane_begin[l + 1]; ++cursor[l]) {
        const OpId op = cursor[l];
        const auto before = p.predecessors(op);
        if (std::any_of(before.begin(), before.end(), [&](OpId b) { return clock[b].empty(); }))
          break;
        std::vector<uint32_t> mine(lanes, 0);
        const auto take = [&](OpId from) {
          for (size_t i = 0; i < lanes; ++i) mine[i] = std::max(mine[i], clock[from][i]);
          const size_t at = lane_of(from);
          mine[at] = std::max(mine[at], from - p.lane_begin[at] + 1);
        };
        if (op > p.lane_begin[l]) take(op - 1);
        for (const OpId from : before) take(from);
        clock[op] = std::move(mine);
        moved = true;
      }
    }
  }
  return clock;
}

struct Score {
  uint64_t truth = 0, kept = 0, inferred = 0, invented = 0;
  [[nodiscard]] double kept_share() const { return double(kept) / double(truth); }
  [[nodiscard]] double invented_share() const { return double(invented) / double(inferred); }
};

// Lanes of streams are the same in both programs.
void compare(const RankProgram& truth, const RankProgram& inferred, Score& score) {
  const Clocks t = clocks_of(truth), i = clocks_of(inferred);
  for (LaneId l = 0; l < truth.lanes.size(); ++l) {
    if (!truth.on_gpu(l)) continue;
    const OpId n = truth.lane_begin[l + 1] - truth.lane_begin[l];
    REQUIRE(inferred.lane_begin[l + 1] - inferred.lane_begin[l] == n);
    for (OpId k = 0; k < n; ++k) {
      const auto& a = t[truth.lane_begin[l] + k];
      const auto& b = i[inferred.lane_begin[l] + k];
      if (a.size() != b.size()) FAIL("an operation waits for itself");
      for (LaneId s = 0; s < truth.lanes.size(); ++s) {
        if (s == l || !truth.on_gpu(s)) continue;
        score.truth += a[s];
        score.inferred += b[s];
        score.kept += std::min(a[s], b[s]);
        score.invented += b[s] > a[s] ? b[s] - a[s] : 0;
      }
    }
  }
}

enum class Strip { kEverything, kIds };

RankTrace stripped(const RankTrace& rank, Strip how) {
  RankTrace out = rank;
  out.ops = {};
  const Operations& ops = rank.ops;
  for (size_t i = 0; i < ops.size(); ++i) {
    const LaneId l = ops.lane[i];
    const uint32_t name = ops.name[i];
    const Nanos start = ops.start[i], duration = ops.duration[i];
    if (const Sync* sync = ops.sync(i)) {
      if (how == Strip::kIds)
        out.ops.add_sync(l, name, start, duration, ops.correlation[i], {sync->sync, -1, 0});
    } else if (const Call* call = ops.call(i)) {
      out.ops.add_call(l, name, start, duration, ops.correlation[i], *call);
    } else if (const Copy* copy = ops.copy(i)) {
      out.ops.add_copy(l, name, start, duration, ops.correlation[i], *copy);
    } else if (const Memory* memory = ops.mem(i)) {
      out.ops.add_memory(l, name, start, *memory);
    } else {
      out.ops.add(ops.kind[i], l, name, start, duration, ops.correlation[i]);
    }
  }
  out.ops.sort();
  return out;
}

struct Case {
  const char* name;
  pb::Synth options;
};

pb::Synth job(const char* model, uint32_t dp, uint32_t tp, uint32_t pp) {
  pb::Synth o;
  o.set_model(model);
  o.set_dp(dp);
  o.set_tp(tp);
  o.set_pp(pp);
  o.set_steps(2);
  if (o.model() == "gpt" || o.model() == "moe") o.set_layers(std::max(8u, 2 * pp));
  return o;
}

std::vector<Case> cases() {
  std::vector<Case> out;
  const auto add = [&](const char* name, const pb::Synth& base, auto change) {
    pb::Synth o = base;
    change(o);
    out.push_back({name, o});
  };
  const auto nothing = [](pb::Synth&) {};
  add("resnet50 ddp", job("resnet50", 16, 1, 1), nothing);
  add("resnet50 horovod", job("resnet50", 16, 1, 1),
      [](pb::Synth& o) { o.set_framework("horovod"); });
  add("resnet50 tensorflow", job("resnet50", 16, 1, 1),
      [](pb::Synth& o) { o.set_framework("tensorflow"); });
  add("dlrm", job("dlrm", 8, 1, 1), nothing);
  add("gpt ddp", job("gpt", 8, 1, 1), nothing);
  add("gpt zero 1", job("gpt", 8, 1, 1), [](pb::Synth& o) { o.set_zero(1); });
  add("gpt zero 2", job("gpt", 8, 1, 1), [](pb::Synth& o) { o.set_zero(2); });
  add("gpt fsdp", job("gpt", 16, 1, 1), [](pb::Synth& o) { o.set_zero(3); });
  add("gpt fsdp small", job("gpt", 16, 1, 1), [](pb::Synth& o) {
    o.set_zero(3);
    o.set_micro_batch(1);
    o.set_sequence(512);
  });
  add("gpt tp", job("gpt", 1, 8, 1), nothing);
  add("gpt tp pp dp", job("gpt", 2, 2, 4), [](pb::Synth& o) { o.set_micro_batches(8); });
  add("gpt interleaved", job("gpt", 1, 1, 4), [](pb::Synth& o) {
    o.set_micro_batches(8);
    o.set_interleave(2);
  });
  add("moe", job("moe", 8, 1, 1), [](pb::Synth& o) { o.set_ep(8); });
  add("resnet50 small buckets", job("resnet50", 8, 1, 1), [](pb::Synth& o) {
    o.set_bucket(1 << 20);
    o.set_micro_batch(8);
  });
  add("dlrm large batch", job("dlrm", 16, 1, 1), [](pb::Synth& o) { o.set_micro_batch(16384); });
  add("gpt fsdp on one node", job("gpt", 4, 1, 1), [](pb::Synth& o) {
    o.set_zero(3);
    o.set_micro_batch(8);
  });
  add("gpt noisy", job("gpt", 4, 2, 2), [](pb::Synth& o) { o.set_jitter(0.3); });
  add("moe with tensor parallelism", job("moe", 4, 2, 1), [](pb::Synth& o) { o.set_ep(4); });
  add("gpt quiet", job("gpt", 4, 2, 1), [](pb::Synth& o) { o.set_jitter(0); });
  return out;
}

void check_inference(Strip how) {
  for (const Case& c : cases()) {
    INFO(c.name);
    const auto trace = synth::synthesize(c.options, synth::sample_gpu());
    REQUIRE(trace);
    Score score, nothing;
    for (size_t r = 0; r < trace->ranks.size(); r += std::max<size_t>(1, trace->ranks.size() / 4)) {
      Findings findings;
      const RankTrace bare = stripped(trace->ranks[r], how);
      const auto truth = build_rank_program(trace->ranks[r], 2, findings);
      const auto inferred = build_rank_program(bare, 2, findings);
      const auto without =
          build_rank_program(bare, 2, {.inferred = InferredEdges::kDrop}, findings);
      REQUIRE(truth);
      REQUIRE(inferred);
      REQUIRE(without);
      CHECK(inferred->inferred_edges > 0);
      CHECK(without->inferred_edges == 0);
      compare(*truth, *inferred, score);
      compare(*truth, *without, nothing);
    }
    if (std::getenv("SCORES") != nullptr) {
      std::cout << c.name << ": " << score.truth << " true, kept " << score.kept_share()
                << ", invented " << score.invented_share() << '\n';
    }
    CHECK(score.truth > 0);
    CHECK(score.kept_share() >= 0.95);
    CHECK(score.invented_share() <= 0.05);
    CHECK(nothing.kept_share() < 0.7);
  }
}

}  // namespace

TEST_CASE("without event and sync records the order of streams is still known",
          "[traces][program]") {
  check_inference(Strip::kEverything);
}

TEST_CASE("event and sync calls without ids give the order of streams", "[traces][program]") {
  check_inference(Strip::kIds);
}

}  // namespace rehearse::infer_test
