// SPDX-License-Identifier: Apache-2.0
#include "validation/schedule_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/document.hpp"
#include "base/install.hpp"
#include "platforms/model/catalogue.hpp"
#include "sim/simulate.hpp"
#include "sim/timers/settings.hpp"
#include "traces/import/import.hpp"
#include "traces/synth/synth.hpp"
#include "validation/proto/schedules.pb.h"

namespace rehearse::validation {
namespace {

namespace fs = std::filesystem;

constexpr double kBubbleTarget = .05;
constexpr double kTimerTarget = .01;

Result<pb::ScheduleFigures> figures() {
  RH_TRY(const auto file, shipped("validation/figures/schedules.yaml"));
  pb::ScheduleFigures out;
  if (auto read = read_document_file(file.string(), out); !read) {
    return tl::unexpected(read.error());
  }
  return out;
}

Result<traces::Trace> generated(const pb::Synth& written) {
  RH_TRY(pb::Synth options, synth::complete(written));
  RH_TRY(const auto folder, shipped("platforms/catalogue"));
  RH_TRY(const pb::Gpu gpu, platforms::PlatformCatalogue(folder).gpu(options.gpu()));
  return synth::synthesize(options, gpu);
}

// Bytes of the all-reduces of a rank's step, in order.
std::vector<Bytes> all_reduces(const traces::RankTrace& rank, const traces::Step& step) {
  std::vector<Bytes> out;
  for (size_t i = 0; i < rank.ops.size(); ++i) {
    const traces::Call* call = rank.ops.call(i);
    if (call != nullptr && call->collective == traces::Collective::kAllReduce &&
        rank.ops.start[i] >= step.start && rank.ops.start[i] < step.end) {
      out.push_back(call->bytes_in);
    }
  }
  return out;
}

Result<void> compare_buckets(const pb::BucketFigure& figure, const fs::path& data,
                             Reporter& reporter, Check& check) {
  RH_TRY(const traces::Imported recorded,
         traces::import_files({data / figure.file()}, {}, reporter));
  RH_TRY(const traces::Trace made, generated(figure.synth()));
  const traces::RankTrace& rank = recorded.trace.ranks.front();
  if (rank.steps.empty() || made.ranks.front().steps.empty()) {
    return fail(Code::kBadInput, "it has no steps", figure.file(), "");
  }
  const auto predicted = all_reduces(made.ranks.front(), made.ranks.front().steps.front());
  for (size_t s = 0; s < rank.steps.size(); ++s) {
    const auto measured = all_reduces(rank, rank.steps[s]);
    // A step that the recording cuts has fewer.
    if (measured.size() != predicted.size()) continue;
    for (size_t b = 0; b < measured.size(); ++b) {
      check.rows.push_back({fmt::format("{}, step {}, bucket {}", figure.what(), s, b),
                            figure.file(), static_cast<double>(predicted[b]),
                            static_cast<double>(measured[b]), "bytes", figure.file(),
                            "rehearse validate --only buckets --rows", 0, 0});
    }
  }
  if (check.rows.empty()) {
    return fail(Code::kBadInput,
                fmt::format("no recorded step has {} all-reduces", predicted.size()), figure.file(),
                "");
  }
  return {};
}

// Step time over the time that the busiest stage works, less 1.
Result<double> idle_share(const pb::Synth& written, Reporter& reporter) {
  pb::Synth options = written;
  options.set_jitter(0);
  RH_TRY(traces::Trace trace, generated(options));
  RH_TRY(const sim::Scenario scenario,
         sim::scenario_of(std::make_shared<const traces::Trace>(std::move(trace)), "bubble"));
  RH_TRY(const pb::Outcome outcome, sim::simulate(scenario, reporter));
  int64_t busiest = 0, step = 0;
  for (const pb::RankBreakdown& rank : outcome.breakdown()) {
    busiest = std::max(busiest, rank.compute());
    step = std::max(step, rank.step());
  }
  if (busiest == 0) return fail(Code::kInternal, "the simulated pipeline did no work");
  return static_cast<double>(step) / static_cast<double>(busiest) - 1;
}

Check bubble_check(const pb::ScheduleFigures& all, Reporter& reporter) {
  Check check;
  check.id = "pipeline-bubbles";
  check.what = "step time of simulated pipelines over work per stage, against 1 + (p - 1) / (v m)";
  check.target = kBubbleTarget;
  for (const pb::BubbleFigure& figure : all.bubbles()) {
    const pb::Synth& synth = figure.synth();
    const auto share = idle_share(synth, reporter);
    if (!share) {
      check.assumptions.push_back(share.error().what);
      continue;
    }
    check.rows.push_back(
        {fmt::format("{} stages, {} micro-batches, {} chunks per stage", synth.pp(),
                     synth.micro_batches(), std::max(1U, synth.interleave())),
         "", 1 + *share, 1 + figure.share(), "", figure.source(),
         "rehearse validate --only schedules --rows", 0, 0});
  }
  judge_median(check);
  return check;
}

Result<Nanos> timer_of(const pb::TimerFigure& figure) {
  pb::Launch launch;
  launch.set_nccl_version(figure.nccl_version());
  if (figure.framework() == "pytorch") launch.set_framework(pb::PYTORCH);
  if (figure.framework() == "horovod") launch.set_framework(pb::HOROVOD);
  if (figure.backend() == "gloo") launch.set_backend(pb::GLOO);
  Findings findings;
  const sim::RankTimers timers =
      sim::timers_of(launch, {figure.env().begin(), figure.env().end()}, findings);
  const std::string& timer = figure.timer();
  if (timer == "ib") return timers.network.ib_total();
  if (timer == "connect") return timers.network.connect;
  if (timer == "tcp") return timers.network.tcp;
  if (timer == "watchdog") return timers.torch.timeout;
  if (timer == "heartbeat") return timers.torch.heartbeat;
  if (timer == "dump") return timers.torch.dump_wait;
  if (timer == "stall-warning") return timers.horovod.warning;
  return fail(Code::kBadInput, fmt::format("there is no timer '{}'", timer), "schedules.yaml", "");
}

Check timer_check(const pb::ScheduleFigures& all) {
  Check check;
  check.id = "timers";
  check.what = "timers of networks and frameworks against the code they come from";
  check.target = kTimerTarget;
  for (const pb::TimerFigure& figure : all.timers()) {
    const auto time = timer_of(figure);
    if (!time) {
      check.assumptions.push_back(time.error().what);
      continue;
    }
    check.rows.push_back({figure.what(), "", static_cast<double>(*time) * 1e-9,
                          static_cast<double>(figure.time()) * 1e-9, "s", figure.source(),
                          "rehearse validate --only schedules --rows", 0, 0});
  }
  judge_median(check);
  for (const CheckRow& row : check.rows) {
    check.met = check.met && std::abs(row.error()) <= kTimerTarget;
  }
  return check;
}

}  // namespace

std::vector<Check> bucket_checks(const fs::path& data, Reporter& reporter) {
  Check check;
  check.id = "ddp-buckets";
  check.what = "sizes of DDP's gradient buckets against a recorded job";
  const auto all = figures();
  if (!all) return {skipped_check(check.id, check.what, all.error().what)};
  for (const pb::BucketFigure& figure : all->buckets()) {
    if (auto done = compare_buckets(figure, data, reporter, check); !done) {
      check.why = done.error().what;
    }
  }
  judge_median(check);
  for (const CheckRow& row : check.rows) check.met = check.met && row.error() == 0;
  return {check};
}

std::vector<Check> schedule_checks(const fs::path&, Reporter& reporter) {
  const auto all = figures();
  if (!all) return {skipped_check("schedules", "pipelines and timers", all.error().what)};
  return {bubble_check(*all, reporter), timer_check(*all)};
}

}  // namespace rehearse::validation
