// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "traces/evidence/evidence.hpp"
#include "traces/inspect/evidence_view.hpp"
#include "traces/model/utf8.hpp"

namespace rehearse::traces {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const pb::NcclProcess& process) {
  std::map<std::string, std::string> environment;
  for (const auto& [name, value] : process.environment()) {
    environment.emplace(to_utf8(name), to_utf8(value));
  }
  Json nics = Json::array();
  for (const pb::NcclNic& nic : process.nics()) {
    nics.push_back(
        {{"index", nic.index()}, {"name", to_utf8(nic.name())}, {"detail", to_utf8(nic.detail())}});
  }
  return {{"host", to_utf8(process.host())},
          {"pid", process.pid()},
          {"nccl_version", to_utf8(process.nccl_version())},
          {"network", to_utf8(process.network())},
          {"bootstrap", to_utf8(process.bootstrap())},
          {"nics", std::move(nics)},
          {"environment", environment}};
}

Json json_of(const pb::NcclChoice& choice) {
  Json out = {{"collective", choice.collective()},
              {"bytes", choice.bytes()},
              {"algorithm", choice.algorithm()},
              {"protocol", choice.protocol()},
              {"lines", choice.count()}};
  if (choice.channel_hi() >= 0) out["channels"] = choice.channel_hi() - choice.channel_lo() + 1;
  if (choice.has_predicted_us()) out["predicted_us"] = choice.predicted_us();
  if (!choice.kernel().empty()) out["kernel"] = to_utf8(choice.kernel());
  return out;
}

Json json_of(const pb::NcclCommunicator& c) {
  int complete = 0, aborted = 0;
  uint64_t calls = 0;
  Json ranks = Json::array();
  for (const pb::NcclRank& rank : c.ranks()) {
    complete += rank.init_complete() ? 1 : 0;
    aborted += rank.aborted() ? 1 : 0;
    calls += rank.calls();
    ranks.push_back({{"rank", rank.rank()},
                     {"process", rank.process()},
                     {"device", rank.device()},
                     {"bus_id", to_utf8(rank.bus_id())},
                     {"init_complete", rank.init_complete()},
                     {"calls", rank.calls()},
                     {"last_op_count",
                      rank.has_last_call() ? Json(rank.last_call().op_count()) : Json(nullptr)}});
  }
  std::map<std::string, uint64_t> transports;
  for (const pb::NcclConnection& connection : c.connections()) ++transports[connection.via()];
  Json choices = Json::array();
  for (const pb::NcclChoice& choice : c.choices()) choices.push_back(json_of(choice));
  Json rings = Json::array();
  for (const pb::NcclRing& ring : c.rings()) {
    rings.push_back(std::vector<int>(ring.ranks().begin(), ring.ranks().end()));
  }
  return {{"id", to_utf8(c.id())},
          {"ranks_total", c.ranks_total()},
          {"nodes", c.nodes()},
          {"nccl_version", to_utf8(c.nccl_version())},
          {"init_complete", complete},
          {"aborted", aborted},
          {"calls", calls},
          {"coll_channels", c.coll_channels()},
          {"nvls_channels", c.nvls_channels()},
          {"p2p_channels", c.p2p_channels()},
          {"rings", std::move(rings)},
          {"tree_hops", c.trees_size()},
          {"transports", transports},
          {"tuning_cells", c.tuning_size()},
          {"choices", std::move(choices)},
          {"ranks", std::move(ranks)}};
}

Json json_of(const pb::NcclLog& log) {
  Json out = {{"lines", log.lines()},
              {"nccl_lines", log.nccl_lines()},
              {"unused_lines", log.unused_lines()},
              {"processes", Json::array()},
              {"communicators", Json::array()},
              {"warnings", Json::array()}};
  for (const pb::NcclProcess& process : log.processes()) {
    out["processes"].push_back(json_of(process));
  }
  for (const pb::NcclCommunicator& c : log.communicators()) {
    out["communicators"].push_back(json_of(c));
  }
  for (const pb::NcclWarning& w : log.warnings()) {
    out["warnings"].push_back({{"text", to_utf8(w.text())},
                               {"process", w.process()},
                               {"place", to_utf8(w.place())},
                               {"line", w.line()},
                               {"count", w.count()}});
  }
  const std::map<std::string, uint64_t> calls(log.api_calls().begin(), log.api_calls().end());
  out["api_calls"] = calls;
  return out;
}

