// SPDX-License-Identifier: Apache-2.0
#include "faults/diagnose/job_logs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "base/text.hpp"
#include "faults/diagnose/observable.hpp"
#include "faults/symptoms/classifier.hpp"
#include "sim/bringup/nccl_log.hpp"
#include "sim/scenario/environment.hpp"
#include "sim/scenario/places.hpp"
#include "sim/scenario/transforms.hpp"
#include "traces/evidence/evidence.hpp"
#include "traces/export/flight_recorder.hpp"
#include "traces/import/rank_of_name.hpp"

namespace rehearse::faults {
namespace {

// Lines that NCCL prints carry its prefix, as in its log.
std::string printed_by(const pb::RankLaunch& rank, const pb::Scenario& document,
                       const std::string& text) {
  const pb::Node& node = document.platform().nodes(static_cast<int>(rank.node()));
  std::string out;
  for (const std::string& line : split(text, '\n')) {
    if (line.starts_with("NCCL ")) {
      const uint32_t pid = 1000 + rank.gpu();
      out += fmt::format("{}:{}:{} [{}] ", node.name(), pid, pid, rank.gpu());
    }
    out += line + "\n";
  }
  return out;
}

std::string log_name(uint32_t rank) { return fmt::format("rank-{}.log", rank); }

bool is_nccl_variable(std::string_view name) { return name.starts_with("NCCL_"); }

// The rank that a process takes itself for.
std::string told_rank(const pb::Launch& launch, const pb::RankLaunch& rank) {
  const auto environment = sim::environment_of(launch, rank);
  for (const char* name : {"RANK", "HOROVOD_RANK"}) {
    const auto found = environment.find(name);
    if (found != environment.end() && !found->second.empty()) return found->second;
  }
  return std::to_string(rank.rank());
}

// States in which a process does not have its peers yet: the script builds its model after them.
bool before_meeting(const std::string& state) {
  return state == "launch" || state == "device" || state == "lookup" || state == "bind" ||
         state == "connect" || state == "join";
}

// What the script prints on each rank; only who takes itself for rank 0 speaks.
std::set<uint32_t> speakers(const sim::Scenario& scenario, const pb::Outcome& outcome) {
  std::set<uint32_t> out;
  const pb::Launch& launch = scenario.document.launch();
  for (const pb::RankLaunch& rank : launch.ranks()) {
    if (!rank.absent() && told_rank(launch, rank) == "0") out.insert(rank.rank());
  }
  for (const pb::RankBringUp& rank : outcome.bring_up().ranks()) {
    if (before_meeting(rank.state())) out.erase(rank.rank());
  }
  return out;
}

}  // namespace

std::set<uint32_t> ranks_gone(const sim::Scenario& scenario) {
  std::set<uint32_t> out;
  for (const auto* patches : {&scenario.transforms, &scenario.timed}) {
    for (const pb::Patch& patch : *patches) {
      if (!sim::parts(patch, sim::Parting::kEnds)) continue;
      for (const pb::RankLaunch& rank : scenario.document.launch().ranks()) {
        if (sim::names_rank(patch, rank.rank()) || sim::names_node(patch, rank.node())) {
          out.insert(rank.rank());
        }
      }
    }
  }
  return out;
}

Result<LogFiles> log_files(const sim::Scenario& scenario, const pb::Outcome& outcome) {
  LogFiles files;
  RH_TRY(const auto logs, sim::bringup::nccl_logs(scenario));
  for (const auto& log : logs) files[log_name(log.rank)] = log.text;
  const bool came_up = outcome.bring_up().failed_in().empty();
  const Result<StepLines>& lines = StepLines::shipped();
  if (!lines) return tl::unexpected(lines.error());
  const ScriptOutput script =
      script_output(scenario, static_cast<uint32_t>(outcome.step_time_ns().each_size()), *lines);
  const std::set<uint32_t> speaking = speakers(scenario, outcome);
  for (const pb::RankLaunch& rank : scenario.document.launch().ranks()) {
    std::set<std::string> said;
    std::string& file = files[log_name(rank.rank())];
    if (speaking.contains(rank.rank())) {
      file.insert(0, script.start);
      file += script.steps;
    }
    for (const pb::ErrorText& error : outcome.error_text()) {
      if (error.rank() != rank.rank() || !said.insert(error.text()).second) continue;
      std::string text = printed_by(rank, scenario.document, error.text());
      // NCCL's lines of a start that failed stand in its log already.
      if (came_up || text.find("] NCCL ") == text.npos) file += text;
    }
    for (const pb::TimerEvent& timer : outcome.timers()) {
      if (timer.rank() == rank.rank() && said.insert(timer.text()).second) {
        file += printed_by(rank, scenario.document, timer.text());
      }
    }
  }
  const std::set<uint32_t> gone = ranks_gone(scenario);
  for (const pb::FlightRecorder& recorder : outcome.flight_records()) {
    if (gone.count(recorder.rank())) continue;
    files[fmt::format("nccl_trace_rank_{}.json", recorder.rank())] =
        traces::flight_recorder_json(recorder);
  }
  return files;
}

bool add_printed(std::string_view text, std::optional<uint32_t> rank, JobLogs& logs) {
  if (rank) {
    logs.ranks.insert(*rank);
    logs.output.insert(*rank);
    if (text.find_first_not_of(" \t\r\n") != text.npos) logs.spoke.insert(*rank);
  }
  std::vector<PrintedError> errors = printed_errors(text, rank);
  const Result<StepLines>& lines = StepLines::shipped();
  ToldSteps told = lines ? told_steps(text, *lines) : ToldSteps{};
  const bool steps = told.lines > 0;
  if (steps || told.began) logs.steps.push_back({rank, std::move(told)});
  const bool any = steps || !errors.empty();
  std::move(errors.begin(), errors.end(), std::back_inserter(logs.printed));
  return any;
}

bool add_log(std::string_view bytes, const std::string& name, JobLogs& logs) {
  const auto rank = traces::rank_of_name(name);
  if (rank) logs.ranks.insert(*rank);
  bool tells = false;
  if (bytes.find('\0') == bytes.npos && !bytes.starts_with('{')) {
    tells = add_printed(bytes, rank, logs);
  }
  Findings findings;
  SilentReporter silent;
  auto found = traces::read_evidence(bytes, name, findings, silent);
  if (!found) return tells;
  for (pb::Evidence& evidence : *found) {
    if (evidence.has_nccl_log()) {
      logs.nccl.push_back({rank, std::move(*evidence.mutable_nccl_log())});
      tells = true;
    } else if (evidence.has_flight_recorder()) {
      logs.recorders.push_back(std::move(*evidence.mutable_flight_recorder()));
      tells = true;
    }
  }
  return tells;
}

JobLogs read_logs(const LogFiles& files) {
  JobLogs out;
  for (const auto& [name, bytes] : files) {
    // A file without a word is no evidence.
    [[maybe_unused]] const bool tells = add_log(bytes, name, out);
  }
  return out;
}

std::optional<pb::Launch> launch_in(const JobLogs& logs, const pb::Scenario& job) {
  std::map<uint32_t, std::map<std::string, std::string>> read;  // by rank
  for (const JobLogs::OfRank& one : logs.nccl) {
    if (!one.rank || one.log.processes().empty()) continue;
    const auto& environment = one.log.processes(0).environment();
    read[*one.rank] = {environment.begin(), environment.end()};
  }
  if (read.empty()) return std::nullopt;
  pb::Launch out = job.launch();
  std::map<uint32_t, uint32_t> of_node;  // a rank whose log is there
  for (const pb::RankLaunch& rank : out.ranks()) {
    if (read.count(rank.rank())) of_node.try_emplace(rank.node(), rank.rank());
  }
  std::map<std::string, std::map<std::string, size_t>> values;
  for (pb::RankLaunch& rank : *out.mutable_ranks()) {
    // Of a rank without a log its node's others are taken to speak.
    const auto like = of_node.find(rank.node());
    const auto own = read.count(rank.rank()) ? read.find(rank.rank())
                     : like == of_node.end() ? read.begin()
                                             : read.find(like->second);
    const auto usual = sim::environment_of(job.launch(), rank);
    for (const auto& [name, value] : own->second) {
      const auto known = usual.find(name);
      if (!is_nccl_variable(name) || (known != usual.end() && known->second == value)) continue;
      (*rank.mutable_env())[name] = value;
      ++values[name][value];
    }
  }
  // What all ranks have is the job's.
  for (const auto& [name, ways] : values) {
    if (ways.size() != 1 || ways.begin()->second != static_cast<size_t>(out.ranks_size())) continue;
    (*out.mutable_env())[name] = ways.begin()->first;
    for (pb::RankLaunch& rank : *out.mutable_ranks()) rank.mutable_env()->erase(name);
  }
  return out;
}

bool reads_other_settings(const pb::Launch& seen, const pb::Launch& healthy) {
  const auto settings = [](const pb::Launch& launch, const pb::RankLaunch& rank) {
    auto all = sim::environment_of(launch, rank);
    std::erase_if(all, [](const auto& entry) {
      // What is logged does not change the run.
      return !is_nccl_variable(entry.first) || entry.first.starts_with("NCCL_DEBUG");
    });
    return all;
  };
  for (int i = 0; i < std::min(seen.ranks_size(), healthy.ranks_size()); ++i) {
    if (settings(seen, seen.ranks(i)) != settings(healthy, healthy.ranks(i))) return true;
  }
  return false;
}

World seen_in_logs(const World& world, const pb::Scenario& job, const pb::Outcome& healthy,
                   const pb::StepTimes& step) {
  return {.apply = world.apply,
          .simulate = [world, job, healthy,
                       step](const sim::Scenario& scenario) -> Result<pb::Outcome> {
            RH_TRY(const pb::Outcome outcome, world.simulate(scenario));
            RH_TRY(const LogFiles files, log_files(scenario, outcome));
            pb::Outcome seen = outcome_in(read_logs(files), job);
            keep_what_differs(healthy, seen);
            pb::Outcome whole = observable(outcome);
            *whole.mutable_baseline_step_time_ns() = step;
            *seen.mutable_symptom() = classify(whole);
            return seen;
          }};
}

}  // namespace rehearse::faults
