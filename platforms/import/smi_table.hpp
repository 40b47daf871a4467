// SPDX-License-Identifier: Apache-2.0
// The table that `nvidia-smi topo -m` prints, as data. Private to platforms/import.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "platforms/import/import.hpp"

namespace rehearse::platforms {

// How close two devices are; smaller is closer.
enum class SmiWay : uint8_t { kSelf, kNvlink, kPix, kPxb, kPhb, kNode, kSys, kUnknown };

struct SmiCell {
  SmiWay way = SmiWay::kUnknown;
  uint32_t links = 0;
};

struct SmiDevice {
  std::string name;
  bool gpu = false;
  int numa = -1;
  std::string processors;  // CPU affinity as it is written; "": not told
  bool coherent =
      false;  // a GPU whose memory is a NUMA domain of the host: joined to its processor by C2C
  std::vector<SmiCell> row;
  std::string place;
};

// Whether `text` holds the names of the columns and the row of the first GPU.
[[nodiscard]] bool has_smi_table(std::string_view text);

// With or without terminal escape codes, tabs or blanks between the cells, text around the table;
// names of NICs from the legend. kBadInput with line and column.
[[nodiscard]] Result<std::vector<SmiDevice>> read_smi_table(const ImportText& file);

}  // namespace rehearse::platforms
