// SPDX-License-Identifier: Apache-2.0
#include "faults/lessons/placement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/random.hpp"
#include "faults/lessons/lab_catalogue.hpp"

namespace rehearse::faults {
namespace {

constexpr uint32_t kMostValues = 100'000;

// "3-7" as 3 4 5 6 7; any other word as it is.
Result<void> add_values(const std::string& word, std::vector<std::string>& out) {
  uint32_t first = 0, last = 0;
  const char* end = word.data() + word.size();
  auto read = std::from_chars(word.data(), end, first);
  const bool range = read.ec == std::errc() && read.ptr != end && *read.ptr == '-';
  if (range) read = std::from_chars(read.ptr + 1, end, last);
  if (!range || read.ec != std::errc() || read.ptr != end) {
    out.push_back(word);
    return {};
  }
  if (last < first || last - first > kMostValues) {
    return bad_input(fmt::format("'{}' is not a range", word), {}, "write first-last, 0-7");
  }
  for (uint32_t value = first; value <= last; ++value) out.push_back(std::to_string(value));
  return {};
}

}  // namespace

Result<std::vector<std::string>> values_of(const pb::Placing& placing, const pb::Fault& fault) {
  const auto parameter =
      std::find_if(fault.parameters().begin(), fault.parameters().end(),
                   [&](const pb::Parameter& each) { return each.name() == placing.parameter(); });
  if (parameter == fault.parameters().end()) {
    return bad_input(fmt::format("{} has no parameter '{}'", fault.id(), placing.parameter()), {},
                     fmt::format("`rehearse faults show {}` lists them", fault.id()));
  }
  std::vector<std::string> values;
  for (const std::string& word : placing.values()) {
    if (auto added = add_values(word, values); !added) return tl::unexpected(added.error());
  }
  for (const std::string& value : values) {
    if (auto good = parse_value(*parameter, value); !good) return tl::unexpected(good.error());
  }
  if (values.empty()) return bad_input("there is no value to choose from", {}, "add `values`");
  return values;
}

Result<FaultUse> place_fault(const LabEntry& lab, uint64_t seed) {
  FaultUse use = with_defaults(lab.fault);
  uint64_t key = 0;
  for (const pb::Placing& placing : lab.lab.place()) {
    RH_TRY(const std::vector<std::string> values, values_of(placing, use.fault()));
    Random random(seed, lab.lab.id() + "/" + placing.parameter(), key++);
    RH_TRY(use, with_value(std::move(use), placing.parameter(),
                           values[static_cast<size_t>(random.below(values.size()))]));
  }
  return use;
}

}  // namespace rehearse::faults
