// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/settings.hpp"

#include <fmt/format.h>

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

// Lists are read strictly, function by function, from here on.
constexpr NcclVersion kStrictLists{2, 24, 0};

std::string question(const SelectionSlip& slip) {
  return slip.nearest.empty() ? "" : "is " + slip.nearest + " meant? ";
}

Error error_of(const SelectionSlip& slip, const Selection& selection) {
  Error error{Code::kBadInput, "unknown name \"" + slip.token + "\"",
              std::string(selection.variable), ""};
  switch (slip.kind) {
    case SelectionSlip::Kind::kElement:
      error.fix = question(slip) + fmt::format("use {}", fmt::join(selection.elements.begin(),
                                                                   selection.elements.end(), ", "));
      break;
    case SelectionSlip::Kind::kFunction:
      error.what = "unknown function \"" + slip.token + "\"";
      error.fix = question(slip) + "use Broadcast, Reduce, AllGather, ReduceScatter or AllReduce";
      break;
    case SelectionSlip::Kind::kNoFunction:
      error.what = "\"" + slip.token + "\" lacks its function";
      error.fix = "only the first list holds for all functions; write function:list";
      break;
  }
  return error;
}

std::string note_of(const SelectionSlip& slip, const Selection& selection) {
  return fmt::format("{}: NCCL before 2.24 passes over \"{}\", which it does not know{}",
                     selection.variable, slip.token,
                     slip.nearest.empty() ? "" : "; is " + slip.nearest + " meant?");
}

struct Names {
  std::array<std::string_view, kAlgorithmCount> algorithms;
  std::array<std::string_view, kProtocolCount> protocols;

  Names() {
    for (const Algorithm a : kAlgorithms) algorithms[index_of(a)] = environment_name_of(a);
    for (const Protocol p : kProtocols) protocols[index_of(p)] = name_of(p);
  }
  // In the order in which NCCL reads them.
  [[nodiscard]] std::array<Selection, 2> selections() const {
    return {Selection{"NCCL_PROTO", protocols}, Selection{"NCCL_ALGO", algorithms}};
  }
};

template <std::size_t N>
void take(const SwitchTable& table, std::array<std::array<Switch, N>, kCollectiveCount>& into) {
  for (std::size_t f = 0; f < kCollectiveCount; ++f) {
    for (std::size_t i = 0; i < N; ++i) into[f][i] = table[f][i];
  }
}

Result<void> read_selections(const Environment& environment, const NcclVersion& version,
                             Settings& settings) {
  const Names names;
  for (const Selection& selection : names.selections()) {
    const std::string text = variable_in(environment, std::string(selection.variable));
    if (text.empty()) continue;
    settings.selection_given = true;
    SwitchTable table;
    if (version < kStrictLists) {
      std::vector<SelectionSlip> slips;
      table = parse_plain_selection(selection, text, slips);
      for (const SelectionSlip& slip : slips) settings.notes.push_back(note_of(slip, selection));
    } else {
      auto strict = parse_selection(selection, text);
      if (!strict) return tl::unexpected(error_of(strict.error(), selection));
      table = std::move(*strict);
    }
    if (selection.variable == "NCCL_ALGO") {
      take(table, settings.algorithms);
    } else {
      take(table, settings.protocols);
    }
  }
  return {};
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

std::optional<RefusedSelection> refused_selection(const Environment& environment,
                                                  const NcclVersion& version) {
  if (version < kStrictLists) return std::nullopt;
  const Names names;
  for (const Selection& selection : names.selections()) {
    const std::string variable(selection.variable);
    std::string text = variable_in(environment, variable);
    auto read = parse_selection(selection, text);
    if (!read) return RefusedSelection{variable, std::move(text), std::move(read).error()};
  }
  return std::nullopt;
}

bool leaves_nothing(const Environment& environment) {
  const auto settings = parse_settings(environment, NcclVersion{2, 23, 0});
  return settings && std::ranges::all_of(settings->protocols.front(),
                                         [](Switch each) { return each == Switch::kOff; });
}

Result<Settings> parse_settings(const Environment& environment, const NcclVersion& version) {
  Settings settings;
  Reader reader(environment, settings);
  if (auto ok = read_selections(environment, version, settings); !ok) {
    return tl::unexpected(ok.error());
  }
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
