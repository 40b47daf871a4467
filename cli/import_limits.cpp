// SPDX-License-Identifier: Apache-2.0
#include "cli/import_limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "base/units.hpp"

namespace rehearse::cli {
namespace {

enum class Counts { kBytes, kThings };

struct Limit {
  const char* name;
  Counts counts;
  uint64_t& (*of)(traces::ImportOptions&);
};

using Options = traces::ImportOptions;
constexpr std::array kLimits = {
    Limit{"bytes", Counts::kBytes, [](Options& o) -> uint64_t& { return o.source.max_bytes; }},
    Limit{"ratio", Counts::kThings, [](Options& o) -> uint64_t& { return o.source.max_ratio; }},
    Limit{"held", Counts::kBytes, [](Options& o) -> uint64_t& { return o.most_held; }},
    Limit{"files", Counts::kThings, [](Options& o) -> uint64_t& { return o.most_files; }},
    Limit{"operations", Counts::kThings, [](Options& o) -> uint64_t& { return o.most_operations; }},
    Limit{"ranks", Counts::kThings, [](Options& o) -> uint64_t& { return o.most_ranks; }},
};

std::vector<std::string> limit_names() {
  std::vector<std::string> out;
  out.reserve(kLimits.size());
  for (const Limit& limit : kLimits) out.emplace_back(limit.name);
  return out;
}

}  // namespace

std::string limits_with_defaults() {
  Options defaults;
  std::vector<std::string> out;
  for (const Limit& limit : kLimits) {
    const uint64_t value = limit.of(defaults);
    std::string text = std::to_string(value);
    if (limit.counts == Counts::kBytes) text = format_bytes(static_cast<Bytes>(value));
    std::erase(text, ' ');  // one word of a command line
    out.push_back(fmt::format("{}={}", limit.name, text));
  }
  return join_words(out);
}

Result<void> set_limits(const std::vector<std::string>& given, traces::ImportOptions& options) {
  for (const std::string& text : given) {
    const size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    const auto limit = std::find_if(kLimits.begin(), kLimits.end(),
                                    [&](const Limit& l) { return name == l.name; });
    if (limit == kLimits.end()) {
      const std::string near = nearest(name, limit_names());
      return fail(Code::kUsage, fmt::format("there is no limit '{}'", name), "--limit",
                  near.empty() ? "limits are " + join_words(limit_names())
                               : fmt::format("did you mean {}?", near));
    }
    // Counts are written as bytes without a unit are: a plain number.
    const std::string value = equals == std::string::npos ? "" : text.substr(equals + 1);
    const bool plain = value.find_first_not_of("0123456789") == std::string::npos;
    const auto parsed = parse_bytes(value);
    if (!parsed || *parsed <= 0 || (limit->counts == Counts::kThings && !plain)) {
      return fail(Code::kUsage, fmt::format("'{}' is no limit", text), "--limit",
                  limit->counts == Counts::kBytes ? fmt::format("write {}=4GiB", name)
                                                  : fmt::format("write {}=1000", name));
    }
    limit->of(options) = static_cast<uint64_t>(*parsed);
  }
  return {};
}

}  // namespace rehearse::cli
