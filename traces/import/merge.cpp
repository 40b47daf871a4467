// SPDX-License-Identifier: Apache-2.0
#include "traces/import/merge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <unordered_set>
#include <utility>

#include "base/text.hpp"
#include "traces/import/clock.hpp"
#include "traces/import/limits.hpp"
#include "traces/import/match.hpp"
#include "traces/import/members.hpp"
#include "traces/import/names.hpp"
#include "traces/import/placed.hpp"
#include "traces/import/steps.hpp"
#include "traces/import/symmetric.hpp"
#include "traces/model/utf8.hpp"
#include "traces/program/overhead.hpp"

namespace rehearse::traces {
namespace {

// Ranks that a call may name beyond those that files state.
constexpr uint32_t kMostWorld = 1 << 20;

uint32_t world_size_of(const std::vector<FilePart>& parts, const std::vector<Placed>& placed,
                       Findings& findings) {
  uint32_t stated = 0;
  for (const FilePart& part : parts) {
    if (!part.world_size) continue;
    if (stated != 0 && stated != *part.world_size) {
      findings.add(
          "mixed-jobs", Severity::kError,
          fmt::format("{}: {} ranks, another file says {}", part.file, *part.world_size, stated),
          "these files come from different jobs; import one job at a time");
    }
    stated = std::max(stated, *part.world_size);
  }
  uint32_t world = std::max<uint32_t>(stated, 1);
  for (const Placed& p : placed) {
    world = std::max(world, p.part.trace.rank + 1);
    for (const Communicator& c : p.part.communicators) {
      for (const RankId member : c.members) world = std::max(world, member + 1);
    }
    for (const CommunicatorPlace& place : p.part.places) {
      if (place.size <= kMostWorld) world = std::max(world, place.size);
    }
    for (const Call& call : p.part.trace.ops.calls) {
      // Of communicators whose size nothing else tells.
      const auto& places = p.part.places;
      const bool everyone =
          call.communicator < p.part.communicators.size() &&
          p.part.communicators[call.communicator].members.empty() &&
          (call.communicator >= places.size() || places[call.communicator].size == 0);
      if (everyone && call.peer >= 0 && std::cmp_less(call.peer, kMostWorld)) {
        world = std::max(world, static_cast<uint32_t>(call.peer) + 1);
      }
    }
  }
  return world;
}

// Members of communicators that only calls mention: with all ranks here, those that make such calls.
void infer_members(std::vector<Placed>& placed, uint32_t world, Findings& findings) {
  const auto unknown = [](const RankPart& part, size_t c) {
    return c < part.members_unknown.size() && part.members_unknown[c];
  };
  std::map<std::string, std::vector<RankId>> users;
  if (placed.size() < world) return;
  for (const Placed& p : placed) {
    std::set<uint32_t> used;
    for (const Call& call : p.part.trace.ops.calls) used.insert(call.communicator);
    for (const uint32_t c : used) {
      if (unknown(p.part, c)) users[p.part.communicators[c].id].push_back(p.part.trace.rank);
    }
  }
  for (Placed& p : placed) {
    for (size_t c = 0; c < p.part.communicators.size(); ++c) {
      if (unknown(p.part, c)) p.part.communicators[c].members = users[p.part.communicators[c].id];
    }
    for (Call& call : p.part.trace.ops.calls) {
      if (call.peer < 0 || !unknown(p.part, call.communicator)) continue;
      const auto& members = p.part.communicators[call.communicator].members;
      const auto at = std::find(members.begin(), members.end(), static_cast<RankId>(call.peer));
      call.peer = at == members.end() ? -1 : static_cast<int32_t>(at - members.begin());
    }
  }
  if (!users.empty()) {
    findings.add(
        "members-from-calls", Severity::kInfo, users.begin()->first,
        "no file lists the members of these communicators; the ranks that call on them are taken",
        users.size());
  }
}

// One table for all ranks; calls are pointed at it.
class Communicators {
 public:
  Communicators(Trace& trace, uint32_t world, Findings& findings)
      : trace_(trace), findings_(findings), everyone_(world) {
    std::iota(everyone_.begin(), everyone_.end(), 0u);
  }

