// SPDX-License-Identifier: Apache-2.0
#include "validation/accuracy.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/document.hpp"
#include "base/install.hpp"
#include "validation/proto/nccl_tests.pb.h"

namespace rehearse::validation {
namespace {

constexpr Bytes kMiB = Bytes{1} << 20;
constexpr std::array<Bytes, 4> kFrom = {0, kMiB, 16 * kMiB, 256 * kMiB};
constexpr size_t kFewestRows = 20;  // below, a quantile says nothing

double rounded(double value) { return std::nearbyint(value * 1000) / 1000; }

}  // namespace

Result<std::optional<Accuracy>> accuracy_of(const std::string& platform, Bytes bytes) {
  const auto file = shipped("validation/figures/nccl_tests_accuracy.yaml");
  if (!file) return std::optional<Accuracy>{};
  pb::AccuracyTable table;
  if (auto read = read_document_file(file->string(), table); !read) {
    return tl::unexpected(read.error());
  }
  std::optional<Accuracy> found;
  for (const pb::AccuracyEntry& entry : table.platforms()) {
    if (entry.platform() != platform || entry.from() > bytes) continue;
    found = Accuracy{platform, entry.rows(), entry.low(), entry.high()};
  }
  return found;
}

std::string accuracy_document(const NcclTestReport& report) {
  std::map<std::pair<std::string, Bytes>, std::vector<double>> ratios;
  for (const NcclTestPrediction& p : report.predictions) {
    Bytes from = 0;
    for (const Bytes step : kFrom) {
      if (p.row.bytes >= step) from = step;
    }
    if (p.predicted_us > 0) ratios[{p.platform, from}].push_back(p.row.time_us / p.predicted_us);
  }
  pb::AccuracyTable table;
  for (auto& [key, values] : ratios) {
    if (values.size() < kFewestRows) continue;
    std::sort(values.begin(), values.end());
    pb::AccuracyEntry& entry = *table.add_platforms();
    entry.set_platform(key.first);
    entry.set_from(key.second);
    entry.set_rows(static_cast<uint32_t>(values.size()));
    entry.set_low(rounded(values[(values.size() - 1) / 10]));
    entry.set_high(rounded(values[(values.size() - 1) * 9 / 10]));
  }
  return "# Made by `rehearse validate nccl-tests --save`: measured / predicted time of "
         "collectives,\n"
         "# 10th and 90th percentile of `rows` measured calls of `from` bytes and more.\n" +
         write_document(table);
}

}  // namespace rehearse::validation
