// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "traces/inspect/evidence_view.hpp"
#include "traces/inspect/generator_options.hpp"
#include "traces/inspect/inspection.hpp"
#include "traces/model/utf8.hpp"

namespace rehearse::traces {
namespace {

using Json = nlohmann::ordered_json;

Json source_of(const pb::TraceHeader& header) {
  Json out = {{"job", to_utf8(header.job())},
              {"producer", to_utf8(header.producer())},
              {"synthetic", header.synthetic()},
              {"framework", to_utf8(header.framework())},
              {"nccl_version", to_utf8(header.nccl_version())},
              {"clock_residual_ns", header.clock_residual()},
              {"cloned_ranks", header.cloned_from_size()}};
  Json inputs = Json::array();
  for (const pb::InputFile& input : header.inputs()) {
    inputs.push_back({{"name", to_utf8(input.name())}, {"bytes", input.bytes()}});
  }
  out["inputs"] = std::move(inputs);
  Json generator = Json::object();
  for (const auto& [name, value] : generator_options(header.synth())) generator[name] = value;
  if (!generator.empty()) out["generator"] = std::move(generator);
  return out;
}

Json totals_of(const TotalsByType& totals) {
  Json out = Json::object();
  for (size_t i = 0; i < totals.size(); ++i) {
    if (totals[i].collectives == 0) continue;
    const auto type = static_cast<Collective>(i);
    out[type == Collective::kSend ? "send_recv" : name_of(type)] = {
        {"collectives", totals[i].collectives},
        {"calls", totals[i].calls},
        {"bytes", totals[i].bytes},
        {"wait_ns", totals[i].wait},
        {"transfer_ns", totals[i].transfer}};
  }
  return out;
}

Json communicators_of(const Inspection& in) {
  Json out = Json::array();
  for (const CommunicatorFacts& c : in.communicators) {
    uint64_t calls = 0;
    for (const CollectiveTotals& t : c.totals) calls += t.calls;
    out.push_back({{"id", to_utf8(c.id)},
                   {"description", to_utf8(c.description)},
                   {"backend", to_utf8(c.backend)},
                   {"members", c.members.size()},
                   {"ranks", c.members},
                   {"recorded", c.recorded},
                   {"calls", calls},
                   {"by_type", totals_of(c.totals)}});
  }
  return out;
}

Json breakdown_of(const Inspection& in) {
  Json out = Json::array();
  for (const RankTimes& t : in.times) {
    out.push_back({{"rank", t.rank},
                   {"host", to_utf8(t.host)},
                   {"gpu", to_utf8(t.gpu_model)},
                   {"operations", t.operations},
                   {"steps", t.steps},
                   {"window_ns", t.window},
                   {"compute_ns", t.compute},
                   {"communication_exposed_ns", t.exposed},
                   {"communication_overlapped_ns", t.overlapped},
                   {"idle_ns", t.idle},
                   {"edges", t.edges},
                   {"inferred_edges", t.inferred_edges},
                   {"host_work_ns", t.host_time.work},
                   {"host_blocked_ns", t.host_time.blocked},
                   {"host_unknown_ns", t.host_time.unknown}});
  }
  return out;
}

Json matched_of(const Inspection& in) {
  Json out = Json::array();
  for (const MatchedCollective& m : in.matched) {
    out.push_back({{"communicator", to_utf8(in.communicators[m.communicator].id)},
                   {"sequence", m.sequence},
                   {"collective", name_of(m.collective)},
                   {"bytes", m.bytes},
                   {"ranks", m.ranks},
                   {"first_start_ns", m.first_start},
                   {"last_start_ns", m.last_start},
                   {"last_arriver", m.last_arriver},
                   {"start_spread_ns", m.last_start - m.first_start},
                   {"end_spread_ns", m.last_end - m.first_end}});
    if (m.wait >= 0) {
      out.back()["wait_ns"] = m.wait;
      out.back()["transfer_ns"] = m.transfer;
    }
  }
  return out;
}

}  // namespace

nlohmann::ordered_json to_json(const Inspection& in) {
  Json out = {{"schema", "rehearse.inspect/1"},
              {"ranks", in.ranks.size()},
              {"world_size", in.header.world_size()},
              {"operations", in.operations},
              {"collectives", in.collectives},
              {"point_to_point", in.point_to_point},
              {"nccl_kernels", in.nccl_kernels},
              {"steps", in.steps.per_rank},
              {"edges", in.edges},
              {"inferred_edges", in.inferred_edges}};
  if (in.options.rank) out["rank"] = *in.options.rank;
  if (in.options.step) out["step"] = *in.options.step;
  out["step_time_ns"] = {{"mean", in.steps.mean}, {"p50", in.steps.p50}, {"p99", in.steps.p99}};
  out["source"] = source_of(in.header);
  Json gpus = Json::array();
  for (const auto& [model, count] : in.gpus) {
    gpus.push_back({{"model", to_utf8(model)}, {"count", count}});
  }
  out["gpus"] = std::move(gpus);
  Json kinds = Json::object();
  for (size_t i = 0; i < in.by_kind.size(); ++i)
    kinds[name_of(static_cast<OpKind>(i))] = in.by_kind[i];
  out["operations_by_kind"] = std::move(kinds);
  out["by_type"] = totals_of(in.totals);
  out["communicators"] = communicators_of(in);
  Json kernels = Json::array();
  for (const KernelTotal& k : in.kernels) {
    kernels.push_back({{"name", to_utf8(k.name)}, {"count", k.count}, {"total_ns", k.total}});
  }
  out["top_kernels"] = std::move(kernels);
  out["breakdown"] = breakdown_of(in);
  Json late = Json::array();
  for (const LastArriver& l : in.late) {
    late.push_back({{"rank", l.rank},
                    {"times_last", l.times},
                    {"lateness_ns", l.after_first},
                    {"behind_next_ns", l.after_next}});
  }
  out["last_arrivers"] = std::move(late);
  if (in.options.list_collectives) out["matched"] = matched_of(in);
  if (!in.evidence.empty()) out["evidence"] = evidence_json(in.evidence);
  Json findings = Json::array();
  for (const Finding& f : in.findings.rows()) {
    findings.push_back({{"id", f.id},
                        {"severity", name_of(f.severity)},
                        {"count", f.count},
                        {"first", to_utf8(f.first)},
                        {"advice", to_utf8(f.advice)}});
  }
  out["findings"] = std::move(findings);
  return out;
}

}  // namespace rehearse::traces
