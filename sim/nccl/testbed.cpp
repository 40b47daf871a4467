// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/testbed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "base/document.hpp"
#include "base/text.hpp"
#include "platforms/model/catalogue.hpp"

namespace rehearse::sim {
namespace {

constexpr uint32_t kMostRanks = 65536;

tl::unexpected<Error> bad_setting(const std::string& text) {
  return fail(Code::kUsage, "cannot read the setting " + in_quotes(text), "--env",
              "write NCCL_ALGO=Ring, or ranks[8-15].env.NCCL_ALGO=Ring for some ranks");
}

Result<uint32_t> index(std::string_view text, const std::string& whole) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value >= kMostRanks) {
    return bad_setting(whole);
  }
  return value;
}

// "8-15", "0,3", "*".
Result<std::vector<uint32_t>> indices(std::string_view list, const std::string& whole) {
  std::vector<uint32_t> out;
  if (list == "*") return out;
  for (const std::string& part : split(list, ',')) {
    const size_t dash = part.find('-');
    RH_TRY(const uint32_t first, index(std::string_view(part).substr(0, dash), whole));
    uint32_t last = first;
    if (dash != std::string::npos) {
      RH_TRY(last, index(std::string_view(part).substr(dash + 1), whole));
    }
    if (last < first) return bad_setting(whole);
    for (uint32_t rank = first; rank <= last; ++rank) out.push_back(rank);
  }
  return out;
}

struct Size {
  uint32_t nodes, per_node, ranks;
};

Result<Size> size_of(const pb::Platform& one, const TestbedOptions& options,
                     const std::string& where) {
  const auto stock = static_cast<uint32_t>(one.nodes_size());
  const auto gpus = static_cast<uint32_t>(one.nodes(0).gpus_size());
  if (gpus == 0) return fail(Code::kBadInput, "the first node has no GPU", where);
  uint32_t per_node = options.gpus_per_node;
  if (per_node == 0) {
    per_node = options.nodes > 0 && options.ranks > 0
                   ? (options.ranks + options.nodes - 1) / options.nodes
                   : gpus;
  }
  if (per_node > gpus) {
    return fail(Code::kBadInput, fmt::format("{} ranks on a node of {} GPUs", per_node, gpus),
                where, "use more nodes, or a platform with larger ones");
  }
  uint32_t nodes = options.nodes;
  if (nodes == 0) nodes = options.ranks > 0 ? (options.ranks + per_node - 1) / per_node : stock;
  const uint32_t ranks = options.ranks > 0 ? options.ranks : nodes * per_node;
  if (uint64_t{nodes} * per_node < ranks) {
    return fail(Code::kBadInput,
                fmt::format("{} ranks do not fit on {} nodes of {} GPUs", ranks, nodes, per_node),
                where, "use more nodes");
  }
  if (nodes > kMostRanks || ranks > kMostRanks) {
    return fail(Code::kBadInput, fmt::format("{} ranks are too many", ranks), where,
                "at most 65536");
  }
  return Size{nodes, per_node, ranks};
}

}  // namespace

Result<RankSetting> parse_setting(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) return bad_setting(text);
  RankSetting out;
  std::string_view path = std::string_view(text).substr(0, equals);
  out.value = text.substr(equals + 1);
  if (path.starts_with("launch.")) path.remove_prefix(7);
  if (path.starts_with("env.")) path.remove_prefix(4);
  if (path.starts_with("ranks[")) {
    const size_t close = path.find(']');
    if (close == std::string_view::npos || !path.substr(close).starts_with("].env.")) {
      return bad_setting(text);
    }
    RH_TRY(out.ranks, indices(path.substr(6, close - 6), text));
    path.remove_prefix(close + 6);
  }
  out.name = std::string(path);
  const bool plain = !out.name.empty() && std::all_of(out.name.begin(), out.name.end(), [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
  if (!plain) return bad_setting(text);
  return out;
}

Result<std::unique_ptr<Testbed>> Testbed::make(pb::Platform platform, const TestbedOptions& options,
                                               const std::string& where) {
  pb::Platform one = platform;
  if (auto done = platforms::expand(one, where); !done) return tl::unexpected(done.error());
  if (one.nodes_size() == 0) return fail(Code::kBadInput, "the platform has no node", where);
  RH_TRY(const Size size, size_of(one, options, where));
  if (size.nodes != static_cast<uint32_t>(one.nodes_size())) platform.set_scale(size.nodes);
  if (auto done = platforms::expand(platform, where); !done) return tl::unexpected(done.error());
  for (const auto& [path, value] : options.assigned) {
    RH_TRY(const int fields, set_path(platform, path, value));
    (void)fields;
  }

  pb::Launch launch;
  launch.set_nccl_version(options.nccl_version.empty() ? "2.28.9" : options.nccl_version);
  launch.set_backend(options.backend);
  launch.set_world_size(size.ranks);
  for (const pb::LaunchFile& file : options.files) *launch.add_files() = file;
  for (uint32_t node = 0, rank = 0; rank < size.ranks; ++node) {
    if (static_cast<int>(node) >= platform.nodes_size()) {
      return fail(Code::kBadInput, fmt::format("rank {} has no GPU", rank), where,
                  "use more nodes");
    }
    const auto here = std::min<uint32_t>(
        size.per_node, static_cast<uint32_t>(platform.nodes(static_cast<int>(node)).gpus_size()));
    for (uint32_t gpu = 0; gpu < here && rank < size.ranks; ++gpu) {
      pb::RankLaunch& entry = *launch.add_ranks();
      entry.set_rank(rank++);
      entry.set_node(node);
      entry.set_gpu(gpu);
    }
  }
  for (const RankSetting& setting : options.settings) {
    if (setting.ranks.empty()) {
      (*launch.mutable_env())[setting.name] = setting.value;
      continue;
    }
    for (uint32_t rank : setting.ranks) {
      if (rank >= size.ranks) {
        return fail(Code::kBadInput,
                    fmt::format("{} is set for rank {}, but there are {} ranks", setting.name, rank,
                                size.ranks),
                    "--env", "ranks count from 0");
      }
      (*launch.mutable_ranks(static_cast<int>(rank))->mutable_env())[setting.name] = setting.value;
    }
  }
  RH_TRY(platforms::Links links, platforms::Links::build(platform));
  return std::unique_ptr<Testbed>(
      new Testbed(std::move(platform), std::move(launch), std::move(links)));
}

Result<CommunicatorModel> Testbed::world() const {
  std::vector<uint32_t> members(static_cast<size_t>(launch_.ranks_size()));
  std::iota(members.begin(), members.end(), 0U);
  return CommunicatorModel::create(context(), {"world", "all ranks", std::move(members), ""});
}

}  // namespace rehearse::sim
