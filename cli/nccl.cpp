// SPDX-License-Identifier: Apache-2.0
// `rehearse nccl explain`: what NCCL would do with a collective on a machine, and why.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/atomic_file.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "cli/context.hpp"
#include "cli/explanation.hpp"
#include "cli/platform_option.hpp"
#include "cli/verbs.hpp"
#include "sim/nccl/variables.hpp"

namespace rehearse::cli {
namespace {
namespace po = boost::program_options;

constexpr Bytes kMostBytes = Bytes{1} << 46;
constexpr int64_t kMostRanks = 65536;
constexpr size_t kMostSizes = 200;
constexpr uint64_t kMostFile = 16u << 20;

Result<Bytes> size(const std::string& text, const char* option) {
  auto bytes = parse_bytes(text);
  if (!bytes) return fail(Code::kUsage, bytes.error().what, option, bytes.error().fix);
  if (*bytes < 0 || *bytes > kMostBytes) {
    return fail(Code::kUsage, fmt::format("{} is out of range", text), option, "0 to 64 TiB");
  }
  return *bytes;
}

// "1KiB:1GiB" or "1KiB:1GiB:4": from, to, factor.
Result<std::vector<Bytes>> sizes(const std::string& text) {
  const auto parts = split(text, ':');
  if (parts.size() < 2 || parts.size() > 3) {
    return fail(Code::kUsage, "cannot read " + in_quotes(text), "--sweep",
                "write FROM:TO or FROM:TO:FACTOR, as in 1KiB:1GiB:4");
  }
  RH_TRY(const Bytes from, size(parts[0], "--sweep"));
  RH_TRY(const Bytes to, size(parts[1], "--sweep"));
  double factor = 2;
  if (parts.size() == 3) {
    const auto [end, error] =
        std::from_chars(parts[2].data(), parts[2].data() + parts[2].size(), factor);
    if (error != std::errc() || end != parts[2].data() + parts[2].size()) factor = 0;
  }
  if (from < 1 || to < from || !(factor > 1) || factor > 1e6) {
    return fail(Code::kUsage, in_quotes(text) + " is no range of sizes", "--sweep",
                "from at least one byte up, by a factor above 1");
  }
  std::vector<Bytes> out;
  for (double at = static_cast<double>(from);
       at <= static_cast<double>(to) * (1 + 1e-9) && out.size() <= kMostSizes; at *= factor) {
    const auto bytes = static_cast<Bytes>(std::llround(at));
    if (out.empty() || bytes > out.back()) out.push_back(bytes);
  }
  if (out.size() > kMostSizes) {
    return fail(Code::kUsage, "more than 200 sizes", "--sweep", "use a larger factor");
  }
  return out;
}

Result<sim::TestbedOptions> testbed_options(const Context& context) {
  sim::TestbedOptions options;
  const auto read = [&](const char* name, uint32_t& into) -> Result<void> {
    if (!context.has(name)) return {};
    auto value = context.number(name, 1, kMostRanks);
    if (!value) return tl::unexpected(value.error());
    into = static_cast<uint32_t>(*value);
    return {};
  };
  if (auto ok = read("ranks", options.ranks); !ok) return tl::unexpected(ok.error());
  if (auto ok = read("nodes", options.nodes); !ok) return tl::unexpected(ok.error());
  if (auto ok = read("gpus-per-node", options.gpus_per_node); !ok) {
    return tl::unexpected(ok.error());
  }
  if (context.has("nccl-version")) options.nccl_version = context.get<std::string>("nccl-version");
  if (context.has("env")) {
    for (const std::string& text : context.get<std::vector<std::string>>("env")) {
      RH_TRY(sim::RankSetting setting, sim::parse_setting(text));
      options.settings.push_back(std::move(setting));
    }
  }
  if (context.has("file")) {
    for (const std::string& text : context.get<std::vector<std::string>>("file")) {
      const size_t equals = text.find('=');
      pb::LaunchFile& file = options.files.emplace_back();
      file.set_path(text.substr(0, equals));
      RH_TRY(*file.mutable_text(),
             read_file(equals == text.npos ? text : text.substr(equals + 1), kMostFile));
    }
  }
  return options;
}

// --set: paths of the platform, of as many nodes as are asked for.
Result<void> read_assignments(const Context& context, sim::TestbedOptions& options) {
  if (!context.has("set")) return {};
  for (const std::string& text : context.get<std::vector<std::string>>("set")) {
    const size_t equals = text.find('=');
    if (equals == text.npos) {
      return fail(Code::kUsage, "cannot read " + in_quotes(text), "--set",
                  "write PATH=VALUE, as in 'nodes[*].nics[0].down=true'");
    }
    options.assigned.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return {};
}

// What is asked: a machine, how it is set, and a call.
struct Asked {
  pb::Platform platform;
  std::string name;  // of the machine
  sim::TestbedOptions options;
  sim::Question question;
};

// The setting as it was given: "ranks[8,9].NCCL_ALGO=Ring".
std::string text_of(const sim::RankSetting& setting) {
  const std::string text = fmt::format("{}={}", setting.name, setting.value);
  return setting.ranks.empty() ? text
                               : fmt::format("ranks[{}].{}", fmt::join(setting.ranks, ","), text);
}

// Where a setting counts that changes nothing of a call.
std::string counts_where(const sim::RankSetting& setting) {
  const sim::Variable* known = sim::find_variable(setting.name);
  if (known == nullptr) return "this call on this machine is the same without it";
  const auto elsewhere = [&](const char* when) {
    return fmt::format("the call is the same without it; it counts {} ({})", when, known->note);
  };
  switch (known->acts) {
    case sim::Acts::kBringUp:
      return elsewhere("when a job starts, as `run` shows");
    case sim::Acts::kOutage:
      return elsewhere("when a port is lost, as `run` shows");
    case sim::Acts::kObserved:
      return elsewhere("for what is seen of a run");
    case sim::Acts::kDecision:
    case sim::Acts::kTransport:
    case sim::Acts::kTime:
    case sim::Acts::kNowhere:
      break;
  }
  return fmt::format("this call on this machine is the same without it ({})", known->note);
}

// Findings of the model name what NCCL does not know and what is in no model.
bool is_told_anyway(const sim::RankSetting& setting) {
  const sim::Variable* known = sim::find_variable(setting.name);
  return known == nullptr ? setting.name.starts_with("NCCL_") : known->acts == sim::Acts::kNowhere;
}

// Tells of all settings without which the explanation would be the same, so that nobody takes a variable that this
// machine or this call has no use for as one that was tried.
void tell_idle_settings(const Asked& asked, sim::Explanation& explained) {
  const auto without_findings = [](sim::Explanation e) {
    e.findings = {};
    return explanation_json(e, {}).dump();
  };
  const std::string with_all = without_findings(explained);
  std::vector<std::string> idle, why;
  for (size_t i = 0; i < asked.options.settings.size(); ++i) {
    sim::TestbedOptions fewer = asked.options;
    const sim::RankSetting left_out = fewer.settings[i];
    if (is_told_anyway(left_out)) continue;
    fewer.settings.erase(fewer.settings.begin() + static_cast<ptrdiff_t>(i));
    const auto testbed = sim::Testbed::make(asked.platform, fewer, asked.name);
    if (!testbed) continue;  // refused without it: it matters
    const auto world = (*testbed)->world();
    if (!world) continue;
    const auto other = sim::explain((*testbed)->context(), *world, asked.question);
    if (!other || without_findings(*other) != with_all) continue;
    idle.push_back(text_of(left_out));
    why.push_back(counts_where(left_out));
  }
  if (idle.empty()) return;
  if (idle.size() > 1) {
    for (size_t i = 0; i < idle.size(); ++i) why[i] = idle[i] + ": " + why[i];
  }
  explained.findings.add("setting-without-effect", Severity::kWarning,
                         fmt::format("{}", fmt::join(idle, " ")),
                         fmt::format("{}", fmt::join(why, "; ")), idle.size());
}

Result<int> run_nccl(Context& context) {
  if (!context.has("platform")) {
    return fail(Code::kUsage, "--platform is missing: the machine", "nccl explain",
                "rehearse platforms lists them");
  }
  Asked asked;
  asked.name = context.get<std::string>("platform");
  RH_TRY(asked.platform, read_platform(asked.name));
  RH_TRY(asked.options, testbed_options(context));
  if (auto done = read_assignments(context, asked.options); !done)
    return tl::unexpected(done.error());
  sim::Question& question = asked.question;
  question.collective = context.get<std::string>("collective");
  question.type = context.get<std::string>("type");
  question.reduction = context.get<std::string>("op");
  RH_TRY(question.bytes, size(context.get<std::string>("bytes"), "--bytes"));
  if (context.has("gpus-per-thread")) {
    RH_TRY(question.gpus_per_thread, context.number("gpus-per-thread", 1, kMostRanks));
  }
  RH_TRY(const auto testbed, sim::Testbed::make(asked.platform, asked.options, asked.name));
  RH_TRY(const sim::CommunicatorModel world, testbed->world());

  ExplanationFrame frame;
  frame.platform = asked.name;
  frame.every_channel = context.verbose();
  RH_TRY(frame.accuracy, validation::accuracy_of(asked.name, question.bytes));
  if (!context.has("sweep")) {
    RH_TRY(sim::Explanation explained, sim::explain(testbed->context(), world, question));
    tell_idle_settings(asked, explained);
    if (!context.json()) context.show(explained.findings);
    return exit_code(context.json() ? context.print(explanation_json(explained, frame))
                                    : context.print(std::string_view(
                                          explanation_text(explained, frame, context.terminal()))));
  }
  RH_TRY(const std::vector<Bytes> steps, sizes(context.get<std::string>("sweep")));
  std::vector<sim::Explanation> rows;
  for (const Bytes bytes : steps) {
    question.bytes = bytes;
    RH_TRY(sim::Explanation row, sim::explain(testbed->context(), world, question));
    rows.push_back(std::move(row));
  }
  RH_TRY(frame.accuracy, validation::accuracy_of(asked.name, steps.back()));
  if (!context.json()) context.show(rows.front().findings);
  return exit_code(context.json() ? context.print(sweep_json(rows, frame))
                                  : context.print(std::string_view(
                                        sweep_text(rows, frame, context.terminal()))));
}

}  // namespace

Verb nccl_verb() {
  Verb verb;
  verb.name = "nccl";
  verb.summary = "explain what NCCL would do with a collective, and how long it takes";
  verb.details =
      "`explain` shows the whole reasoning: latency and bandwidth of every algorithm and protocol "
      "as NCCL computes them, what it chooses and why, what is off and by which variable or rule, "
      "rings and trees, transports, channels, threads, chunks and steps, where the time goes, the "
      "links that bound it, algbw and busbw as nccl-tests define them. NCCL's own microseconds "
      "choose; the time is predicted by our own model, with a band where such hardware was "
      "measured.\n\n"
      "Variables are set for all ranks with --env NCCL_ALGO=Ring, for some of them as in a "
      "scenario: --env 'ranks[8-15].env.NCCL_IB_DISABLE=1'. --bytes is the size column of "
      "nccl-tests: the larger buffer of one rank.";
  verb.positionals = {{"ACTION", "what to do", Count::kOne, {"explain"}}};
  verb.options = [](po::options_description& options) {
    auto add = options.add_options();
    add("platform", po::value<std::string>()->value_name("P"),
        "machine: a catalogue id or a YAML file");
    add("ranks", po::value<std::string>()->value_name("N"), "ranks; without it all GPUs");
    add("nodes", po::value<std::string>()->value_name("N"), "nodes; without it as few as needed");
    add("gpus-per-node", po::value<std::string>()->value_name("N"), "use the first N of each node");
    add("gpus-per-thread", po::value<std::string>()->value_name("N"),
        "a stream of calls as nccl-tests -g N makes them: one thread launches on N GPUs in turn");
    add("collective", po::value<std::string>()->default_value("all_reduce")->value_name("C"),
        "all_reduce, all_gather, reduce_scatter, broadcast, reduce, all_to_all, sendrecv, gather, "
        "scatter, barrier");
    add("bytes", po::value<std::string>()->default_value("64MiB")->value_name("SIZE"),
        "size of the call");
    add("sweep", po::value<std::string>()->value_name("FROM:TO[:FACTOR]"),
        "a table over sizes instead of one call");
    add("type", po::value<std::string>()->default_value("float32")->value_name("T"),
        "type of the elements");
    add("op", po::value<std::string>()->default_value("sum")->value_name("OP"),
        "sum, avg, min, max or prod");
    add("nccl-version", po::value<std::string>()->value_name("V"), "2.12 to 2.30; default 2.28.9");
    add("env", po::value<std::vector<std::string>>()->value_name("NAME=VALUE"),
        "a variable of all ranks, or ranks[8-15].env.NAME=VALUE; repeatable");
    add("set", po::value<std::vector<std::string>>()->value_name("PATH=VALUE"),
        "a figure of the expanded platform, as 'nodes[*].nics[0].down=true'; repeatable");
    add("file", po::value<std::vector<std::string>>()->value_name("PATH[=FILE]"),
        "a file that NCCL_TOPO_FILE or NCCL_GRAPH_FILE names by PATH; its text "
        "is in FILE; "
        "repeatable");
  };
  verb.writes = Writes::kFile;
  verb.examples = {
      {"./rehearse nccl explain --platform dgx-h100 --ranks 8 --collective all_reduce --bytes "
       "64MiB",
       "one call on one node"},
      {"./rehearse nccl explain --platform dgx-a100 --ranks 32 --bytes 1GiB --env NCCL_ALGO=Tree",
       "four nodes, made to use trees"},
      {"./rehearse nccl explain --platform dgx-a100 --ranks 16 --env "
       "'ranks[8-15].env.NCCL_IB_DISABLE=1'",
       "what one node without InfiniBand does to all"},
      {"./rehearse nccl explain --platform rtx4090-8 --ranks 4 --collective all_gather --sweep "
       "1KiB:1GiB:8",
       "a table over sizes, as nccl-tests prints it"}};
  verb.run = run_nccl;
  return verb;
}

}  // namespace rehearse::cli
