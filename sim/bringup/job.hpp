// SPDX-License-Identifier: Apache-2.0
// A job that comes up: its processes, and those that do not get past a state. Each state is a function over
// all processes that are there (sim/bringup/states.hpp): it advances their clocks, or writes down who is in
// trouble, since when, until when and why.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/finding.hpp"
#include "sim/bringup/network.hpp"
#include "sim/bringup/process.hpp"
#include "sim/proto/outcome.pb.h"
#include "sim/proto/scenario.pb.h"
#include "traces/model/trace.hpp"

namespace rehearse::sim::bringup {

constexpr Nanos kNever = INT64_MAX;
constexpr Nanos kSeconds = 1'000'000'000;
// A kernel gives up a connection whose first packet is never answered: tcp_syn_retries = 6 (ip-sysctl.rst).
constexpr Nanos kSynTimeout = 127 * kSeconds;

// Facts that an error text shows: {host}, {port}, {seconds} and so on.
using Facts = std::map<std::string, std::string>;

// Who or what is to blame.
struct Blamed {
  std::string kind;  // rank, node, configuration
  uint32_t index = 0;
  std::string why;
};

struct Trouble {
  size_t process = 0;  // index into Job::processes
  std::string state;   // launch, device, lookup, bind, connect, join, interface, bootstrap, ...
  std::string error;   // what is wrong there: the key of the text (sim/bringup/texts.yaml)
  Nanos since = 0;
  Nanos gives_up = kNever;  // when it shows the text; kNever: it waits for ever
  bool waits = false;       // it gives up because nothing came, not because it was refused
  bool watched = false;     // by PyTorch's watchdog: a collective of it is on its stream
  std::vector<uint32_t> for_ranks = {};  // that it waits for
  Facts facts = {};
};

struct Job {
  // `others`: ranks of the job that the trace does not have; they are taken to come up.
  Job(const pb::Scenario& scenario, uint32_t others)
      : document(scenario),
        launch(scenario.launch()),
        launcher(launcher_of(scenario.launch())),
        network(scenario.platform()),
        processes(processes_of(scenario)),
        unrecorded(others) {}

  const pb::Scenario& document;
  const pb::Launch& launch;
  pb::Launcher launcher;
  Network network;
  std::vector<Process> processes;
  uint32_t unrecorded = 0;
  const traces::Trace* trace = nullptr;  // what the job will do; null: not known
  std::vector<Trouble> troubles;
  std::vector<Blamed> blamed;
  Findings findings;
  // Every process takes itself for the whole job.
  bool alone = false;

  [[nodiscard]] const pb::Node& node(uint32_t index) const {
    return document.platform().nodes(static_cast<int>(index));
  }
  [[nodiscard]] size_t launched() const { return processes.size() + unrecorded; }
  // Processes that were started.
  [[nodiscard]] std::vector<size_t> started() const {
    std::vector<size_t> out;
    for (size_t p = 0; p < processes.size(); ++p) {
      if (!processes[p].absent) out.push_back(p);
    }
    return out;
  }
  [[nodiscard]] bool in_trouble(size_t process) const { return troubled_.count(process) > 0; }
  // Only the first trouble of a process counts.
  void add(Trouble trouble) {
    if (troubled_.insert(trouble.process).second) troubles.push_back(std::move(trouble));
  }
  void blame(std::string kind, uint32_t index, std::string why) {
    for (const Blamed& known : blamed) {
      if (known.kind == kind && known.index == index && known.why == why) return;
    }
    blamed.push_back({std::move(kind), index, std::move(why)});
  }

 private:
  std::set<size_t> troubled_;
};

// "0:30:00", as Python prints a timedelta.
[[nodiscard]] std::string as_timedelta(Nanos time);
// "errno: 111 - Connection refused" of an answer; 0 and "" when it arrived.
struct SystemError {
  int number = 0;
  const char* text = "";
};
[[nodiscard]] SystemError error_of(Answer answer);
// "refused", "no-route", "unreachable", "dropped".
[[nodiscard]] const char* word_of(Answer answer);

// A bus id as NCCL prints it: "3b000" of "0000:3b:00.0".
[[nodiscard]] std::string bus_number(const pb::Gpu& gpu, uint32_t index);

// A port that a socket of process `index` gets when it asks for none: always the same one.
[[nodiscard]] uint32_t ephemeral_port(const pb::Node& node, size_t index);

}  // namespace rehearse::sim::bringup
