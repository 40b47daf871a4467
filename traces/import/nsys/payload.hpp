// SPDX-License-Identifier: Apache-2.0
// Payloads of NCCL's NVTX ranges in an export: JSON text, or bytes with the schema that NCCL registered
// (tables NVTX_PAYLOAD_SCHEMAS and NVTX_PAYLOAD_SCHEMA_ENTRIES). Both name their fields alike.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "traces/import/activity/builder.hpp"
#include "traces/import/nsys/database.hpp"

namespace rehearse::traces::nsys {

class Payloads {
 public:
  // Reads the schemas, when there are any.
  [[nodiscard]] Result<void> load(Database& database);
  // True when `text` could be read; fields that are not known stay as they are.
  [[nodiscard]] static bool from_json(std::string_view text, activity::RangeFacts& facts);
  [[nodiscard]] bool from_bytes(std::string_view bytes, activity::RangeFacts& facts) const;

 private:
  struct Entry {
    std::string name;
    int64_t type = 0;
    uint64_t offset = 0;
  };
  std::map<int64_t, std::vector<Entry>> schemas_;  // by schema id, which NCCL keeps unique
};

}  // namespace rehearse::traces::nsys
