// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <nlohmann/json.hpp>

#include "cli/context.hpp"
#include "cli/explanation.hpp"
#include "platforms/model/links.hpp"

namespace rehearse::cli {
namespace {

using Json = nlohmann::ordered_json;
using sim::Explanation;

Json accuracy_json(const ExplanationFrame& frame, Nanos time) {
  if (!frame.accuracy) return {{"validated", false}};
  const auto& a = *frame.accuracy;
  return {{"validated", true},
          {"rows", a.rows},
          {"low_ns", static_cast<Nanos>(static_cast<double>(time) * a.low)},
          {"high_ns", static_cast<Nanos>(static_cast<double>(time) * a.high)},
          {"share", 0.8}};
}

Json variants_json(const Explanation& e) {
  Json rows = Json::array();
  for (const auto& v : e.variants) {
    Json row = {{"algorithm", name_of(v.algorithm)},
                {"protocol", name_of(v.protocol)},
                {"available", v.available},
                {"chosen", v.chosen}};
    if (v.available) {
      row["latency_us"] = v.latency_us;
      row["bandwidth"] = v.bandwidth;
      row["nccl_time_us"] = v.nccl_time_us;
      row["channels"] = v.channels;
      row["threads"] = v.threads;
      row["time_ns"] = v.time;
    } else {
      row["why_not"] = v.why_not;
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

Json graph_json(const Explanation& e) {
  Json rows = Json::array();
  for (const auto& channel : e.graph) {
    Json row = {{"channel", channel.channel}, {"ring", channel.ring}};
    if (!channel.parent.empty()) row["parent"] = channel.parent;
    if (!channel.adapters.empty()) row["adapters"] = channel.adapters;
    rows.push_back(std::move(row));
  }
  return rows;
}

Json pairs_json(const Explanation& e) {
  Json rows = Json::array();
  for (const auto& pair : e.pairs) {
    Json row = {{"peers", pair.peers}, {"transport", pair.transport}};
    if (!pair.adapter.empty()) row["adapter"] = pair.adapter;
    if (pair.through >= 0) row["through_rank"] = pair.through;
    rows.push_back(std::move(row));
  }
  return rows;
}

Json brief(const Explanation& e) {
  Json row = {{"bytes", e.bytes},
              {"algorithm", e.chosen},
              {"channels", e.channels},
              {"threads", e.threads},
              {"bound", e.bound}};
  row["time_ns"] = e.never ? Json() : Json(e.time);
  row["algbw"] = e.algorithm_rate;
  row["busbw"] = e.bus_rate;
  return row;
}

}  // namespace

Json explanation_json(const Explanation& e, const ExplanationFrame& frame) {
  Json latency = Json::array(), links = Json::array(), fallbacks = Json::array();
  for (const auto& part : e.latency) {
    latency.push_back({{"what", part.what}, {"count", part.count}, {"each_us", part.each_us}});
  }
  for (const auto& link : e.links) {
    Json row = {{"name", link.name},
                {"kind", platforms::name_of(link.kind)},
                {"data_sheet", link.data_sheet},
                {"effective", link.effective},
                {"bytes", link.bytes}};
    row["time_ns"] = link.effective > 0 ? Json(link.time) : Json();
    links.push_back(std::move(row));
  }
  for (const auto& f : e.fallbacks) {
    fallbacks.push_back(
        {{"node", f.node}, {"ranks", f.ranks}, {"from", f.from}, {"to", f.to}, {"why", f.why}});
  }
  Json out = {{"schema", "rehearse.nccl/1"},
              {"collective", e.collective},
              {"platform", frame.platform},
              {"ranks", e.ranks},
              {"nodes", e.nodes},
              {"type", e.type},
              {"reduction", e.reduction},
              {"nccl_version", e.nccl_version},
              {"constants", {{"versions", e.constants_from}, {"exact", e.version_exact}}}};
  out.update(brief(e));
  out["accuracy"] = accuracy_json(frame, e.time);
  out["why"] = e.why;
  out["variants"] = variants_json(e);
  out["channels_offered"] = e.channels_offered;
  out["chunk"] = {{"bytes", e.chunks.chunk_bytes},
                  {"slice_bytes", e.chunks.slice_bytes},
                  {"loops", e.chunks.loops},
                  {"steps_per_loop", e.chunks.steps_per_loop},
                  {"proxy_steps", e.chunks.proxy_steps}};
  out["buffers"] = {{"gpu_bytes", e.gpu_buffers}, {"host_bytes", e.host_buffers}};
  out["dissent"] = e.dissent;
  out["transports"] = {{"inside", e.inside},
                       {"between", e.between},
                       {"offered", e.offered},
                       {"fallbacks", fallbacks}};
  out["graph_kind"] =
      std::array{"rings", "trees", "heads", "head_trees"}[static_cast<size_t>(e.graph_kind)];
  out["graph"] = graph_json(e);
  for (const auto& [way, pairs] : e.inside_ways) out["inside_ways"][way] = pairs;
  if (!e.pairs.empty()) out["pairs"] = pairs_json(e);
  out["latency_ns"] = e.latency_time;
  out["latency"] = latency;
  out["transfer_ns"] = e.never ? Json() : Json(e.transfer_time);
  out["channel_ns"] = e.channel_time;
  out["issue_ns"] = e.issue_time;
  out["links"] = links;
  out["findings"] = findings_json(e.findings);
  return out;
}

Json sweep_json(const std::vector<Explanation>& rows, const ExplanationFrame& frame) {
  Json sizes = Json::array();
  for (const Explanation& row : rows) sizes.push_back(brief(row));
  const Explanation& e = rows.front();
  return {{"schema", "rehearse.nccl/1"},
          {"collective", e.collective},
          {"platform", frame.platform},
          {"ranks", e.ranks},
          {"nodes", e.nodes},
          {"type", e.type},
          {"reduction", e.reduction},
          {"nccl_version", e.nccl_version},
          {"accuracy", accuracy_json(frame, 0)},
          {"sizes", sizes},
          {"findings", findings_json(e.findings)}};
}

}  // namespace rehearse::cli
