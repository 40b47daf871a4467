// SPDX-License-Identifier: Apache-2.0
#include "traces/import/kineto/communication.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "traces/import/kineto/groups.hpp"
#include "traces/import/limits.hpp"
#include "traces/import/names.hpp"

namespace rehearse::traces::kineto {
namespace {

constexpr size_t kLookBack = 16;         // spans that may have begun since the one that encloses
constexpr size_t kMostCollected = 8192;  // calls of one launch
constexpr size_t kMostPassed = 64;       // other spans between two of them

// What the other buffer holds when only one is recorded.
void derive_sizes(Call& call, Bytes in, Bytes out, int64_t ranks) {
  if (in < 0 && out < 0) return;
  const bool gathers = call.collective == Collective::kAllGather;
  const bool scatters = call.collective == Collective::kReduceScatter;
  if (out < 0) out = gathers ? gathered(in, ranks) : scatters ? in / ranks : in;
  if (in < 0) in = gathers ? out / ranks : scatters ? gathered(out, ranks) : out;
  call.bytes_in = in;
  call.bytes_out = out;
}

Bytes bytes_of(int64_t elements, int size) {
  Bytes bytes = 0;
  if (elements < 0 || size == 0 || __builtin_mul_overflow(elements, int64_t{size}, &bytes))
    return -1;
  return bytes < kMostBytes ? bytes : -1;
}

int32_t peer_of(const CallFacts& f, Collective c, const Communicator& group) {
  int64_t rank = -1;
  if (c == Collective::kSend) rank = f.destination;
  if (c == Collective::kRecv) rank = f.source;
  if (is_rooted(c)) rank = f.root;
  if (is_rooted(c) && rank < 0 && f.place >= 0 && f.place <= kMostOfOne &&
      (group.members.empty() || std::cmp_less(f.place, group.members.size()))) {
    return static_cast<int32_t>(f.place);
  }
  if (rank < 0 || rank > kMostOfOne) return -1;
  if (group.members.empty()) return static_cast<int32_t>(rank);
  const auto at = std::find(group.members.begin(), group.members.end(), static_cast<RankId>(rank));
  return at == group.members.end() ? -1 : static_cast<int32_t>(at - group.members.begin());
}

// Of all calls, -1 where one of them does not tell.
int64_t sum_of_bytes(const std::vector<CallFacts>& calls, int64_t CallFacts::*elements) {
  Bytes sum = 0;
  for (const CallFacts& c : calls) {
    const Bytes bytes = bytes_of(c.*elements, c.element_bytes);
    if (bytes < 0 || __builtin_add_overflow(sum, bytes, &sum)) return -1;
  }
  return sum;
}

bool is_message(const CallFacts& f) {
  return (f.collective == Collective::kSend && f.destination >= 0) ||
         (f.collective == Collective::kRecv && f.source >= 0);
}

}  // namespace

void CallFacts::complete(const CallFacts& o) {
  if (!collective) collective = o.collective;
  if (elements_in < 0 && elements_out < 0) {
    elements_in = o.elements_in;
    elements_out = o.elements_out;
    dtype = o.dtype;
    element_bytes = o.element_bytes;
    dtype_unknown = o.dtype_unknown;
  }
  if (group.empty() && ranks.empty() && group_size < 0) {
    group = o.group;
    description = o.description;
    ranks = o.ranks;
    group_size = o.group_size;
  }
  if (rank_start < 0) rank_start = o.rank_start;
  if (rank_stride < 0) rank_stride = o.rank_stride;
  if (source < 0) source = o.source;
  if (destination < 0) destination = o.destination;
  if (root < 0) root = o.root;
  if (place < 0 && o.collective == collective) place = o.place;
  if (sequence < 0) sequence = o.sequence;
}

CallFacts facts_of(const Event& event) {
  const CallArgs& a = event.call;
  CallFacts f;
  if (!a.name.empty()) f.collective = collective_of(a.name);
  if (!f.collective && event.name.starts_with("nccl:")) f.collective = collective_of(event.name);
  f.elements_in = a.elements_in;
  f.elements_out = a.elements_out;
  std::string_view type = a.dtype;
  if (f.elements_in < 0 && f.elements_out < 0 && a.shape_elements >= 0) {
    f.elements_in = a.shape_elements;
    type = a.shape_type;
  }
  f.dtype = dtype_of(type);
  f.element_bytes = element_bytes(type);
  f.dtype_unknown = !type.empty() && f.element_bytes == 0;
  f.group = a.group;
  f.description = a.group_description;
  f.ranks = a.ranks;
  f.group_size = a.group_size;
  f.rank_start = a.rank_start;
  f.rank_stride = a.rank_stride;
  f.source = a.source;
  f.destination = a.destination;
  f.root = a.root;
  f.place = a.place;
  f.sequence = a.sequence;
  return f;
}

void Communication::span(LaneId lane, Nanos start, Nanos duration, int64_t external,
                         CallFacts facts) {
  spans_.push_back({lane, start, start + duration, external, std::move(facts)});
}

void Communication::kernel(size_t op, uint32_t call, int64_t external, CallFacts facts) {
  kernels_.push_back({op, call, external, std::move(facts)});
}

std::vector<int64_t> Communication::correlations(const Operations& ops) const {
  std::vector<int64_t> out;
  for (const Kernel& k : kernels_) out.push_back(ops.correlation[k.op]);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

// Spans of a lane by time.
void Communication::sort_spans() {
  std::stable_sort(spans_.begin(), spans_.end(), [](const Span& a, const Span& b) {
    return a.lane != b.lane ? a.lane < b.lane : a.start < b.start;
  });
}

// Behind the last span of that lane that began at `launch` or before.
std::vector<Communication::Span>::iterator Communication::behind(const Launch& launch) {
  return std::upper_bound(spans_.begin(), spans_.end(), std::pair(launch.lane, launch.start),
                          [](const auto& key, const Span& span) {
                            return key.first != span.lane ? key.first < span.lane
                                                          : key.second < span.start;
                          });
}

// What host spans tell of a kernel: those that hold its launch, and the one of its external id.
void Communication::complete(Kernel& kernel, const Launch* launch,
                             const std::unordered_map<int64_t, Span*>& by_external) {
  if (launch != nullptr) {
    auto s = behind(*launch);
    for (size_t i = 0; i < kLookBack && s != spans_.begin(); ++i) {
      --s;
      if (s->lane != launch->lane) break;
      if (s->end < launch->start) continue;
      s->launches = true;
      kernel.facts.complete(s->facts);
    }
  }
  if (const auto s = by_external.find(kernel.external); s != by_external.end()) {
    s->second->launches = true;
    kernel.facts.complete(s->second->facts);
  }
}

// Calls that were collected and launched together: those before the launch that launched nothing themselves, back to
// the last that did.
template <typename Wanted>
std::vector<CallFacts> Communication::collected(const Launch& launch, const Wanted& wanted) {
  std::vector<CallFacts> found;
  size_t passed = 0;
  for (auto s = behind(launch); s != spans_.begin() && passed < kMostPassed; ++passed) {
    --s;
    if (s->lane != launch.lane || found.size() >= kMostCollected) break;
    if (s->end >= launch.start) continue;
    if (s->launches) break;
    if (!wanted(s->facts)) continue;
    passed = 0;
    s->launches = true;
    found.push_back(s->facts);
  }
  std::reverse(found.begin(), found.end());
  return found;
}

// The collectives of one kind and group that a kernel without a size ran, as PyTorch's coalescing collects them: one
// call of their bytes together. How many they were, 0 for none.
size_t Communication::join_collected(Kernel& kernel, const Launch& launch,
                                     std::optional<Collective> kind) {
  std::optional<CallFacts> nearest;
  const std::vector<CallFacts> calls = collected(launch, [&](const CallFacts& f) {
    // Annotations inside of these calls, which may tell a size too, do not tell the size of the group.
    const bool sized =
        f.group_size > 0 && f.element_bytes > 0 && (f.elements_in >= 0 || f.elements_out >= 0);
    if (!f.collective || is_point_to_point(*f.collective) || !sized) return false;
    if (kind && f.collective != kind) return false;
    if (!nearest) nearest = f;
    return f.collective == nearest->collective && f.group == nearest->group &&
           f.ranks == nearest->ranks;
  });
  if (calls.empty()) return 0;
  CallFacts whole = calls.front();
  whole.elements_in = sum_of_bytes(calls, &CallFacts::elements_in);
  whole.elements_out = sum_of_bytes(calls, &CallFacts::elements_out);
  whole.element_bytes = 1;
  whole.complete(kernel.facts);
  kernel.facts = std::move(whole);
  return calls.size();
}

void Communication::attach(RankPart& part, const Metadata& metadata,
                           const std::unordered_map<int64_t, Launch>& launches,
                           const Strings& strings, const std::string& where, Findings& findings) {
  Operations& ops = part.trace.ops;
  sort_spans();
  std::unordered_map<int64_t, Span*> by_external;
  for (Span& s : spans_) {
    if (s.external >= 0) by_external.emplace(s.external, &s);
  }
  part.launched.assign(ops.calls.size(), 0);
  part.recorded_sequence.assign(ops.calls.size(), -1);
  part.sized.assign(ops.calls.size(), false);
  part.grouped.assign(ops.calls.size(), false);
  const auto launch_of = [&](const Kernel& k) {
    const auto found = launches.find(ops.correlation[k.op]);
    return found == launches.end() ? nullptr : &found->second;
  };
  Groups::Sizes sizes;
  for (Kernel& k : kernels_) {
    complete(k, launch_of(k), by_external);
    if (k.facts.group.empty() && members_of(k.facts).empty()) ++sizes[k.facts.group_size];
  }
  sizes.erase(-1);
  Groups groups(metadata, sizes, part.communicators);
  const auto fill = [&](uint32_t index, CallFacts facts, const std::string& name) {
    Call& call = ops.calls[index];
    if (facts.collective) call.collective = *facts.collective;
    call.dtype = facts.dtype;
    if (is_reducing(call.collective)) call.reduction = Reduction::kSum;
    call.communicator = groups.of(facts);
    const Communicator& group = part.communicators[call.communicator];
    call.peer = peer_of(facts, call.collective, group);
    part.recorded_sequence[index] = facts.sequence;
    if (facts.dtype_unknown) {
      findings.add("unknown-dtype", Severity::kWarning, fmt::format("{}: {}", where, name),
                   "the bytes of these collectives are not known");
    }
    int64_t ranks = static_cast<int64_t>(group.members.size());
    if (ranks == 0 && facts.group_size > 0 && facts.group_size <= kMostOfOne) {
      // Who they are nobody says, but the job has as many ranks.
      part.places.resize(part.communicators.size());
      uint32_t& size = part.places[call.communicator].size;
      size = std::max(size, static_cast<uint32_t>(facts.group_size));
    }
    if (ranks == 0)
      ranks = facts.group_size > 0 ? facts.group_size : metadata.world_size.value_or(1);
    const Bytes in = bytes_of(facts.elements_in, facts.element_bytes);
    const Bytes out = bytes_of(facts.elements_out, facts.element_bytes);
    derive_sizes(call, in, out, ranks);
    part.sized[index] = in >= 0 || out >= 0;
    part.grouped[index] = !facts.group.empty() || !facts.ranks.empty() || facts.rank_stride > 0;
  };
  uint64_t group_number = 0;
  for (Kernel& k : kernels_) {
    const Launch* const launch = launch_of(k);
    const Nanos launched = launch != nullptr ? launch->start : ops.start[k.op];
    part.launched[k.call] = launched;
    const std::string& name = strings.at(ops.name[k.op]);
    const auto by_name = collective_of_kernel(name);
    const bool exchange =
        by_name == Collective::kAllToAll && name.find("SendRecv") != std::string::npos;
    const bool unsized = k.facts.elements_in < 0 && k.facts.elements_out < 0;
    if (unsized && !exchange && launch != nullptr && !launch->graph) {
      if (const size_t calls = join_collected(k, *launch, by_name); calls > 1) {
        findings.add("calls-run-together", Severity::kInfo, where,
                     "collectives that the program collected ran as one kernel: it is one call of "
                     "their bytes together",
                     calls);
      }
    }
    if (!k.facts.collective) {
      std::vector<CallFacts> messages;
      if (exchange && launch != nullptr) messages = collected(*launch, is_message);
      if (!messages.empty()) {
        const uint64_t group = messages.size() > 1 ? ++group_number : 0;
        for (size_t i = 0; i < messages.size(); ++i) {
          uint32_t index = k.call;
          if (i > 0) {
            index = static_cast<uint32_t>(ops.calls.size());
            ops.add_call(ops.lane[k.op], ops.name[k.op], ops.start[k.op], ops.duration[k.op],
                         ops.correlation[k.op], Call{});
            part.launched.push_back(launched);
            part.recorded_sequence.push_back(-1);
            part.sized.push_back(false);
            part.grouped.push_back(false);
          }
          messages[i].complete(k.facts);
          fill(index, std::move(messages[i]), name);
          ops.calls[index].group = group;
        }
        continue;
      }
      if (by_name) ops.calls[k.call].collective = *by_name;
      if (exchange) {
        findings.add(
            "sendrecv-assumed-all-to-all", Severity::kWarning, where,
            "the trace does not tell what these send/receive kernels do; add the execution "
            "trace of the same rank");
      } else if (!by_name) {
        findings.add("collective-unknown", Severity::kWarning, fmt::format("{}: {}", where, name),
                     "taken as all-reduce; add the execution trace of the same rank");
      }
    }
    fill(k.call, std::move(k.facts), name);
  }
  for (const int64_t size : groups.assumed()) {
    findings.add("members-assumed", Severity::kWarning,
                 fmt::format("{}: groups of {} ranks", where, size),
                 "the profile tells the size of these groups and not who is in them; the members "
                 "follow from "
                 "an even layout of ranks: add the execution trace of the same rank to know them");
  }
  spans_.clear();
  kernels_.clear();
}

}  // namespace rehearse::traces::kineto
