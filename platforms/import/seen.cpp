// SPDX-License-Identifier: Apache-2.0
#include "platforms/import/seen.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "base/text.hpp"

namespace rehearse::platforms {
namespace {

// Lower-case letters and digits in words, without those that drivers print or leave out at will.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words;
  std::string word;
  const auto finish = [&] {
    static constexpr std::string_view kIdle[] = {"nvidia", "tesla", "geforce", "amd",   "instinct",
                                                 "tensor", "core",  "gpu",     "hbm2e", "hbm3",
                                                 "hbm3e",  "hbm2",  "oam",     "radeon"};
    if (!word.empty() && std::find(std::begin(kIdle), std::end(kIdle), word) == std::end(kIdle)) {
      words.push_back(word);
    }
    word.clear();
  };
  for (const char c : name) {
    if (c == '(') break;
    if (std::isalnum(static_cast<unsigned char>(c))) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else {
      finish();
    }
  }
  finish();
  return words;
}

bool is_size(const std::string& word) {
  return word.size() > 2 && word.ends_with("gb") &&
         std::isdigit(static_cast<unsigned char>(word[0]));
}

// Of two names of one GPU, more is nearer; negative when they name different ones. The first word is
// the chip; words that one side does not have may be left out.
int likeness(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  if (a.empty() || b.empty()) return -1;
  int shared = 0;
  for (const std::string& word : a) {
    const bool found = std::find(b.begin(), b.end(), word) != b.end();
    if (found) ++shared;
    const bool chip = !is_size(word) && word.find_first_of("0123456789") != std::string::npos &&
                      word != "sxm" && !word.starts_with("sxm");
    if (!found && chip) return -1;
  }
  return shared;
}

bool near(double a, double b) { return std::abs(a - b) <= 0.08 * std::max(a, b); }

int score(const Seen& seen, const pb::Node& node) {
  int points = 0;
  const auto agree = [&](bool told, bool same, int weight) {
    if (told) points += same ? weight : -weight;
  };
  const pb::Gpu empty;
  const pb::Gpu& gpu = node.gpus().empty() ? empty : node.gpus(0);
  agree(seen.compute_capability > 0, seen.compute_capability == gpu.compute_capability(), 40);
  agree(seen.gpu_memory > 0,
        near(static_cast<double>(seen.gpu_memory), static_cast<double>(gpu.memory())), 20);
  agree(seen.sms > 0, seen.sms == gpu.sms(), 10);
  const auto gpus = static_cast<uint32_t>(node.gpus_size());
  agree(seen.gpus > 0, seen.gpus == gpus, 12);
  if (seen.gpus > gpus) points -= 30;  // a part of a machine can be seen, not more than it has
  const auto nics = static_cast<uint32_t>(node.nics_size());
  agree(seen.nics > 0, seen.nics == nics, 6);
  if (seen.nics > nics && seen.nics > 0) points -= 8;
  agree(seen.nic_bandwidth > 0 && nics > 0,
        nics > 0 && near(seen.nic_bandwidth, node.nics(0).bandwidth()), 4);
  agree(seen.nic_kind != pb::NIC_KIND_UNSPECIFIED && nics > 0,
        nics > 0 && seen.nic_kind == node.nics(0).kind(), 4);
  agree(seen.numa > 0, seen.numa == static_cast<uint32_t>(node.numa_size()), 2);
  agree(!seen.cpu_vendor.empty() && !node.numa().empty(),
        !node.numa().empty() && seen.cpu_vendor == node.numa(0).vendor(), 3);
  agree(seen.pcie_generation > 0, seen.pcie_generation == gpu.pcie().generation(), 3);
  const bool pairs = !node.nvlinks().empty();
  const bool switched = node.nvswitch().count() > 0;
  // How many devices a machine has is chosen, how its GPUs are joined is what they are.
  if (seen.nvlink) agree(true, *seen.nvlink == (pairs || switched), 30);
  if (seen.nvswitch) agree(true, *seen.nvswitch == switched, 15);
  if (seen.peer_access) agree(true, *seen.peer_access == !gpu.no_peer_access(), 30);
  return points;
}

std::vector<std::string> untold(const Seen& seen) {
  std::vector<std::string> words;
  const auto add = [&](bool told, const char* what) {
    if (!told) words.emplace_back(what);
  };
  add(!seen.gpu_model.empty() || seen.compute_capability > 0, "the kind of GPU");
  add(seen.gpus > 0, "the number of GPUs");
  add(seen.nvlink || seen.nvswitch, "NVLink");
  add(seen.nics > 0, "network adapters");
  add(false, "processors, memory, storage and fabric");
  return words;
}

}  // namespace

Result<Machines> Machines::load(const PlatformCatalogue& catalogue) {
  Machines out(catalogue);
  RH_TRY(const std::vector<Entry> entries, catalogue.list());
  for (const Entry& entry : entries) {
    Machine machine;
    machine.id = entry.id;
    RH_TRY(machine.written, catalogue.platform(entry.id));
    pb::Platform whole = machine.written;
    whole.set_scale(1);
    if (auto ok = expand(whole, entry.id); !ok) return tl::unexpected(ok.error());
    machine.node = std::move(*whole.mutable_nodes(0));
    out.machines_.push_back(std::move(machine));
  }
  RH_TRY(const std::vector<std::string> ids, catalogue.gpus());
  for (const std::string& id : ids) {
    RH_TRY(out.gpus_[id], catalogue.gpu(id));
  }
  return out;
}

