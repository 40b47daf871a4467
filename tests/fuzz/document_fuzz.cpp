// SPDX-License-Identifier: Apache-2.0
// Any bytes as a YAML document of every schema that users write. What is taken is written, as YAML and as
// JSON, and read back the same; what is refused is refused with what and where.
#include <google/protobuf/util/message_differencer.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/document.hpp"
#include "platforms/proto/platform.pb.h"
#include "sim/proto/patch.pb.h"
#include "sim/proto/scenario.pb.h"
#include "sim/proto/study.pb.h"
#include "tests/fuzz/reader_fuzz.hpp"
#include "traces/proto/table.pb.h"

using namespace rehearse;

namespace {

void check_refusal(const Result<void>& read) {
  if (!read && (read.error().what.empty() || read.error().where.empty())) __builtin_trap();
}

template <typename Message>
void read_as(std::string_view text) {
  Message message;
  const auto read = read_document(text, "fuzz", message);
  check_refusal(read);
  if (!read) return;
  using google::protobuf::util::MessageDifferencer;
  Message again;
  if (!read_document(write_document(message), "written", again)) __builtin_trap();
  if (!MessageDifferencer::Equals(message, again)) __builtin_trap();
  Message from;
  if (!from_json(to_json(message), from, "json")) __builtin_trap();
  if (!MessageDifferencer::Equals(message, from)) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = traces::fuzz_bytes(data, size);
  read_as<pb::Platform>(text);
  read_as<pb::Scenario>(text);
  read_as<pb::Patch>(text);
  read_as<pb::Study>(text);
  read_as<pb::TableMapping>(text);
  return 0;
}
