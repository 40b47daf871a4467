// SPDX-License-Identifier: Apache-2.0
// What must hold in every generated trace, whatever its layout.
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <tuple>

#include "synth_sample.hpp"

namespace rehearse::synth::synth_consistency_test {
namespace {

using traces::Call;
using traces::OpKind;
using traces::SyncKind;

struct Job {
  const char* name;
  pb::Synth options;
};

// One job per kind of layout.
std::vector<Job> jobs() {
  std::vector<Job> list;
  const auto gpt = [&](const char* name, auto&& change) {
    pb::Synth o = small_gpt();
    change(o);
    list.push_back({name, o});
  };
  gpt("ddp", [](auto& o) { o.set_dp(4); });
  gpt("tensor and pipeline", [](auto& o) { o.set_dp(2), o.set_tp(2), o.set_pp(2); });
  gpt("four stages", [](auto& o) { o.set_pp(4), o.set_dp(2), o.set_zero(1); });
  gpt("interleaved", [](auto& o) {
    o.set_layers(12), o.set_pp(3), o.set_interleave(2), o.set_micro_batches(6), o.set_dp(2);
  });
  gpt("zero 2", [](auto& o) { o.set_dp(4), o.set_zero(2); });
  gpt("fsdp", [](auto& o) { o.set_dp(4), o.set_zero(3); });
  gpt("fsdp with stages", [](auto& o) { o.set_dp(2), o.set_pp(2), o.set_zero(3); });
  gpt("experts", [](auto& o) {
    o.set_model("moe"), o.set_dp(4), o.set_ep(2), o.set_experts(4), o.set_tp(2), o.set_pp(2);
  });
  for (const char* framework : {"pytorch", "horovod", "tensorflow"}) {
    pb::Synth o = named("resnet50");
    o.set_dp(4);
    o.set_framework(framework);
    list.push_back({framework, o});
  }
  pb::Synth dlrm = named("dlrm");
  dlrm.set_dp(4);
  list.push_back({"dlrm", dlrm});
  return list;
}

traces::Trace make(const pb::Synth& options) {
  auto trace = synthesize(options, sample_gpu());
  REQUIRE(trace);
  return std::move(*trace);
}

struct Seen {
  std::set<traces::RankId> ranks;
  std::set<std::tuple<traces::Collective, Bytes, Bytes, traces::DType, traces::Reduction>>
      signatures;
  std::set<Nanos> ends;
  Nanos latest_start = 0;
};

}  // namespace

TEST_CASE("every collective has exactly its members, one signature and one end",
          "[traces][synth]") {
  for (const Job& job : jobs()) {
    INFO(job.name);
    const auto trace = make(job.options);
    std::map<std::pair<uint32_t, int64_t>, Seen> collectives;
    for (const auto& rank : trace.ranks) {
      std::map<uint32_t, int64_t> next;
      for (size_t i = 0; i < rank.ops.size(); ++i) {
        const Call* call = rank.ops.call(i);
        if (!call || is_point_to_point(call->collective)) continue;
        CHECK(call->sequence == next[call->communicator]++);
        Seen& seen = collectives[{call->communicator, call->sequence}];
        CHECK(seen.ranks.insert(rank.rank).second);
        seen.signatures.insert(
            {call->collective, call->bytes_in, call->bytes_out, call->dtype, call->reduction});
        seen.ends.insert(rank.ops.start[i] + rank.ops.duration[i]);
        seen.latest_start = std::max(seen.latest_start, rank.ops.start[i]);
      }
    }
    REQUIRE_FALSE(collectives.empty());
    for (const auto& [key, seen] : collectives) {
      const auto& members = trace.communicators[key.first].members;
      CHECK(seen.ranks == std::set<traces::RankId>(members.begin(), members.end()));
      CHECK(seen.signatures.size() == 1);
      CHECK(seen.ends.size() == 1);
      CHECK(*seen.ends.begin() > seen.latest_start);
    }
  }
}

TEST_CASE("every send has its receive with the same bytes and end", "[traces][synth]") {
  for (const Job& job : jobs()) {
    if (job.options.pp() < 2) continue;
    INFO(job.name);
    const auto trace = make(job.options);
    // communicator, from, to, number -> bytes, end
    using Key = std::tuple<uint32_t, int32_t, int32_t, int64_t>;
    std::map<Key, std::pair<Bytes, Nanos>> sent, received;
    for (const auto& rank : trace.ranks)
      for (size_t i = 0; i < rank.ops.size(); ++i) {
        const Call* call = rank.ops.call(i);
        if (!call || !is_point_to_point(call->collective)) continue;
        const auto& members = trace.communicators[call->communicator].members;
        const auto here = static_cast<int32_t>(
            std::find(members.begin(), members.end(), rank.rank) - members.begin());
        const Nanos end = rank.ops.start[i] + rank.ops.duration[i];
        if (call->collective == traces::Collective::kSend)
          sent[{call->communicator, here, call->peer, call->sequence}] = {call->bytes_in, end};
        else
          received[{call->communicator, call->peer, here, call->sequence}] = {call->bytes_out, end};
      }
    CHECK_FALSE(sent.empty());
    CHECK(sent == received);
  }
}

TEST_CASE("operations are sorted, lanes never do two things at once", "[traces][synth]") {
  for (const Job& job : jobs()) {
    INFO(job.name);
    const auto trace = make(job.options);
    for (const auto& rank : trace.ranks) {
      std::vector<Nanos> busy(rank.lanes.size(), 0);
      Nanos previous = 0;
      size_t wrong = 0;
      for (size_t i = 0; i < rank.ops.size(); ++i) {
        wrong += rank.ops.start[i] < previous;
        previous = rank.ops.start[i];
        if (rank.ops.kind[i] == OpKind::kAnnotation) continue;
        Nanos& until = busy[rank.ops.lane[i]];
        wrong += rank.ops.start[i] < until;
        wrong += rank.ops.duration[i] < 0;
        until = rank.ops.start[i] + rank.ops.duration[i];
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("work on a stream starts after its launch and after the events its stream waits for",
          "[traces][synth]") {
  for (const Job& job : jobs()) {
    INFO(job.name);
    const auto trace = make(job.options);
    for (const auto& rank : trace.ranks) {
      const auto& ops = rank.ops;
      // Issue order is the order of correlation ids.
      std::map<int64_t, std::pair<size_t, size_t>> issued;  // host call, work
      constexpr size_t kNone = SIZE_MAX;
      for (size_t i = 0; i < ops.size(); ++i) {
        if (ops.correlation[i] == 0) continue;
        auto& entry = issued.try_emplace(ops.correlation[i], kNone, kNone).first->second;
        (rank.lanes[ops.lane[i]].kind == traces::LaneKind::kHostThread ? entry.first
                                                                       : entry.second) = i;
      }
      std::vector<Nanos> done(rank.lanes.size(), 0);
      std::map<uint64_t, Nanos> events;
      size_t wrong = 0;
      for (const auto& [correlation, entry] : issued) {
        const auto [call, work] = entry;
        if (call == kNone) {
          ++wrong;
        } else if (const traces::Sync* sync = ops.sync(call)) {
          if (sync->sync == SyncKind::kRecord) {
            events[sync->event] = done[static_cast<size_t>(sync->stream_lane)];
          } else if (sync->sync == SyncKind::kWaitEvent) {
            wrong += events.count(sync->event) == 0;
            Nanos& lane = done[static_cast<size_t>(sync->stream_lane)];
            lane = std::max(lane, events[sync->event]);
          } else {
            const Nanos end = ops.start[call] + ops.duration[call];
            if (sync->sync == SyncKind::kEvent) wrong += end < events[sync->event];
            if (sync->sync == SyncKind::kDevice)
              for (Nanos lane : done) wrong += end < lane;
          }
        } else if (work == kNone) {
          ++wrong;
        } else {
          wrong += ops.start[work] < ops.start[call] + ops.duration[call];
          wrong += ops.start[work] < done[ops.lane[work]];
          done[ops.lane[work]] = ops.start[work] + ops.duration[work];
        }
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("steps are recorded and annotated, activations are freed within their step",
          "[traces][synth]") {
  for (const Job& job : jobs()) {
    INFO(job.name);
    const auto trace = make(job.options);
    for (const auto& rank : trace.ranks) {
      REQUIRE(rank.steps.size() == 2);
      CHECK(rank.steps[0].end <= rank.steps[1].start);
      Bytes live = 0;
      int annotations = 0;
      for (size_t i = 0; i < rank.ops.size(); ++i) {
        const std::string& name = trace.strings.at(rank.ops.name[i]);
        if (name.rfind("ProfilerStep#", 0) == 0) {
          const auto& step = rank.steps[static_cast<size_t>(annotations++)];
          CHECK(rank.ops.start[i] == step.start);
          CHECK(rank.ops.start[i] + rank.ops.duration[i] == step.end);
        }
        if (const traces::Memory* memory = rank.ops.mem(i)) live += memory->bytes;
        CHECK(live >= 0);
      }
      CHECK(annotations == 2);
      Bytes kept = 0;
      for (size_t i = 0; i < rank.ops.size(); ++i)
        if (const traces::Memory* memory = rank.ops.mem(i))
          if (trace.strings.at(rank.ops.name[i]) != "activations" &&
              trace.strings.at(rank.ops.name[i]) != "unsharded parameters")
            kept += memory->bytes;
      CHECK(live == kept);
      CHECK(kept > 0);
    }
  }
}

TEST_CASE("the loss of a sharded job takes fp32 logits and their gradient while it works",
          "[traces][synth]") {
  pb::Synth options = small_gpt();
  options.set_dp(4);
  options.set_vocabulary(51200);  // a multiple of 128: nothing is padded
  const auto peak = [&](uint32_t zero) {
    options.set_zero(zero);
    const auto trace = make(options);
    Bytes live = 0, most = 0;
    for (size_t i = 0; i < trace.ranks[0].ops.size(); ++i) {
      const traces::Memory* memory = trace.ranks[0].ops.mem(i);
      if (!memory || trace.strings.at(trace.ranks[0].ops.name[i]) != "activations") continue;
      live += memory->bytes;
      most = std::max(most, live);
    }
    CHECK(live == 0);
    return most;
  };
  const auto logits = static_cast<Bytes>(options.micro_batch()) * options.sequence() * 51200;
  CHECK(peak(3) - peak(0) == 4 * logits);
}

TEST_CASE("the same options give the same trace, another seed another one", "[traces][synth]") {
  pb::Synth options = small_gpt();
  options.set_tp(2);
  options.set_pp(2);
  const auto a = make(options), b = make(options);
  for (size_t r = 0; r < a.ranks.size(); ++r) {
    CHECK(a.ranks[r].ops.start == b.ranks[r].ops.start);
    CHECK(a.ranks[r].ops.duration == b.ranks[r].ops.duration);
  }
  options.set_seed(1);
  const auto c = make(options);
  CHECK(a.ranks[0].ops.size() == c.ranks[0].ops.size());
  CHECK(a.ranks[0].ops.duration != c.ranks[0].ops.duration);
  CHECK(a.ranks[0].ops.duration != a.ranks[1].ops.duration);
}

TEST_CASE("without jitter ranks of one stage differ in nothing but their communicators",
          "[traces][synth]") {
  pb::Synth options = small_gpt();
  options.set_tp(4);
  options.set_jitter(0);
  const auto trace = make(options);
  for (const auto& rank : trace.ranks) {
    CHECK(rank.ops.start == trace.ranks[0].ops.start);
    CHECK(rank.ops.duration == trace.ranks[0].ops.duration);
  }
}

TEST_CASE("idle time of the compute stream follows the bubble", "[traces][synth]") {
  pb::Synth options = small_gpt();
  options.set_layers(8);
  options.set_hidden(4096);
  options.set_heads(32);
  options.set_sequence(2048);
  options.set_vocabulary(128);
  options.set_pp(4);
  options.set_micro_batches(8);
  options.set_jitter(0);
  options.set_steps(1);
  const auto trace = make(options);
  const auto& rank = trace.ranks[1];
  Nanos busy = 0, first = 0, last = 0;
  for (size_t i = 0; i < rank.ops.size(); ++i) {
    if (trace.strings.at(rank.lanes[rank.ops.lane[i]].name) != "compute") continue;
    const std::string& name = trace.strings.at(rank.ops.name[i]);
    if (name.rfind("multi_tensor", 0) == 0) break;
    if (first == 0) first = rank.ops.start[i];
    busy += rank.ops.duration[i];
    last = rank.ops.start[i] + rank.ops.duration[i];
  }
  // Stage 1 of 4 waits for one forward before its first pass and ends one backward before the last:
  // of the bubble of 3 of 8 it sees 2 inside its own span.
  const double idle = double(last - first - busy) / double(busy);
  CHECK(idle == Approx(2.0 / 8).margin(0.06));
}

}  // namespace rehearse::synth::synth_consistency_test
