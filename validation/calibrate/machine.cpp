// SPDX-License-Identifier: Apache-2.0
#include "validation/calibrate/machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "base/document.hpp"
#include "base/text.hpp"
#include "platforms/model/catalogue.hpp"
#include "sim/nccl/choice.hpp"
#include "sim/nccl/testbed.hpp"

namespace rehearse::validation {
namespace {

constexpr double kPrintedCost = 0.051;  // a log prints one decimal
constexpr double kRecordedCost = 1e-4;  // a recorded float, relative
constexpr size_t kMostCompared = 4096;  // of one communicator that are compared; more say the same

constexpr const char* kVersion = "launch.nccl_version";

// A figure of the machine and the values that hardware comes in.
struct Figure {
  std::string path;  // below the platform, or kVersion
  std::string what;
  std::vector<std::string> values;
};

std::vector<Figure> figures_of(const pb::Node& node, bool several_nodes, bool version_recorded) {
  std::vector<Figure> out;
  const auto generations = [&](const char* path, const char* what) {
    out.push_back({std::string(path) + ".generation",
                   std::string("generation of ") + what,
                   {"3", "4", "5", "6"}});
    out.push_back(
        {std::string(path) + ".width", std::string("lanes of ") + what, {"1", "4", "8", "16"}});
  };
  if (several_nodes && node.nics_size() > 0) {
    out.push_back({"nodes[*].nics[*].bandwidth",
                   "rate of a network port",
                   {"10Gbps", "25Gbps", "40Gbps", "50Gbps", "56Gbps", "100Gbps", "200Gbps",
                    "400Gbps", "800Gbps"}});
    out.push_back(
        {"nodes[*].nics[*].gpudirect", "GPUDirect RDMA of network ports", {"true", "false"}});
    generations("nodes[*].nics[*].pcie", "the PCIe link of network ports");
  }
  if (node.nvswitch().count() > 0) {
    Figure links{"nodes[*].gpus[*].nvlink.links", "NVLinks of a GPU", {}};
    for (uint32_t n = 1; n <= std::min(32U, node.gpus(0).nvlink().links()); ++n) {
      links.values.push_back(std::to_string(n));
    }
    out.push_back(std::move(links));
  }
  generations("nodes[*].gpus[*].pcie", "the PCIe link of GPUs");
  if (!version_recorded) {
    out.push_back({kVersion,
                   "version of NCCL",
                   {"2.12.12", "2.18.5", "2.19.3", "2.21.5", "2.23.4", "2.24.3", "2.26.2", "2.28.3",
                    "2.28.9", "2.29.2", "2.29.7", "2.30.7"}});
  }
  return out;
}

struct Agreement {
  size_t compared = 0, agreed = 0;
  std::set<std::string> only_recorded;  // algorithms
  std::string first_difference;

