// SPDX-License-Identifier: Apache-2.0
#include "cli/scenario_view.hpp"

#include <nlohmann/json.hpp>

#include "base/document.hpp"
#include "platforms/model/draw.hpp"
#include "platforms/model/links.hpp"
#include "sim/scenario/written.hpp"

namespace rehearse::cli {
namespace {
using Json = nlohmann::ordered_json;

Result<Json> links_of(const pb::Platform& platform) {
  RH_TRY(const platforms::Links links, platforms::Links::build(platform));
  Json rows = Json::array();
  for (platforms::LinkId id = 0; id < links.size(); ++id) {
    const platforms::Link& link = links[id];
    Json row = {{"name", link.name},
                {"kind", platforms::name_of(link.kind)},
                {"bandwidth", link.capacity},
                {"latency_ns", link.latency},
                {"down", link.down}};
    if (link.node < static_cast<uint32_t>(platform.nodes_size())) row["node"] = link.node;
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

Result<void> show_scenario(Context& context, const std::string& what, const Edited& edited) {
  RH_TRY(pb::Scenario compact, sim::written_scenario(what));
  for (const pb::Patch& patch : edited.patches) *compact.add_patches() = patch;
  const std::string yaml = write_document(compact);
  context.show(edited.changed.findings);
  if (!context.json()) return context.print(std::string_view(yaml));
  const pb::Scenario& document = edited.changed.document;
  RH_TRY(Json links, links_of(document.platform()));
  return context.print(Json{{"schema", "rehearse.scenario/1"},
                            {"name", document.name()},
                            {"description", document.description()},
                            {"yaml", yaml},
                            {"patches", edited.changed.applied},
                            {"fabric", platforms::describe_fabric(document.platform().fabric())},
                            {"scenario", to_json(document)},
                            {"links", std::move(links)},
                            {"findings", findings_json(edited.changed.findings)}});
}

}  // namespace rehearse::cli