const pb::Gpu* Machines::gpu(const std::string& id) const {
  const auto at = gpus_.find(id);
  return at == gpus_.end() ? nullptr : &at->second;
}

std::string gpu_by_name(const Machines& machines, std::string_view name, int64_t memory) {
  const std::vector<std::string> wanted = words_of(name);
  std::string best;
  int points = 0;
  for (const auto& [id, gpu] : machines.gpus()) {
    const std::vector<std::string> words = words_of(gpu.model());
    // "H100 PCIe" is not an H100 of an NVSwitch board: whatever either side says must fit.
    const auto has = [](const std::vector<std::string>& list, const char* word) {
      return std::find(list.begin(), list.end(), word) != list.end();
    };
    if (has(wanted, "pcie") != has(words, "pcie")) continue;
    int like = likeness(wanted, words);
    if (likeness(words, wanted) < 0) like = -1;
    if (like <= 0) continue;
    like *= 2;
    if (memory > 0) {
      like += near(static_cast<double>(memory), static_cast<double>(gpu.memory())) ? 1 : -1;
    }
    if (like > points) {
      points = like;
      best = id;
    }
  }
  return best;
}

namespace {

// The data sheet of the same chip ("A100-PG509-200" is an A100), nearest in memory; "" when there is
// none.
std::string gpu_by_chip(const Machines& machines, std::string_view name, int64_t memory) {
  const std::vector<std::string> wanted = words_of(name);
  if (wanted.empty()) return {};
  std::string best;
  double nearest = 0;
  for (const auto& [id, gpu] : machines.gpus()) {
    const std::vector<std::string> words = words_of(gpu.model());
    if (words.empty() || words.front() != wanted.front()) continue;
    const double off = std::abs(static_cast<double>(memory - gpu.memory()));
    if (!best.empty() && (memory == 0 || off >= nearest)) continue;
    best = id;
    nearest = off;
  }
  return best;
}

}  // namespace

std::string gpu_by_pci_id(uint32_t vendor, uint32_t device) {
  struct Row {
    uint32_t vendor, device;
    const char* id;
  };
  // pci-ids.ucw.cz; cards that share a data sheet share a row's id.
  static constexpr Row kRows[] = {
      {0x10de, 0x1db1, "v100-sxm2-16gb"}, {0x10de, 0x1db5, "v100-sxm2-32gb"},
      {0x10de, 0x20b0, "a100-sxm4-40gb"}, {0x10de, 0x20b2, "a100-sxm4-80gb"},
      {0x10de, 0x20b5, "a100-pcie-80gb"}, {0x10de, 0x2235, "a40"},
      {0x10de, 0x2237, "a10g"},           {0x10de, 0x2204, "rtx3090"},
      {0x10de, 0x2684, "rtx4090"},        {0x10de, 0x2330, "h100-sxm5"},
      {0x10de, 0x2324, "h800-sxm5"},      {0x10de, 0x2335, "h200-sxm"},
      {0x10de, 0x2342, "gh200-96gb"},     {0x10de, 0x2901, "b200-sxm"},
      {0x10de, 0x2941, "gb200"},          {0x10de, 0x2e12, "gb10"},
      {0x1002, 0x7408, "mi250x-gcd"},     {0x1002, 0x740c, "mi250x-gcd"},
      {0x1002, 0x74a1, "mi300x"},         {0x1002, 0x74b5, "mi300x"},
  };
  for (const Row& row : kRows) {
    if (row.vendor == vendor && row.device == device) return row.id;
  }
  return {};
}

Result<Match> best_match(const Machines& machines, const Seen& seen) {
  std::string sheet;
  if (!seen.gpu_model.empty()) sheet = gpu_by_name(machines, seen.gpu_model, seen.gpu_memory);
  const bool told = !sheet.empty();
  if (!told) sheet = gpu_by_chip(machines, seen.gpu_model, seen.gpu_memory);
  const pb::Gpu* card = machines.gpu(sheet);
  std::vector<std::pair<int, const Machines::Machine*>> all;
  for (const Machines::Machine& machine : machines.all()) {
    const pb::Node& node = machine.node;
    if (card != nullptr && (node.gpus().empty() || node.gpus(0).model() != card->model())) continue;
    all.emplace_back(score(seen, node), &machine);
  }
  if (all.empty() || (card == nullptr && !seen.gpu_model.empty() && seen.compute_capability == 0)) {
    return fail(Code::kMissingInput,
                fmt::format("no machine of the catalogue has GPUs {}", in_quotes(seen.gpu_model)),
                {}, "write the platform by hand; rehearse platforms lists what is known");
  }
  // Among equals a machine of its own before one that is rented: it says less that was not seen.
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    if (a.first != b.first) return a.first > b.first;
    return !a.second->node.virtual_machine() && b.second->node.virtual_machine();
  });
  Match match;
  match.id = all.front().second->id;
  match.node = all.front().second->node;
  match.platform = all.front().second->written;
  match.gpu_told = told;
  match.assumed = untold(seen);
  for (size_t i = 1; i < all.size() && all[i].first == all[0].first; ++i) {
    match.equal.push_back(all[i].second->id);
  }
  return match;
}

}  // namespace rehearse::platforms
