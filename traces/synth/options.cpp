// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "base/units.hpp"
#include "traces/synth/synth.hpp"

namespace rehearse::synth {
namespace {

// Operations per rank before giving up; about 2.5 GB of memory while a rank is made.
constexpr double kMaxOperations = 4e7;

template <typename T, typename Set>
void fill(T value, T fallback, Set&& set) {
  if (value == T{}) set(fallback);
}

Result<void> one_of(const char* field, const std::string& value,
                    const std::vector<std::string>& accepted) {
  if (std::find(accepted.begin(), accepted.end(), value) != accepted.end()) return {};
  const std::string close = nearest(value, accepted);
  return fail(
      Code::kBadInput, fmt::format("unknown {} \"{}\"", field, value), field,
      close.empty() ? "use " + join_words(accepted) : fmt::format("did you mean \"{}\"?", close));
}

struct Divisible {
  const char* what;
  uint64_t value;
  const char* by;
  uint64_t divisor;
};

Result<void> check(const Divisible& d) {
  if (d.value % d.divisor == 0) return {};
  const uint64_t up = (d.value + d.divisor - 1) / d.divisor * d.divisor;
  return fail(Code::kBadInput,
              fmt::format("{} = {} is not divisible by {} = {}", d.what, d.value, d.by, d.divisor),
              d.what, fmt::format("use {} = {}, or another {}", d.what, up, d.by));
}

// The first of several checks that failed.
Result<void> all_of(std::initializer_list<Result<void>> checks) {
  for (const Result<void>& c : checks)
    if (!c) return c;
  return {};
}

bool transformer(const pb::Synth& o) { return o.model() == "gpt" || o.model() == "moe"; }

void fill_layout(pb::Synth& o) {
  const bool laid_out = o.tp() > 1 || o.pp() > 1 || o.dp() > 0;
  fill(o.tp(), 1u, [&](auto v) { o.set_tp(v); });
  fill(o.pp(), 1u, [&](auto v) { o.set_pp(v); });
  fill(o.dp(), laid_out ? std::max(1u, o.ep()) : std::max(8u, o.ep()),
       [&](auto v) { o.set_dp(v); });
  fill(o.interleave(), 1u, [&](auto v) { o.set_interleave(v); });
  if (o.model() == "moe") {
    fill(o.experts(), 8u, [&](auto v) { o.set_experts(v); });
    fill(o.top_k(), std::min(2u, o.experts()), [&](auto v) { o.set_top_k(v); });
    fill(o.ep(), std::min(o.dp(), o.experts()), [&](auto v) { o.set_ep(v); });
  }
  fill(o.ep(), 1u, [&](auto v) { o.set_ep(v); });
  fill(o.gpus_per_node(), 8u, [&](auto v) { o.set_gpus_per_node(v); });
}

void fill_model(pb::Synth& o) {
  if (transformer(o)) {
    fill(o.layers(), 24u, [&](auto v) { o.set_layers(v); });
    fill(o.hidden(), 2048u, [&](auto v) { o.set_hidden(v); });
    fill(o.heads(), std::max(1u, o.hidden() / 128), [&](auto v) { o.set_heads(v); });
    fill(o.vocabulary(), 51200u, [&](auto v) { o.set_vocabulary(v); });
    fill(o.sequence(), 2048u, [&](auto v) { o.set_sequence(v); });
    fill(o.micro_batch(), 4u, [&](auto v) { o.set_micro_batch(v); });
    fill(o.micro_batches(), 8u, [&](auto v) { o.set_micro_batches(v); });
  } else if (o.model() == "dlrm") {
    const uint64_t ranks = std::max<uint64_t>(1, o.dp());
    const uint64_t tables = (26 + ranks - 1) / ranks * ranks;  // Criteo has 26 features
    fill(o.tables(), static_cast<uint32_t>(tables), [&](auto v) { o.set_tables(v); });
    fill(o.embedding(), 128u, [&](auto v) { o.set_embedding(v); });
    fill(o.vocabulary(), 1'000'000u, [&](auto v) { o.set_vocabulary(v); });
    fill(o.micro_batch(), 2048u, [&](auto v) { o.set_micro_batch(v); });
  } else {
    fill(o.micro_batch(), 64u, [&](auto v) { o.set_micro_batch(v); });
  }
  fill(o.micro_batches(), 1u, [&](auto v) { o.set_micro_batches(v); });
}

void fill_run(pb::Synth& o) {
  fill(o.steps(), 2u, [&](auto v) { o.set_steps(v); });
  const Bytes bucket = (o.framework() == "tensorflow" ? Bytes{32} : Bytes{25}) << 20;
  fill(o.bucket(), bucket, [&](auto v) { o.set_bucket(v); });
  fill(o.first_bucket(), std::min<Bytes>(Bytes{1} << 20, o.bucket()),
       [&](auto v) { o.set_first_bucket(v); });
  if (o.gpu().empty()) o.set_gpu("h100-sxm5");
  if (o.dtype().empty()) o.set_dtype(o.model() == "dlrm" ? "tf32" : "bf16");
  if (!o.has_jitter()) o.set_jitter(0.02);
  if (o.framework() != "horovod") return;
  // Defaults of Horovod 0.21 and later.
  fill(o.fusion(), Bytes{128} << 20, [&](auto v) { o.set_fusion(v); });
  fill(o.cycle(), Nanos{1'000'000}, [&](auto v) { o.set_cycle(v); });
}

Result<void> check_size(const pb::Synth& o) {
  const uint64_t ranks = uint64_t{o.tp()} * o.dp() * o.pp();
  // Each factor is at most 65,536 (synth.proto), so the product fits.
  if (o.tp() > kMaxRanks || o.dp() > kMaxRanks || o.pp() > kMaxRanks || ranks > kMaxRanks)
    return fail(Code::kLimit,
                fmt::format("dp * tp * pp = {} ranks, at most {} can be generated",
                            format_count(ranks), format_count(kMaxRanks)),
                "dp, tp, pp",
                "generate a smaller job and grow it with the grow-data-parallel patch");
  const double layers = transformer(o) ? double(o.layers()) / o.pp() + 2 : 250;
  // About 100 operations per layer and micro-batch.
  const double operations = layers * o.micro_batches() * o.steps() * 100;
  if (operations > kMaxOperations)
    return fail(Code::kLimit,
                fmt::format("about {:.3g} operations per rank, at most {:.3g} can be generated",
                            operations, kMaxOperations),
                "steps, micro_batches, layers", "ask for fewer steps or micro-batches");
  return {};
}

// Sizes that no machine has; kept small enough that every product of them fits int64.
Result<void> check_magnitude(const pb::Synth& o) {
  const double batch = o.micro_batch(), h = o.hidden(), words = o.vocabulary(), t = o.tables();
  const double samples = transformer(o) ? batch * o.sequence() : batch;
  const double largest =
      transformer(o) ? std::max({samples * h * std::max(1u, o.top_k()) * 34, samples * words * 4,
                                 samples * o.sequence() * h, h * words * 12,
                                 12 * h * h * o.layers() * std::max(1u, o.experts()) * 12})
                     : std::max({samples * 224 * 224 * 1024,
                                 samples * (t + 1) * (t + 1) * (o.embedding() + 1.0) * 16,
                                 t * words * o.embedding() * 4, t * t * 4096});
  if (largest <= 1e17) return {};
  return fail(Code::kLimit, "one rank would need more than any GPU has",
              "micro_batch, sequence, hidden, vocabulary, tables, embedding",
              "use a smaller model or micro-batch");
}

Result<void> check_data_parallel_only(const pb::Synth& o, const std::string& why) {
  if (o.tp() == 1 && o.pp() == 1 && o.ep() == 1 && o.zero() == 0 && o.interleave() == 1) return {};
  return fail(Code::kBadInput, why + " is data parallel only", "tp, pp, ep, zero, interleave",
              "leave these out and use dp");
}

Result<void> check_interleaving(const pb::Synth& o) {
  if (o.interleave() == 1) return {};
  if (o.pp() < 3)
    return fail(
        Code::kBadInput,
        "an interleaved schedule needs at least 3 stages: with 2, activations and gradients "
        "would cross between the same pair of ranks in no common order",
        "interleave", "use pp >= 3 or interleave = 1");
  return check({"micro_batches", o.micro_batches(), "pp", o.pp()});
}

Result<void> check_experts(const pb::Synth& o) {
  if (o.model() == "gpt") {
    if (o.ep() == 1 && o.experts() == 0) return {};
    return fail(Code::kBadInput, "gpt has no experts", o.ep() > 1 ? "ep" : "experts",
                "use model moe");
  }
  if (o.top_k() > o.experts())
    return fail(Code::kBadInput, fmt::format("top_k = {} of {} experts", o.top_k(), o.experts()),
                "top_k", "route each token to at most all experts");
  if (o.zero() > 1)
    return fail(Code::kBadInput, "moe shards optimizer states only", "zero", "use zero = 0 or 1");
  return all_of(
      {check({"experts", o.experts(), "ep", o.ep()}), check({"dp", o.dp(), "ep", o.ep()})});
}

Result<void> check_model(const pb::Synth& o) {
  if (!transformer(o))
    return all_of(
        {check_data_parallel_only(o, "model " + o.model()),
         o.model() == "dlrm" ? check({"tables", o.tables(), "dp", o.dp()}) : Result<void>{}});
  return all_of(
      {check({"layers", o.layers(), "pp * interleave", uint64_t{o.pp()} * o.interleave()}),
       check({"heads", o.heads(), "tp", o.tp()}), check({"hidden", o.hidden(), "heads", o.heads()}),
       check_interleaving(o), check_experts(o),
       o.framework() == "pytorch" ? Result<void>{}
                                  : check_data_parallel_only(o, "framework " + o.framework())});
}

// What was asked for and would change nothing.
Result<void> check_foreign(const pb::Synth& o) {
  const bool gpt = transformer(o), dlrm = o.model() == "dlrm", horovod = o.framework() == "horovod";
  struct Option {
    const char* name;
    bool given, known;
    const char* whose;
  };
  const Option options[] = {
      {"layers", o.layers() > 0, gpt, "gpt and moe"},
      {"hidden", o.hidden() > 0, gpt, "gpt and moe"},
      {"heads", o.heads() > 0, gpt, "gpt and moe"},
      {"sequence", o.sequence() > 0, gpt, "gpt and moe"},
      {"vocabulary", o.vocabulary() > 0, gpt || dlrm, "gpt, moe and dlrm"},
      {"experts", o.experts() > 0, o.model() == "moe", "moe"},
      {"top_k", o.top_k() > 0, o.model() == "moe", "moe"},
      {"tables", o.tables() > 0, dlrm, "dlrm"},
      {"embedding", o.embedding() > 0, dlrm, "dlrm"},
      {"fusion", o.fusion() != 0, horovod, "framework horovod"},
      {"cycle", o.cycle() != 0, horovod, "framework horovod"},
  };
  for (const Option& option : options) {
    if (!option.given || option.known) continue;
    return fail(Code::kBadInput,
                fmt::format("{} belongs to {}, not to {} in {}", option.name, option.whose,
                            o.model(), o.framework()),
                option.name, "leave it out");
  }
  return {};
}

Result<void> check_values(const pb::Synth& o) {
  if (o.zero() > 3)
    return fail(Code::kBadInput, fmt::format("zero = {}", o.zero()), "zero",
                "ZeRO has stages 1 to 3; 0 is plain data parallel");
  if (!(o.jitter() >= 0 && o.jitter() <= 1))
    return fail(Code::kBadInput, fmt::format("jitter = {}", o.jitter()), "jitter",
                "use a share between 0 and 1");
  if (o.bucket() < 0 || o.first_bucket() < 0 || o.fusion() < 0 || o.cycle() < 0)
    return fail(Code::kBadInput, "a negative size or time", "bucket, first_bucket, fusion, cycle",
                "use a positive value, or leave it out for the default");
  return one_of("dtype", o.dtype(), {"fp32", "tf32", "fp16", "bf16", "fp8"});
}

}  // namespace

Result<pb::Synth> complete(const pb::Synth& options) {
  pb::Synth o = options;
  if (o.model().empty())
    return fail(Code::kUsage, "no model given", "model", "use gpt, moe, resnet50 or dlrm");
  if (o.framework().empty()) o.set_framework("pytorch");
  const auto named =
      all_of({one_of("model", o.model(), {"gpt", "moe", "resnet50", "dlrm"}),
              one_of("framework", o.framework(), {"pytorch", "horovod", "tensorflow"})});
  if (!named) return tl::unexpected(named.error());
  if (auto own = check_foreign(o); !own) return tl::unexpected(own.error());
  fill_layout(o);
  fill_model(o);
  fill_run(o);
  const auto sound = all_of({check_values(o), check_size(o), check_magnitude(o), check_model(o)});
  if (!sound) return tl::unexpected(sound.error());
  return o;
}

}  // namespace rehearse::synth
