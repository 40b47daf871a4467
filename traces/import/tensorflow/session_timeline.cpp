// SPDX-License-Identifier: Apache-2.0
#include "traces/import/tensorflow/session_timeline.hpp"

#include <charconv>
#include <optional>

namespace rehearse::traces::tensorflow {
namespace {

constexpr std::string_view kSuffix = " Compute";

// The number behind the last `key`.
std::optional<int64_t> number_behind(std::string_view text, std::string_view key) {
  const size_t at = text.rfind(key);
  if (at == std::string_view::npos) return std::nullopt;
  int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + at + key.size(), end, value);
  if (error != std::errc() || value < 0 || value >= (1 << 16)) return std::nullopt;
  return value;
}

}  // namespace

SessionProcess session_process_of(std::string_view name) {
  if (!name.ends_with(kSuffix) || !name.starts_with('/')) return {};
  name.remove_suffix(kSuffix.size());
  auto device = number_behind(name, "device:GPU:");
  if (!device) device = number_behind(name, "gpu:");
  const size_t last = name.rfind('/');
  const std::string_view part = name.substr(last + 1);
  if (device && part.starts_with("stream:all")) return {SessionUse::kAllKernels, *device, 0};
  if (device && part == "memcpy") return {SessionUse::kAllCopies, *device, 0};
  if (device && part.starts_with("stream")) {
    auto stream = number_behind(part, "stream:");
    if (!stream) stream = number_behind(part, "stream#");
    if (stream) return {SessionUse::kStream, *device, *stream};
  }
  const bool whole_device = part.starts_with("device:") || part.starts_with("host:") ||
                            part.starts_with("gpu:") || part.starts_with("cpu:");
  return whole_device ? SessionProcess{SessionUse::kHost, 0, 0} : SessionProcess{};
}

bool is_session_timeline(std::string_view head) {
  // "name": "/job:localhost/replica:0/task:0/device:CPU:0 Compute"
  for (size_t at = head.find(" Compute\""); at != std::string_view::npos;
       at = head.find(" Compute\"", at + 1)) {
    const size_t quote = head.rfind('"', at);
    if (quote == std::string_view::npos || at - quote > 200) continue;
    const std::string_view name = head.substr(quote + 1, at + kSuffix.size() - quote - 1);
    if (session_process_of(name).use != SessionUse::kNone) return true;
  }
  return false;
}

}  // namespace rehearse::traces::tensorflow
