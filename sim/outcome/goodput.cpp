// SPDX-License-Identifier: Apache-2.0
// What a useful step costs on machines that fail.
//
//   predicts   expected time per step that is not lost to a failure, and the interval between checkpoints that makes it least
//   inputs     plain step s and stall d of one checkpoint, both from the replay; n steps between checkpoints, time M between
//              failures of any node of the job, restart R: Scenario.failures
//   formula    E = M * exp(R / M) * (exp((n * s + d) / M) - 1) / n; the least is near sqrt(2 * d * M) / s steps
//              (Young 1974, Communications of the ACM 17:9; Daly 2006, Future Generation Computer Systems 22:3)
//   blind      failures come independently and at a constant rate; a restart takes always the same; ranks that write while
//              others compute are taken to stall the job for as long as the slowest of them writes
#include <algorithm>
#include <cmath>

#include "sim/outcome/outcome.hpp"

namespace rehearse::sim {
namespace {

// How long each checkpoint of the run took, on the rank that took longest; in order.
std::vector<Nanos> stalls(const Evidence& evidence) {
  std::vector<Nanos> out;
  for (size_t r = 0; r < evidence.program.ranks.size(); ++r) {
    const auto& transfers = evidence.program.ranks[r].transfers;
    size_t nth = 0;
    for (size_t i = 0; i < transfers.size(); ++i) {
      if (transfers[i].way != traces::Way::kSave) continue;
      const Nanos begin = evidence.replayed.transfer_begin[r][i];
      const Nanos end = evidence.replayed.end[r][transfers[i].op];
      if (out.size() <= nth) out.push_back(0);
      if (begin >= 0 && end >= begin) out[nth] = std::max(out[nth], end - begin);
      ++nth;
    }
  }
  return out;
}

}  // namespace

double expected_step(double step, double stall, double every, double between, double restart) {
  return between * std::exp(restart / between) * std::expm1((every * step + stall) / between) /
         every;
}

void fill_goodput(const pb::Scenario& document, const Evidence& evidence,
                  const std::vector<Nanos>& ends, pb::Outcome& out) {
  const pb::Failures& failures = document.failures();
  const std::vector<Nanos> each = stalls(evidence);
  if (failures.node_mtbf() <= 0 || ends.size() < 2 || each.empty()) return;
  const auto steps = static_cast<double>(ends.size() - 1);
  double sum = 0;
  for (const Nanos stall : each) sum += static_cast<double>(stall);
  const double stall = sum / static_cast<double>(each.size());
  const double step = (static_cast<double>(ends.back() - ends.front()) - sum) / steps;
  const double every = failures.checkpoint_every() > 0 ? failures.checkpoint_every()
                                                       : steps / static_cast<double>(each.size());
  const double between =
      static_cast<double>(failures.node_mtbf()) / document.platform().nodes_size();
  const auto restart = static_cast<double>(failures.restart());
  if (step <= 0) return;
  pb::Goodput& goodput = *out.mutable_goodput();
  goodput.set_job_mtbf_ns(std::llround(between));
  goodput.set_checkpoint_stall_ns(std::llround(stall));
  goodput.set_plain_step_ns(std::llround(step));
  goodput.set_checkpoint_every(static_cast<uint32_t>(std::llround(every)));
  // Beyond what a number holds it never gets done.
  const double useful = expected_step(step, stall, every, between, restart);
  if (useful < 9e18) goodput.set_useful_step_ns(std::llround(useful));
  goodput.set_best_every(
      static_cast<uint32_t>(std::max(1.0, std::round(std::sqrt(2 * stall * between) / step))));
}

}  // namespace rehearse::sim
