// SPDX-License-Identifier: Apache-2.0
#include "validation/nccl_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "platforms/model/links.hpp"
#include "sim/nccl/graphs.hpp"
#include "sim/nccl/model.hpp"
#include "sim/nccl/placement.hpp"
#include "sim/nccl/plan.hpp"
#include "validation/nccl_log_job.hpp"

namespace rehearse::validation {
namespace {

// Logs print one decimal of a latency or bandwidth.
constexpr double kPrinted = 0.051;
// From here on bandwidth outweighs latency.
constexpr uint64_t kLarge = uint64_t{1} << 20;

enum Kind : std::size_t { kChannels, kTransports, kRings, kTuning, kChoices, kPredicted };

std::optional<sim::Function> function_of(const std::string& collective) {
  using sim::Function;
  static const std::map<std::string, Function> kNames = {
      {"all_reduce", Function::kAllReduce},
      {"all_gather", Function::kAllGather},
      {"reduce_scatter", Function::kReduceScatter},
      {"broadcast", Function::kBroadcast},
      {"reduce", Function::kReduce}};
  const auto it = kNames.find(collective);
  return it == kNames.end() ? std::nullopt : std::optional(it->second);
}

std::optional<sim::Algorithm> algorithm_of(const std::string& name) {
  for (const sim::Algorithm a : sim::kAlgorithms) {
    if (sim::environment_name_of(a) == name) return a;
  }
  return std::nullopt;
}

std::optional<sim::Protocol> protocol_of(const std::string& name) {
  for (const sim::Protocol p : sim::kProtocols) {
    if (sim::equal_ignoring_case(sim::name_of(p), name)) return p;
  }
  return std::nullopt;
}

class CommunicatorCheck {
 public:
  CommunicatorCheck(const pb::NcclLog& log, const pb::NcclCommunicator& c,
                    const LogComparison& with, LogReport& report)
      : log_(log), c_(c), with_(with), report_(report) {}

  Result<void> run() {
    RH_TRY(const LogJob job, place_log(log_, c_, with_, report_.assumed));
    RH_TRY(const platforms::Links links, platforms::Links::build(job.platform));
    const sim::ModelContext context{job.platform, links, job.launch};
    RH_TRY(const sim::Placement placement, sim::place(context, job.communicator));
    RH_TRY(const sim::Graphs graphs, sim::build_graphs(context, placement, 0));
    RH_TRY(const sim::NcclVersion version, sim::parse_nccl_version(job.launch.nccl_version()));
    RH_TRY(const sim::Settings settings,
           sim::parse_settings(placement.members.front().env, version));
    RH_TRY(const sim::NcclModel model, sim::make_nccl_model(graphs.shape, settings, version));
    if (!model.version.exact) {
      assume(fmt::format("constants of the NCCL version nearest to {}", sim::to_string(version)));
    }
    channels(graphs.shape);
    transports(placement);
    rings(graphs);
    tuning(model);
    choices(model);
    ++report_.communicators;
    return {};
  }

 private:
  void channels(const sim::CommShape& shape);
  void transports(const sim::Placement& placement);
  void rings(const sim::Graphs& graphs);
  void tuning(const sim::NcclModel& model);
  void choices(const sim::NcclModel& model);

  void assume(std::string what) {
    auto& all = report_.assumed;
    if (std::find(all.begin(), all.end(), what) == all.end()) all.push_back(std::move(what));
  }
  void count(Kind kind) { ++report_.checks[kind].n; }
  void differ(Kind kind, std::string what, std::string logged, std::string computed,
              std::string why) {
    ++report_.checks[kind].mismatches;
    report_.differences.push_back(
        {c_.id(), std::move(what), std::move(logged), std::move(computed), std::move(why)});
  }
  void compare_count(std::string what, uint32_t logged, int computed, std::string why) {
    if (logged == 0) return;
    count(kChannels);
    if (static_cast<int>(logged) != computed) {
      differ(kChannels, std::move(what), std::to_string(logged), std::to_string(computed),
             std::move(why));
    }
  }

