// SPDX-License-Identifier: Apache-2.0
#include "faults/diagnose/step_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "base/document.hpp"
#include "base/install.hpp"
#include "faults/diagnose/printed.hpp"
#include "sim/bringup/texts.hpp"

namespace rehearse::faults {
namespace {

// std::regex recurses over its input.
constexpr size_t kLongestStepLine = 600;
// A script that says more after its beginning may tell of its steps in its own way.
constexpr uint32_t kFewWords = 10;
// A made-up loss: ln 1000 at first, a twentieth less in each step.
constexpr double kFirstLoss = 6.907755, kLossKept = 0.95;

template <typename Number>
std::optional<Number> number_in(const std::csub_match& group) {
  Number value{};
  if (!group.matched || std::from_chars(group.first, group.second, value).ec != std::errc{}) {
    return std::nullopt;
  }
  return value;
}

// Lines of one shape. Scripts print one in many steps, several processes print the same one, and bars are drawn again: where
// lines have numbers, these count. What came to its end (files that were loaded, an epoch) has no step that is missing.
struct LinesOfShape {
  uint64_t lines = 0;
  std::optional<uint64_t> lowest, highest;
  bool ended = false;

  void add(const StepLines::Read& line) {
    ++lines;
    if (!line.step) return;
    lowest = std::min(lowest.value_or(*line.step), *line.step);
    highest = std::max(highest.value_or(*line.step), *line.step);
    ended = ended || (line.total && *line.step >= *line.total);
  }
  // 0: the shape does not tell.
  [[nodiscard]] uint64_t steps(const pb::StepLine& row) const {
    if (ended) return 0;
    if (highest) return std::max(*highest - *lowest, *highest - *lowest + 1);
    return row.frameworks().empty() ? 0 : lines;
  }
};

double middle(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

}  // namespace

Result<StepLines> StepLines::of(pb::StepLineTable table) {
  StepLines out;
  for (const pb::StepLine& row : table.lines()) {
    const auto refuse = [&](const std::string& what) {
      return fail(Code::kBadInput, fmt::format("line '{}': {}", row.name(), what),
                  "faults/diagnose/step_lines.yaml");
    };
    if (row.sign().empty()) return refuse("it needs a sign");
    try {
      out.patterns_.emplace_back(row.pattern());
    } catch (const std::regex_error& error) {
      return refuse(fmt::format("its pattern is no regular expression: {}", error.what()));
    }
    if (std::max({row.step(), row.total(), row.time(), row.rate()}) >
        out.patterns_.back().mark_count()) {
      return refuse("its pattern has fewer groups than it names");
    }
  }
  out.table_ = std::move(table);
  return out;
}

const Result<StepLines>& StepLines::shipped() {
  static const Result<StepLines> kTable = []() -> Result<StepLines> {
    RH_TRY(const auto path, rehearse::shipped("faults/diagnose/step_lines.yaml"));
    pb::StepLineTable table;
    if (auto read = read_document_file(path.string(), table); !read) {
      return tl::unexpected(read.error());
    }
    return of(std::move(table));
  }();
  return kTable;
}

StepLines::Read StepLines::read(std::string_view line) const {
  line = line.substr(0, kLongestStepLine);
  for (int i = 0; i < table_.lines_size(); ++i) {
    const pb::StepLine& row = table_.lines(i);
    if (line.find(row.sign()) == line.npos) continue;
    std::cmatch found;
    if (!std::regex_search(line.data(), line.data() + line.size(), found,
                           patterns_[static_cast<size_t>(i)])) {
      continue;
    }
    Read out{.row = &row, .step = {}, .total = {}, .seconds = {}};
    if (row.step() > 0) out.step = number_in<uint64_t>(found[row.step()]);
    if (row.total() > 0) out.total = number_in<uint64_t>(found[row.total()]);
    const auto rate = row.rate() > 0 ? number_in<double>(found[row.rate()]) : std::nullopt;
    if (row.time() > 0) out.seconds = number_in<double>(found[row.time()]);
    if (out.seconds && row.unit() > 0) *out.seconds *= row.unit();
    // Of how much it is the rate is not told, so that only its changes say something.
    if (rate && *rate > 0) out.seconds = 1 / *rate;
    return out;
  }
  return {};
}

bool StepLines::begins(std::string_view line) const {
  return std::any_of(table_.lines().begin(), table_.lines().end(), [&](const pb::StepLine& row) {
    return !row.begins().empty() && line.find(row.begins()) != line.npos;
  });
}

const pb::StepLine* StepLines::printed_by(pb::Framework framework) const {
  for (const pb::StepLine& row : table_.lines()) {
    const auto& whose = row.frameworks();
    if (std::find(whose.begin(), whose.end(), framework) != whose.end()) return &row;
  }
  return nullptr;
}

ToldSteps told_steps(std::string_view log, const StepLines& known) {
  ToldSteps out;
  std::map<const pb::StepLine*, LinesOfShape> shapes;  // of which the most is asked, in no order
  uint32_t others = 0;  // since the beginning, that are not read otherwise
  while (!log.empty()) {
    // Bars are drawn over themselves.
    const size_t end = std::min(log.find_first_of("\r\n"), log.size());
    const std::string_view line = log.substr(0, end);
    log.remove_prefix(std::min(end + 1, log.size()));
    if (line.find_first_not_of(" \t") == line.npos || is_of_nccl(line)) continue;
    const StepLines::Read read = known.read(line);
    if (!read.row) {
      if (out.began && !is_trouble(line)) ++others;
      out.began = out.began || known.begins(line);
      continue;
    }
    ++out.lines;
    if (read.seconds) out.seconds.push_back(*read.seconds);
    shapes[read.row].add(read);
  }
  if (out.lines == 0 && out.began && others <= kFewWords) out.steps = 0;
  for (const auto& [row, shape] : shapes) {
    const uint64_t done = shape.steps(*row);
    if (done == 0) continue;
    out.steps =
        static_cast<uint32_t>(std::clamp<uint64_t>(done, out.steps.value_or(0), UINT32_MAX));
  }
  return out;
}

std::optional<double> growth(const ToldSteps& told) {
  const std::vector<double>& all = told.seconds;
  if (all.size() < kStepsForGrowth) return std::nullopt;
  const auto quarter = static_cast<std::ptrdiff_t>(all.size() / 4);
  const double first = middle({all.begin(), all.begin() + quarter});
  const double last = middle({all.end() - quarter, all.end()});
  if (!(first > 0)) return std::nullopt;
  return last / first;
}

ScriptOutput script_output(const sim::Scenario& scenario, uint32_t steps, const StepLines& known) {
  const pb::Scenario& document = scenario.document;
  const pb::StepLine* row = known.printed_by(document.launch().framework());
  if (!row) return {};
  const pb::Synth& synth = document.trace().synth();
  const uint64_t batch = std::max<uint64_t>(1, synth.micro_batch());
  const uint64_t all = std::max<uint64_t>(steps, scenario.trace && !scenario.trace->ranks.empty()
                                                     ? scenario.trace->ranks[0].steps.size()
                                                     : synth.steps());
  const std::string model = synth.model().empty() ? document.name() : synth.model();
  ScriptOutput out{sim::bringup::filled(row->start(), {{"model", model}}) + "\n", {}};
  for (uint64_t step = 0; step < steps; ++step) {
    out.steps +=
        sim::bringup::filled(
            row->text(),
            {{"step", std::to_string(step)},
             {"samples", std::to_string(step * batch)},
             {"all", std::to_string(all * batch)},
             {"percent", std::to_string(100 * step / std::max<uint64_t>(1, all))},
             {"loss", fmt::format("{:.6f}",
                                  kFirstLoss * std::pow(kLossKept, static_cast<double>(step)))}}) +
        "\n";
  }
  return out;
}

}  // namespace rehearse::faults
