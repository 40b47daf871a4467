// SPDX-License-Identifier: Apache-2.0
#include "traces/export/flight_recorder.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace rehearse::traces {
namespace {

using FlightJson = nlohmann::ordered_json;

FlightJson sizes_of(const google::protobuf::RepeatedPtrField<pb::FlightTensor>& tensors) {
  FlightJson out = FlightJson::array();
  for (const pb::FlightTensor& tensor : tensors) {
    out.push_back(FlightJson(std::vector<int64_t>(tensor.sizes().begin(), tensor.sizes().end())));
  }
  return out;
}

FlightJson dtypes_of(const google::protobuf::RepeatedPtrField<pb::FlightTensor>& tensors) {
  FlightJson out = FlightJson::array();
  for (const pb::FlightTensor& tensor : tensors) out.push_back(tensor.dtype());
  return out;
}

FlightJson entry_of(const pb::FlightEntry& entry) {
  FlightJson out;
  out["frames"] = FlightJson::array();
  out["record_id"] = entry.record_id();
  out["pg_id"] = std::strtoll(entry.group_id().c_str(), nullptr, 10);
  out["process_group"] = {entry.group_name(), entry.group_description()};
  out["collective_seq_id"] = entry.collective_seq();
  out["p2p_seq_id"] = entry.p2p_seq();
  out["op_id"] = entry.op_id();
  out["profiling_name"] = entry.profiling_name();
  out["time_created_ns"] = entry.created_ns();
  if (entry.has_duration_ms()) out["duration_ms"] = entry.duration_ms();
  out["input_sizes"] = sizes_of(entry.inputs());
  out["input_dtypes"] = dtypes_of(entry.inputs());
  out["output_sizes"] = sizes_of(entry.outputs());
  out["output_dtypes"] = dtypes_of(entry.outputs());
  out["state"] = entry.state();
  out["time_discovered_started_ns"] =
      entry.has_started_ns() ? FlightJson(entry.started_ns()) : FlightJson();
  out["time_discovered_completed_ns"] =
      entry.has_completed_ns() ? FlightJson(entry.completed_ns()) : FlightJson();
  out["retired"] = entry.retired();
  out["timeout_ms"] = entry.timeout_ms();
  out["is_p2p"] = entry.p2p();
  return out;
}

}  // namespace

std::string flight_recorder_json(const pb::FlightRecorder& recorder) {
  FlightJson out;
  out["version"] = recorder.version();
  out["nccl_version"] = recorder.nccl_version();
  out["pg_config"] = FlightJson::object();
  out["pg_status"] = FlightJson::object();
  for (const pb::FlightGroup& group : recorder.groups()) {
    const std::vector<uint32_t> ranks(group.ranks().begin(), group.ranks().end());
    out["pg_config"][group.id()] = {{"name", group.name()},
                                    {"desc", group.description()},
                                    {"ranks", fmt::format("[{}]", fmt::join(ranks, ", "))}};
    out["pg_status"][group.id()] = {{"last_enqueued_collective", group.last_enqueued()},
                                    {"last_started_collective", group.last_started()},
                                    {"last_completed_collective", group.last_completed()}};
  }
  out["entries"] = FlightJson::array();
  for (const pb::FlightEntry& entry : recorder.entries()) out["entries"].push_back(entry_of(entry));
  return out.dump() + "\n";
}

}  // namespace rehearse::traces
