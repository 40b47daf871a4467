// SPDX-License-Identifier: Apache-2.0
#include "validation/hardware.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "base/document.hpp"
#include "base/install.hpp"
#include "base/text.hpp"

namespace rehearse::validation {
namespace {

std::set<std::string> words_of(const std::string& name) {
  static const std::set<std::string> kIdle = {"nvidia", "geforce", "tesla", "gpu", "amd", ""};
  std::set<std::string> words;
  std::string word;
  for (const char c : lower_case(name) + " ") {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      word += c;
      continue;
    }
    if (!kIdle.contains(word)) words.insert(word);
    word.clear();
  }
  return words;
}

// "h100", "3090": what tells one kind of GPU from another.
bool is_model(const std::string& word) {
  const bool digit =
      std::any_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  return digit && !word.ends_with("gb") && !word.starts_with("sxm") && !word.starts_with("hbm");
}

}  // namespace

int likeness(const std::string& label, const std::string& model) {
  const std::set<std::string> wanted = words_of(label), found = words_of(model);
  int score = 0;
  bool same_model = false;
  for (const std::string& word : wanted) {
    const bool has = found.contains(word);
    same_model |= has && is_model(word);
    score += has ? 4 : is_model(word) ? -8 : 0;
  }
  for (const std::string& word : found) score -= wanted.contains(word) ? 0 : 1;
  return same_model ? score : -1000;
}

Result<HardwareMap> HardwareMap::shipped_table() {
  RH_TRY(const auto file, shipped("validation/figures/nccl_tests_hardware.yaml"));
  RH_TRY(const auto folder, shipped("platforms/catalogue"));
  pb::HardwareTable table;
  if (auto read = read_document_file(file.string(), table); !read) {
    return tl::unexpected(read.error());
  }
  return HardwareMap(std::move(table), platforms::PlatformCatalogue(folder));
}

Result<HardwareChoice> HardwareMap::find(const NcclTestRow& row, uint32_t per_node) {
  if (row.hardware.empty()) {
    return fail(Code::kBadInput, "the table does not say on which GPU it was measured", row.where,
                "name the machine with --platform");
  }
  const pb::HardwareEntry* entry = nullptr;
  for (const pb::HardwareEntry& candidate : table_.hardware()) {
    const bool label = lower_case(candidate.label()) == lower_case(row.hardware);
    const bool nodes = row.nodes >= candidate.from_nodes();
    if (label && nodes && entry == nullptr) entry = &candidate;
  }
  const std::string key =
      fmt::format("{}|{}|{}", row.hardware, entry != nullptr ? entry->from_nodes() : 0, per_node);
  if (const auto at = known_.find(key); at != known_.end()) return at->second;
  HardwareChoice choice;
  if (entry != nullptr) {
    choice.id = entry->platform();
    choice.from_nodes = entry->from_nodes();
    choice.nccl_version = entry->nccl_version();
    choice.known = entry->known();
    choice.assumptions.assign(entry->assumptions().begin(), entry->assumptions().end());
    RH_TRY(choice.platform, catalogue_.platform(choice.id));
  } else {
    RH_TRY(choice, by_name(row.hardware, per_node));
  }
  known_.emplace(key, choice);
  return choice;
}

Result<HardwareChoice> HardwareMap::by_name(const std::string& label, uint32_t per_node) const {
  RH_TRY(const auto entries, catalogue_.list());
  HardwareChoice best;
  std::pair<int, int> score = {-1000, 0};
  for (const platforms::Entry& entry : entries) {
    RH_TRY(pb::Platform compact, catalogue_.platform(entry.id));
    pb::Platform expanded = compact;
    if (!platforms::expand(expanded, entry.id) || expanded.nodes_size() == 0) continue;
    const pb::Node& node = expanded.nodes(0);
    if (node.gpus_size() == 0 || static_cast<uint32_t>(node.gpus_size()) < per_node) continue;
    // Among equal GPUs the machine without GPUs to spare; then the maker's own; then by id.
    const int spare = per_node == 0 ? 0 : node.gpus_size() - static_cast<int>(per_node);
    const bool own = entry.id.starts_with("dgx") || entry.id.starts_with("hgx");
    const std::pair<int, int> own_score = {likeness(label, node.gpus(0).model()),
                                           (own ? 1 : 0) - 2 * spare};
    if (own_score.first > -1000 && own_score > score) {
      score = own_score;
      best.id = entry.id;
      best.platform = std::move(compact);
    }
  }
  if (best.id.empty()) {
    return fail(Code::kBadInput,
                fmt::format("no platform of the catalogue has {} GPUs \"{}\" in a node",
                            std::max(1U, per_node), label),
                "hardware", "name the machine with --platform; rehearse platforms lists them");
  }
  best.assumptions = {fmt::format(
      "\"{}\" is taken to be the platform {}, whose GPUs have the nearest name; its fabric too",
      label, best.id)};
  return best;
}

}  // namespace rehearse::validation
