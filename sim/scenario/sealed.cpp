// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario/sealed.hpp"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "base/packed.hpp"
#include "sim/proto/scenario.pb.h"

namespace rehearse::sim {
namespace {

constexpr uint64_t kMostSealedBytes = 1u << 20;

}  // namespace

std::string seal(std::span<const pb::Patch> patches) {
  if (patches.empty()) return {};
  pb::Scenario carrier;
  for (const pb::Patch& patch : patches) *carrier.add_patches() = patch;
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);  // maps have no order of their own
    carrier.SerializeToCodedStream(&coded);
  }
  return pack(bytes);
}

Result<std::vector<pb::Patch>> unseal(const std::string& word, const std::string& where) {
  if (word.empty()) return std::vector<pb::Patch>();
  const auto bytes = unpack(word, kMostSealedBytes, where);
  pb::Scenario carrier;
  if (!bytes || !carrier.ParseFromString(*bytes)) {
    return bad_input("what is sealed cannot be read", where + ": sealed",
                     "put the line back as it was, or start the lab again");
  }
  return std::vector<pb::Patch>(carrier.patches().begin(), carrier.patches().end());
}

}  // namespace rehearse::sim
