// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/document.hpp"
#include "cli/learn.hpp"
#include "cli/table.hpp"
#include "faults/lessons/progress.hpp"
#include "faults/lessons/readme.hpp"

namespace rehearse::cli {
namespace {
using Json = nlohmann::ordered_json;

std::string level_of(const pb::Lab& lab) {
  switch (lab.level()) {
    case pb::Lab::FIRST:
      return "first";
    case pb::Lab::SECOND:
      return "second";
    default:
      return "third";
  }
}

Json row_of(const pb::Lab& lab, const pb::LabState* state) {
  return {{"id", lab.id()},
          {"title", lab.title()},
          {"category", lab.category()},
          {"done", state != nullptr && state->passed()},
          {"score", state == nullptr ? 0 : state->score()},
          {"level", level_of(lab)},
          {"minutes", lab.minutes()},
          {"learn", lab.learn()}};
}

// "100", "started", or nothing.
std::string standing(const pb::LabState* state) {
  if (state == nullptr) return "";
  if (state->passed()) return fmt::format("done, {}", state->score());
  return state->gave_up() ? "given up" : "begun";
}

}  // namespace

Result<int> learn_list(Context& context, const LearnWords& words) {
  if (!words.empty()) {
    return fail(Code::kUsage, "list takes nothing", "learn list", "learn show ID shows one lab");
  }
  RH_TRY(const faults::LabCatalogue labs, lab_catalogue(context));
  RH_TRY(const pb::LabProgress progress, faults::read_progress());
  if (context.json()) {
    Json rows = Json::array();
    for (const auto& entry : labs.entries()) {
      rows.push_back(row_of(entry->lab, faults::find_state(progress, entry->lab.id())));
    }
    return exit_code(context.print(Json{{"schema", "rehearse.labs/1"}, {"labs", rows}}));
  }
  Table table({{"lab"}, {"symptom"}, {"level"}, {"minutes", Align::kRight}, {"you"}, {"title"}});
  uint32_t done = 0;
  for (const auto& entry : labs.entries()) {
    const pb::LabState* state = faults::find_state(progress, entry->lab.id());
    done += state != nullptr && state->passed() ? 1 : 0;
    table.add({entry->lab.id(), entry->lab.category(), level_of(entry->lab),
               fmt::format("{}", entry->lab.minutes()), standing(state), entry->lab.title()});
  }
  return exit_code(context.print(
      std::string_view(fmt::format("{} labs, {} done\n\n", labs.entries().size(), done) +
                       table.text(context.terminal()))));
}

Result<int> learn_show(Context& context, const LearnWords& words) {
  if (words.size() != 1) {
    return fail(Code::kUsage, "show takes one lab", "learn show", "learn list shows them");
  }
  RH_TRY(const faults::LabCatalogue labs, lab_catalogue(context));
  RH_TRY(const auto entry, labs.find(words.front()));
  if (context.json()) {
    Json document = {{"schema", "rehearse.lab/1"}};
    document.update(to_json(entry->lab));
    return exit_code(context.print(document));
  }
  RH_TRY(const faults::Categories categories, faults::Categories::load_shipped());
  return exit_code(context.print(std::string_view(faults::lab_text(entry->lab, categories))));
}

}  // namespace rehearse::cli
