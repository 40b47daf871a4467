// SPDX-License-Identifier: Apache-2.0
// The machines that rows of nccl-tests were measured on, as the simulator has them: platform, ranks,
// NCCL version and settings of each, built once and kept, and what a row's call does there.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "sim/nccl/explain.hpp"
#include "validation/hardware.hpp"

namespace rehearse::validation {

struct TestMachineOptions {
  // Platform of every row instead of the mapping table; empty id: by the hardware's label.
  std::string platform_id{};
  std::optional<pb::Platform> platform{};
  std::string nccl_version{};  // of rows that state none; empty: the mapping's or current
  uint32_t nodes = 0;          // of rows that state none
  uint32_t gpus = 0;           // of rows that state none
  std::map<std::string, std::string> env{};  // NCCL_* variables of all ranks
  // What the machines differ in from their platform: paths of the expanded platform and values.
  std::map<std::string, std::string> set{};
};

// A row's call on its machine. Refers to the TestMachines it came from.
struct PlacedCall {
  HardwareChoice choice;
  uint32_t nodes = 0;
  uint32_t gpus = 0;
  const sim::Testbed* testbed = nullptr;
  sim::CallTraffic traffic;
};

class TestMachines {
 public:
  [[nodiscard]] static Result<TestMachines> create(const TestMachineOptions& options);

  // Catalogue id of the row's machine, or the id given. kBadInput when there is none.
  [[nodiscard]] Result<std::string> platform_of(const NcclTestRow& row);
  // kBadInput when no platform stands for the row's hardware or NCCL would refuse its settings.
  [[nodiscard]] Result<PlacedCall> place(const NcclTestRow& row);

 private:
  struct Machine {
    std::unique_ptr<sim::Testbed> testbed;
    std::optional<sim::CommunicatorModel> world;
  };
  using Key = std::tuple<std::string, std::string, uint32_t, uint32_t, std::string, std::string>;

  TestMachines(TestMachineOptions options, HardwareMap hardware)
      : options_(std::move(options)), hardware_(std::move(hardware)) {}
  [[nodiscard]] Result<HardwareChoice> choose(const NcclTestRow& row);
  [[nodiscard]] Result<Machine> build(const HardwareChoice& choice, const std::string& version,
                                      uint32_t nodes, uint32_t gpus, const NcclTestRow& row) const;

  TestMachineOptions options_;
  HardwareMap hardware_;
  std::map<Key, Machine> machines_;
};

}  // namespace rehearse::validation
