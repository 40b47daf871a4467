// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/markup.hpp"
#include "base/text.hpp"
#include "cli/outcome_groups.hpp"
#include "cli/outcome_text.hpp"
#include "cli/report/report.hpp"

namespace rehearse::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kLongText = 400;

template <typename Repeated>
Json column(const Repeated& values) {
  return Json(std::vector<typename Repeated::value_type>(values.begin(), values.end()));
}

Json timeline_json(const pb::Timeline& timeline) {
  Json ranks = Json::array();
  for (const pb::RankTimeline& rank : timeline.ranks()) {
    Json lanes = Json::array();
    for (const pb::LaneTimeline& lane : rank.lanes()) {
      Json row = {{"name", shortened(lane.name(), kLongText)},
                  {"start", column(lane.start())},
                  {"duration", column(lane.duration())},
                  {"label", column(lane.name_id())}};
      if (lane.call_size() > 0) {
        row["callAt"] = column(lane.call_at());
        row["call"] = column(lane.call());
      }
      if (lane.resolution_ns() > 0) {
        row["count"] = column(lane.count());
        row["busy"] = column(lane.busy());
        row["resolution"] = lane.resolution_ns();
      }
      if (lane.has_open()) {
        row["open"] = {{"start", lane.open().start_ns()}, {"label", lane.open().name_id()}};
        if (lane.open().has_call()) row["open"]["call"] = lane.open().call();
      }
      lanes.push_back(std::move(row));
    }
    ranks.push_back({{"rank", rank.rank()}, {"lanes", std::move(lanes)}});
  }
  Json calls = Json::array();
  for (const pb::TimelineCall& call : timeline.calls()) {
    calls.push_back({shortened(call.communicator(), kLongText), call.sequence(), call.operation(),
                     call.algorithm(), call.bytes(), call.first_arrival_ns(),
                     call.last_arrival_ns(), call.end_ns(), call.last_rank()});
  }
  Json path = Json::array();
  for (const pb::PathPart& part : timeline.critical_path()) {
    path.push_back({part.rank(), part.lane(), part.from_ns(), part.to_ns(), part.name_id()});
  }
  return {{"names", column(timeline.names())},
          {"kinds", column(timeline.kinds())},
          {"ranks", std::move(ranks)},
          {"calls", std::move(calls)},
          {"path", std::move(path)}};
}

Json devices_json(const google::protobuf::RepeatedPtrField<pb::DevicePicture>& devices) {
  Json out = Json::array();
  for (const pb::DevicePicture& device : devices) {
    Json row = {{"name", device.name()}, {"what", device.what()}, {"down", device.down()}};
    if (device.ranks_size() > 0) row["ranks"] = column(device.ranks());
    out.push_back(std::move(row));
  }
  return out;
}

Json cluster_json(const pb::ClusterPicture& cluster) {
  Json nodes = Json::array(), links = Json::array();
  for (const pb::NodePicture& node : cluster.nodes()) {
    nodes.push_back({{"name", node.name()},
                     {"model", node.model()},
                     {"nvswitches", node.nvswitches()},
                     {"gpus", devices_json(node.gpus())},
                     {"nics", devices_json(node.nics())}});
  }
  for (const pb::LinkPicture& link : cluster.links()) {
    Json levels = Json::array();
    for (const char level : link.over_time()) levels.push_back(static_cast<unsigned char>(level));
    Json row = {{"name", link.name()},         {"kind", link.kind()},
                {"capacity", link.capacity()}, {"use", link.utilisation()},
                {"levels", std::move(levels)}, {"down", link.down()}};
    if (link.has_node()) {
      row["node"] = link.node();
      row["device"] = link.device();
      row["part"] = link.part();
    }
    links.push_back(std::move(row));
  }
  return {{"name", cluster.name()},
          {"fabric", cluster.fabric()},
          {"nodes", std::move(nodes)},
          {"links", std::move(links)},
          {"leftOut", cluster.links_left_out()},
          {"slice", cluster.slice_ns()}};
}

Json waits_json(const pb::Outcome& outcome) {
  Json out = Json::array();
  for (const SameWait& row : same_waits(outcome)) {
    out.push_back({{"ranks", row.ranks},
                   {"ranksText", format_ranks(row.ranks)},
                   {"for", row.wanted},
                   {"forText", format_ranks(row.wanted)},
                   {"communicator", shortened(row.wait->communicator(), kLongText)},
                   {"sequence", row.wait->sequence()},
                   {"operation", row.wait->operation()},
                   {"since", row.wait->since_ns()}});
  }
  return out;
}

