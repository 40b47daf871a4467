// SPDX-License-Identifier: Apache-2.0
#include "cli/study/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "base/document.hpp"
#include "base/install.hpp"
#include "base/text.hpp"

namespace rehearse::cli {
namespace {

namespace fs = std::filesystem;
constexpr const char* kStudies = "sim/studies";
constexpr size_t kMostValues = 100'000;  // of one axis

std::string last_word(const std::string& path) {
  const size_t dot = path.rfind('.');
  return dot == std::string::npos ? path : path.substr(dot + 1);
}

// A number with its unit, without needless digits.
std::string written_number(double value, const std::string& unit) {
  return fmt::format("{:.12g}{}", value, unit);
}

Result<std::vector<std::string>> values_of(const pb::Range& range, const std::string& where) {
  char* end = nullptr;
  const double from = std::strtod(range.from().c_str(), &end);
  const std::string unit = end;
  const bool begins = end != range.from().c_str() && std::isfinite(from);
  const double to = std::strtod(range.to().c_str(), &end);
  if (!begins || end == range.to().c_str() || !std::isfinite(to) || unit != end) {
    return bad_input("a range goes from a number to a number of the same unit", where,
                     "for example range: {from: 25Gbps, to: 400Gbps, factor: 2}");
  }
  const bool grows =
      range.has_step() ? range.step() > 0 : range.has_factor() && range.factor() > 1 && from > 0;
  if (range.has_step() == range.has_factor() || !grows || to < from) {
    return bad_input("a range needs a step above 0 or a factor above 1, and `to` not below `from`",
                     where, "for example range: {from: 1, to: 64, factor: 2}");
  }
  std::vector<std::string> out;
  for (size_t i = 0; i < kMostValues; ++i) {
    const double n = static_cast<double>(i);
    const double value =
        range.has_step() ? from + n * range.step() : from * std::pow(range.factor(), n);
    if (value > to * (1 + 1e-12) + 1e-12) return out;
    out.push_back(written_number(value, unit));
  }
  return fail(Code::kLimit, fmt::format("a range of more than {} values", kMostValues), where,
              "take larger steps");
}

// Do the values rise or fall as numbers?
bool is_ordered(const std::vector<std::string>& values) {
  std::vector<double> numbers;
  for (const std::string& value : values) {
    char* end = nullptr;
    numbers.push_back(std::strtod(value.c_str(), &end));
    if (end == value.c_str()) return false;
  }
  return std::ranges::is_sorted(numbers) || std::ranges::is_sorted(numbers, std::greater<>());
}

Result<StudyAxis> read_axis(const pb::Axis& axis, const std::string& where);

Result<StudyAxis> zipped(const pb::Axis& axis, const std::string& where) {
  StudyAxis out;
  for (int i = 0; i < axis.zip_size(); ++i) {
    const std::string place = fmt::format("{}.zip[{}]", where, i);
    RH_TRY(StudyAxis part, read_axis(axis.zip(i), place));
    if (i == 0) {
      out = std::move(part);
      continue;
    }
    if (part.values.size() != out.values.size()) {
      return bad_input(fmt::format("{} values beside {}", part.values.size(), out.values.size()),
                       place, "axes that move together have as many values");
    }
    out.columns.insert(out.columns.end(), part.columns.begin(), part.columns.end());
    for (size_t v = 0; v < part.values.size(); ++v) {
      AxisValue& into = out.values[v];
      const AxisValue& more = part.values[v];
      into.labels.insert(into.labels.end(), more.labels.begin(), more.labels.end());
      into.written.insert(into.written.end(), more.written.begin(), more.written.end());
      into.edits.insert(into.edits.end(), more.edits.begin(), more.edits.end());
    }
  }
  return out;
}

Result<StudyAxis> assigned(const pb::Axis& axis, const std::string& where) {
  StudyAxis out;
  std::vector<std::string> values(axis.values().begin(), axis.values().end());
  if (axis.has_range()) {
    if (!values.empty()) return bad_input("values and a range", where, "leave out one of them");
    RH_TRY(values, values_of(axis.range(), where));
  }
  const bool written = !axis.written().empty();
  const std::string& path = written ? axis.written() : axis.set();
  out.columns = {last_word(path)};
  out.ordered = is_ordered(values);
  for (const std::string& value : values) {
    AxisValue one{{value}, {}, {}};
    if (written) {
      one.written.emplace_back(path, value);
    } else {
      one.edits.emplace_back("set", fmt::format("{}={}", path, value));
    }
    out.values.push_back(std::move(one));
  }
  return out;
}

Result<StudyAxis> read_axis(const pb::Axis& axis, const std::string& where) {
  const int kinds = (axis.set().empty() ? 0 : 1) + (axis.written().empty() ? 0 : 1) +
                    (axis.seed().empty() ? 0 : 1) + (axis.patches().empty() ? 0 : 1) +
                    (axis.faults().empty() ? 0 : 1) + (axis.zip().empty() ? 0 : 1);
  if (kinds != 1) {
    return bad_input(kinds == 0 ? "the axis changes nothing" : "the axis changes several things",
                     where, "give one of set, written, seed, patches, faults, zip");
  }
  StudyAxis out;
  if (!axis.zip().empty()) {
    RH_TRY(out, zipped(axis, where));
  } else if (!axis.set().empty() || !axis.written().empty()) {
    RH_TRY(out, assigned(axis, where));
  } else if (!axis.seed().empty()) {
    out.columns = {"seed"};
    for (const uint64_t seed : axis.seed()) {
      out.values.push_back({{std::to_string(seed)}, {}, {{"set", fmt::format("seed={}", seed)}}});
    }
  } else if (!axis.faults().empty()) {
    out.columns = {"fault"};
    for (const std::string& fault : axis.faults()) {
      AxisValue value{{fault}, {}, {}};
      if (fault != "none") value.edits.emplace_back("fault", fault);
      out.values.push_back(std::move(value));
    }
  } else {
    out.columns = {"patch"};
    for (const pb::LabelledPatch& patch : axis.patches()) {
      AxisValue value{{patch.label()}, {}, {}};
      for (const pb::Patch& one : patch.patches()) {
        value.edits.emplace_back("patch", write_document(one));
      }
      out.values.push_back(std::move(value));
    }
  }
  if (out.values.empty()) return bad_input("the axis has no values", where, "add `values`");
  if (!axis.name().empty()) {
    if (out.columns.size() > 1) {
      return bad_input("axes that move together have names of their own", where,
                       "name the axes under `zip`");
    }
    out.columns = {axis.name()};
  }
  out.only_if = axis.only_if();
  return out;
}

// The next point in the order of the product; false after the last.
bool next_point(const std::vector<StudyAxis>& axes, std::vector<uint32_t>& at) {
  for (size_t a = axes.size(); a-- > 0;) {
    if (++at[a] < axes[a].values.size()) return true;
    at[a] = 0;
  }
  return false;
}

// Is the point in the study? An axis that does not matter there stands at its first value.
Result<bool> belongs(const Plan& plan, size_t point, const std::vector<std::string>& names,
                     const std::string& where) {
  const std::vector<std::string> values = plan.labels(point);
  for (int i = 0; i < plan.study.only_if_size(); ++i) {
    RH_TRY(const bool yes,
           holds(plan.study.only_if(i), names, values, fmt::format("{}: only_if[{}]", where, i)));
    if (!yes) return false;
  }
  for (size_t a = 0; a < plan.axes.size(); ++a) {
    if (plan.axes[a].only_if.empty() || plan.points[point][a] == 0) continue;
    RH_TRY(const bool matters, holds(plan.axes[a].only_if, names, values,
                                     fmt::format("{}: axes[{}].only_if", where, a)));
    if (!matters) return false;
  }
  return true;
}

}  // namespace

std::vector<std::string> Plan::columns() const {
  std::vector<std::string> out;
  for (const StudyAxis& axis : axes) {
    out.insert(out.end(), axis.columns.begin(), axis.columns.end());
  }
  return out;
}

std::vector<std::string> Plan::labels(size_t point) const {
  std::vector<std::string> out;
  for (size_t a = 0; a < axes.size(); ++a) {
    const auto& labels = axes[a].values[points[point][a]].labels;
    out.insert(out.end(), labels.begin(), labels.end());
  }
  return out;
}

sim::Assignments Plan::written(size_t point) const {
  sim::Assignments out;
  for (size_t a = 0; a < axes.size(); ++a) {
    const auto& more = axes[a].values[points[point][a]].written;
    out.insert(out.end(), more.begin(), more.end());
  }
  return out;
}

std::vector<Edit> Plan::edits(size_t point) const {
  std::vector<Edit> out;
  for (size_t a = 0; a < axes.size(); ++a) {
    const auto& more = axes[a].values[points[point][a]].edits;
    out.insert(out.end(), more.begin(), more.end());
  }
  return out;
}

Result<Plan> plan_of(const pb::Study& study, const std::string& where) {
  Plan plan;
  plan.study = study;
  if (study.base().empty()) {
    return bad_input("the study has no base", where,
                     "add `base:` with a scenario file or the name of a shipped one");
  }
  double size = 1;
  for (int a = 0; a < study.axes_size(); ++a) {
    RH_TRY(StudyAxis axis, read_axis(study.axes(a), fmt::format("{}: axes[{}]", where, a)));
    size *= static_cast<double>(axis.values.size());
    plan.axes.push_back(std::move(axis));
  }
  if (size > static_cast<double>(kMostPoints)) {
    return fail(Code::kLimit,
                fmt::format("the product has {:.3g} points, the limit is {}", size, kMostPoints),
                where, "take fewer values, or let axes move together with zip");
  }
  const std::vector<std::string> names = plan.columns();
  std::set<std::string> seen;
  for (const std::string& name : names) {
    if (!seen.insert(name).second) {
      return bad_input(fmt::format("two axes are called {}", in_quotes(name)), where,
                       "give one of them a `name`");
    }
  }
  std::vector<uint32_t> at(plan.axes.size(), 0);
  do {
    plan.points.push_back(at);
    RH_TRY(const bool in, belongs(plan, plan.points.size() - 1, names, where));
    if (!in) plan.points.pop_back();
  } while (next_point(plan.axes, at));
  if (plan.points.empty()) {
    return bad_input("no point is left by the conditions", where, "look at only_if");
  }
  return plan;
}

Result<std::vector<ShippedStudy>> shipped_studies() {
  RH_TRY(const fs::path folder, shipped(kStudies));
  std::vector<ShippedStudy> list;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(folder, ec)) {
    if (entry.path().extension() != ".yaml") continue;
    pb::Study study;
    if (auto read = read_document_file(entry.path().string(), study); !read) {
      return tl::unexpected(std::move(read).error());
    }
    list.push_back({entry.path().stem().string(), study.description()});
  }
  if (ec) return fail(Code::kIo, "cannot list the studies: " + ec.message(), folder.string());
  std::ranges::sort(list, {}, &ShippedStudy::name);
  return list;
}

