// SPDX-License-Identifier: Apache-2.0
#include "sim/bringup/job.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>

namespace rehearse::sim::bringup {

std::string as_timedelta(Nanos time) {
  const Nanos s = time / kSeconds;
  return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

SystemError error_of(Answer answer) {
  switch (answer) {
    case Answer::kArrives:
    case Answer::kRefused:
      return {ECONNREFUSED, "Connection refused"};
    case Answer::kNoRoute:
      return {EHOSTUNREACH, "No route to host"};
    case Answer::kUnreachable:
      return {ENETUNREACH, "Network is unreachable"};
    case Answer::kDropped:
      return {ETIMEDOUT, "Connection timed out"};
  }
  return {};
}

const char* word_of(Answer answer) {
  switch (answer) {
    case Answer::kArrives:
    case Answer::kRefused:
      return "refused";
    case Answer::kNoRoute:
      return "no-route";
    case Answer::kUnreachable:
      return "unreachable";
    case Answer::kDropped:
      return "dropped";
  }
  return "";
}

std::string bus_number(const pb::Gpu& gpu, uint32_t index) {
  std::string digits;
  for (const char c : gpu.bus_id()) {
    if (c != ':' && c != '.') digits += c;
  }
  const size_t first = digits.find_first_not_of('0');
  return first == digits.npos ? fmt::format("{:x}000", index + 1) : digits.substr(first);
}

uint32_t ephemeral_port(const pb::Node& node, size_t index) {
  uint32_t first = 32768, last = 60999;
  const std::string& range = node.ephemeral_ports();
  if (const size_t dash = range.find('-'); dash != range.npos) {
    std::from_chars(range.data(), range.data() + dash, first);
    std::from_chars(range.data() + dash + 1, range.data() + range.size(), last);
  }
  if (last < first) return first;
  // Spread as the kernel does, but the same in every run.
  return first + static_cast<uint32_t>((index * 7919 + 4711) % (last - first + 1));
}

}  // namespace rehearse::sim::bringup
