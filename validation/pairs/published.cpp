// SPDX-License-Identifier: Apache-2.0
#include "validation/pairs/published.hpp"

#include <nlohmann/json.hpp>
#include <regex>

#include "base/atomic_file.hpp"
#include "base/text.hpp"

namespace rehearse::validation {
namespace {

constexpr uint64_t kLongestFile = 16 << 20;
constexpr size_t kLongestText = 2000;  // of a field; longer ones are cut

// A number, or the time of an object that states one.
std::optional<double> figure_of(const nlohmann::json& value) {
  if (value.is_number()) return value.get<double>();
  if (value.is_object() && value.contains("t_us") && value["t_us"].is_number()) {
    return value["t_us"].get<double>();
  }
  return {};
}

// "about 2x": the ratio is all that was reported.
std::optional<double> times_of(const nlohmann::json& value) {
  static const std::regex times(R"(([0-9]+(?:\.[0-9]+)?)\s*x\b)");
  std::smatch found;
  if (!value.is_string()) return {};
  const auto text = value.get<std::string>();
  if (text.size() > 100 || !std::regex_search(text, found, times)) return {};
  return std::stod(found[1].str());
}

// "ms", "time us (busbw)", "s/step".
bool names_time(const std::string& metric) {
  static const std::regex time(R"(^(?:time|latency|duration)\b|^(?:us|ms|s|sec|seconds)\b)");
  return std::regex_search(lower_case(metric), time);
}

}  // namespace

std::optional<double> PublishedPair::gain() const {
  if (!before || !after || !(*before > 0) || !(*after > 0)) return {};
  return is_time ? *before / *after : *after / *before;
}

Result<std::vector<PublishedPair>> read_published_pairs(const std::filesystem::path& file) {
  RH_TRY(const std::string text_of_file, read_file(file, kLongestFile));
  const auto all = nlohmann::json::parse(text_of_file, nullptr, false);
  if (!all.is_array()) {
    return fail(Code::kBadInput, "it is no JSON list of pairs", file.string(),
                "an object per pair: id, before, after, metric, hardware, cause, fix");
  }
  std::vector<PublishedPair> out;
  for (const auto& pair : all) {
    if (!pair.is_object()) continue;
    const auto text = [&](const char* key) {
      return pair.contains(key) && pair[key].is_string()
                 ? pair[key].get<std::string>().substr(0, kLongestText)
                 : "";
    };
    PublishedPair one;
    one.id = text("id");
    if (one.id.empty()) continue;
    one.fault_class = text("fault_class");
    one.symptom = text("symptom");
    one.cause = text("cause");
    one.fix = text("fix");
    one.metric = text("metric");
    one.hardware = text("hardware");
    one.nccl = text("nccl");
    one.source = text("source");
    one.is_time = names_time(one.metric);
    if (pair.contains("before")) one.before = figure_of(pair["before"]);
    if (pair.contains("after")) {
      one.after = figure_of(pair["after"]);
      if (const auto times = times_of(pair["after"]); times && one.before) {
        one.after = one.is_time ? *one.before / *times : *one.before * *times;
      }
    }
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace rehearse::validation