  [[nodiscard]] bool all() const { return compared > 0 && agreed == compared; }
};

sim::Call call_of(const RecordedCost& cost, uint32_t ranks) {
  sim::Call call;
  call.function = cost.variant.function;
  call.type = sim::DataType::kInt8;  // the cost of a size does not depend on it
  call.count = sim::is_gather(call.function) ? cost.bytes / ranks : cost.bytes;
  call.pipe_ops = cost.pipe_ops;
  return call;
}

bool same(double recorded, double computed, bool printed) {
  const double off = std::abs(recorded - computed);
  return printed ? off <= kPrintedCost : off <= kRecordedCost * std::max(recorded, 1e-3);
}

void compare(const RecordedCosts& recorded, const sim::NcclModel& model, Agreement& out) {
  for (size_t i = 0; i < std::min(recorded.costs.size(), kMostCompared); ++i) {
    const RecordedCost& cost = recorded.costs[i];
    const sim::Cost& cell = model.table.at(cost.variant);
    if (!cell.available()) {
      out.only_recorded.insert(std::string(sim::environment_name_of(cost.variant.algorithm)));
      ++out.compared;
      continue;
    }
    ++out.compared;
    const bool printed = cost.bytes == 0;
    const double us = printed ? static_cast<double>(cell.latency_us)
                              : static_cast<double>(sim::predicted_time_us(
                                    model, call_of(cost, recorded.ranks), cost.variant.algorithm,
                                    cost.variant.protocol));
    const double gbps = static_cast<double>(cell.bandwidth_gbps);
    if (same(cost.us, us, printed) && (!printed || same(cost.gbps, gbps, true))) {
      ++out.agreed;
      continue;
    }
    if (!out.first_difference.empty()) continue;
    const std::string call = to_string(cost.variant);
    out.first_difference =
        printed ? fmt::format(
                      "{}: {:.1f} us and {:.1f} GB/s recorded, {:.1f} us and {:.1f} GB/s "
                      "computed ({})",
                      call, cost.us, cost.gbps, us, gbps, recorded.where)
                : fmt::format("{} of {} bytes: {:.4g} us recorded, {:.4g} us computed ({})", call,
                              cost.bytes, cost.us, us, recorded.where);
  }
}

class Reading {
 public:
  Reading(const std::vector<RecordedCosts>& recorded, const pb::Platform& platform,
          const std::string& where)
      : recorded_(recorded), platform_(platform), where_(where) {}

  // The platform with one figure changed; kBadInput when a communicator does not fit on it.
  Result<Agreement> agreement(const Figure* figure, const std::string& value) {
    Agreement out;
    for (const RecordedCosts& one : recorded_) {
      RH_TRY(pb::Platform platform, expanded(one.nodes));
      std::string version = one.nccl_version;
      if (figure != nullptr && figure->path == kVersion) {
        version = value;
      } else if (figure != nullptr) {
        if (auto done = set_path(platform, figure->path, value); !done) {
          return tl::unexpected(done.error());
        }
      }
      sim::TestbedOptions options;
      options.nodes = one.nodes;
      options.ranks = one.ranks;
      options.nccl_version = version;
      for (const auto& [name, text] : one.env) options.settings.push_back({name, text, {}});
      RH_TRY(const auto testbed, sim::Testbed::make(platform, options, where_));
      RH_TRY(const sim::CommunicatorModel world, testbed->world());
      compare(one, world.nccl(), out);
    }
    return out;
  }

  [[nodiscard]] Result<pb::Platform> expanded(uint32_t nodes) const {
    pb::Platform platform = platform_;
    platform.set_scale(nodes);
    if (auto done = platforms::expand(platform, where_); !done) {
      return tl::unexpected(done.error());
    }
    return platform;
  }

