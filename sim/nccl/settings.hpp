// SPDX-License-Identifier: Apache-2.0
// What the NCCL_* environment of a rank changes in NCCL's decisions. Variables that decide other
// things (interfaces, transports, topology) are not read here. Values only; all ranks of a
// communicator are taken to have the same settings, as NCCL requires.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "sim/nccl/names.hpp"
#include "sim/nccl/selection.hpp"
#include "sim/nccl/version.hpp"

namespace rehearse::sim {

struct Settings {
  // NCCL_ALGO, NCCL_PROTO: by function, then algorithm or protocol.
  std::array<std::array<Switch, kAlgorithmCount>, kCollectiveCount> algorithms;
  std::array<std::array<Switch, kProtocolCount>, kCollectiveCount> protocols;
  bool selection_given = false;  // one of the two was set

  int n_threads = 0;        // NCCL_NTHREADS; 0: default
  int ll128_n_threads = 0;  // NCCL_LL128_NTHREADS; 0: default
  // NCCL_THREAD_THRESHOLDS, bytes per thread: TREE LL, LL128, SIMPLE, then RING; negative: default.
  std::array<std::array<std::int64_t, kProtocolCount>, 2> thread_thresholds;

  // NCCL_LL_BUFFSIZE, NCCL_LL128_BUFFSIZE, NCCL_BUFFSIZE: bytes of one connection, by protocol.
  std::array<std::int64_t, kProtocolCount> buffer_bytes = {524288, 4915200, 4194304};
  std::int64_t nvls_chunk_bytes = 131072;                 // NCCL_NVLS_CHUNKSIZE
  std::optional<std::int64_t> nvls_tree_max_chunk_bytes;  // NCCL_NVLSTREE_MAX_CHUNKSIZE

  std::optional<double> net_overhead_us;  // NCCL_NET_OVERHEAD, given in ns
  int pat_enable = 2;                     // NCCL_PAT_ENABLE: 0 off, 1 on, 2 where it fits
  bool ll128_c2c = true;                  // NCCL_LL128_C2C
  bool prefer_few_channels = false;       // NCCL_CTA_POLICY=1

  int min_p2p_channels = 1;                     // NCCL_MIN_P2P_NCHANNELS
  int max_p2p_channels = 64;                    // NCCL_MAX_P2P_NCHANNELS
  std::optional<int> channels_per_net_peer;     // NCCL_NCHANNELS_PER_NET_PEER
  std::int64_t p2p_net_chunk_bytes = 131072;    // NCCL_P2P_NET_CHUNKSIZE
  std::int64_t p2p_pci_chunk_bytes = 131072;    // NCCL_P2P_PCI_CHUNKSIZE
  std::int64_t p2p_nvl_chunk_bytes = 524288;    // NCCL_P2P_NVL_CHUNKSIZE
  std::int64_t p2p_chunk_bytes = 0;             // NCCL_CHUNK_SIZE; 0: by the other three
  std::int64_t p2p_ll_threshold_bytes = 16384;  // NCCL_P2P_LL_THRESHOLD
  bool p2p_net_ll_buffers = false;              // NCCL_ALLOC_P2P_NET_LL_BUFFERS=1

  // Values that NCCL would silently not honour, one sentence each.
  std::vector<std::string> notes;

  // NCCL's defaults: every algorithm and protocol kAuto.
  Settings();

  // Bytes of one of the eight slots of a connection buffer.
  [[nodiscard]] std::int64_t step_bytes(Protocol protocol) const;
};

// Reads the variables above from `environment` as that version does and ignores all others. A number that is followed
// by something else, or is none, is read as NCCL does (sim/nccl/environment.hpp) and gives a note, as does a name in
// NCCL_ALGO or NCCL_PROTO that an old version passes over. Code::kBadInput, with the variable in `where`: a
// selection that the version refuses; a buffer or chunk size NCCL cannot work with.
[[nodiscard]] Result<Settings> parse_settings(const std::map<std::string, std::string>& environment,
                                              const NcclVersion& version);

// NCCL_PROTO or NCCL_ALGO, whichever NCCL ends its start with; nothing where it takes both.
struct RefusedSelection {
  std::string variable;
  std::string value;
  SelectionSlip slip;
};
[[nodiscard]] std::optional<RefusedSelection> refused_selection(
    const std::map<std::string, std::string>& environment, const NcclVersion& version);

// Does NCCL_PROTO, as versions before 2.24 read it, leave no protocol, so that they refuse every call?
[[nodiscard]] bool leaves_nothing(const std::map<std::string, std::string>& environment);

}  // namespace rehearse::sim
