// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <numeric>

#include "synth_sample.hpp"
#include "traces/synth/gradients.hpp"
#include "traces/synth/models.hpp"

namespace rehearse::synth::synth_resnet50_test {

TEST_CASE("ResNet-50 has 25,557,032 parameters in 161 tensors", "[traces][synth]") {
  const auto elements = resnet50_parameters();
  CHECK(elements.size() == 161);
  CHECK(std::accumulate(elements.begin(), elements.end(), Bytes{0}) == 25'557'032);
}

TEST_CASE("buckets close when they reach their limit, the first at its own", "[traces][synth]") {
  const std::vector<Bytes> tensors = {4, 8, 3, 3, 3, 20, 1};
  const auto result = buckets(tensors, 10, 9);
  const std::vector<std::vector<uint32_t>> expected = {{0, 1}, {2, 3, 4}, {5}, {6}};
  CHECK(result == expected);
  CHECK(buckets({}, 10, 9).empty());
}

TEST_CASE("ResNet-50 gradients fill the buckets that PyTorch fills", "[traces][synth]") {
  pb::Synth options = named("resnet50");
  options.set_dp(2);
  options.set_steps(1);
  const auto trace = synthesize(options, sample_gpu());
  REQUIRE(trace);
  std::vector<Bytes> elements;
  for (const traces::Call& call : trace->ranks[0].ops.calls) {
    CHECK(call.collective == traces::Collective::kAllReduce);
    CHECK(call.dtype == traces::DType::kFp32);
    elements.push_back(call.bytes_in / 4);
  }
  // As recorded in kineto/ddp_resnet_a100_rank0of2.
  const std::vector<Bytes> recorded = {2049000, 7875584, 6563840, 6637568, 2431040};
  CHECK(elements == recorded);
}

TEST_CASE("bucket all-reduces overlap with the backward pass", "[traces][synth]") {
  pb::Synth options = named("resnet50");
  options.set_dp(8);
  options.set_steps(1);
  const auto trace = synthesize(options, sample_gpu());
  REQUIRE(trace);
  const auto& ops = trace->ranks[0].ops;
  Nanos first_call = 0, last_backward = 0;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (ops.call(i) && first_call == 0) first_call = ops.start[i];
    if (trace->strings.at(ops.name[i]) == "conv_wgrad") last_backward = ops.start[i];
  }
  CHECK(first_call > 0);
  CHECK(first_call < last_backward);
}

}  // namespace rehearse::synth::synth_resnet50_test
