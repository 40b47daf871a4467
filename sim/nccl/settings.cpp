// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/settings.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>

#include "sim/nccl/constants.hpp"
#include "sim/nccl/environment.hpp"

namespace rehearse::sim {

namespace {

using Environment = std::map<std::string, std::string>;

class Reader {
 public:
  Reader(const Environment& environment, Settings& settings)
      : environment_(environment), settings_(settings) {}

  [[nodiscard]] const std::string* text(const char* name) const {
    const auto found = environment_.find(name);
    return found == environment_.end() ? nullptr : &found->second;
  }

  [[nodiscard]] std::optional<std::int64_t> integer(const char* name) {
    const std::string* value = text(name);
    if (!value) return std::nullopt;
    if (std::string note = number_note(name, *value); !note.empty()) {
      settings_.notes.push_back(std::move(note));
    }
    const auto read = read_number(*value);
    return read ? std::optional(read->value) : std::nullopt;
  }

  // -2 asks for the default in every NCCL variable.
  [[nodiscard]] Result<void> bytes(const char* name, std::int64_t least, std::int64_t& into) {
    const std::optional<std::int64_t> number = integer(name);
    if (!number || *number == -2) return {};
    if (*number < least || *number > std::numeric_limits<std::int32_t>::max()) {
      return fail(Code::kBadInput, std::to_string(*number) + " bytes cannot work", name,
                  "give at least " + std::to_string(least) + " and less than 2 GiB");
    }
    into = *number;
    return {};
  }

  void small(const char* name, int& into) {
    const std::optional<std::int64_t> number = integer(name);
    if (!number || *number == -2) return;
    into = static_cast<int>(std::clamp<std::int64_t>(*number, -1, 1 << 20));
  }

