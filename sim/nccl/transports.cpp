// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/transports.hpp"

#include <algorithm>

namespace rehearse::sim {
namespace {

IntraTransport worst_of(PairTransport transport) {
  switch (transport) {
    case PairTransport::kNvlink:
    case PairTransport::kNvlinkVia:
      return IntraTransport::kNvlink;
    case PairTransport::kPcie:
      return IntraTransport::kPcie;
    case PairTransport::kHost:
      return IntraTransport::kHost;
  }
  return IntraTransport::kHost;
}

}  // namespace

const char* name_of(IntraTransport transport) {
  switch (transport) {
    case IntraTransport::kNvlink:
      return "P2P/NVL";
    case IntraTransport::kPcie:
      return "P2P/PCIe";
    case IntraTransport::kHost:
      return "SHM";
  }
  return "SHM";
}

const char* name_of(InterTransport transport) {
  switch (transport) {
    case InterTransport::kNone:
      return "";
    case InterTransport::kNvlink:
      return "P2P/MNNVL";
    case InterTransport::kRdmaDirect:
      return "NET/IB/GDRDMA";
    case InterTransport::kRdma:
      return "NET/IB";
    case InterTransport::kSocket:
      return "NET/Socket";
  }
  return "";
}

const char* name_of(PairTransport transport) { return name_of(worst_of(transport)); }

PairTransport transport_of(const NodeSystem& system, size_t a, size_t b) {
  if (!system.peer_to_peer(a, b)) return PairTransport::kHost;
  const PathType type = system.gpu_path(a, b).type;
  if (type <= PathType::kNvl) return PairTransport::kNvlink;
  return type == PathType::kNvb ? PairTransport::kNvlinkVia : PairTransport::kPcie;
}

IntraTransport joining(const NodeSystem& system) {
  IntraTransport worst = IntraTransport::kNvlink;
  for (size_t a = 0; a < system.gpus.size(); ++a) {
    IntraTransport best = IntraTransport::kHost;
    for (size_t b = 0; b < system.gpus.size(); ++b) {
      if (a != b) best = std::min(best, worst_of(transport_of(system, a, b)));
    }
    if (system.gpus.size() > 1) worst = std::max(worst, best);
  }
  return worst;
}

}  // namespace rehearse::sim
