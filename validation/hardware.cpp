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

bool has_digit(const std::string& word) {
  return std::any_of(word.begin(), word.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

// "40gb", "80g": size of the memory.
bool is_memory(const std::string& word) {
  return has_digit(word) && (word.ends_with("gb") || word.ends_with("gib"));
}

// "sxm4" and "sxm5" are one kind of board, "pcie" another; "": no board.
std::string board_of(const std::string& word) {
  for (const char* board : {"sxm", "pcie", "nvl", "oam"}) {
    if (word.starts_with(board)) return board;
  }
  // The driver names boards of this generation by their memory: "H100 80GB HBM3", "H100 PCIe".
  return word.starts_with("hbm3") ? "sxm" : "";
}

// "h100", "3090": what tells one kind of GPU from another.
bool is_model(const std::string& word) {
  return has_digit(word) && !is_memory(word) && board_of(word).empty() && !word.starts_with("hbm");
}

// What two names may state and not contradict each other in.
struct Statement {
  std::set<std::string> model, memory, board;
};

Statement statement_of(const std::string& name) {
  Statement out;
  for (const std::string& word : words_of(name)) {
    if (is_memory(word)) out.memory.insert(word);
    if (is_model(word)) out.model.insert(word);
    if (const std::string board = board_of(word); !board.empty()) out.board.insert(board);
  }
  return out;
}

bool agree(const std::set<std::string>& a, const std::set<std::string>& b) {
  return a.empty() || b.empty() || a == b;
}

}  // namespace

bool same_gpu(const std::string& label, const std::string& other) {
  const Statement a = statement_of(label), b = statement_of(other);
  return !a.model.empty() && a.model == b.model && agree(a.memory, b.memory) &&
         agree(a.board, b.board);
}

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
  // Another board is another machine, whatever else is the same.
  const bool same_board = agree(statement_of(label).board, statement_of(model).board);
  return same_model && same_board ? score : -1000;
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
  const std::string key = fmt::format("{}|{}|{}", lower_case(row.hardware), row.nodes, per_node);
  if (const auto at = known_.find(key); at != known_.end()) return at->second;
  return known_.emplace(key, look_up(row, per_node)).first->second;
}

Result<HardwareChoice> HardwareMap::look_up(const NcclTestRow& row, uint32_t per_node) {
  for (const pb::HardwareEntry& entry : table_.hardware()) {
    if (!same_gpu(row.hardware, entry.label()) || row.nodes < entry.from_nodes()) continue;
    HardwareChoice choice;
    choice.id = entry.platform();
    choice.from_nodes = entry.from_nodes();
    choice.nccl_version = entry.nccl_version();
    choice.known = entry.known();
    choice.gpus_per_thread = entry.gpus_per_thread();
    choice.assumptions.assign(entry.assumptions().begin(), entry.assumptions().end());
    RH_TRY(choice.platform, catalogue_.platform(choice.id));
    return choice;
  }
  return by_name(row.hardware, per_node);
}

Result<void> HardwareMap::list_machines() {
  if (!machines_.empty()) return {};
  RH_TRY(const auto entries, catalogue_.list());
  for (const platforms::Entry& entry : entries) {
    RH_TRY(pb::Platform expanded, catalogue_.platform(entry.id));
    if (!platforms::expand(expanded, entry.id) || expanded.nodes_size() == 0) continue;
    const pb::Node& node = expanded.nodes(0);
    if (node.gpus_size() == 0) continue;
    machines_.push_back({entry.id, node.gpus(0).model(), node.gpus_size()});
  }
  return {};
}

Result<HardwareChoice> HardwareMap::by_name(const std::string& label, uint32_t per_node) {
  if (auto listed = list_machines(); !listed) return tl::unexpected(listed.error());
  HardwareChoice best;
  std::pair<int, int> score = {-1000, 0};
  for (const ListedMachine& machine : machines_) {
    if (static_cast<uint32_t>(machine.gpus) < per_node) continue;
    // Among equal GPUs the machine without GPUs to spare; then the maker's own; then by id.
    const int spare = per_node == 0 ? 0 : machine.gpus - static_cast<int>(per_node);
    const bool own = machine.id.starts_with("dgx") || machine.id.starts_with("hgx");
    const std::pair<int, int> own_score = {likeness(label, machine.gpu), (own ? 1 : 0) - 2 * spare};
    if (own_score.first > -1000 && own_score > score) {
      score = own_score;
      best.id = machine.id;
    }
  }
  if (!best.id.empty()) {
    RH_TRY(best.platform, catalogue_.platform(best.id));
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