Json json_of(const pb::MeasuredTables& tables) {
  Json out = Json::array();
  for (const pb::MeasuredTable& t : tables.tables()) {
    double peak = 0;
    for (const pb::MeasuredRow& row : t.rows()) peak = std::max(peak, measured_half(row).busbw());
    out.push_back({{"id", to_utf8(t.id())},
                   {"collective", t.collective()},
                   {"collective_from", t.collective_from()},
                   {"hardware", to_utf8(t.hardware())},
                   {"nodes", t.nodes()},
                   {"gpus", t.gpus()},
                   {"nccl_version", to_utf8(t.nccl_version())},
                   {"forced_algorithm", to_utf8(t.forced_algorithm())},
                   {"forced_protocol", to_utf8(t.forced_protocol())},
                   {"runs", t.runs()},
                   {"rows", t.rows_size()},
                   {"peak_busbw", peak}});
  }
  return out;
}

Json json_of(const pb::InspectorRecords& records) {
  struct Sum {
    uint64_t records = 0, bytes = 0;
  };
  std::map<std::string, Sum> by_type;
  for (int i = 0; i < records.bytes_size(); ++i) {
    Sum& sum = by_type[records.collectives(static_cast<int>(records.collective(i)))];
    ++sum.records;
    sum.bytes += records.bytes(i);
  }
  Json types = Json::object();
  for (const auto& [name, sum] : by_type) {
    types[name] = {{"records", sum.records}, {"bytes", sum.bytes}};
  }
  return {{"communicator", to_utf8(records.communicator())},
          {"rank", records.rank()},
          {"ranks_total", records.ranks_total()},
          {"nodes", records.nodes()},
          {"host", to_utf8(records.host())},
          {"records", records.bytes_size()},
          {"by_type", std::move(types)}};
}

Json json_of(const pb::FlightRecorder& recorder) {
  Json out = {{"rank", recorder.has_rank() ? Json(recorder.rank()) : Json(nullptr)},
              {"version", to_utf8(recorder.version())},
              {"nccl_version", to_utf8(recorder.nccl_version())},
              {"entries", recorder.entries_total()},
              {"groups", Json::array()},
              {"pending", Json::array()}};
  for (const pb::FlightGroup& group : recorder.groups()) {
    out["groups"].push_back(
        {{"name", to_utf8(group.name())},
         {"description", to_utf8(group.description())},
         {"ranks", std::vector<uint32_t>(group.ranks().begin(), group.ranks().end())},
         {"last_enqueued", group.last_enqueued()},
         {"last_started", group.last_started()},
         {"last_completed", group.last_completed()}});
  }
  for (const pb::FlightEntry& entry : recorder.entries()) {
    if (entry.state() == "completed" || entry.retired()) continue;
    out["pending"].push_back({{"group", to_utf8(entry.group_name())},
                              {"sequence", entry.p2p() ? entry.p2p_seq() : entry.collective_seq()},
                              {"name", to_utf8(entry.profiling_name())},
                              {"state", to_utf8(entry.state())}});
  }
  return out;
}

Json json_of(const pb::TunerTables& tuner) {
  Json out = {{"nccl_version", to_utf8(tuner.nccl_version())},
              {"calls", tuner.calls()},
              {"tables", Json::array()}};
  for (const pb::TunerTable& table : tuner.tables()) {
    Json costs = Json::object();
    for (const pb::TunerCost& cost : table.costs()) {
      costs[cost.algorithm() + "/" + cost.protocol()] = cost.us();
    }
    out["tables"].push_back({{"communicator", to_utf8(table.communicator())},
                             {"collective", table.collective()},
                             {"bytes", table.bytes()},
                             {"ranks", table.ranks()},
                             {"nodes", table.nodes()},
                             {"costs_us", std::move(costs)}});
  }
  return out;
}

}  // namespace

nlohmann::ordered_json evidence_json(const std::vector<pb::Evidence>& evidence) {
  Json out = Json::array();
  for (const pb::Evidence& e : evidence) {
    Json row = {{"kind", ""}, {"source", to_utf8(e.source())}};
    if (e.has_nccl_log()) {
      row["kind"] = "nccl-log";
      row.update(json_of(e.nccl_log()));
    } else if (e.has_measured()) {
      row["kind"] = "nccl-tests";
      row["tables"] = json_of(e.measured());
    } else if (e.has_inspector()) {
      row["kind"] = "inspector";
      row.update(json_of(e.inspector()));
    } else if (e.has_tuner()) {
      row["kind"] = "tuner";
      row.update(json_of(e.tuner()));
    } else {
      row["kind"] = "flight-recorder";
      row.update(json_of(e.flight_recorder()));
    }
    out.push_back(std::move(row));
  }
  return out;
}

}  // namespace rehearse::traces
