// SPDX-License-Identifier: Apache-2.0
// A machine as an NCCL topology file has it, before the catalogue fills what the file leaves out.
// Private to platforms/import.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/finding.hpp"
#include "platforms/import/xml_file.hpp"
#include "platforms/proto/platform.pb.h"

namespace rehearse::platforms {

struct NvlinkDraft {
  std::string target;  // bus id
  uint32_t links = 0;
  bool to_switch = false;
  std::string place;
};

struct GpuDraft {
  pb::Gpu gpu;  // bus id, PCIe, compute capability
  uint32_t vendor = 0, device = 0;
  int64_t number = -1;       // CUDA device, -1: not told
  std::string architecture;  // "gfx942"
  bool described = false;    // has a <gpu> of its own, so that missing NVLinks are not there
  bool gdr = true;
  std::vector<NvlinkDraft> nvlinks;
  std::string place;
};

struct NicDraft {
  pb::Nic nic;
  int64_t number = -1;  // device number of the network plugin
  bool rate_told = false;
  std::string place;
};

// A leaf of the PCIe tree that the file does not class.
struct UnknownDraft {
  std::string bus_id;
  pb::PcieLink pcie;
  std::string place;
};

struct NodeDraft {
  std::string host;  // host_hash
  pb::Node node;     // numa, switches, interfaces
  std::vector<GpuDraft> gpus;
  std::vector<NicDraft> nics;
  std::vector<UnknownDraft> unknown;
  // Bus ids with their places, and whether it is a device without others below it.
  std::map<std::string, std::pair<std::string, bool>> bus_ids;
};

// kBadInput with file:line:column: a device or bus id that is there twice or above itself, a GPU
// outside a processor, two NICs with one name, numbers that are none.
[[nodiscard]] Result<std::vector<NodeDraft>> read_topology(const XmlFile& file, Findings& findings);

}  // namespace rehearse::platforms
