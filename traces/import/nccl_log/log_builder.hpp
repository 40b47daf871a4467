// SPDX-License-Identifier: Apache-2.0
// Puts the messages of a log together: which process said it, of which communicator, as which
// rank. Messages of many ranks stand in one file in any order. A message belongs to
//   - the communicator whose pointer it names;
//   - else the one that its thread is initialising (between Init START and COMPLETE);
//   - else the latest one of its device in its process.
// Logs before 2.18 have no Init START: there the messages of a thread wait for its Init COMPLETE.
// Communicators of different processes are one when their commId is one, or when they are the part
// of one color of the same split; without either, when they have the same size in the same run and
// no rank twice.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/finding.hpp"
#include "traces/import/nccl_log/log_facts.hpp"
#include "traces/import/nccl_log/log_line.hpp"
#include "traces/import/nccl_log/log_tuning.hpp"
#include "traces/proto/evidence.pb.h"

namespace rehearse::traces::nccl_log {

class LogBuilder {
 public:
  // What follows is of this run of the program (nccl-tests prints a header for each), from 1.
  void set_run(uint32_t run) { run_ = run; }
  // nccl-tests says which rank a device of a process is.
  void tell_rank(std::string_view host, int64_t pid, int device, int rank);
  // A version banner that stands in a line of its own, without process.
  void tell_version(const std::string& version);
  void add(const Message& message, uint64_t line);
  // Ends the log; the builder is empty then.
  struct Finished {
    pb::NcclLog log;
    std::vector<uint32_t> run_of;  // per communicator
  };
  [[nodiscard]] Finished finish(Findings& findings, const std::string& file);

 private:
  struct Group {
    pb::NcclCommunicator facts;
    uint32_t run = 0;
    bool named = false;                  // has a commId
    std::map<int, int> rank_index;       // rank -> index of facts.ranks
    std::map<std::string, size_t> seen;  // distinct connections, choices, searches -> their index
    TuningHeader columns;                // of the table that is being printed
  };
  // A rank of a communicator.
  struct Binding {
    size_t group = 0;
    int rank = -1;  // index into facts.ranks, -1: none
  };
  struct Waiting {
    std::string text;
    int device = -1;
    uint64_t line = 0;
  };
  using ThreadKey = std::pair<uint32_t, int64_t>;
  using DeviceKey = std::pair<uint32_t, int>;

  uint32_t process_of(const Message& message);
  void comm_line(const CommLine& line, const Message& message, uint32_t process);
  void call_line(const CallLine& line, const Message& message, uint32_t process);
  [[nodiscard]] std::string id_of(const CommLine& line, uint32_t process) const;
  [[nodiscard]] Binding bind(const CommLine& line, uint32_t process);
  [[nodiscard]] size_t group_of(const std::string& comm_id, int ranks_total, int rank,
                                uint32_t process);
  [[nodiscard]] const Binding* current(uint32_t process, const Message& message) const;
  [[nodiscard]] bool process_fact(std::string_view text, uint32_t process);
  // True when the text says something of the communicator.
  [[nodiscard]] bool group_fact(Group& group, std::string_view text, uint64_t line);
  static bool could_be_group_fact(std::string_view text);
  void merge_row(Group& group, std::string key, const pb::NcclConnection& row);
  void warn(const Message& message, uint32_t process, uint64_t line);
  void release(const ThreadKey& thread, const Binding& to);
  void odd(std::string_view id, uint64_t line, std::string_view advice);

  pb::NcclLog log_;
  std::deque<Group> groups_;
  std::map<std::pair<std::string, int64_t>, uint32_t> processes_;
  std::map<std::tuple<std::string, int64_t, int>, int> told_ranks_;
  std::map<std::pair<uint32_t, std::string>, Binding> by_pointer_;
  std::map<ThreadKey, Binding> initialising_;
  std::map<DeviceKey, Binding> by_device_;
  std::map<ThreadKey, std::vector<Waiting>> waiting_;
  std::map<ThreadKey, std::string> last_collective_;
  std::map<std::string, size_t> warnings_;
  std::string banner_version_;
  struct Odd {
    uint64_t count = 0, line = 0;
    std::string advice;
  };
  std::map<std::string, Odd> odd_;
  uint32_t run_ = 0;
  bool saw_start_ = false;
  uint64_t waiting_total_ = 0;
};

}  // namespace rehearse::traces::nccl_log
