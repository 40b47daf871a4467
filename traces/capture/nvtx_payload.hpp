// SPDX-License-Identifier: Apache-2.0
// Payloads of NVTX ranges, read by the schema that their domain registered: where a field is and how wide is
// taken from there, what it means from its name. NCCL's names are known (communicator, bytes, root, peer,
// operator, ranks); payloads of other domains are not kept.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "traces/capture/nvtx_layout.hpp"
#include "traces/capture/spin_lock.hpp"
#include "traces/capture_file/records.hpp"

namespace rehearse::capture::nvtx {

class Schemas {
 public:
  // The id that payloads will name: the domain's own, or a new one.
  [[nodiscard]] uint64_t add(uint64_t domain, const SchemaAttributes& attributes);
  // Fills what the payload says into `range`; nothing when the schema is not known or does not fit.
  void decode(uint64_t domain, const PayloadData& payload, capture_file::Range& range) const;

 private:
  enum class Meaning : uint8_t {
    kCommunicator,
    kBytes,
    kReduction,
    kRoot,
    kPeer,
    kRanks,
    kRank,
    kDevice
  };
  struct Field {
    Meaning meaning;
    uint8_t width;  // bytes
    bool has_sign;
    uint32_t offset;
  };
  struct Schema {
    uint64_t domain;
    uint64_t id;
    uint32_t count;
    std::array<Field, 8> fields;
  };
  [[nodiscard]] static bool field_of(const SchemaEntry& entry, Field& out);
  [[nodiscard]] static int64_t value_of(const Field& field, const uint8_t* bytes);

  static constexpr uint32_t kMostSchemas = 512;
  SpinLock lock_;
  std::array<Schema, kMostSchemas> schemas_{};
  std::atomic<uint32_t> count_{0};
  std::atomic<uint64_t> next_dynamic_{kFirstDynamicSchema};
};

}  // namespace rehearse::capture::nvtx