  const pb::NcclLog& log_;
  const pb::NcclCommunicator& c_;
  const LogComparison& with_;
  LogReport& report_;
  // Cells of the table that differ, for the reasons of choices: "NVLS/Simple" -> text.
  std::map<std::string, std::string> odd_cells_;
};

void CommunicatorCheck::channels(const sim::CommShape& shape) {
  const std::string why = fmt::format(
      "our search finds {} ring channels of {} GB/s (duplicated to {}); see the bandwidths of the "
      "tuning table for the class that NCCL found",
      shape.ring.n_channels, shape.ring.bw_intra, shape.n_channels);
  compare_count("collective channels", c_.coll_channels(), shape.n_channels, why);
  if (c_.coll_channels() == 0) {
    compare_count("channels of rings", c_.ring_channels(), shape.n_channels, why);
  }
  compare_count("NVLS channels", c_.nvls_channels(), shape.nvls_channels,
                shape.nvls_support ? "NCCL's default differs for this version or GPU"
                                   : "the platform has no NVLink multicast");
  for (const pb::NcclSearch& search : c_.searches()) {
    if (search.pattern() != 4) continue;
    count(kRings);
    const bool same = search.channels() == shape.ring.n_channels &&
                      std::abs(search.bw_intra() - shape.ring.bw_intra) < 0.05;
    if (same) continue;
    differ(kRings, "ring search",
           fmt::format("{} x {:.1f} GB/s, {}", search.channels(), search.bw_intra(),
                       search.type_intra()),
           fmt::format("{} x {:.1f} GB/s, {}", shape.ring.n_channels, shape.ring.bw_intra,
                       sim::name_of(shape.ring.type_intra)),
           search.type_intra() == sim::name_of(shape.ring.type_intra)
               ? "the search over the same kind of path ends in another speed class"
               : fmt::format("the GPUs of the log are {} apart, those of the platform {}",
                             search.type_intra(), sim::name_of(shape.ring.type_intra)));
  }
}

void CommunicatorCheck::transports(const sim::Placement& placement) {
  std::map<std::string, std::string> seen;  // class -> first "via"
  for (const pb::NcclConnection& connection : c_.connections()) {
    std::string name = connection.transport();
    if (name == "NET") {
      name += connection.network() == "Socket" ? "/Socket"
              : connection.gpu_direct()        ? "/IB/GDRDMA"
                                               : "/IB";
    }
    seen.emplace(name, connection.via());
  }
  if (seen.empty()) {
    assume("transports: the log shows no connection");
    return;
  }
  const std::string intra = placement.intra == sim::IntraTransport::kHost ? "SHM" : "P2P";
  const std::string inter = sim::name_of(placement.inter);
  bool no_peer = false;
  for (const pb::NcclProcess& process : log_.processes())
    no_peer |= !process.no_peer_access().empty();
  for (const auto& [name, via] : seen) {
    count(kTransports);
    const bool between = name.starts_with("NET");
    const std::string& ours = between ? inter : intra;
    if (name == ours || name == "NVLS" || name == "COLLNET") continue;
    differ(kTransports, between ? "transport between nodes" : "transport inside nodes", via, ours,
           no_peer && !between
               ? "the driver reports no peer access between these GPUs; the platform "
                 "says there is"
               : "the platform offers another way, or the environment forbids it");
  }
}

void CommunicatorCheck::rings(const sim::Graphs& graphs) {
  for (const pb::NcclRing& ring : c_.rings()) {
    if (graphs.rings.empty()) return;
    std::vector<int> ours;
    for (const sim::NodePath& path : graphs.rings[ring.channel() % graphs.rings.size()]) {
      ours.insert(ours.end(), path.members.begin(), path.members.end());
    }
    std::vector<int> theirs(ring.ranks().begin(), ring.ranks().end());
    // NCCL ends the line after 1,000 characters, and others write into the same file.
    if (theirs.size() < ours.size()) {
      assume("rings whose line is cut are left out");
      continue;
    }
    // A ring has no beginning.
    const auto zero = [](std::vector<int>& order) {
      std::rotate(order.begin(), std::find(order.begin(), order.end(), 0), order.end());
    };
    zero(ours);
    zero(theirs);
    count(kRings);
    if (ours == theirs) continue;
    differ(kRings, fmt::format("ring of channel {}", ring.channel()),
           fmt::format("{}", fmt::join(theirs, " ")), fmt::format("{}", fmt::join(ours, " ")),
           "any order has the same bandwidth behind one switch; on other machines the search "
           "prefers near GPUs");
  }
}

void CommunicatorCheck::tuning(const sim::NcclModel& model) {
  for (const pb::NcclTuningCell& cell : c_.tuning()) {
    const auto function = function_of(cell.collective());
    const auto algorithm = algorithm_of(cell.algorithm());
    const auto protocol = protocol_of(cell.protocol());
    if (!function || !algorithm || !protocol) continue;
    const sim::Cost& ours = model.table.at({*function, *algorithm, *protocol});
    const double bandwidth = static_cast<double>(ours.bandwidth_gbps);
    count(kTuning);
    LogCheck& check = report_.checks[kTuning];
    if (cell.bandwidth() > 0) {
      check.errors.push_back(std::abs(bandwidth - cell.bandwidth()) / cell.bandwidth());
    }
    const std::string name = cell.algorithm() + "/" + cell.protocol();
    const bool same_bandwidth = std::abs(bandwidth - cell.bandwidth()) <= kPrinted;
    // Latencies of cells that cannot be chosen decide nothing.
    const bool same_latency =
        cell.bandwidth() == 0 || bandwidth == 0 ||
        std::abs(static_cast<double>(ours.latency_us) - cell.latency_us()) <= kPrinted;
    if (same_bandwidth && same_latency) continue;
    const std::string logged =
        fmt::format("{:.1f} us, {:.1f} GB/s", cell.latency_us(), cell.bandwidth());
    const std::string computed = fmt::format("{:.1f} us, {:.1f} GB/s", ours.latency_us, bandwidth);
    if (!same_bandwidth) odd_cells_[name] = fmt::format("{} logged, {} computed", logged, computed);
    const std::string why =
        bandwidth == 0          ? "our model does not offer it here"
        : cell.bandwidth() == 0 ? "NCCL does not offer it here"
        : !same_bandwidth ? fmt::format("bandwidth class: our graph of it has {} x {:.1f} GB/s",
                                        sim::graph_of(model.shape, *algorithm).n_channels,
                                        sim::graph_of(model.shape, *algorithm).bw_intra)
                          : "latency constants of this version or of this path type";
    differ(kTuning, fmt::format("{} {}", cell.collective(), name), logged, computed, why);
  }
}

void CommunicatorCheck::choices(const sim::NcclModel& model) {
  const int ranks = static_cast<int>(c_.ranks_total());
  for (const pb::NcclChoice& choice : c_.choices()) {
    const auto function =
        function_of(choice.collective().empty() ? "all_reduce" : choice.collective());
    if (!function || choice.algorithm().empty() || choice.bytes() > (uint64_t{1} << 46)) continue;
    if (choice.collective().empty()) assume("all_reduce where the log names no collective");
    sim::Call call;
    call.function = *function;
    call.count = static_cast<int64_t>(choice.bytes()) / 4 / (sim::is_gather(*function) ? ranks : 1);
    if (call.count == 0) continue;
    const auto plan = sim::plan_call(model, call);
    const std::string what = fmt::format("{} of {} bytes", choice.collective(), choice.bytes());
    const std::string logged_name = choice.algorithm() + "/" + choice.protocol();
    count(kChoices);
    if (!plan) {
      differ(kChoices, what, logged_name, "refused", plan.error().what);
      continue;
    }
    const sim::Choice& ours = plan->choice;
    const std::string name = fmt::format(
        "{}/{}", sim::environment_name_of(ours.algorithm),
        ours.protocol == sim::Protocol::kSimple ? "Simple" : sim::name_of(ours.protocol));
    const int logged_channels = choice.channel_hi() - choice.channel_lo() + 1;
    const int channels = plan->split.n_channels();
    const bool says_channels = choice.channel_hi() >= 0;
    const auto text = [&](const std::string& algorithm, int n) {
      return says_channels ? fmt::format("{}, {} channels", algorithm, n) : algorithm;
    };
    if (name != logged_name || (says_channels && channels != logged_channels)) {
      std::string why;
      for (const std::string& cell : {logged_name, name}) {
        const auto odd = odd_cells_.find(cell);
        if (odd != odd_cells_.end())
          why += fmt::format("{}{}: {}", why.empty() ? "" : "; ", cell, odd->second);
      }
      if (why.empty() && name == logged_name) why = "number of channels, see above";
      if (why.empty()) {
        const auto theirs = algorithm_of(choice.algorithm());
        const auto protocol = protocol_of(choice.protocol());
        if (theirs && protocol) {
          why = fmt::format("our table: {:.1f} us against {:.1f} us",
                            sim::predicted_time_us(model, call, *theirs, *protocol), ours.time_us);
          if (choice.has_predicted_us()) {
            why += fmt::format("; NCCL reckoned with {:.1f} us", choice.predicted_us());
          }
        }
      }
      differ(kChoices, what, text(logged_name, logged_channels), text(name, channels), why);
    }
    if (!choice.has_predicted_us() || choice.predicted_us() <= 0) continue;
    const auto theirs = algorithm_of(choice.algorithm());
    const auto protocol = protocol_of(choice.protocol());
    if (!theirs || !protocol) continue;
    const double time =
        static_cast<double>(sim::predicted_time_us(model, call, *theirs, *protocol));
    count(kPredicted);
    const double error = std::abs(time - choice.predicted_us()) / choice.predicted_us();
    report_.checks[kPredicted].errors.push_back(error);
    const auto gbps = [&](double us) { return static_cast<double>(choice.bytes()) / us / 1e3; };
    if (error > 0.01) {
      differ(
          kPredicted, what + ", NCCL's prediction", fmt::format("{:.2f} us", choice.predicted_us()),
          fmt::format("{:.2f} us", time),
          choice.bytes() >= kLarge
              ? fmt::format("bandwidth class: NCCL reckons with {:.2f} GB/s, we with {:.2f} GB/s",
                            gbps(choice.predicted_us()), gbps(time))
              : "latency constants of this version and path");
    }
  }
}

}  // namespace

std::size_t LogReport::mismatches() const {
  std::size_t n = 0;
  for (const LogCheck& check : checks) n += check.mismatches;
  return n;
}

std::size_t LogReport::compared() const {
  std::size_t n = 0;
  for (const LogCheck& check : checks) n += check.n;
  return n;
}

Result<LogReport> check_log(const pb::NcclLog& log, const LogComparison& with) {
  LogReport report;
  report.checks = {
      {"channels", "channels of collectives and of NVLS", 0, 0, {}, "the log names no channels"},
      {"transports", "transports between ranks", 0, 0, {}, "the log shows no connection"},
      {"rings", "rings and their speed class", 0, 0, {}, "the log shows no ring"},
      {"tuning",
       "latency and bandwidth per algorithm and protocol",
       0,
       0,
       {},
       "NCCL_DEBUG_SUBSYS=TUNING was not on"},
      {"choices",
       "algorithm, protocol and channels per size",
       0,
       0,
       {},
       "NCCL_DEBUG_SUBSYS=TUNING was not on"},
      {"predicted", "NCCL's own estimate of the time", 0, 0, {}, "the log prints no estimates"}};
  std::optional<Error> refused;
  for (const pb::NcclCommunicator& c : log.communicators()) {
    if (c.ranks_total() < 2) continue;
    if (auto done = CommunicatorCheck(log, c, with, report).run(); !done && !refused) {
      refused = done.error();
    }
  }
  if (report.communicators == 0) {
    if (refused) return tl::unexpected(*refused);
    return fail(Code::kBadInput, "the log shows no communicator of two ranks or more", "",
                "record from the start with NCCL_DEBUG=INFO");
  }
  if (refused) report.assumed.push_back("left out: " + refused->message());
  for (LogCheck& check : report.checks) std::sort(check.errors.begin(), check.errors.end());
  return report;
}

}  // namespace rehearse::validation
