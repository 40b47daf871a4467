// SPDX-License-Identifier: Apache-2.0
// Any first line as a path into a scenario and the rest as its value, as --set takes them. A refusal leaves
// the message as it was; what was set can be got.
#include <google/protobuf/util/message_differencer.h>

#include <string>

#include "base/document.hpp"
#include "sim/proto/scenario.pb.h"
#include "tests/fuzz/reader_fuzz.hpp"

using namespace rehearse;

namespace {

constexpr std::string_view kScenario = R"(
name: fuzz
platform:
  nodes:
    - name: a
      gpus: [{name: g0}, {name: g1}]
      nics: [{name: mlx5_0, bandwidth: 100Gbps}, {name: mlx5_1}]
    - name: b
      gpus: [{name: g0}]
launch:
  framework: pytorch
  env: {NCCL_DEBUG: INFO}
  ranks: [{rank: 0}, {rank: 1, env: {NCCL_ALGO: Ring}}]
)";

pb::Scenario scenario() {
  pb::Scenario out;
  if (!read_document(kScenario, "scenario", out)) __builtin_trap();
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const pb::Scenario before = scenario();
  const std::string_view bytes = traces::fuzz_bytes(data, size);
  const size_t line = bytes.find('\n');
  const std::string_view path = bytes.substr(0, line);
  const std::string_view value =
      line == std::string_view::npos ? std::string_view() : bytes.substr(line + 1);
  pb::Scenario message = before;
  const auto set = set_path(message, path, value);
  if (!set) {
    if (set.error().what.empty()) __builtin_trap();
    if (!google::protobuf::util::MessageDifferencer::Equals(message, before)) __builtin_trap();
  }
  const auto got = get_path(message, path);
  if (!got && got.error().what.empty()) __builtin_trap();
  return 0;
}
