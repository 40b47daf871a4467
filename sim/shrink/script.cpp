// SPDX-License-Identifier: Apache-2.0
#include "sim/shrink/script.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "base/text.hpp"
#include "sim/simulate.hpp"
#include "sim/worker.hpp"

namespace rehearse::sim {
namespace {

constexpr size_t kMostCalls = 20'000;

// Both dialects share the tables; how a call is made differs.
constexpr const char* kTorchBody = R"py(

def tensor(elements, dtype):
    # gloo does not reduce bfloat16; another type of the same size stands for it.
    dtype = "float16" if dtype == "bfloat16" and DEVICE == "cpu" else dtype
    return torch.ones(max(1, elements), dtype=getattr(torch, dtype), device=DEVICE)


def issue(what, group, elements, dtype, peer):
    """Starts one call and returns what to wait for."""
    pg, members = PROCESS_GROUPS[group], GROUPS[group]
    data = tensor(elements, dtype)
    gloo = dist.get_backend(pg) == "gloo"
    if what == "all_reduce":
        return dist.all_reduce(data, group=pg, async_op=True)
    if what == "broadcast":
        return dist.broadcast(data, src=peer, group=pg, async_op=True)
    if what == "reduce":
        return dist.reduce(data, dst=peer, group=pg, async_op=True)
    if what == "barrier":
        return dist.barrier(group=pg, async_op=True)
    if what == "send":
        return dist.isend(data, dst=peer, group=pg)
    if what == "recv":
        return dist.irecv(data, src=peer, group=pg)
    if what == "gather":
        parts = [tensor(elements, dtype) for _ in members] if RANK == peer else None
        return dist.gather(data, parts, dst=peer, group=pg, async_op=True)
    if what == "scatter":
        parts = [tensor(elements, dtype) for _ in members] if RANK == peer else None
        return dist.scatter(data, parts, src=peer, group=pg, async_op=True)
    parts = [tensor(elements, dtype) for _ in members]
    # gloo has no reduce_scatter and no all_to_all: calls of the same members that meet in the same way stand for them.
    if what == "all_gather" or (what == "all_to_all" and gloo):
        return dist.all_gather(parts, data, group=pg, async_op=True)
    if what == "all_to_all":
        return dist.all_to_all(parts, [tensor(elements, dtype) for _ in members], group=pg, async_op=True)
    if what == "reduce_scatter" and gloo:
        return dist.all_reduce(data, group=pg, async_op=True)
    if what == "reduce_scatter":
        return dist.reduce_scatter(data, parts, group=pg, async_op=True)
    raise ValueError(what)


def wait(work):
    if work is not None:
        work.wait()


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--backend", default="gloo", help="gloo (CPU) or nccl (GPUs)")
parser.add_argument("--timeout", type=float, default=60, help="seconds after which a call that hangs gives up")
options = parser.parse_args()
RANK = int(os.environ["RANK"])
if RANK in NEVER_STARTED:
    sys.exit(0)
DEVICE = "cpu"
if options.backend == "nccl":
    DEVICE = "cuda:" + os.environ.get("LOCAL_RANK", "0")
    torch.cuda.set_device(DEVICE)
TIMEOUT = datetime.timedelta(seconds=options.timeout)
dist.init_process_group(options.backend, timeout=TIMEOUT)
# Every rank makes every group, in the same order, also those it is not in.
PROCESS_GROUPS = {name: dist.new_group(members, timeout=TIMEOUT) for name, members in GROUPS.items()}
issued = []
for number, (what, group, elements, dtype, peer, waits) in enumerate(CALLS[RANK]):
    if STOPS.get(RANK) == number:
        stop(LOUD.get(RANK, False))
    for before in waits:
        wait(issued[before])
        issued[before] = None  # gloo waits for a message once only
    print(f"rank {RANK}: {what} on {group}, {elements} x {dtype}", flush=True)
    issued.append(issue(what, group, elements, dtype, peer))
if STOPS.get(RANK) == len(CALLS[RANK]):
    stop(LOUD.get(RANK, False))
for work in issued:
    wait(work)
print(f"rank {RANK}: done", flush=True)
dist.destroy_process_group()
)py";

constexpr const char* kMpiBody = R"py(
CODES = {"int8": "b", "uint8": "B", "int32": "i", "int64": "q", "float32": "f", "float64": "d"}


def data(elements, dtype, times=1):
    # MPI has no half precision: elements of the same number stand for it.
    return array.array(CODES.get(dtype, "f"), bytes(array.array(CODES.get(dtype, "f")).itemsize * max(1, elements) * times))


def issue(what, group, elements, dtype, peer):
    """Starts one call and returns its request; buffers are kept until the end."""
    comm, members = COMMUNICATORS[group], GROUPS[group]
    root = members.index(peer) if peer in members else None
    mine, out, all_of = data(elements, dtype), data(elements, dtype), data(elements, dtype, len(members))
    BUFFERS.append((mine, out, all_of))
    if what == "all_reduce":
        return comm.Iallreduce(mine, out)
    if what == "broadcast":
        return comm.Ibcast(mine, root=root)
    if what == "reduce":
        return comm.Ireduce(mine, out, root=root)
    if what == "barrier":
        return comm.Ibarrier()
    if what == "send":
        return comm.Isend(mine, dest=root)
    if what == "recv":
        return comm.Irecv(mine, source=root)
    if what == "gather":
        return comm.Igather(mine, all_of if RANK == peer else None, root=root)
    if what == "scatter":
        return comm.Iscatter(all_of if RANK == peer else None, mine, root=root)
    if what == "all_gather":
        return comm.Iallgather(mine, all_of)
    if what == "all_to_all":
        sent = data(elements, dtype, len(members))
        BUFFERS.append(sent)
        return comm.Ialltoall(sent, all_of)
    if what == "reduce_scatter":
        return comm.Ireduce_scatter_block(all_of, mine)
    raise ValueError(what)


def wait(number):
    """Waits for a call of this rank; a hang ends with a message."""
    what, group = CALLS[RANK][number][:2]
    deadline = time.monotonic() + options.timeout
    try:
        while not issued[number].Test():
            if time.monotonic() > deadline:
                print(f"rank {RANK}: {what} on {group} (its call {number}) hangs", flush=True)
                MPI.COMM_WORLD.Abort(1)
            time.sleep(0.001)
    except MPI.Exception as error:
        print(f"rank {RANK}: {what} on {group} (its call {number}) fails: {error}", flush=True)
        MPI.COMM_WORLD.Abort(1)


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--timeout", type=float, default=60, help="seconds after which a call that hangs gives up")
options = parser.parse_args()
RANK = MPI.COMM_WORLD.Get_rank()
COMMUNICATORS = {}
for number, (name, members) in enumerate(GROUPS.items()):
    if RANK in members:
        COMMUNICATORS[name] = MPI.COMM_WORLD.Create_group(MPI.COMM_WORLD.Get_group().Incl(members), number)
BUFFERS, issued = [], []
for number, (what, group, elements, dtype, peer, waits) in enumerate(CALLS[RANK]):
    if STOPS.get(RANK) == number:
        stop(LOUD.get(RANK, False))
    for before in waits:
        wait(before)
    print(f"rank {RANK}: {what} on {group}, {elements} x {dtype}", flush=True)
    issued.append(issue(what, group, elements, dtype, peer))
if STOPS.get(RANK) == len(CALLS[RANK]):
    stop(LOUD.get(RANK, False))
for number in range(len(issued)):
    wait(number)
print(f"rank {RANK}: done", flush=True)
)py";