  // Refused where communicators have more than kMostMembers members together.
  Result<void> adopt(Placed& placed) {
    std::vector<uint32_t> global;
    for (Communicator& c : placed.part.communicators) {
      if (c.members.empty()) c.members = everyone_;
      global.push_back(index_of(c, placed.file));
      if (held_ > kMostMembers) {
        return fail(Code::kLimit,
                    fmt::format("communicators of more than {} members together", kMostMembers),
                    placed.file, "no job has this; the file is damaged or hostile");
      }
    }
    std::vector<Call>& calls = placed.part.trace.ops.calls;
    if (global.empty() && !calls.empty()) {
      global.push_back(index_of({"default", "all ranks", everyone_, "nccl"}, placed.file));
    }
    for (Call& call : calls) {
      call.communicator = global[call.communicator < global.size() ? call.communicator : 0];
      const size_t members = trace_.communicators[call.communicator].members.size();
      if (call.peer >= -1 && std::cmp_less(call.peer, members)) continue;
      findings_.add("peer-not-a-member", Severity::kDataLoss,
                    fmt::format("{}: member {} of {}", placed.file, call.peer, members),
                    "whom these calls talk to is not known; the file may be damaged");
      call.peer = -1;
    }
    return {};
  }

 private:
  uint32_t index_of(const Communicator& c, const std::string& file) {
    const auto known = index_.find({c.id, c.members});
    if (known != index_.end()) return known->second;
    Communicator fresh = c;
    std::vector<uint32_t>& namesakes = names_[c.id];
    if (!namesakes.empty()) {
      fresh.id = fmt::format("{}/{}", c.id, format_ranks(c.members));
      const std::unordered_set<RankId> mine(c.members.begin(), c.members.end());
      for (const uint32_t other : namesakes) {
        const auto& members = trace_.communicators[other].members;
        if (std::none_of(members.begin(), members.end(),
                         [&](RankId r) { return mine.contains(r); })) {
          continue;
        }
        findings_.add(
            "communicator-contradiction", Severity::kWarning,
            fmt::format("{}: {} has {} ranks, elsewhere {}", file, c.id, c.members.size(),
                        members.size()),
            "the same name stands for different groups; the files may be of different jobs");
      }
    }
    const auto index = static_cast<uint32_t>(trace_.communicators.size());
    namesakes.push_back(index);
    held_ += c.members.size();
    index_.emplace(std::pair(c.id, c.members), index);
    trace_.communicators.push_back(std::move(fresh));
    return index;
  }

