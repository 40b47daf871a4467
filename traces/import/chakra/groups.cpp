// SPDX-License-Identifier: Apache-2.0
#include "traces/import/chakra/groups.hpp"

#include <simdjson.h>

#include <set>

#include "traces/import/limits.hpp"

namespace rehearse::traces::chakra {
namespace {

namespace dom = simdjson::dom;

std::string text_of(const dom::element& object, const char* key) {
  std::string_view text;
  int64_t number = 0;
  if (object[key].get_string().get(text) == simdjson::SUCCESS) return std::string(text);
  if (object[key].get_int64().get(number) == simdjson::SUCCESS) return std::to_string(number);
  return {};
}

}  // namespace

bool parse_groups(std::string_view values, std::vector<ProcessGroup>& out) {
  const size_t open = values.find("[{"), close = values.rfind("}]");
  if (open == std::string_view::npos || close == std::string_view::npos || close < open)
    return false;
  const simdjson::padded_string text(values.substr(open, close + 2 - open));
  dom::parser parser;
  dom::array groups;
  if (parser.parse(text).get_array().get(groups) != simdjson::SUCCESS) return false;
  for (const dom::element group : groups) {
    ProcessGroup pg;
    pg.name = text_of(group, "pg_name");
    pg.communicator.id = text_of(group, "rehearse_id");
    if (pg.communicator.id.empty()) pg.communicator.id = pg.name;
    pg.communicator.description = text_of(group, "pg_desc");
    std::string backend = text_of(group, "backend_config");
    if (const size_t colon = backend.rfind(':'); colon != std::string::npos) {
      backend.erase(0, colon + 1);
    }
    pg.communicator.backend = std::move(backend);
    dom::array ranks;
    std::set<int64_t> seen;
    if (group["ranks"].get_array().get(ranks) == simdjson::SUCCESS) {
      for (const dom::element value : ranks) {
        int64_t rank = -1;
        if (value.get_int64().get(rank) != simdjson::SUCCESS || rank < 0 || rank >= kMostRank ||
            !seen.insert(rank).second) {
          return false;
        }
        pg.communicator.members.push_back(static_cast<RankId>(rank));
      }
    }
    if (pg.name.empty()) return false;
    out.push_back(std::move(pg));
  }
  return true;
}

}  // namespace rehearse::traces::chakra