constexpr const char* kStop = R"py(

def stop(loud):
    """A rank that is no more: loudly, its process ends; silently, it stands still."""
    print(f"rank {RANK}: stops", flush=True)
    if loud:
        os._exit(1)
    time.sleep(10 * options.timeout)
    os._exit(1)

)py";

const char* type_name(traces::DType type, ScriptFor) {
  switch (type) {
    case traces::DType::kInt8:
      return "int8";
    case traces::DType::kUint8:
    case traces::DType::kBool:
    case traces::DType::kFp8:
      return "uint8";
    case traces::DType::kInt32:
    case traces::DType::kUint32:
      return "int32";
    case traces::DType::kInt64:
    case traces::DType::kUint64:
      return "int64";
    case traces::DType::kFp16:
      return "float16";
    case traces::DType::kBf16:
      return "bfloat16";
    case traces::DType::kFp64:
      return "float64";
    default:
      return "float32";
  }
}

// Text inside a Python string or comment.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 32 ? ' ' : c;
  }
  return out + "\"";
}

class ScriptWriter {
 public:
  ScriptWriter(const Job& job, ScriptFor what) : job_(job), what_(what) {
    for (const JobRank& rank : job.ranks) numbers_.emplace(rank.rank, numbers_.size());
    for (const JobRank& rank : job.ranks) {
      for (const JobOp& op : rank.ops) {
        if (op.call) name_of_group(op.call->communicator);
      }
    }
  }