 private:
  const Environment& environment_;
  Settings& settings_;
};

template <std::size_t N>
Result<void> read_selection(const Selection& selection, const std::string* text,
                            std::array<std::array<Switch, N>, kCollectiveCount>& into) {
  if (!text) return {};
  RH_TRY(const SwitchTable table, parse_selection(selection, *text));
  for (std::size_t f = 0; f < kCollectiveCount; ++f) {
    for (std::size_t i = 0; i < N; ++i) into[f][i] = table[f][i];
  }
  return {};
}

Result<void> read_selections(const Reader& reader, Settings& settings) {
  std::array<std::string_view, kAlgorithmCount> algorithms;
  for (const Algorithm a : kAlgorithms) algorithms[index_of(a)] = environment_name_of(a);
  std::array<std::string_view, kProtocolCount> protocols;
  for (const Protocol p : kProtocols) protocols[index_of(p)] = name_of(p);
  const std::string* algo = reader.text("NCCL_ALGO");
  const std::string* proto = reader.text("NCCL_PROTO");
  settings.selection_given = algo || proto;
  if (auto ok = read_selection({"NCCL_ALGO", algorithms}, algo, settings.algorithms); !ok) {
    return ok;
  }
  return read_selection({"NCCL_PROTO", protocols}, proto, settings.protocols);
}

// As sscanf of six numbers: reading stops at the first field that is none.
void read_thresholds(const std::string* text, Settings& settings) {
  if (!text) return;
  const char* at = text->data();
  const char* const end = at + text->size();
  for (auto& row : settings.thread_thresholds) {
    for (std::int64_t& threshold : row) {
      while (at != end && (*at == ' ' || *at == '\t')) ++at;
      const auto [next, error] = std::from_chars(at, end, threshold);
      if (error != std::errc{}) return;
      threshold = std::min<std::int64_t>(threshold, std::numeric_limits<std::int32_t>::max());
      at = next;
    }
  }
}

// The least sizes leave one grain of the protocol per chunk (NCCL model §6.3).
Result<void> read_sizes(Reader& reader, Settings& settings) {
  struct Size {
    const char* name;
    std::int64_t least;
    std::int64_t* into;
  };
  std::int64_t tree_chunk = 0;
  const Size sizes[] = {
      {"NCCL_LL_BUFFSIZE", kSteps * std::int64_t{32},
       &settings.buffer_bytes[index_of(Protocol::kLl)]},
      {"NCCL_LL128_BUFFSIZE", kSteps * std::int64_t{2048},
       &settings.buffer_bytes[index_of(Protocol::kLl128)]},
      {"NCCL_BUFFSIZE", kSteps * std::int64_t{512},
       &settings.buffer_bytes[index_of(Protocol::kSimple)]},
      {"NCCL_NVLS_CHUNKSIZE", 512, &settings.nvls_chunk_bytes},
      {"NCCL_NVLSTREE_MAX_CHUNKSIZE", 512, &tree_chunk},
      {"NCCL_P2P_NET_CHUNKSIZE", 64, &settings.p2p_net_chunk_bytes},
      {"NCCL_P2P_PCI_CHUNKSIZE", 64, &settings.p2p_pci_chunk_bytes},
      {"NCCL_P2P_NVL_CHUNKSIZE", 64, &settings.p2p_nvl_chunk_bytes},
      {"NCCL_P2P_LL_THRESHOLD", 0, &settings.p2p_ll_threshold_bytes},
  };
  for (const Size& size : sizes) {
    if (auto ok = reader.bytes(size.name, size.least, *size.into); !ok) return ok;
  }
  if (tree_chunk != 0) settings.nvls_tree_max_chunk_bytes = tree_chunk;
  const std::optional<std::int64_t> chunk = reader.integer("NCCL_CHUNK_SIZE");
  if (!chunk || *chunk == 0) return {};
  return reader.bytes("NCCL_CHUNK_SIZE", 16, settings.p2p_chunk_bytes);
}

}  // namespace

Settings::Settings() {
  for (auto& row : algorithms) row.fill(Switch::kAuto);
  for (auto& row : protocols) row.fill(Switch::kAuto);
  for (auto& row : thread_thresholds) row.fill(-2);
}

std::int64_t Settings::step_bytes(Protocol protocol) const {
  return buffer_bytes[index_of(protocol)] / kSteps;
}

Result<Settings> parse_settings(const Environment& environment) {
  Settings settings;
  Reader reader(environment, settings);
  if (auto ok = read_selections(reader, settings); !ok) return tl::unexpected(ok.error());
  if (auto ok = read_sizes(reader, settings); !ok) return tl::unexpected(ok.error());
  read_thresholds(reader.text("NCCL_THREAD_THRESHOLDS"), settings);

  reader.small("NCCL_NTHREADS", settings.n_threads);
  reader.small("NCCL_LL128_NTHREADS", settings.ll128_n_threads);
  reader.small("NCCL_PAT_ENABLE", settings.pat_enable);
  reader.small("NCCL_MIN_P2P_NCHANNELS", settings.min_p2p_channels);
  reader.small("NCCL_MAX_P2P_NCHANNELS", settings.max_p2p_channels);
  const std::optional<std::int64_t> overhead = reader.integer("NCCL_NET_OVERHEAD");
  if (overhead && *overhead != -2) settings.net_overhead_us = static_cast<double>(*overhead) * .001;
  int flag = 1;
  reader.small("NCCL_LL128_C2C", flag);
  settings.ll128_c2c = flag != 0;
  flag = 0;
  reader.small("NCCL_CTA_POLICY", flag);
  settings.prefer_few_channels = flag == 1;
  flag = 0;
  reader.small("NCCL_ALLOC_P2P_NET_LL_BUFFERS", flag);
  settings.p2p_net_ll_buffers = flag == 1;
  flag = -1;
  reader.small("NCCL_NCHANNELS_PER_NET_PEER", flag);
  if (flag > 0) settings.channels_per_net_peer = flag;
  return settings;
}

}  // namespace rehearse::sim