Result<Plan> read_plan(const std::string& what) {
  fs::path path = what;
  std::error_code ec;
  if (what.find_first_of("/.") == std::string::npos && !fs::is_regular_file(path, ec)) {
    RH_TRY(const fs::path folder, shipped(kStudies));
    path = folder / (what + ".yaml");
    if (!fs::exists(path, ec)) {
      RH_TRY(const auto known, shipped_studies());
      std::vector<std::string> names;
      for (const ShippedStudy& study : known) names.push_back(study.name);
      const std::string meant = nearest(what, names);
      return fail(Code::kMissingInput, "there is no study of this name", what,
                  meant.empty() ? "`rehearse sweep --list` shows the shipped ones"
                                : "did you mean " + meant + "?");
    }
  }
  pb::Study study;
  if (auto read = read_document_file(path.string(), study); !read) {
    return tl::unexpected(std::move(read).error());
  }
  // A base that is a file stands beside the study.
  const fs::path beside = path.parent_path() / study.base();
  if (study.base().find_first_of("/.") != std::string::npos &&
      fs::path(study.base()).is_relative() && fs::exists(beside, ec)) {
    study.set_base(beside.string());
  }
  if (study.name().empty()) study.set_name(path.stem().string());
  return plan_of(study, path.string());
}

}  // namespace rehearse::cli