  [[nodiscard]] std::string groups() const {
    std::string out = "GROUPS = {\n";
    for (const auto& [communicator, name] : groups_) {
      out += fmt::format("    {}: [{}],\n", quoted(name), fmt::join(members(communicator), ", "));
    }
    return out + "}\n";
  }

  [[nodiscard]] std::string calls() const {
    std::string out =
        "# By rank: operation, group, elements, type, root or peer, and which of the rank's calls "
        "it waits for first.\n"
        "CALLS = {\n";
    for (const JobRank& rank : job_.ranks) {
      out += fmt::format("    {}: [\n", numbers_.at(rank.rank));
      std::map<uint32_t, uint32_t> number;  // of operations that are calls
      std::map<uint32_t, uint32_t> last;    // by lane: operation
      for (uint32_t i = 0; i < rank.ops.size(); ++i) {
        const JobOp& op = rank.ops[i];
        if (!op.call) continue;
        std::set<uint32_t> waits;
        for (const uint32_t before : op.after) {
          if (number.count(before) > 0) waits.insert(number.at(before));
        }
        if (const auto at = last.find(op.lane); at != last.end()) {
          const bool grouped =
              op.call->group != 0 && rank.ops[at->second].call->group == op.call->group;
          if (rank.ops[at->second].call->communicator != op.call->communicator && !grouped) {
            waits.insert(number.at(at->second));
          }
        }
        last[op.lane] = i;
        number.emplace(i, static_cast<uint32_t>(number.size()));
        out += "        " + call(op, waits) + ",\n";
      }
      out += "    ],\n";
    }
    return out + "}\n";
  }

 private:
  void name_of_group(uint32_t communicator) {
    if (groups_.count(communicator) > 0) return;
    const std::string& id = job_.communicators[communicator].id;
    std::vector<uint32_t> ranks = members(communicator);
    std::string name = id.substr(0, id.find('/')) + "/" + format_ranks(ranks);
    while (!names_.insert(name).second) name += "'";
    groups_.emplace(communicator, name);
  }

  [[nodiscard]] std::vector<uint32_t> members(uint32_t communicator) const {
    std::vector<uint32_t> out;
    for (const traces::RankId member : job_.communicators[communicator].members) {
      if (const auto at = numbers_.find(member); at != numbers_.end()) out.push_back(at->second);
    }
    return out;
  }

  [[nodiscard]] std::string call(const JobOp& op, const std::set<uint32_t>& waits) const {
    const traces::Call& made = *op.call;
    const int64_t element = std::max(1, traces::size_of(made.dtype));
    std::string peer = "None";
    if (op.peer && numbers_.count(*op.peer) > 0) peer = std::to_string(numbers_.at(*op.peer));
    // Of one member's own part: what it sends; a receiver's what it gets. The parts of a reduce-scatter are of its output.
    const bool by_output = made.collective == traces::Collective::kRecv ||
                           made.collective == traces::Collective::kReduceScatter ||
                           made.collective == traces::Collective::kScatter;
    Bytes bytes = by_output ? made.bytes_out : made.bytes_in;
    if (made.collective == traces::Collective::kAllToAll) {
      bytes /= std::max<Bytes>(1, static_cast<Bytes>(members(made.communicator).size()));
    }
    return fmt::format("({}, {}, {}, {}, {}, [{}])", quoted(name_of(made.collective)),
                       quoted(groups_.at(made.communicator)), std::max<int64_t>(0, bytes) / element,
                       quoted(type_name(made.dtype, what_)), peer, fmt::join(waits, ", "));
  }

  const Job& job_;
  ScriptFor what_;
  std::map<traces::RankId, uint32_t> numbers_;
  std::map<uint32_t, std::string> groups_;  // by communicator
  std::set<std::string> names_;
};

