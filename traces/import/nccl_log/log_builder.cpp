// SPDX-License-Identifier: Apache-2.0
#include "traces/import/nccl_log/log_builder.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "traces/import/scan.hpp"

namespace rehearse::traces::nccl_log {
namespace {

constexpr int kMaxWarnings = 1000;
constexpr uint64_t kMaxWaiting = 1'000'000;

}  // namespace

void LogBuilder::odd(std::string_view id, uint64_t line, std::string_view advice) {
  Odd& row = odd_[std::string(id)];
  if (row.count++ == 0) {
    row.line = line;
    row.advice = advice;
  }
}

void LogBuilder::tell_rank(std::string_view host, int64_t pid, int device, int rank) {
  told_ranks_[{std::string(host), pid, device}] = rank;
}

void LogBuilder::tell_version(const std::string& version) {
  banner_version_ = version;
  for (pb::NcclProcess& process : *log_.mutable_processes()) {
    if (process.nccl_version().empty()) process.set_nccl_version(version);
  }
}

uint32_t LogBuilder::process_of(const Message& message) {
  const auto [it, fresh] = processes_.try_emplace({std::string(message.host), message.pid},
                                                  static_cast<uint32_t>(log_.processes_size()));
  if (fresh) {
    pb::NcclProcess* process = log_.add_processes();
    process->set_host(std::string(message.host));
    process->set_pid(message.pid);
    process->set_nccl_version(banner_version_);
  }
  return it->second;
}

size_t LogBuilder::group_of(const std::string& comm_id, int ranks_total, int rank,
                            uint32_t process) {
  const auto total = static_cast<uint32_t>(std::max(ranks_total, 0));
  for (size_t i = groups_.size(); i-- > 0;) {
    Group& group = groups_[i];
    if (group.facts.ranks_total() != total) continue;
    if (!comm_id.empty()) {
      if (group.named && group.facts.id() == comm_id) return i;
      continue;
    }
    if (group.named || group.run != run_) continue;
    const auto known = group.rank_index.find(rank);
    const bool taken = rank >= 0 && known != group.rank_index.end() &&
                       group.facts.ranks(known->second).process() != process;
    if (!taken) return i;
  }
  // A rank whose Init line was lost belongs to the only communicator of that size.
  if (comm_id.empty()) {
    size_t named = 0, last = 0;
    for (size_t i = 0; i < groups_.size(); ++i) {
      if (!groups_[i].named || groups_[i].run != run_ || groups_[i].facts.ranks_total() != total) {
        continue;
      }
      ++named;
      last = i;
    }
    if (named == 1) return last;
  }
  Group fresh;
  fresh.run = run_;
  fresh.named = !comm_id.empty();
  size_t same = 0;
  for (const Group& group : groups_) same += !group.named && group.run == run_ ? 1 : 0;
  fresh.facts.set_id(fresh.named ? comm_id
                     : same == 0 ? fmt::format("run {}", run_)
                                 : fmt::format("run {}.{}", run_, same));
  fresh.facts.set_ranks_total(total);
  groups_.push_back(std::move(fresh));
  return groups_.size() - 1;
}

// Since 2.26 the parts of a split have no commId: their parent, its count of splits and the color
// name them alike in all processes.
std::string LogBuilder::id_of(const CommLine& line, uint32_t process) const {
  const auto parent = by_pointer_.find({process, line.parent});
  if (!line.comm_id.empty() || line.color < 0 || parent == by_pointer_.end()) return line.comm_id;
  return fmt::format("{} split {} color {}", groups_[parent->second.group].facts.id(),
                     std::max(line.split, 0), line.color);
}

LogBuilder::Binding LogBuilder::bind(const CommLine& line, uint32_t process) {
  const auto pointed = by_pointer_.find({process, line.comm});
  const bool again = line.what == CommLine::What::kStart;
  if (!again && pointed != by_pointer_.end()) {
    const auto& facts = groups_[pointed->second.group].facts;
    if (line.comm_id.empty() || facts.id() == line.comm_id) return pointed->second;
  }
  Binding binding;
  binding.group = group_of(id_of(line, process), line.ranks_total, line.rank, process);
  Group& group = groups_[binding.group];
  const auto [it, fresh] = group.rank_index.try_emplace(line.rank, group.facts.ranks_size());
  if (fresh) {
    pb::NcclRank* rank = group.facts.add_ranks();
    rank->set_rank(line.rank);
    rank->set_process(process);
    rank->set_device(-1);
    rank->set_nvml_device(-1);
    rank->set_local_rank(-1);
    rank->set_comm(line.comm);
  }
  binding.rank = it->second;
  by_pointer_[{process, line.comm}] = binding;
  return binding;
}

void LogBuilder::comm_line(const CommLine& line, const Message& message, uint32_t process) {
  using What = CommLine::What;
  if (line.what == What::kStart) saw_start_ = true;
  const Binding binding = bind(line, process);
  Group& group = groups_[binding.group];
  pb::NcclRank& rank = *group.facts.mutable_ranks(binding.rank);
  if (rank.process() != process) return;  // said of another process under the same commId
  if (rank.rank() < 0 && group.rank_index.try_emplace(line.rank, binding.rank).second) {
    rank.set_rank(line.rank);
  }
  if (line.device >= 0) rank.set_device(line.device);
  if (line.nvml_device >= 0) rank.set_nvml_device(line.nvml_device);
  if (!line.bus_id.empty()) rank.set_bus_id(line.bus_id);
  if (line.local_rank >= 0) rank.set_local_rank(line.local_rank);
  if (line.local_ranks > 0) rank.set_local_ranks(line.local_ranks);
  if (line.nodes > 0) group.facts.set_nodes(static_cast<uint32_t>(line.nodes));
  const ThreadKey thread{process, message.thread};
  const int device = line.device >= 0 ? line.device : message.device;
  switch (line.what) {
    case What::kStart:
      rank.set_init_started(true);
      initialising_[thread] = binding;
      by_device_[{process, device}] = binding;
      break;
    case What::kPlacement:
      if (!initialising_.contains(thread)) by_device_[{process, device}] = binding;
      break;
    case What::kComplete:
      rank.set_init_started(true);
      rank.set_init_complete(true);
      release(thread, binding);
      initialising_.erase(thread);
      by_device_[{process, device}] = binding;
      break;
    case What::kDestroy:
      rank.set_destroyed(true);
      break;
    case What::kAbort:
      rank.set_aborted(true);
      break;
  }
}

void LogBuilder::release(const ThreadKey& thread, const Binding& to) {
  const auto held = waiting_.find(thread);
  if (held == waiting_.end()) return;
  for (const Waiting& w : held->second) {
    if (!group_fact(groups_[to.group], w.text, w.line))
      log_.set_unused_lines(log_.unused_lines() + 1);
  }
  waiting_total_ -= held->second.size();
  waiting_.erase(held);
}

void LogBuilder::call_line(const CallLine& line, const Message& message, uint32_t process) {
  auto pointed = by_pointer_.find({process, line.comm});
  if (pointed == by_pointer_.end()) {
    // The log begins after the initialisation: the size is all that tells communicators apart.
    const auto told = told_ranks_.find({std::string(message.host), message.pid, message.device});
    const int rank = told == told_ranks_.end() ? -1 : told->second;
    Binding binding;
    binding.group = group_of("", line.ranks_total, rank, process);
    Group& group = groups_[binding.group];
    const int key = rank >= 0 ? rank : -1 - group.facts.ranks_size();
    const auto [it, fresh] = group.rank_index.try_emplace(key, group.facts.ranks_size());
    if (fresh) {
      pb::NcclRank* row = group.facts.add_ranks();
      row->set_rank(rank);
      row->set_process(process);
      row->set_device(message.device);
      row->set_nvml_device(-1);
      row->set_local_rank(-1);
      row->set_comm(line.comm);
    }
    binding.rank = it->second;
    pointed = by_pointer_.emplace(std::pair(process, line.comm), binding).first;
  }
  const Binding binding = pointed->second;
  pb::NcclRank& rank = *groups_[binding.group].facts.mutable_ranks(binding.rank);
  rank.set_calls(rank.calls() + 1);
  *rank.mutable_last_call() = line.call;
  by_device_[{process, message.device}] = binding;
  last_collective_[{process, message.thread}] = line.call.collective();
}

const LogBuilder::Binding* LogBuilder::current(uint32_t process, const Message& message) const {
  const auto init = initialising_.find({process, message.thread});
  if (init != initialising_.end()) return &init->second;
  const auto device = by_device_.find({process, message.device});
  return device == by_device_.end() ? nullptr : &device->second;
}

void LogBuilder::warn(const Message& message, uint32_t process, uint64_t line) {
  const std::string key = fmt::format("{}|{}|{}", process, message.device, message.text);
  const auto known = warnings_.find(key);
  if (known != warnings_.end()) {
    pb::NcclWarning* row = log_.mutable_warnings(static_cast<int>(known->second));
    row->set_count(row->count() + 1);
    return;
  }
  if (log_.warnings_size() >= kMaxWarnings) {
    odd("nccl-warnings-cut", line, "only the first 1000 different warnings are kept");
    return;
  }
  warnings_.emplace(key, log_.warnings_size());
  pb::NcclWarning* row = log_.add_warnings();
  row->set_text(std::string(trimmed(message.text)));
  row->set_process(process);
  row->set_device(message.device);
  row->set_place(std::string(message.place));
  row->set_time(std::string(message.time));
  row->set_line(line);
  row->set_count(1);
}

void LogBuilder::add(const Message& message, uint64_t line) {
  log_.set_nccl_lines(log_.nccl_lines() + 1);
  const uint32_t process = process_of(message);
  const auto unused = [&] { log_.set_unused_lines(log_.unused_lines() + 1); };
  if (message.level == Level::kWarn) return warn(message, process, line);
  if (message.level == Level::kCall) {
    const std::string_view function = message.text.substr(0, message.text.find('('));
    const bool known = function.starts_with("nccl") && function.size() < 40 &&
                       function.find_first_of(" :") == std::string_view::npos;
    if (!known) return unused();
    ++(*log_.mutable_api_calls())[std::string(function)];
    return;
  }
  if (message.level == Level::kTrace) return unused();
  if (const auto comm = comm_line_in(message.text)) return comm_line(*comm, message, process);
  if (const auto call = call_in(message.text)) return call_line(*call, message, process);
  if (process_fact(message.text, process)) return;
  if (!could_be_group_fact(message.text)) return unused();
  const auto [text, comm] = without_comm(message.text);
  const bool is_choice = text.find(" Bytes -> ") != std::string_view::npos;
  const auto pointed = by_pointer_.find({process, comm});
  const bool named = !comm.empty() && pointed != by_pointer_.end();
  const Binding* binding = named ? &pointed->second : current(process, message);
  const bool wait =
      !named && !saw_start_ && !is_choice && !initialising_.contains({process, message.thread});
  if (binding == nullptr || wait) {
    if (waiting_total_ >= kMaxWaiting) {
      odd("nccl-lines-unplaced", line,
          "too many lines before any communicator; log from the start");
      return;
    }
    ++waiting_total_;
    waiting_[{process, message.thread}].push_back({std::string(text), message.device, line});
    return;
  }
  Group& group = groups_[binding->group];
  if (const auto choice = is_choice ? choice_in(text) : std::nullopt;
      choice && choice->collective().empty()) {
    const auto last = last_collective_.find({process, message.thread});
    if (last != last_collective_.end()) {
      (void)group_fact(group, fmt::format("{}: {}", last->second, text), line);
      return;
    }
  }
  if (!group_fact(group, text, line)) unused();
}

LogBuilder::Finished LogBuilder::finish(Findings& findings, const std::string& file) {
  // What waited for an initialisation that the log does not show goes to the only communicator of
  // its process and device, or to one without a name.
  auto held = std::move(waiting_);
  waiting_.clear();
  for (const auto& [thread, lines] : held) {
    for (const Waiting& w : lines) {
      const auto device = by_device_.find({thread.first, w.device});
      const size_t to =
          device != by_device_.end() ? device->second.group : group_of("", 0, -1, thread.first);
      if (!group_fact(groups_[to], w.text, w.line)) {
        log_.set_unused_lines(log_.unused_lines() + 1);
      }
    }
  }
  Finished out;
  for (Group& group : groups_) {
    auto& facts = group.facts;
    std::stable_sort(facts.mutable_ranks()->begin(), facts.mutable_ranks()->end(),
                     [](const pb::NcclRank& a, const pb::NcclRank& b) {
                       return static_cast<uint32_t>(a.rank()) < static_cast<uint32_t>(b.rank());
                     });
    const auto by_channel = [](const auto& a, const auto& b) {
      return std::pair(a.channel(), a.rank()) < std::pair(b.channel(), b.rank());
    };
    std::stable_sort(facts.mutable_hops()->begin(), facts.mutable_hops()->end(), by_channel);
    std::stable_sort(facts.mutable_trees()->begin(), facts.mutable_trees()->end(), by_channel);
    std::stable_sort(facts.mutable_nvls_trees()->begin(), facts.mutable_nvls_trees()->end(),
                     by_channel);
    std::stable_sort(
        facts.mutable_rings()->begin(), facts.mutable_rings()->end(),
        [](const pb::NcclRing& a, const pb::NcclRing& b) { return a.channel() < b.channel(); });
    std::stable_sort(facts.mutable_connections()->begin(), facts.mutable_connections()->end(),
                     [](const pb::NcclConnection& a, const pb::NcclConnection& b) {
                       return std::tuple(a.channel(), a.from(), a.to()) <
                              std::tuple(b.channel(), b.from(), b.to());
                     });
    // A log that begins after the initialisation does not say how many ranks there are; a ring has them all.
    if (facts.ranks_total() == 0 && facts.rings_size() > 0) {
      facts.set_ranks_total(static_cast<uint32_t>(facts.rings(0).ranks_size()));
    }
    for (const pb::NcclRank& rank : facts.ranks()) {
      const auto& version = log_.processes(static_cast<int>(rank.process())).nccl_version();
      if (facts.nccl_version().empty()) facts.set_nccl_version(version);
      if (!version.empty() && version != facts.nccl_version()) {
        findings.add("nccl-versions-differ", Severity::kError,
                     fmt::format("{}: {} and {}", file, facts.nccl_version(), version),
                     "ranks of one communicator run different NCCL libraries; install one");
      }
    }
    out.run_of.push_back(group.run);
    *log_.add_communicators() = std::move(facts);
  }
  for (const auto& [id, row] : odd_) {
    findings.add(id, Severity::kWarning, fmt::format("{}: line {}", file, row.line), row.advice,
                 row.count);
  }
  // One banner is printed per job, by rank 0: it holds for all processes of the file.
  std::string version;
  for (const pb::NcclProcess& process : log_.processes()) {
    if (version.empty()) version = process.nccl_version();
  }
  for (pb::NcclCommunicator& facts : *log_.mutable_communicators()) {
    if (facts.nccl_version().empty()) facts.set_nccl_version(version);
  }
  out.log = std::move(log_);
  *this = LogBuilder();
  return out;
}

}  // namespace rehearse::traces::nccl_log
