// SPDX-License-Identifier: Apache-2.0
// What a file tells of a machine when it does not describe it whole, and the entry of the catalogue
// that fits it best. Used for what importers cannot see: data sheets, processors, storage.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "platforms/model/catalogue.hpp"
#include "platforms/proto/platform.pb.h"

namespace rehearse::platforms {

// Of one node. 0 and empty: not told.
struct Seen {
  uint32_t gpus = 0;
  std::string gpu_model;  // "NVIDIA H100 80GB HBM3", as drivers and profilers print it
  uint32_t compute_capability = 0;
  int64_t gpu_memory = 0;
  uint32_t sms = 0;
  uint32_t nics = 0;
  double nic_bandwidth = 0;
  pb::NicKind nic_kind = pb::NIC_KIND_UNSPECIFIED;
  uint32_t numa = 0;
  std::string cpu_vendor;        // "intel", "amd", ...
  uint32_t pcie_generation = 0;  // of the GPUs
  std::optional<bool> nvlink;
  std::optional<bool> nvswitch;
  std::optional<bool> peer_access;  // the driver allows it between GPUs
};

struct Match {
  std::string id;
  pb::Node node;                     // first node of the entry, expanded
  pb::Platform platform;             // the entry as written, `like` resolved
  bool gpu_told = false;             // the file named the GPU and the entry has it
  std::vector<std::string> assumed;  // what the file did not tell, in words
  std::vector<std::string> equal;    // other entries that fit as well
};

// The catalogue, read once: matching looks at every entry.
class Machines {
 public:
  struct Machine {
    std::string id;
    pb::Platform written;  // `like` resolved
    pb::Node node;         // first node, expanded
  };
  [[nodiscard]] static Result<Machines> load(const PlatformCatalogue& catalogue);

  [[nodiscard]] const PlatformCatalogue& catalogue() const { return catalogue_; }
  [[nodiscard]] const std::vector<Machine>& all() const { return machines_; }
  [[nodiscard]] const std::map<std::string, pb::Gpu>& gpus() const { return gpus_; }
  // nullptr when there is no such data sheet.
  [[nodiscard]] const pb::Gpu* gpu(const std::string& id) const;

 private:
  explicit Machines(const PlatformCatalogue& catalogue) : catalogue_(catalogue) {}

  PlatformCatalogue catalogue_;
  std::vector<Machine> machines_;        // by id
  std::map<std::string, pb::Gpu> gpus_;  // data sheets
};

// The entry with the highest agreement; ties go to machines that are not virtual, then to the first id. kMissingInput when a GPU is named
// that no entry has.
[[nodiscard]] Result<Match> best_match(const Machines& machines, const Seen& seen);

// The data sheet in catalogue/gpus whose model is `name` (case-blind, vendor and "Tensor Core" left
// out, memory size as far as it is told); "" when there is none.
[[nodiscard]] std::string gpu_by_name(const Machines& machines, std::string_view name,
                                      int64_t memory);

// The data sheet by PCI ids (0x10de, 0x2330); "" when it is not in the table.
[[nodiscard]] std::string gpu_by_pci_id(uint32_t vendor, uint32_t device);

}  // namespace rehearse::platforms
