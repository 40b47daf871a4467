// SPDX-License-Identifier: Apache-2.0
#include "faults/fault_use.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <set>

#include "base/document.hpp"
#include "base/rank_ranges.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "faults/placeholders.hpp"
#include "sim/scenario/transforms.hpp"

namespace rehearse::faults {
namespace {

using Kind = pb::Parameter;

bool is_index(const pb::Parameter& parameter) {
  switch (parameter.kind()) {
    case Kind::RANK:
    case Kind::NODE:
    case Kind::GPU:
    case Kind::NIC:
    case Kind::COLLECTIVE:
      return true;
    default:
      return false;
  }
}

template <typename T>
Result<double> plain_number(std::string_view text, const char* wanted) {
  T value{};
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (ec != std::errc() || end != text.data() + text.size() ||
      !std::isfinite(static_cast<double>(value))) {
    return fail(Code::kUsage, fmt::format("'{}' is not {}", text, wanted));
  }
  return static_cast<double>(value);
}

template <typename T>
Result<double> widened(const Result<T>& value) {
  if (!value) return tl::unexpected(value.error());
  return static_cast<double>(*value);
}

// Text goes into a quoted YAML scalar or a path, so what would end or escape it is refused.
Result<double> plain_text(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 ||
        std::string_view("\"'\\{}").find(c) != std::string_view::npos) {
      return fail(Code::kUsage,
                  "quotes, braces, backslashes and control characters are not allowed");
    }
  }
  return 0.0;
}

Result<double> ranks_text(std::string_view text) {
  if (auto ranks = parse_ranks(text); !ranks) return tl::unexpected(ranks.error());
  return 0.0;
}

Result<double> parse_kind(const pb::Parameter& parameter, std::string_view text) {
  switch (parameter.kind()) {
    case Kind::RANK:
    case Kind::NODE:
    case Kind::GPU:
    case Kind::NIC:
    case Kind::COLLECTIVE:
      return plain_number<uint32_t>(text, "a whole number from 0");
    case Kind::COUNT:
    case Kind::PAIR:
    case Kind::STEP:
      return plain_number<int64_t>(text, "a whole number");
    case Kind::NUMBER:
    case Kind::SIZE_RATIO:
      return plain_number<double>(text, "a number");
    case Kind::BYTES:
      return widened(parse_bytes(text));
    case Kind::DURATION:
    case Kind::MOMENT:
      return widened(parse_duration(text));
    case Kind::BANDWIDTH:
      return widened(parse_bandwidth(text));
    case Kind::RANKS:
      return ranks_text(text);
    default:
      return plain_text(text);
  }
}

std::string bounds_of(const pb::Parameter& parameter) {
  if (parameter.at_most().empty()) return fmt::format("at least {}", parameter.at_least());
  if (parameter.at_least().empty()) return fmt::format("at most {}", parameter.at_most());
  return fmt::format("{} to {}", parameter.at_least(), parameter.at_most());
}

const pb::Parameter* find_parameter(const pb::Fault& fault, std::string_view name) {
  for (const pb::Parameter& parameter : fault.parameters()) {
    if (parameter.name() == name) return &parameter;
  }
  return nullptr;
}

Result<void> check_index(const pb::Parameter& parameter, uint32_t value, int size) {
  if (size == 0 || value < static_cast<uint32_t>(size)) return {};
  return fail(Code::kUsage,
              fmt::format("there is no {} {} in this scenario", parameter.name(), value), {},
              fmt::format("choose one from 0 to {}", size - 1));
}

// Ranks, nodes and devices must exist; adds {rank.node} and {rank.gpu}.
Result<void> place(const FaultUse& use, const pb::Scenario& document,
                   std::map<std::string, std::string>& values) {
  const pb::Platform& platform = document.platform();
  const pb::Node* node = nullptr;
  const auto index = [&](const pb::Parameter& p) {
    return static_cast<uint32_t>(std::strtoul(use.values.at(p.name()).c_str(), nullptr, 10));
  };
  for (const pb::Parameter& parameter : use.fault().parameters()) {
    if (parameter.kind() == Kind::NODE) {
      const uint32_t n = index(parameter);
      if (auto ok = check_index(parameter, n, platform.nodes_size()); !ok) return ok;
      if (n < static_cast<uint32_t>(platform.nodes_size()))
        node = &platform.nodes(static_cast<int>(n));
      if (node) values[parameter.name() + ".name"] = node->name();
    } else if (parameter.kind() == Kind::RANK) {
      const uint32_t rank = index(parameter);
      const auto& ranks = document.launch().ranks();
      const auto found = std::find_if(ranks.begin(), ranks.end(),
                                      [&](const pb::RankLaunch& r) { return r.rank() == rank; });
      if (found == ranks.end() && !ranks.empty()) {
        return fail(Code::kUsage,
                    fmt::format("there is no {} {} in this scenario", parameter.name(), rank), {},
                    fmt::format("choose one of {}", format_ranks(ranks_of(document.launch()))));
      }
      if (found == ranks.end()) continue;
      values[parameter.name() + ".node"] = std::to_string(found->node());
      values[parameter.name() + ".gpu"] = std::to_string(found->gpu());
    }
  }
  if (!node) return {};
  for (const pb::Parameter& parameter : use.fault().parameters()) {
    const int size = parameter.kind() == Kind::GPU   ? node->gpus_size()
                     : parameter.kind() == Kind::NIC ? node->nics_size()
                                                     : 0;
    if (auto ok = check_index(parameter, is_index(parameter) ? index(parameter) : 0, size); !ok) {
      return ok;
    }
  }
  return {};
}

