// SPDX-License-Identifier: Apache-2.0
// From the hardware that a published table names to a platform of the catalogue: by the shipped
// mapping (validation/figures/nccl_tests_hardware.yaml), else the platform whose GPUs have that name, with
// what had to be assumed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "platforms/model/catalogue.hpp"
#include "validation/nccl_tests_table.hpp"
#include "validation/proto/nccl_tests.pb.h"

namespace rehearse::validation {

struct HardwareChoice {
  std::string id;  // catalogue id
  pb::Platform platform;
  uint32_t from_nodes = 0;  // of the mapping entry
  std::string nccl_version;
  uint32_t gpus_per_thread = 0;  // of rows that do not state it; 0: not known
  std::vector<std::string> assumptions;
  std::string known;  // where and why predictions are off, in words
};

class HardwareMap {
 public:
  // The shipped mapping and the shipped catalogue.
  [[nodiscard]] static Result<HardwareMap> shipped_table();

  // `per_node` GPUs have to fit on a node; 0: any. kBadInput when the row names no hardware or no
  // platform has such GPUs.
  [[nodiscard]] Result<HardwareChoice> find(const NcclTestRow& row, uint32_t per_node);

 private:
  HardwareMap(pb::HardwareTable table, platforms::PlatformCatalogue catalogue)
      : table_(std::move(table)), catalogue_(std::move(catalogue)) {}
  // A machine of the catalogue: how many GPUs of which model a node has.
  struct ListedMachine {
    std::string id, gpu;
    int gpus = 0;
  };
  [[nodiscard]] Result<HardwareChoice> look_up(const NcclTestRow& row, uint32_t per_node);
  [[nodiscard]] Result<HardwareChoice> by_name(const std::string& label, uint32_t per_node);
  [[nodiscard]] Result<void> list_machines();

  pb::HardwareTable table_;
  platforms::PlatformCatalogue catalogue_;
  std::vector<ListedMachine> machines_;                  // once asked for
  std::map<std::string, Result<HardwareChoice>> known_;  // by label, nodes and size
};

// Do two names mean one GPU: the same model, and no other board or memory where both say which?
[[nodiscard]] bool same_gpu(const std::string& label, const std::string& other);

// How alike two names of a GPU are: words of `label` ("A100-SXM4-40GB" has three) that `model` also
// has, less those it has beyond; words of memory and board count, the maker's does not. -1000: another model or board.
[[nodiscard]] int likeness(const std::string& label, const std::string& model);

}  // namespace rehearse::validation