 private:
  const std::vector<RecordedCosts>& recorded_;
  const pb::Platform& platform_;
  const std::string& where_;
};

// What the platform says; the first of several that differ.
std::string described(const pb::Platform& platform, const Figure& figure) {
  if (figure.path == kVersion) return "2.28.9";
  const auto text = get_path(platform, figure.path);
  if (!text) return "";
  return text->substr(0, text->find('\n'));
}

// Do two ways to write a value mean the same on this platform?
bool equal_on(const pb::Platform& platform, const Figure& figure, const std::string& value,
              const std::string& other) {
  if (figure.path == kVersion) return value == other;
  pb::Platform a = platform, b = platform;
  if (!set_path(a, figure.path, value) || !set_path(b, figure.path, other)) return false;
  return a.SerializeAsString() == b.SerializeAsString();
}

std::string full_path(const Figure& figure) {
  return figure.path == kVersion ? figure.path : "platform." + figure.path;
}

}  // namespace

const char* name_of(Told told) {
  switch (told) {
    case Told::kConfirmed:
      return "confirmed";
    case Told::kRecorded:
      return "recorded";
    case Told::kUndetermined:
      break;
  }
  return "undetermined";
}

Result<MachineReading> read_machine(const std::vector<RecordedCosts>& recorded,
                                    const pb::Platform& platform, const std::string& where) {
  MachineReading out;
  if (recorded.empty()) return out;
  Reading reading(recorded, platform, where);
  RH_TRY(const Agreement as_described, reading.agreement(nullptr, ""));
  out.costs = as_described.compared;
  out.agreed = as_described.agreed;
  out.explained = as_described.all();
  out.first_difference = as_described.first_difference;
  if (!as_described.only_recorded.empty()) {
    out.notes.push_back(
        fmt::format("NCCL offered what the platform does not allow: {}",
                    join_words(std::vector<std::string>(as_described.only_recorded.begin(),
                                                        as_described.only_recorded.end()))));
  }
  uint32_t most_nodes = 1;
  bool version_recorded = true;
  for (const RecordedCosts& one : recorded) {
    most_nodes = std::max(most_nodes, one.nodes);
    version_recorded &= !one.nccl_version.empty();
  }
  RH_TRY(const pb::Platform machine, reading.expanded(most_nodes));
  size_t explaining_figures = 0;
  for (const Figure& figure : figures_of(machine.nodes(0), most_nodes > 1, version_recorded)) {
    const std::string own = described(machine, figure);
    MachineFigure told{full_path(figure), figure.what, own, own, {}, Told::kUndetermined};
    std::vector<std::string> explaining;
    for (const std::string& value : figure.values) {
      if (!own.empty() && equal_on(machine, figure, value, own)) continue;
      // A value that NCCL or the platform refuses explains nothing.
      const auto agreement = reading.agreement(&figure, value);
      if (agreement && agreement->all()) explaining.push_back(value);
    }
    if (out.explained) {
      told.told = explaining.empty() ? Told::kConfirmed : Told::kUndetermined;
      told.others = explaining;
    } else if (!explaining.empty()) {
      // Classes are floors: the least of the values is what NCCL counted on.
      told.value = explaining.front();
      told.others.assign(explaining.begin() + 1, explaining.end());
      told.told = Told::kRecorded;
      ++explaining_figures;
    } else {
      continue;  // this figure alone explains nothing
    }
    out.figures.push_back(std::move(told));
  }
  if (!out.explained && explaining_figures > 1) {
    // Any one of them would do: the table does not say which.
    for (MachineFigure& figure : out.figures) {
      figure.others.insert(figure.others.begin(), figure.value);
      figure.value = figure.described;
      figure.told = Told::kUndetermined;
    }
    out.notes.push_back(
        "the platform as described does not give the recorded costs; any one of these figures "
        "would: look at the machine");
  } else if (!out.explained && explaining_figures == 0) {
    out.notes.push_back(
        "no single figure of the platform explains the recorded costs: name the machine that was "
        "recorded, or the topology that NCCL dumped there");
  }
  return out;
}

std::map<std::string, std::string> recorded_figures(const MachineReading& reading) {
  constexpr std::string_view kOfPlatform = "platform.";
  std::map<std::string, std::string> out;
  for (const MachineFigure& figure : reading.figures) {
    if (figure.told != Told::kRecorded || !figure.path.starts_with(kOfPlatform)) continue;
    out[figure.path.substr(kOfPlatform.size())] = figure.value;
  }
  return out;
}

void add_machine(const MachineReading& reading, pb::Patch& overlay) {
  for (const MachineFigure& figure : reading.figures) {
    if (figure.told == Told::kRecorded) (*overlay.mutable_set())[figure.path] = figure.value;
    pb::MachineFigure& row = *overlay.mutable_calibration()->add_machine();
    row.set_path(figure.path);
    row.set_what(figure.what);
    row.set_described(figure.described);
    row.set_value(figure.value);
    for (const std::string& other : figure.others) row.add_others(other);
    row.set_standing(name_of(figure.told));
  }
  if (!reading.empty()) {
    overlay.mutable_calibration()->set_costs(static_cast<uint32_t>(reading.costs));
    overlay.mutable_calibration()->set_costs_agreed(static_cast<uint32_t>(reading.agreed));
  }
}

}  // namespace rehearse::validation
