// SPDX-License-Identifier: Apache-2.0
#include "cli/config.hpp"

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "cli/help.hpp"
#include "cli/table.hpp"

namespace rehearse::cli {
namespace {

// The values as written, repeated options joined; switches are "on".
std::string written(const Arguments& arguments, const OptionRow& row) {
  std::vector<std::string> values;
  for (const auto& [name, value] : arguments.in_order) {
    if (name == row.long_name) values.push_back(row.value.empty() ? "on" : value);
  }
  return join_words(values);
}

}  // namespace

std::vector<Setting> settings_of(const Context& context) {
  std::vector<Setting> settings;
  for (const auto& options : {own_options(context.verb()), common_options()}) {
    for (const OptionRow& row : rows_of(options)) {
      if (row.long_name == "print-config" || row.long_name == "help") continue;
      const std::string given = written(context.arguments(), row);
      if (!given.empty()) {
        settings.push_back({"--" + row.long_name, given, "command line"});
      } else {
        const std::string unset = row.value.empty() ? "off" : "";
        settings.push_back(
            {"--" + row.long_name, row.fallback.empty() ? unset : row.fallback, "default"});
      }
    }
  }
  for (const Variable& variable : variables()) {
    const char* value = std::getenv(variable.name);
    settings.push_back({variable.name, value ? value : "", value ? "environment" : "not set"});
  }
  return settings;
}

Result<void> print_config(Context& context) {
  const std::vector<Setting> settings = settings_of(context);
  if (context.json()) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const Setting& s : settings) {
      rows.push_back({{"name", s.name}, {"value", s.value}, {"origin", s.origin}});
    }
    return context.print_stdout(nlohmann::ordered_json{{"schema", "rehearse.config/1"},
                                                       {"verb", context.verb().name},
                                                       {"settings", std::move(rows)}});
  }
  Table table({{"setting"}, {"value"}, {"origin"}});
  for (const Setting& s : settings) table.add({s.name, s.value, s.origin});
  return context.print_stdout(std::string_view(table.text(context.terminal())));
}

}  // namespace rehearse::cli