  Trace& trace_;
  Findings& findings_;
  std::vector<RankId> everyone_;
  std::map<std::pair<std::string, std::vector<RankId>>, uint32_t> index_;
  std::map<std::string, std::vector<uint32_t>> names_;
  uint64_t held_ = 0;  // members of all of them
};

void find_steps(Trace& trace, Findings& findings) {
  for (RankTrace& rank : trace.ranks) {
    if (!rank.steps.empty()) continue;
    rank.steps = steps_from_calls(rank.ops);
    const std::string where = fmt::format("rank {}", rank.rank);
    if (rank.steps.empty()) {
      findings.add("no-steps", Severity::kInfo, where,
                   "neither profiler steps nor a period of the communication was found");
    } else {
      findings.add(
          "steps-inferred", Severity::kInfo, fmt::format("{}: {} steps", where, rank.steps.size()),
          "no profiler steps are recorded; they follow from the period of the communication");
    }
  }
}

void tell_other_communication(const Trace& trace, Findings& findings) {
  std::vector<int8_t> known(trace.strings.size(), -1);  // per name; -1: not looked at yet
  uint64_t count = 0;
  std::string first;
  for (const RankTrace& rank : trace.ranks) {
    for (size_t op = 0; op < rank.ops.size(); ++op) {
      if (rank.ops.kind[op] != OpKind::kKernel) continue;
      int8_t& other = known[rank.ops.name[op]];
      if (other < 0) other = is_other_communication(trace.strings.at(rank.ops.name[op])) ? 1 : 0;
      if (other == 0) continue;
      if (count++ == 0) {
        first =
            fmt::format("rank {}: {}", rank.rank, clipped(trace.strings.at(rank.ops.name[op]), 96));
      }
    }
  }
  if (count == 0) return;
  findings.add(
      "communication-not-of-nccl", Severity::kWarning, first,
      "kernels that move data between GPUs without NCCL are kept as compute: they take the "
      "time that was recorded, their waits for other ranks included",
      count);
}

void fill_header(const std::vector<FilePart>& parts, const ImportOptions& options, uint32_t world,
                 pb::TraceHeader& header) {
  std::vector<std::string> producers;
  for (const FilePart& part : parts) {
    if (std::find(producers.begin(), producers.end(), part.format) == producers.end()) {
      producers.push_back(part.format);
    }
    if (header.framework().empty()) header.set_framework(part.framework);
    if (header.job().empty()) header.set_job(part.job);
    if (header.nccl_version().empty()) header.set_nccl_version(part.nccl_version);
    if (part.synthetic) header.set_synthetic(true);
  }
  std::string producer;
  for (const std::string& p : producers) producer += (producer.empty() ? "" : "+") + p;
  header.set_producer(producer);
  if (header.framework().empty()) header.set_framework("unknown");
  if (!options.job.empty()) header.set_job(options.job);
  header.set_world_size(world);
}

void copy_findings(const Findings& findings, pb::TraceHeader& header) {
  header.clear_findings();
  for (const Finding& f : findings.rows()) {
    pb::TraceFinding* row = header.add_findings();
    row->set_id(f.id);
    row->set_severity(name_of(f.severity));
    row->set_count(f.count);
    row->set_first(f.first);
    row->set_advice(f.advice);
  }
}

// One profile and one execution trace given together are of one rank, whichever of them tells it.
void pair_single(std::vector<FilePart>& parts, Findings& findings) {
  RankPart* profile = nullptr;
  CallSizes* sizes = nullptr;
  for (FilePart& part : parts) {
    if (part.ranks.size() > 1 || part.sizes.size() > 1) return;
    if (!part.ranks.empty() && std::exchange(profile, &part.ranks.front()) != nullptr) return;
    if (!part.sizes.empty() && std::exchange(sizes, &part.sizes.front()) != nullptr) return;
  }
  if (profile == nullptr || sizes == nullptr) return;
  if (!profile->rank_known && sizes->rank) {
    profile->trace.rank = *sizes->rank;
    profile->rank_known = true;
    findings.add("rank-from-execution-trace", Severity::kInfo, sizes->file,
                 "the profile does not tell its rank; the execution trace beside it does");
  } else if (!sizes->rank) {
    sizes->rank = profile->rank_known ? profile->trace.rank : 0;
  }
}

// What the user tells beyond the files.
void complete(const ImportOptions& options, Imported& out) {
  if (options.assume_symmetric) {
    assume_symmetric(out.trace, *options.assume_symmetric, out.findings);
    copy_findings(out.findings, out.trace.header);
  }
  if (options.unprofiled_step > 0) fit_overhead(out.trace, options.unprofiled_step, out.findings);
  copy_findings(out.findings, out.trace.header);
}

Result<void> adopt_whole(std::vector<FilePart>& parts, const ImportOptions& options,
                         Imported& out) {
  const auto whole = std::find_if(parts.begin(), parts.end(),
                                  [](const FilePart& part) { return part.whole.has_value(); });
  for (const FilePart& part : parts) {
    if (&part == &*whole || (!part.evidence.empty() && part.ranks.empty() && part.sizes.empty())) {
      continue;
    }
    return fail(Code::kBadInput, "a .rtrace is a whole job; only evidence can be added to it",
                part.file, "import the files that the .rtrace was made of and this one together");
  }
  pb::TraceHeader added;
  added.Swap(&out.trace.header);
  out.trace = std::move(*whole->whole);
  for (const pb::InputFile& input : added.inputs()) {
    if (input.name() != whole->file.substr(whole->file.rfind('/') + 1)) {
      *out.trace.header.add_inputs() = input;
    }
  }
  for (FilePart& part : parts) {
    std::move(part.evidence.begin(), part.evidence.end(), std::back_inserter(out.trace.evidence));
    if (out.trace.header.nccl_version().empty()) {
      out.trace.header.set_nccl_version(part.nccl_version);
    }
  }
  for (const pb::TraceFinding& f : out.trace.header.findings()) {
    Severity severity = Severity::kInfo;
    for (const Severity s : {Severity::kWarning, Severity::kDataLoss, Severity::kError}) {
      if (f.severity() == name_of(s)) severity = s;
    }
    out.findings.add(f.id(), severity, f.first(), f.advice(), f.count());
  }
  copy_findings(out.findings, out.trace.header);
  if (!options.job.empty()) out.trace.header.set_job(options.job);
  complete(options, out);
  return {};
}

}  // namespace

Result<void> merge(std::vector<FilePart> parts, const ImportOptions& options, Imported& out) {
  Findings& findings = out.findings;
  Trace& trace = out.trace;
  if (std::any_of(parts.begin(), parts.end(),
                  [](const FilePart& p) { return p.whole.has_value(); })) {
    return adopt_whole(parts, options, out);
  }
  pair_single(parts, findings);
  std::vector<Placed> placed = place_ranks(parts, findings);
  for (FilePart& part : parts) {
    for (CallSizes& sizes : part.sizes) {
      const auto rank = std::find_if(placed.begin(), placed.end(), [&](const Placed& p) {
        return sizes.rank && p.part.trace.rank == *sizes.rank;
      });
      if (rank != placed.end()) {
        join_sizes(sizes, rank->part, findings);
      } else if (auto alone = rank_of_sizes(sizes, trace.strings, findings)) {
        placed.push_back({std::move(*alone), part.file});
      }
    }
  }
  for (FilePart& part : parts) {
    std::move(part.evidence.begin(), part.evidence.end(), std::back_inserter(trace.evidence));
  }
  if (placed.empty() && trace.evidence.empty()) {
    return fail(Code::kBadInput, "there is no operation with a time and no collective in it",
                parts.front().file,
                "an execution trace has no times: import the profile (Kineto JSON) of the same "
                "rank beside it");
  }
  if (placed.empty()) {
    fill_header(parts, options, 0, trace.header);
    copy_findings(findings, trace.header);
    return {};
  }
  std::stable_sort(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) {
    return a.part.trace.rank < b.part.trace.rank;
  });
  const uint32_t world = world_size_of(parts, placed, findings);
  if (const uint64_t most = std::max<uint64_t>(options.most_ranks, kMostWorld); world > most) {
    return fail(Code::kLimit, fmt::format("a job of {} ranks, more than {}", world, most),
                parts.front().file, "where that is true, raise --limit ranks=N");
  }
  std::vector<RankPart*> all;
  all.reserve(placed.size());
  for (Placed& p : placed) all.push_back(&p.part);
  complete_members(all, world, findings);
  for (RankPart* part : all) size_buffers(*part, world);
  infer_members(placed, world, findings);
  Communicators communicators(trace, world, findings);
  std::vector<RankPart> ranks;
  for (Placed& p : placed) {
    if (auto adopted = communicators.adopt(p); !adopted) return adopted;
    if (p.part.cloned_from) {
      (*trace.header.mutable_cloned_from())[p.part.trace.rank] = *p.part.cloned_from;
    }
    ranks.push_back(std::move(p.part));
  }
  match_calls(ranks, trace, findings);
  for (RankPart& r : ranks) trace.ranks.push_back(std::move(r.trace));
  if (trace.ranks.size() < world) {
    std::vector<uint32_t> present;
    for (const RankTrace& r : trace.ranks) present.push_back(r.rank);
    findings.add("ranks-missing", Severity::kWarning,
                 fmt::format("ranks {} of {} are here", format_ranks(present), world),
                 "import the files of the other ranks too", world - present.size());
  }
  if (const auto clones = static_cast<uint64_t>(trace.header.cloned_from_size()); clones > 0) {
    findings.add("symmetric-assumed", Severity::kWarning,
                 fmt::format("{} of {} ranks are clones, the files say", clones, world),
                 "they were made with --assume-symmetric and exported; nobody recorded them",
                 clones);
  }
  if (options.clocks == ClockAlignment::kAlign) align_clocks(trace, findings);
  find_steps(trace, findings);
  tell_other_communication(trace, findings);
  fill_header(parts, options, world, trace.header);
  complete(options, out);
  return {};
}

}  // namespace rehearse::traces