Result<pb::FaultEdits> edits_of(const FaultUse& use, const pb::Scenario& document) {
  RH_TRY(const auto values, values_in(use, document));
  return read_edits(*use.entry, values, &document);
}

// A fault of something that the job does not have would change nothing.
Result<void> check_framework(const pb::Fault& fault, const pb::Launch& launch) {
  const auto& known = fault.frameworks();
  if (known.empty() || launch.framework() == pb::FRAMEWORK_UNSPECIFIED) return {};
  const std::string own = lower_case(pb::Framework_Name(launch.framework()));
  if (std::find(known.begin(), known.end(), own) != known.end()) return {};
  return fail(Code::kUsage,
              fmt::format("{} has no effect on a job of {}: it is a fault of {}", fault.id(), own,
                          join_words(std::vector<std::string>(known.begin(), known.end()))),
              fault.id(), fault.elsewhere());
}

}  // namespace

Result<std::map<std::string, std::string>> values_in(const FaultUse& use,
                                                     const pb::Scenario& document) {
  std::map<std::string, std::string> values = use.values;
  if (auto placed = place(use, document, values); !placed) {
    Error error = std::move(placed).error();
    error.where = use.text();
    return tl::unexpected(std::move(error));
  }
  return values;
}

// Any node and GPU for a rank.
std::map<std::string, std::string> stand_ins(const pb::Fault& fault) {
  std::map<std::string, std::string> values;
  for (const pb::Parameter& p : fault.parameters()) {
    values[p.name()] = p.default_();
    if (p.kind() == Kind::RANK) {
      values[p.name() + ".node"] = "0";
      values[p.name() + ".gpu"] = p.default_();
    }
    if (p.kind() == Kind::NODE) values[p.name() + ".name"] = "node";
  }
  return values;
}

Result<std::vector<uint32_t>> parse_ranks(std::string_view text) {
  std::set<uint32_t> out;
  auto ranges = parse_rank_ranges(text);
  if (!ranges) return fail(Code::kUsage, ranges.error().what, {}, ranges.error().fix);
  for (const RankRange& range : *ranges) {
    if (range.last > kMostRanks) {
      return fail(Code::kUsage, fmt::format("{} is not a rank", range.last), {}, "write 0-7,16");
    }
    for (uint32_t rank = range.first; rank <= range.last; ++rank) out.insert(rank);
  }
  return std::vector<uint32_t>(out.begin(), out.end());
}

std::string FaultUse::text() const {
  std::string out = fault().id();
  char separator = ':';
  for (const pb::Parameter& parameter : fault().parameters()) {
    out += fmt::format("{}{}={}", separator, parameter.name(), values.at(parameter.name()));
    separator = ',';
  }
  return out;
}

Result<double> parse_value(const pb::Parameter& parameter, std::string_view text) {
  RH_TRY(const double value, parse_kind(parameter, text));
  if (parameter.choices_size() > 0) {
    const std::vector<std::string> choices(parameter.choices().begin(), parameter.choices().end());
    if (std::find(choices.begin(), choices.end(), text) == choices.end()) {
      return fail(Code::kUsage, fmt::format("'{}' is not one of the choices", text), {},
                  fmt::format("choose {}", join_words(choices)));
    }
  }
  const auto outside = [&](const std::string& bound, double sign) {
    if (bound.empty()) return false;
    const auto limit = parse_kind(parameter, bound);
    return limit && sign * (value - *limit) < 0;
  };
  if (outside(parameter.at_least(), 1) || outside(parameter.at_most(), -1)) {
    return fail(Code::kUsage, fmt::format("'{}' is out of range", text), {},
                fmt::format("choose {}", bounds_of(parameter)));
  }
  return value;
}

std::string format_value(const pb::Parameter& parameter, double value) {
  switch (parameter.kind()) {
    case Kind::BANDWIDTH:
      return fmt::format("{:.0f}B/s", value);
    case Kind::BYTES:
      return fmt::format("{:.0f}B", value);
    case Kind::DURATION:
    case Kind::MOMENT:
      return fmt::format("{:.0f}ns", value);
    case Kind::NUMBER:
    case Kind::SIZE_RATIO:
      return fmt::format("{:.4g}", value);
    default:
      return fmt::format("{:.0f}", value);
  }
}

FaultUse with_defaults(std::shared_ptr<const FaultEntry> entry) {
  FaultUse use{.entry = std::move(entry), .values = {}};
  for (const pb::Parameter& parameter : use.fault().parameters()) {
    use.values[parameter.name()] = parameter.default_();
  }
  return use;
}

