// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/topology_settings.hpp"

#include <algorithm>
#include <array>

#include "sim/nccl/environment.hpp"

namespace rehearse::sim {
namespace {

using Environment = std::map<std::string, std::string>;

const std::string* value_of(const Environment& environment, const char* name) {
  const auto at = environment.find(name);
  return at == environment.end() || at->second.empty() ? nullptr : &at->second;
}

bool is_number(const std::string& text) {
  const size_t start = text[0] == '-' ? 1 : 0;
  return text.size() > start && text.find_first_not_of("0123456789", start) == std::string::npos &&
         text.size() < 10;
}

class Reader {
 public:
  Reader(const Environment& environment, std::vector<std::string>& notes)
      : environment_(environment), notes_(notes) {}

  int number(const char* name, int otherwise) {
    if (std::string note = number_note(name, variable_in(environment_, name)); !note.empty()) {
      notes_.push_back(std::move(note));
    }
    const int value = whole_number(environment_, name, otherwise);
    return value == -2 ? otherwise : value;
  }

  // LOC, NVL, PIX, PXB, PHB, SYS, or the old numbers 0 to 5. False when it is not set.
  bool level(const char* name, PathType& into) {
    const std::string* text = value_of(environment_, name);
    if (text == nullptr) return false;
    constexpr std::array<PathType, 6> kOld = {PathType::kLoc, PathType::kPix, PathType::kPxb,
                                              PathType::kPhb, PathType::kSys, PathType::kSys};
    if (is_number(*text)) {
      const int value = whole_number(environment_, name, -1);
      if (value < 0) return false;
      into = kOld[static_cast<size_t>(std::min(value, 5))];
      return true;
    }
    // NCCL compares capital letters.
    if (const auto type = parse_path_type(*text); type && name_of(*type) == *text) {
      into = *type;
      return true;
    }
    notes_.push_back(std::string(name) + "=" + *text + " is no distance; NCCL keeps its default");
    return false;
  }

 private:
  const Environment& environment_;
  std::vector<std::string>& notes_;
};

int nets_per_gpu(const Environment& environment, std::vector<std::string>& notes) {
  const std::string* text = value_of(environment, "NCCL_NETDEVS_POLICY");
  if (text == nullptr || equal_ignoring_case(*text, "AUTO")) return 0;
  if (equal_ignoring_case(*text, "ALL")) return -1;
  if (equal_ignoring_case(text->substr(0, 4), "MAX:") && is_number(text->substr(4) + "")) {
    const int most = whole_number({{"n", text->substr(4)}}, "n", 0);
    if (most > 0) return most;
  }
  notes.push_back("NCCL_NETDEVS_POLICY=" + *text +
                  " is not AUTO, ALL or MAX:n; NCCL keeps its default");
  return 0;
}

}  // namespace

TopologySettings weaker(TopologySettings a, const TopologySettings& b) {
  a.p2p_level = std::min(a.p2p_level, b.p2p_level);
  a.p2p_level_given |= b.p2p_level_given;
  a.gdr_level = std::min(a.gdr_level, b.gdr_level);
  a.shared_memory &= b.shared_memory;
  a.through_gpu &= b.through_gpu;
  a.pxn &= b.pxn;
  a.pxn_c2c &= b.pxn_c2c;
  a.gdr_c2c &= b.gdr_c2c;
  a.p2p_pxn_level = std::min(a.p2p_pxn_level, b.p2p_pxn_level);
  a.nvls = std::min(a.nvls, b.nvls);
  a.collnet &= b.collnet;
  a.multi_node_nvlink &= b.multi_node_nvlink;
  a.net_inside_node &= b.net_inside_node;
  a.gdr_read = std::min(a.gdr_read, b.gdr_read);
  a.dma_buffers &= b.dma_buffers;
  a.merge_ports &= b.merge_ports;
  return a;
}

TopologySettings topology_settings(const Environment& environment, const NcclVersion& version,
                                   std::vector<std::string>& notes) {
  TopologySettings out;
  out.version = version;
  Reader reader(environment, notes);
  out.p2p_level_given = reader.level("NCCL_P2P_LEVEL", out.p2p_level);
  if (reader.number("NCCL_P2P_DISABLE", 0) == 1) {
    out.p2p_level = PathType::kLoc;
    out.p2p_level_given = true;
  }
  reader.level("NCCL_NET_GDR_LEVEL", out.gdr_level);
  out.shared_memory = reader.number("NCCL_SHM_DISABLE", 0) != 1;
  out.through_gpu = reader.number("NCCL_NVB_DISABLE", 0) == 0;
  out.pxn = reader.number("NCCL_PXN_DISABLE", 0) != 1;
  out.pxn_c2c = reader.number("NCCL_PXN_C2C", 1) != 0;
  out.gdr_c2c = reader.number("NCCL_NET_GDR_C2C", 1) != 0;
  out.cross_nic = std::clamp(reader.number("NCCL_CROSS_NIC", 2), 0, 2);
  out.p2p_pxn_level = std::clamp(reader.number("NCCL_P2P_PXN_LEVEL", 2), 0, 2);
  out.nets_per_gpu = nets_per_gpu(environment, notes);
  out.net_inside_node = reader.number("NCCL_NET_DISABLE_INTRA", 0) != 1;
  out.gdr_read = std::clamp(reader.number("NCCL_NET_GDR_READ", -1), -1, 1);
  out.dma_buffers = reader.number("NCCL_DMABUF_ENABLE", 1) != 0;
  // Ports of one adapter are one device since 2.20.
  out.merge_ports =
      reader.number("NCCL_IB_MERGE_NICS", 1) != 0 && !(version < NcclVersion{2, 20, 0});
  out.nvls = std::clamp(reader.number("NCCL_NVLS_ENABLE", 2), 0, 2);
  out.collnet = reader.number("NCCL_COLLNET_ENABLE", 0) == 1;
  out.collnet_nodes = std::max(1, reader.number("NCCL_COLLNET_NODE_THRESHOLD", 2));
  // Memory of another node is reached through cuMem handles only.
  out.multi_node_nvlink =
      reader.number("NCCL_MNNVL_ENABLE", 2) != 0 && reader.number("NCCL_CUMEM_ENABLE", -1) != 0;
  return out;
}

}  // namespace rehearse::sim