std::string head_of(const Job& job, ScriptFor what, const ScriptText& text) {
  const size_t ranks = job.ranks.size();
  std::string doc = fmt::format("Calls of {} rank{} in the pattern of {}.\n", ranks,
                                ranks == 1 ? "" : "s", text.name);
  if (!text.expected.empty()) doc += "\nExpected: " + text.expected + "\n";
  doc += what == ScriptFor::kTorch
             ? fmt::format(
                   "\n    torchrun --nproc_per_node {} repro.py                  # gloo, on CPU\n"
                   "    torchrun --nproc_per_node {} repro.py --backend nccl   # on GPUs\n",
                   ranks, ranks)
             : fmt::format("\n    mpirun -n {} python3 repro.py\n", ranks);
  for (char& c : doc) {
    if (c == '\\' || c == '"') c = '\'';
  }
  const char* imports =
      what == ScriptFor::kTorch
          ? "import argparse\nimport datetime\nimport os\nimport sys\nimport time\n\n"
            "import torch\nimport torch.distributed as dist\n"
          : "import argparse\nimport array\nimport os\nimport time\n\n"
            "from mpi4py import MPI\n";
  return "#!/usr/bin/env python3\n\"\"\"" + doc + "\"\"\"\n" + imports + "\n";
}

}  // namespace

Result<std::vector<Nanos>> call_ends(Job job, size_t position, Reporter& reporter) {
  std::erase_if(job.patches, [](const pb::Patch& patch) { return patch.has_stop_rank(); });
  RH_TRY(const Scenario scenario, assemble(render(job)));
  RH_TRY(const std::string text,
         in_child(
             [&](Reporter& inner) -> Result<std::string> {
               std::string out;
               auto done = replay_here(scenario, inner, [&](const Evidence& evidence) {
                 if (position >= evidence.program.ranks.size()) return;
                 for (const traces::OpId op : evidence.program.ranks[position].call_op) {
                   const Nanos end = evidence.replayed.end[position][op];
                   if (end >= 0) out += std::to_string(end) + ' ';
                 }
               });
               if (!done) return tl::unexpected(done.error());
               return out;
             },
             reporter));
  std::vector<Nanos> out;
  for (const std::string& word : split(text, ' ')) {
    Nanos when = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), when);
    if (error == std::errc() && !word.empty()) out.push_back(when);
  }
  std::sort(out.begin(), out.end());
  return out;
}

Result<std::string> script_of(const Job& job, ScriptFor what, const ScriptText& text,
                              Reporter& reporter) {
  size_t calls = 0;
  for (const JobRank& rank : job.ranks) {
    calls += static_cast<size_t>(std::count_if(
        rank.ops.begin(), rank.ops.end(), [](const JobOp& op) { return op.call.has_value(); }));
  }
  if (calls == 0) {
    return fail(Code::kBadInput, "the job makes no calls", text.name,
                "a failure before the first call has nothing to be repeated by a script");
  }
  if (calls > kMostCalls) {
    return fail(Code::kLimit,
                fmt::format("the job makes {} calls, too many for a script to be read", calls),
                text.name, "make it smaller first: rehearse shrink");
  }
  std::map<uint32_t, size_t> stops;
  std::map<uint32_t, bool> loud;
  for (const pb::Patch& patch : job.patches) {
    if (!patch.has_stop_rank()) continue;
    for (uint32_t r = 0; r < job.ranks.size(); ++r) {
      const pb::StopRank& stop = patch.stop_rank();
      if (stop.has_rank() ? job.ranks[r].rank != stop.rank()
                          : job.ranks[r].seat.node() != stop.node()) {
        continue;
      }
      RH_TRY(const std::vector<Nanos> ends, call_ends(job, r, reporter));
      stops[r] =
          static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), stop.at()) - ends.begin());
      loud[r] = !stop.silent();
    }
  }
  std::string never;
  for (uint32_t r = 0; r < job.ranks.size(); ++r) {
    if (job.ranks[r].seat.absent()) never += fmt::format("{}, ", r);
  }
  const ScriptWriter writer(job, what);
  std::string out = head_of(job, what, text) + writer.groups() + writer.calls();
  out +=
      "# Ranks that stop after so many calls, and whether they end or stand still; ranks that are "
      "never started.\n";
  out += "STOPS = {";
  for (const auto& [r, after] : stops) out += fmt::format("{}: {}, ", r, after);
  out += "}\nLOUD = {";
  for (const auto& [r, is_loud] : loud)
    out += fmt::format("{}: {}, ", r, is_loud ? "True" : "False");
  out += "}\n";
  if (what == ScriptFor::kTorch) {
    out += never.empty() ? "NEVER_STARTED = ()\n" : fmt::format("NEVER_STARTED = ({})\n", never);
  }
  return out + kStop + (what == ScriptFor::kTorch ? kTorchBody + 1 : kMpiBody);
}

}  // namespace rehearse::sim
