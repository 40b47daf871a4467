// SPDX-License-Identifier: Apache-2.0
#include "traces/import/activity/nccl.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

#include "traces/import/limits.hpp"
#include "traces/import/names.hpp"

namespace rehearse::traces::activity {
namespace {

struct Function {
  std::string_view name;
  Collective collective;
};
constexpr std::array<Function, 11> kFunctions = {{{"AllReduce", Collective::kAllReduce},
                                                  {"AllGather", Collective::kAllGather},
                                                  {"ReduceScatter", Collective::kReduceScatter},
                                                  {"Broadcast", Collective::kBroadcast},
                                                  {"Bcast", Collective::kBroadcast},
                                                  {"Reduce", Collective::kReduce},
                                                  {"AlltoAll", Collective::kAllToAll},
                                                  {"Gather", Collective::kGather},
                                                  {"Scatter", Collective::kScatter},
                                                  {"Send", Collective::kSend},
                                                  {"Recv", Collective::kRecv}}};

struct KernelType {
  std::string_view token;
  DType dtype;
};
constexpr std::array<KernelType, 10> kKernelTypes = {{{"f16", DType::kFp16},
                                                      {"half", DType::kFp16},
                                                      {"bf16", DType::kBf16},
                                                      {"f32", DType::kFp32},
                                                      {"float", DType::kFp32},
                                                      {"f64", DType::kFp64},
                                                      {"double", DType::kFp64},
                                                      {"u32", DType::kUint32},
                                                      {"u64", DType::kUint64},
                                                      {"u8", DType::kUint8}}};

// Kernels of reductions carry the type: "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(...)".
DType dtype_of_kernel(std::string_view kernel) {
  kernel = kernel.substr(0, kernel.find('('));
  while (!kernel.empty()) {
    const std::string_view token = kernel.substr(0, kernel.find('_'));
    for (const KernelType& t : kKernelTypes) {
      if (t.token == token) return t.dtype;
    }
    kernel.remove_prefix(std::min(token.size() + 1, kernel.size()));
  }
  return DType::kUnknown;
}

// Whether a group sends to and receives from some members only, and says whom. To all members (with the rank itself or
// without) it is an all-to-all, which NCCL does not tell from its messages.
bool are_messages_to_some(std::span<const CallFacts> calls, uint32_t ranks) {
  if (calls.size() < 2) return false;
  std::set<int32_t> to, from;
  bool twice = false;
  for (const CallFacts& c : calls) {
    const bool sends = c.collective == Collective::kSend;
    if ((!sends && c.collective != Collective::kRecv) || c.peer < 0) return false;
    twice = !(sends ? to : from).insert(c.peer).second || twice;
  }
  const auto all = [&](const std::set<int32_t>& peers) {
    return peers.size() == ranks || (ranks > 2 && peers.size() + 1 == ranks);
  };
  return twice || ranks == 0 || !all(to) || !all(from);
}

}  // namespace

std::optional<Collective> collective_of_function(std::string_view function) {
  if (function.starts_with("nccl")) function.remove_prefix(4);
  for (const Function& f : kFunctions) {
    if (f.name == function) return f.collective;
  }
  return std::nullopt;
}

Reduction reduction_of(int64_t nccl_op) {
  switch (nccl_op) {
    case 0:
      return Reduction::kSum;
    case 1:
      return Reduction::kProduct;
    case 2:
      return Reduction::kMax;
    case 3:
      return Reduction::kMin;
    case 4:
      return Reduction::kAverage;
    default:
      return Reduction::kNone;
  }
}

void NcclCalls::range(LaneId lane, Nanos start, Nanos end, std::string_view name,
                      const CallFacts& facts) {
  Range r{lane, start, end, Range::Kind::kCall, facts};
  if (name == "ncclGroupStart") {
    r.kind = Range::Kind::kGroupStart;
  } else if (name == "ncclGroupEnd") {
    r.kind = Range::Kind::kGroupEnd;
  } else if (const auto collective = collective_of_function(name)) {
    r.facts.collective = *collective;
  } else {
    return;
  }
  ranges_.push_back(r);
}

size_t NcclCalls::window(LaneId lane, Nanos from, Nanos to) {
  told_.push_back({lane, from, to, {}, {}});
  return told_.size() - 1;
}

void NcclCalls::init(uint64_t communicator, uint32_t ranks, uint32_t rank) {
  if (communicator != 0 && rank < ranks) places_[communicator] = {ranks, rank};
}

std::optional<CommunicatorPlace> NcclCalls::largest() const {
  std::optional<CommunicatorPlace> most;
  for (const auto& [id, place] : places_) {
    if (!most || place.size > most->size ||
        (place.size == most->size && place.position < most->position)) {
      most = place;
    }
  }
  return most;
}

std::vector<int64_t> NcclCalls::correlations(const Operations& ops) const {
  std::vector<int64_t> out;
  for (const Kernel& k : kernels_) out.push_back(ops.correlation[k.op]);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::vector<NcclCalls::Window> NcclCalls::windows_of_ranges() {
  std::stable_sort(ranges_.begin(), ranges_.end(), [](const Range& a, const Range& b) {
    return a.lane != b.lane ? a.lane < b.lane : a.start < b.start;
  });
  std::vector<Window> windows;
  std::vector<CallFacts> grouped;
  int depth = 0;
  for (size_t i = 0; i < ranges_.size(); ++i) {
    const Range& r = ranges_[i];
    if (i > 0 && ranges_[i - 1].lane != r.lane) {
      depth = 0;
      grouped.clear();
    }
    if (r.kind == Range::Kind::kGroupStart) {
      ++depth;
    } else if (r.kind == Range::Kind::kGroupEnd) {
      depth = std::max(depth - 1, 0);
      if (depth > 0) continue;
      windows.push_back({r.lane, r.start, r.end, std::move(grouped), {}});
      grouped.clear();
    } else if (depth > 0) {
      grouped.push_back(r.facts);
    } else {
      windows.push_back({r.lane, r.start, r.end, {r.facts}, {}});
    }
  }
  ranges_ = {};
  return windows;
}

uint32_t NcclCalls::communicator(RankPart& part, uint64_t id) {
  const auto [found, added] = table_.emplace(id, static_cast<uint32_t>(part.communicators.size()));
  if (!added) return found->second;
  if (id == 0) {
    part.communicators.push_back({"default", "all ranks", {}, "nccl"});
    part.places.emplace_back();
    return found->second;
  }
  part.communicators.push_back({fmt::format("{:#018x}", id), "", {}, "nccl"});
  const auto place = places_.find(id);
  part.places.push_back(place != places_.end() ? place->second
                                               : CommunicatorPlace{0, kUnknownPlace});
  return found->second;
}

// Messages of one group to some members: each is a call of its own, and all run together.
void NcclCalls::fill_messages(RankPart& part, const Kernel& kernel,
                              std::span<const CallFacts> calls) {
  Operations& ops = part.trace.ops;
  const uint32_t group_communicator = ops.calls[kernel.call].communicator;
  const uint64_t group = ++groups_;
  for (size_t i = 0; i < calls.size(); ++i) {
    uint32_t index = kernel.call;
    if (i > 0) {
      index = static_cast<uint32_t>(ops.calls.size());
      ops.add_call(ops.lane[kernel.op], ops.name[kernel.op], ops.start[kernel.op],
                   ops.duration[kernel.op], ops.correlation[kernel.op], Call{});
      part.launched.push_back(part.launched[kernel.call]);
      part.sized.push_back(false);
      part.message_only.push_back(false);
    }
    const CallFacts& facts = calls[i];
    Call& call = ops.calls[index];
    call.collective = facts.collective;
    call.communicator = group_communicator;
    call.peer = facts.peer;
    call.dtype = facts.dtype;
    call.group = group;
    const bool sized = facts.message >= 0 && facts.message <= kMostBytes;
    if (sized)
      (facts.collective == Collective::kSend ? call.bytes_in : call.bytes_out) = facts.message;
    part.sized[index] = sized;
  }
}

void NcclCalls::fill(RankPart& part, const Kernel& kernel, std::span<const CallFacts> calls,
                     const Strings& strings, const std::string& where, Findings& findings) {
  Operations& ops = part.trace.ops;
  const std::string& name = strings.at(ops.name[kernel.op]);
  const auto by_name = collective_of_kernel(name);
  ops.calls[kernel.call].communicator =
      communicator(part, calls.empty() ? 0 : calls.front().communicator);
  if (are_messages_to_some(calls, part.places[ops.calls[kernel.call].communicator].size)) {
    return fill_messages(part, kernel, calls);
  }
  Call& call = ops.calls[kernel.call];
  const Bytes ranks = part.places[call.communicator].size;
  size_t sends = 0, receives = 0;
  Bytes sent = 0, received = 0, message = 0;
  bool sized = !calls.empty();
  for (const CallFacts& c : calls) {
    const bool sends_one = c.collective == Collective::kSend;
    const bool receives_one = c.collective == Collective::kRecv;
    sends += sends_one ? 1 : 0;
    receives += receives_one ? 1 : 0;
    if (c.message < 0 || c.message > kMostBytes) {
      sized = false;
      continue;
    }
    message = std::min(message + c.message, kMostBytes);
    if (sends_one) sent = std::min(sent + c.message, kMostBytes);
    if (receives_one) received = std::min(received + c.message, kMostBytes);
  }
  const bool alike = std::all_of(calls.begin(), calls.end(), [&](const CallFacts& c) {
    return c.collective == calls.front().collective && c.peer == calls.front().peer;
  });
  if (!calls.empty() && alike) {
    call.collective = calls.front().collective;
    call.peer = calls.front().peer;
    call.reduction = calls.front().reduction;
    call.dtype = calls.front().dtype;
  } else if (sends + receives > 0 && sends + receives == calls.size()) {
    call.collective = Collective::kAllToAll;
    call.dtype = calls.front().dtype;
    if (ranks == 0 || std::cmp_not_equal(sends, ranks) || std::cmp_not_equal(receives, ranks)) {
      findings.add("grouped-sends-as-all-to-all", Severity::kWarning,
                   fmt::format("{}: {} sends and {} receives in one group", where, sends, receives),
                   "a group of sends and receives is taken as an exchange among all ranks of its "
                   "communicator");
    }
  } else {
    if (by_name) call.collective = *by_name;
    sized = false;
    if (!calls.empty()) {
      findings.add(
          "mixed-group", Severity::kWarning, fmt::format("{}: {}", where, name),
          "one kernel does several kinds of collectives; it is taken as what its name says");
    } else if (!by_name) {
      findings.add("collective-unknown", Severity::kWarning, fmt::format("{}: {}", where, name),
                   "taken as all-reduce; record NCCL's NVTX ranges too");
    } else if (*by_name == Collective::kAllToAll && name.find("SendRecv") != std::string::npos) {
      findings.add(
          "sendrecv-assumed-all-to-all", Severity::kWarning, where,
          "nothing tells what these send/receive kernels do; record NCCL's NVTX ranges too");
    }
  }
  if (is_reducing(call.collective)) {
    if (call.reduction == Reduction::kNone) call.reduction = Reduction::kSum;
    if (call.dtype == DType::kUnknown) call.dtype = dtype_of_kernel(name);
  }
  if (sized && sends + receives > 0) {
    call.bytes_in = sent;
    call.bytes_out = received;
  } else if (sized) {
    call.bytes_in = call.bytes_out = message;
    part.message_only[kernel.call] = true;
  }
  part.sized[kernel.call] = sized;
}

void NcclCalls::attach(RankPart& part, const std::unordered_map<int64_t, Launch>& launches,
                       const Strings& strings, const std::string& where, Findings& findings) {
  Operations& ops = part.trace.ops;
  part.launched.assign(ops.calls.size(), 0);
  part.sized.assign(ops.calls.size(), false);
  part.message_only.assign(ops.calls.size(), false);
  const bool told = !told_.empty();
  std::vector<Window> windows = told ? std::move(told_) : windows_of_ranges();
  std::vector<size_t> order(windows.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return windows[a].lane != windows[b].lane ? windows[a].lane < windows[b].lane
                                              : windows[a].from < windows[b].from;
  });
  std::vector<size_t> alone;
  for (size_t k = 0; k < kernels_.size(); ++k) {
    const int64_t correlation = ops.correlation[kernels_[k].op];
    part.launched[kernels_[k].call] = ops.start[kernels_[k].op];
    const auto launch = launches.find(correlation);
    if (launch != launches.end()) part.launched[kernels_[k].call] = launch->second.start;
    if (const auto tie = ties_.find(correlation); tie != ties_.end()) {
      windows[tie->second].kernels.push_back(k);
      continue;
    }
    if (launch == launches.end()) {
      alone.push_back(k);
      continue;
    }
    const auto [lane, at] = launch->second;
    auto w = std::upper_bound(order.begin(), order.end(), std::pair(lane, at),
                              [&](const auto& key, size_t i) {
                                return key.first != windows[i].lane ? key.first < windows[i].lane
                                                                    : key.second < windows[i].from;
                              });
    if (w != order.begin() && windows[*--w].lane == lane && at <= windows[*w].to) {
      windows[*w].kernels.push_back(k);
    } else {
      alone.push_back(k);
    }
  }
  for (const size_t k : alone) fill(part, kernels_[k], {}, strings, where, findings);
  for (Window& w : windows) {
    if (w.kernels.empty()) continue;
    std::stable_sort(w.kernels.begin(), w.kernels.end(), [&](size_t a, size_t b) {
      return part.launched[kernels_[a].call] < part.launched[kernels_[b].call];
    });
    // Kernels of one communicator come together; communicators in the order of their first call.
    std::vector<uint64_t> communicators;
    for (const CallFacts& c : w.calls) {
      if (std::find(communicators.begin(), communicators.end(), c.communicator) ==
          communicators.end()) {
        communicators.push_back(c.communicator);
      }
    }
    if (w.kernels.size() == 1 && communicators.size() <= 1) {
      fill(part, kernels_[w.kernels[0]], w.calls, strings, where, findings);
    } else if (w.kernels.size() == w.calls.size()) {
      for (size_t i = 0; i < w.kernels.size(); ++i) {
        fill(part, kernels_[w.kernels[i]], std::span(w.calls).subspan(i, 1), strings, where,
             findings);
      }
    } else if (w.kernels.size() == communicators.size()) {
      for (size_t i = 0; i < w.kernels.size(); ++i) {
        std::vector<CallFacts> mine;
        for (const CallFacts& c : w.calls) {
          if (c.communicator == communicators[i]) mine.push_back(c);
        }
        fill(part, kernels_[w.kernels[i]], mine, strings, where, findings);
      }
    } else {
      findings.add(
          "group-not-divided", Severity::kWarning,
          fmt::format("{}: {} calls, {} kernels", where, w.calls.size(), w.kernels.size()),
          "it is not known which call of a group ran in which kernel; their sizes are left "
          "out",
          w.kernels.size());
      for (const size_t k : w.kernels) fill(part, kernels_[k], {}, strings, where, findings);
    }
  }
  kernels_ = {};
  ties_ = {};
}

}  // namespace rehearse::traces::activity
