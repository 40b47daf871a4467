// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <fstream>

#include "tests/temporary_folder.hpp"
#include "validation/step_time/fit.hpp"
#include "validation/step_time/rows.hpp"

namespace rehearse::validation::step_time_test {
namespace {

TransformerJob job() {
  TransformerJob out;
  out.layers = 32;
  out.hidden = 4096;
  out.layer_parameters = 12 * 4096.0 * 4096.0;
  out.vocabulary = 50368;
  out.sequence = 2048;
  out.micro_batch = 4;
  out.micro_batches = 8;
  out.peak = 312e12;
  out.memory_bandwidth = 2e12;
  return out;
}

double seconds(const TransformerJob& of) { return step_seconds(terms_of(of), StepRates{}); }

}  // namespace

TEST_CASE("a pipeline's step grows by its bubble and shrinks by its stages",
          "[validation][steps]") {
  TransformerJob one = job(), four = job(), interleaved = job();
  one.vocabulary = four.vocabulary = interleaved.vocabulary = 0;
  four.pp = interleaved.pp = 4;
  interleaved.chunks = 2;
  CHECK(seconds(four) / seconds(one) == Approx((1 + 3.0 / 8) / 4));
  CHECK(seconds(interleaved) / seconds(one) == Approx((1 + 3.0 / 16) / 4));
}

TEST_CASE("recomputing everything costs a forward more, tensor ranks share the work",
          "[validation][steps]") {
  TransformerJob plain = job(), again = job(), tensor = job();
  again.recompute = Recompute::kFull;
  tensor.tp = 2;
  CHECK(seconds(again) > 1.2 * seconds(plain));
  CHECK(seconds(again) < 1.4 * seconds(plain));
  CHECK(seconds(tensor) == Approx(seconds(plain) / 2));
}

TEST_CASE("a fit finds the rates of a GPU", "[validation][steps]") {
  StepRates truth;
  truth.gemm = .7;
  truth.attention = .25;
  truth.passes = 150;
  std::vector<MeasuredStep> steps;
  for (const double hidden : {1024.0, 4096.0, 8192.0}) {
    for (const double sequence : {512.0, 2048.0, 32768.0}) {
      TransformerJob one = job();
      one.hidden = hidden;
      one.layer_parameters = 12 * hidden * hidden;
      one.sequence = sequence;
      steps.push_back({terms_of(one), step_seconds(terms_of(one), truth)});
    }
  }
  steps.front().seconds *= 3;  // one wild row
  const StepRates found = fit_rates(steps);
  CHECK(found.gemm == Approx(.7).epsilon(.03));
  CHECK(found.attention == Approx(.25).epsilon(.05));
  CHECK(found.passes == Approx(150).epsilon(.1));
  CHECK(fit_rates({steps[0]}).gemm == StepRates{}.gemm);
}

TEST_CASE("rows that do not state enough are left out with the reason", "[validation][steps]") {
  const tests::TemporaryFolder folder;
  const auto file = folder.path / "megatron.csv";
  std::ofstream(file) << "case,hardware,median_after_warmup_s,num-layers,hidden-size,seq-length,"
                         "micro-batch-size,global-batch-size,tensor-model-parallel-size\n"
                         "gpt/a,A100,0.5,12,512,1024,4,32,2\n"
                         "gpt/b,,0.5,12,512,1024,4,32,2\n"
                         "moe/c,A100,0.5,12,512,1024,4,32,2\n"
                         "gpt/d,A100,0.5,,512,1024,4,32,2\n"
                         "gpt/e,A100,0.5,12,512,1024,4,32,16\n";
  const auto steps = megatron_steps(file);
  REQUIRE(steps);
  CHECK(steps->steps.size() == 1);
  CHECK(steps->steps[0].job.micro_batches == 2);
  CHECK(steps->left_out.size() == 4);
}

}  // namespace rehearse::validation::step_time_test