Json breakdown_json(const pb::Outcome& outcome) {
  Json ranks = Json::array();
  for (const pb::RankBreakdown& rank : outcome.breakdown()) {
    ranks.push_back({rank.rank(), rank.compute(), rank.communication(), rank.wait(), rank.host(),
                     rank.idle(), rank.overlapped()});
  }
  return ranks;
}

Json memory_json(const pb::Pictures& pictures) {
  Json out = Json::array();
  for (const pb::MemoryCurve& curve : pictures.memory()) {
    out.push_back({{"rank", curve.rank()},
                   {"capacity", curve.capacity()},
                   {"time", column(curve.time())},
                   {"bytes", column(curve.bytes())}});
  }
  return out;
}

// Who is to blame as the run itself shows, else as the diagnosis found out.
Json culprits_json(const ReportRun& run) {
  Json out = Json::array();
  const bool found = run.diagnosis && !run.diagnosis->unknown() && run.diagnosis->causes_size() > 0;
  const auto& culprits = run.outcome.culprits().empty() && found
                             ? run.diagnosis->causes(0).culprits()
                             : run.outcome.culprits();
  for (const pb::Culprit& culprit : culprits) {
    Json row = {{"kind", culprit.kind()}, {"why", shortened(culprit.why(), kLongText)}};
    if (culprit.has_rank()) row["rank"] = culprit.rank();
    if (culprit.has_node()) row["node"] = culprit.node();
    if (!culprit.link().empty()) row["link"] = culprit.link();
    out.push_back(std::move(row));
  }
  return out;
}

void add_band(const pb::Band& band, Json& bar) {
  bar["low"] = band.low();
  bar["high"] = band.high();
}

// Bars of the step time: the baseline, this run, the fixes that were tried.
Json variants_json(const ReportRun& run) {
  Json out = Json::array();
  const pb::Outcome& outcome = run.outcome;
  if (outcome.baseline_step_time_ns().mean() > 0) {
    Json baseline = {{"name", "as it should be"},
                     {"kind", "baseline"},
                     {"mean", outcome.baseline_step_time_ns().mean()},
                     {"each", column(outcome.baseline_step_time_ns().each())}};
    if (run.baseline_band) add_band(*run.baseline_band, baseline);
    out.push_back(std::move(baseline));
  }
  Json now = {{"name", run.name},
              {"kind", outcome.symptom().id() == "healthy" ? "healthy" : "broken"},
              {"mean", outcome.step_time_ns().mean()},
              {"each", column(outcome.step_time_ns().each())}};
  if (outcome.verdict() != pb::COMPLETED) now["stopped"] = verdict_name(outcome.verdict());
  if (outcome.has_step_time_band_ns()) {
    add_band(outcome.step_time_band_ns(), now);
  } else if (run.fixes && run.fixes->has_broken_step_time_band_ns()) {
    add_band(run.fixes->broken_step_time_band_ns(), now);
  }
  out.push_back(std::move(now));
  if (!run.fixes) return out;
  constexpr int kFixesDrawn = 6;
  for (int i = 0; i < std::min(kFixesDrawn, run.fixes->fixes_size()); ++i) {
    const pb::FixTrial& fix = run.fixes->fixes(i);
    if (!fix.has_step_time_ns()) continue;
    Json bar = {{"name", "fix: " + shortened(fix.change(), kLongText)},
                {"kind", fix.restores() ? "fix" : "partial"},
                {"mean", fix.step_time_ns()},
                {"each", Json::array()}};
    if (fix.certainty().has_step_time_band_ns()) {
      add_band(fix.certainty().step_time_band_ns(), bar);
    }
    out.push_back(std::move(bar));
  }
  return out;
}

}  // namespace

nlohmann::ordered_json page_data(const ReportRun& run) {
  const pb::Outcome& outcome = run.outcome;
  Json out = {{"name", run.name},
              {"verdict", verdict_name(outcome.verdict())},
              {"ranks", outcome.ranks()},
              {"end", outcome.end_ns()},
              {"progress", outcome.last_progress_ns()},
              {"variants", variants_json(run)},
              {"breakdown", breakdown_json(outcome)},
              {"waits", waits_json(outcome)},
              {"culprits", culprits_json(run)},
              {"operations", run.pictures.operations()}};
  if (run.pictures.has_timeline()) out["timeline"] = timeline_json(run.pictures.timeline());
  if (run.pictures.has_cluster()) out["cluster"] = cluster_json(run.pictures.cluster());
  out["memory"] = memory_json(run.pictures);
  return out;
}

}  // namespace rehearse::cli
