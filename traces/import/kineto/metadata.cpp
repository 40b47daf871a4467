// SPDX-License-Identifier: Apache-2.0
#include "traces/import/kineto/metadata.hpp"

#include <simdjson.h>

#include <cmath>

#include "traces/import/json_text.hpp"
#include "traces/import/kineto/decimal.hpp"

namespace rehearse::traces::kineto {
namespace {

namespace dom = simdjson::dom;
constexpr uint64_t kMostRanks = 1 << 24;
constexpr Nanos kLatestBase = Nanos{1} << 61;  // year 2043

std::string text(const dom::element& object, const char* key) {
  std::string_view value;
  if (object[key].get_string().get(value) == simdjson::SUCCESS) return std::string(value);
  int64_t number = 0;
  if (object[key].get_int64().get(number) == simdjson::SUCCESS) return std::to_string(number);
  return {};
}

// Integers also as text; nothing when absent or of another type.
std::optional<int64_t> integer(const dom::element& object, const char* key) {
  int64_t value = 0;
  if (object[key].get_int64().get(value) == simdjson::SUCCESS) return value;
  std::string_view quoted;
  if (object[key].get_string().get(quoted) == simdjson::SUCCESS) return parse_integer(quoted);
  // Tools that write the file anew make 1.7e+18 of an integer.
  double number = 0;
  if (object[key].get_double().get(number) == simdjson::SUCCESS && std::abs(number) < 9e18 &&
      number == std::floor(number)) {
    return static_cast<int64_t>(number);
  }
  return std::nullopt;
}

std::vector<ProcessGroup> groups_of(const dom::element& info) {
  std::vector<ProcessGroup> out;
  dom::array groups;
  if (info["pg_config"].get_array().get(groups) != simdjson::SUCCESS) return out;
  for (const dom::element group : groups) {
    if (!group.is_object()) continue;
    ProcessGroup pg;
    pg.name = text(group, "pg_name");
    pg.description = text(group, "pg_desc");
    pg.backend = text(group, "backend_config");
    pg.size = integer(group, "pg_size").value_or(-1);
    dom::array ranks;
    if (group["ranks"].get_array().get(ranks) == simdjson::SUCCESS) {
      for (const dom::element rank : ranks) {
        int64_t value = 0;
        if (rank.get_int64().get(value) != simdjson::SUCCESS || value < 0 ||
            static_cast<uint64_t>(value) >= kMostRanks) {
          pg.ranks.clear();
          break;
        }
        pg.ranks.push_back(static_cast<RankId>(value));
      }
    }
    out.push_back(std::move(pg));
  }
  return out;
}

std::vector<Device> devices_of(const dom::element& root) {
  std::vector<Device> out;
  for (const char* key : {"deviceProperties", "computeProperties"}) {
    dom::array devices;
    if (root[key].get_array().get(devices) != simdjson::SUCCESS) continue;
    for (const dom::element device : devices) {
      if (!device.is_object()) continue;
      out.push_back({integer(device, "id").value_or(-1), text(device, "name"),
                     integer(device, "totalGlobalMem").value_or(0)});
    }
  }
  return out;
}

}  // namespace

Metadata parse_metadata(std::string_view members, const std::string& where, Findings& findings) {
  Metadata out;
  dom::parser parser;
  dom::element root;
  if (parse_json(parser, members, root) != simdjson::SUCCESS) {
    findings.add(
        "metadata-unreadable", Severity::kWarning, where,
        "rank, groups and devices are not known; the members around the events are not JSON");
    return out;
  }
  out.base = integer(root, "baseTimeNanoseconds").value_or(0);
  if (out.base < 0 || out.base > kLatestBase) {
    findings.add("bad-base-time", Severity::kWarning, where + ", baseTimeNanoseconds",
                 "the number makes no sense; times are taken without it");
    out.base = 0;
  }
  bool synthetic = false;
  out.synthetic = root["synthetic"].get(synthetic) == simdjson::SUCCESS && synthetic;
  if (const auto source = integer(root, "clonedFrom");
      source && *source >= 0 && static_cast<uint64_t>(*source) < kMostRanks) {
    out.cloned_from = static_cast<RankId>(*source);
  }
  out.host = text(root, "host_name");
  out.devices = devices_of(root);
  dom::element info;
  if (root["distributedInfo"].get(info) != simdjson::SUCCESS || !info.is_object()) return out;
  const auto bounded = [&](const char* key) -> std::optional<uint32_t> {
    const auto value = integer(info, key);
    if (!value) return std::nullopt;
    if (*value < 0 || static_cast<uint64_t>(*value) >= kMostRanks) {
      findings.add("bad-distributed-info", Severity::kWarning, where + ", distributedInfo." + key,
                   "the number makes no sense and is not used");
      return std::nullopt;
    }
    return static_cast<uint32_t>(*value);
  };
  out.rank = bounded("rank");
  out.world_size = bounded("world_size");
  if (out.world_size && *out.world_size == 0) out.world_size.reset();
  if (out.rank && out.world_size && *out.rank >= *out.world_size) {
    findings.add("rank-beyond-world", Severity::kWarning, where + ", distributedInfo",
                 "the world size is taken to be larger than stated");
    out.world_size = *out.rank + 1;
  }
  out.backend = text(info, "backend");
  out.nccl_version = text(info, "nccl_version");
  out.groups = groups_of(info);
  return out;
}

}  // namespace rehearse::traces::kineto
