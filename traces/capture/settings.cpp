// SPDX-License-Identifier: Apache-2.0
#include "traces/capture/settings.hpp"

#include <cstdlib>
#include <cstring>
#include <string_view>

#include "traces/capture/messages.hpp"

namespace rehearse::capture {
namespace {

void path(const char* variable, char (&out)[kLongestPath]) {
  const char* const value = std::getenv(variable);
  if (value == nullptr || *value == 0) return;
  if (std::strlen(value) >= kLongestPath) {
    complain("%s is too long and is left out", variable);
    return;
  }
  std::strcpy(out, value);
}

// `out` keeps its value when the variable is not set or makes no sense.
void number(const char* variable, int64_t least, int64_t most, int64_t& out) {
  const char* const value = std::getenv(variable);
  if (value == nullptr || *value == 0) return;
  char* end = nullptr;
  const long long read = std::strtoll(value, &end, 10);
  if (*end != 0 || read < least || read > most) {
    complain("%s=%.40s is not a number from %lld to %lld and is left out", variable, value,
             static_cast<long long>(least), static_cast<long long>(most));
    return;
  }
  out = read;
}

void extra(std::string_view word, Settings& s) {
  for (const Extra& e : kExtras) {
    if (e.word != word) continue;
    s.nccl_events |= e.nccl_events;
    s.memory = s.memory || e.kind == Extra::Kind::kMemory;
    s.graphs = s.graphs || e.kind == Extra::Kind::kGraphs;
    return;
  }
  if (word.empty()) return;
  complain("REHEARSE_CAPTURE_WITH: '%.*s' is not known and is left out",
           static_cast<int>(word.size() > 40 ? 40 : word.size()), word.data());
}

}  // namespace

void read_settings(Settings& s) {
  path("REHEARSE_CAPTURE_FOLDER", s.folder);
  path("REHEARSE_CAPTURE_CUPTI", s.cupti);
  int64_t mib = static_cast<int64_t>(s.buffer_bytes >> 20), ms = s.flush_ns / 1'000'000;
  number("REHEARSE_CAPTURE_BUFFER_MIB", 1, 1 << 16, mib);
  number("REHEARSE_CAPTURE_FLUSH_MS", 1, 3'600'000, ms);
  s.buffer_bytes = static_cast<size_t>(mib) << 20;
  s.flush_ns = ms * 1'000'000;
  if (const char* with = std::getenv("REHEARSE_CAPTURE_WITH"); with != nullptr) {
    for (std::string_view rest = with; !rest.empty();) {
      const std::string_view word = rest.substr(0, rest.find(','));
      extra(word, s);
      rest.remove_prefix(word.size() < rest.size() ? word.size() + 1 : rest.size());
    }
  }
  if (const char* steps = std::getenv("REHEARSE_CAPTURE_STEPS"); steps != nullptr && *steps != 0) {
    if (!read_stretch(steps, s.stretch)) {
      complain("REHEARSE_CAPTURE_STEPS=%.40s is neither 3-5 nor 10s-20s: all is recorded", steps);
    }
  }
}

}  // namespace rehearse::capture
