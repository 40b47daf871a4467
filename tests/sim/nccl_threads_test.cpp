// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/threads.hpp"
#include "tests/sim/nccl_fixture.hpp"

namespace rehearse::nccl_threads_test {
using namespace rehearse::sim;
using namespace rehearse::sim::testing;

namespace {

constexpr auto kAr = Function::kAllReduce;
constexpr auto kRing = Algorithm::kRing;
constexpr auto kSimple = Protocol::kSimple;

Launch launch(const NcclModel& model, std::int64_t bytes, Algorithm a, Protocol p) {
  return launch_for(model, call_of(kAr, bytes, DataType::kInt8), a, p);
}

}  // namespace

TEST_CASE("small calls give up channels first, then threads", "[nccl][thread-count]") {
  const NcclModel model = model_of(nodes_of(1, 8));
  const Launch large = launch(model, 1 << 26, kRing, kSimple);
  CHECK(large.channels == 16);
  CHECK(large.threads == 544);
  const Launch middle = launch(model, 512 * 64 * 3, kRing, kSimple);
  CHECK(middle.channels == 3);
  CHECK(middle.threads == 544);
  const Launch small = launch(model, 64 * 128, kRing, kSimple);
  CHECK(small.channels == 1);
  CHECK(small.threads == 128 + 32);
  CHECK(launch(model, 8, kRing, Protocol::kLl).threads == 96);
  CHECK(block_threads(96) == 128);
  CHECK(block_threads(544) == 544);
}

TEST_CASE("trees and PAT always run all threads", "[nccl][thread-count]") {
  const NcclModel model = model_of(nodes_of(8, 1));
  for (const Protocol p : kProtocols) {
    CHECK(launch(model, 8, Algorithm::kTree, p).threads == 640);
  }
  const Launch pat = launch(model, 8, Algorithm::kPat, kSimple);
  CHECK(pat.threads == 640);
  CHECK(pat.channels == 16);
}

TEST_CASE("a slow ring runs 256 threads", "[nccl][thread-count]") {
  CommShape shape = nodes_of(1, 4, 80);
  shape.ring = graph(1, 12, 12);
  CHECK(max_threads(model_of(shape), kRing, kSimple) == 256);
  shape.ring.n_channels = 2;
  CHECK(max_threads(model_of(shape), kRing, kSimple) == 512);
}

TEST_CASE("NVLS runs on its own channels, between nodes on no more than the communicator's",
          "[nccl][thread-count]") {
  CommShape shape = with_collnet(nodes_of(2, 8));
  shape.nvls_channels = 24;
  CHECK(launch(model_of(shape), 1 << 20, Algorithm::kNvls, kSimple).channels == 16);
  CHECK(launch(model_of(shape), 1 << 20, Algorithm::kNvlsTree, kSimple).channels == 24);
  shape.nvls_channels = 8;
  CHECK(launch(model_of(shape), 1 << 20, Algorithm::kNvls, kSimple).channels == 8);
}

TEST_CASE("NCCL_NTHREADS is clamped and rounded as NCCL does", "[nccl][thread-count]") {
  const auto threads = [](const char* value) {
    return max_threads(model_of(nodes_of(1, 8), {{"NCCL_NTHREADS", value}}), kRing, kSimple);
  };
  CHECK(threads("256") == 256);
  CHECK(threads("32") == 64);
  CHECK(threads("1024") == 512);
  CHECK(threads("100") == 512);
  CHECK(threads("0") == 512);
  CHECK(threads("many") == 512);
  const NcclModel model =
      model_of(nodes_of(1, 8), {{"NCCL_NTHREADS", "128"}, {"NCCL_LL128_NTHREADS", "96"}});
  CHECK(max_threads(model, kRing, Protocol::kLl) == 128);
  CHECK(max_threads(model, Algorithm::kTree, kSimple) == 128);
  CHECK(max_threads(model, kRing, Protocol::kLl128) == 160);
  CHECK(max_threads(model, Algorithm::kNvls, kSimple) == 640);
}

TEST_CASE("NCCL_THREAD_THRESHOLDS overrides what it names and leaves the rest",
          "[nccl][thread-count]") {
  const NcclModel model = model_of(nodes_of(1, 8), {{"NCCL_THREAD_THRESHOLDS", "1 2 3 4 -2 99"}});
  CHECK(thread_threshold(model, Algorithm::kTree, Protocol::kLl) == 1);
  CHECK(thread_threshold(model, Algorithm::kTree, Protocol::kLl128) == 2);
  CHECK(thread_threshold(model, Algorithm::kTree, kSimple) == 3);
  CHECK(thread_threshold(model, kRing, Protocol::kLl) == 4);
  CHECK(thread_threshold(model, kRing, Protocol::kLl128) == 8);
  CHECK(thread_threshold(model, kRing, kSimple) == 99);
  CHECK(thread_threshold(model, Algorithm::kCollnetChain, kSimple) == 512);
  const NcclModel part = model_of(nodes_of(1, 8), {{"NCCL_THREAD_THRESHOLDS", "7 x"}});
  CHECK(thread_threshold(part, Algorithm::kTree, Protocol::kLl) == 7);
  CHECK(thread_threshold(part, kRing, Protocol::kLl) == 64);
}

}  // namespace rehearse::nccl_threads_test
