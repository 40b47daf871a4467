// SPDX-License-Identifier: Apache-2.0
#include "faults/diagnose/printed.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <set>

namespace rehearse::faults {
namespace {

constexpr size_t kLongestLine = 4096;
// What lines of trouble have in common, in the words of Python, PyTorch, Horovod, TensorFlow, ssh, mpirun and the kernel.
constexpr std::string_view kSigns[] = {
    "Error",           "Exception",         "StopIteration",      "Timeout",
    "timeout",         "timed out",         "Timed out",          "Watchdog",
    "failed",          "not successful",    "Segmentation",       "Killed",
    "killed",          "Stalled",           "Unavailable",        "ssh: ",
    "ORTE was unable", "CUDA error",        "fallen off the bus", "NCCL error",
    "NCCL WARN",       "IBV_WC_",           "can't pickle",       "cannot serialize",
    "is stalled",      "remainder of ranks"};

std::optional<uint32_t> take_number(std::string_view& text) {
  uint32_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(read.ptr - text.data()));
  return value;
}

// Takes what a launcher put before the line, and whose line it is.
std::optional<uint32_t> take_prefix(std::string_view& line) {
  std::string_view rest = line;
  const auto take = [&](std::string_view text) {
    if (!rest.starts_with(text)) return false;
    rest.remove_prefix(text.size());
    return true;
  };
  std::optional<uint32_t> rank;
  if (take("[rank")) {
    rank = take_number(rest);
    if (!rank || !take("]:")) return std::nullopt;
  } else if (take("[")) {
    if (!take_number(rest) || !take(",")) return std::nullopt;
    rank = take_number(rest);
    if (!rank || !take("]<std")) return std::nullopt;
    const size_t end = rest.find(">:");
    if (end == rest.npos) return std::nullopt;
    rest.remove_prefix(end + 2);
  } else {
    rank = take_number(rest);
    if (!rank || !take(": ")) return std::nullopt;
  }
  line = rest;
  return rank;
}

}  // namespace

bool is_trouble(std::string_view line) {
  return std::any_of(std::begin(kSigns), std::end(kSigns),
                     [&](std::string_view sign) { return line.find(sign) != line.npos; });
}

bool is_of_nccl(std::string_view line) {
  const size_t at = line.find("] NCCL ");
  return at != line.npos || line.starts_with("NCCL version");
}

std::vector<PrintedError> printed_errors(std::string_view log, std::optional<uint32_t> rank) {
  std::vector<PrintedError> out;
  std::set<std::pair<uint32_t, std::string>> seen;
  for (size_t at = 0; at < log.size() && out.size() < kMostPrinted;) {
    const size_t end = std::min(log.find('\n', at), log.size());
    std::string_view line = log.substr(at, std::min(end - at, kLongestLine));
    at = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!is_trouble(line) || is_of_nccl(line)) continue;
    const auto said = take_prefix(line);
    const auto whose = said ? said : rank;
    const size_t first = line.find_first_not_of(' ');
    if (first == line.npos) continue;
    PrintedError error{whose, std::string(line.substr(first))};
    if (seen.emplace(whose.value_or(UINT32_MAX), error.text).second)
      out.push_back(std::move(error));
  }
  return out;
}

}  // namespace rehearse::faults