Result<FaultUse> with_value(FaultUse use, std::string_view name, std::string value) {
  const pb::Parameter* parameter = find_parameter(use.fault(), name);
  if (!parameter) {
    std::vector<std::string> names;
    for (const pb::Parameter& p : use.fault().parameters()) names.push_back(p.name());
    const std::string near = nearest(name, names);
    return fail(Code::kUsage, fmt::format("{} has no parameter '{}'", use.fault().id(), name), {},
                !near.empty()   ? fmt::format("did you mean '{}'?", near)
                : names.empty() ? "it takes none"
                                : fmt::format("it takes {}", join_words(names)));
  }
  if (auto parsed = parse_value(*parameter, value); !parsed) {
    Error error = std::move(parsed).error();
    error.code = Code::kUsage;
    error.what = fmt::format("{}={}: {}", name, value, error.what);
    return tl::unexpected(std::move(error));
  }
  use.values[std::string(name)] = std::move(value);
  return use;
}

std::vector<uint32_t> ranks_of(const pb::Launch& launch) {
  std::vector<uint32_t> out;
  for (const pb::RankLaunch& rank : launch.ranks()) out.push_back(rank.rank());
  std::sort(out.begin(), out.end());
  return out;
}

Result<FaultUse> parse_fault(std::string_view text, const FaultCatalogue& catalogue,
                             const pb::Scenario& document) {
  RH_TRY(FaultUse use, parse_fault(text, catalogue));
  if (auto ok = check_framework(use.fault(), document.launch()); !ok) {
    return tl::unexpected(std::move(ok).error());
  }
  const std::string given = "," + std::string(text.substr(std::min(text.find(':'), text.size())));
  for (const pb::Parameter& p : use.fault().parameters()) {
    std::vector<uint32_t> there;
    if (p.kind() == Kind::NODE) there.resize(static_cast<size_t>(document.platform().nodes_size()));
    std::iota(there.begin(), there.end(), 0u);
    if (p.kind() == Kind::RANK) there = ranks_of(document.launch());
    const bool stated = given.find(":" + p.name() + "=") != given.npos ||
                        given.find("," + p.name() + "=") != given.npos;
    std::string& value = use.values[p.name()];
    if (stated || there.empty()) continue;
    const auto usual = static_cast<uint32_t>(std::strtoul(value.c_str(), nullptr, 10));
    if (!std::binary_search(there.begin(), there.end(), usual))
      value = std::to_string(there.back());
  }
  return use;
}

Result<FaultUse> parse_fault(std::string_view text, const FaultCatalogue& catalogue) {
  const size_t colon = text.find(':');
  RH_TRY(auto entry, catalogue.find(text.substr(0, colon)));
  FaultUse use = with_defaults(std::move(entry));
  if (colon == text.npos) return use;
  std::vector<std::string> settings;
  for (std::string& part : split(text.substr(colon + 1), ',')) {
    // A list of ranks has commas of its own: "ranks=0-7,16".
    if (part.find('=') == part.npos && !settings.empty()) {
      settings.back() += "," + part;
    } else {
      settings.push_back(std::move(part));
    }
  }
  for (const std::string& part : settings) {
    const size_t equals = part.find('=');
    if (equals == part.npos) {
      return fail(Code::kUsage, fmt::format("'{}' is not key=value", part), std::string(text),
                  "write --fault ID:key=value,key=value");
    }
    auto next = with_value(std::move(use), part.substr(0, equals), part.substr(equals + 1));
    if (!next) {
      Error error = std::move(next).error();
      error.where = std::string(text);
      return tl::unexpected(std::move(error));
    }
    use = std::move(*next);
  }
  return use;
}

Result<pb::FaultEdits> read_edits(const FaultEntry& entry,
                                  const std::map<std::string, std::string>& values,
                                  const pb::Scenario* document) {
  RH_TRY(const std::string text,
         substitute(entry.edits, entry.file, {.values = values, .document = document}));
  pb::FaultEdits edits;
  if (auto read = read_document(text, entry.file, edits); !read)
    return tl::unexpected(read.error());
  return edits;
}

Result<std::vector<pb::Patch>> patches_of(const FaultUse& use, const pb::Scenario& document) {
  RH_TRY(const pb::FaultEdits edits, edits_of(use, document));
  return std::vector<pb::Patch>(edits.patch().begin(), edits.patch().end());
}

Result<std::vector<pb::Fix>> fixes_of(const FaultUse& use, const pb::Scenario& document) {
  RH_TRY(const pb::FaultEdits edits, edits_of(use, document));
  std::vector<pb::Fix> fixes(edits.fixes().begin(), edits.fixes().end());
  for (pb::Fix& fix : fixes) {
    for (pb::Patch& patch : *fix.mutable_patch()) {
      if (!patch.has_undo() || patch.undo().has_rank()) continue;
      const auto* const undone = sim::find_transform(patch.undo().transform());
      for (const pb::Patch& injected : edits.patch()) {
        if (sim::transform_of(injected) == undone) *patch.mutable_undo()->add_like() = injected;
      }
    }
  }
  return fixes;
}

}  // namespace rehearse::faults
