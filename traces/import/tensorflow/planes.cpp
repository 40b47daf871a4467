// SPDX-License-Identifier: Apache-2.0
#include "traces/import/tensorflow/planes.hpp"

#include <array>
#include <charconv>
#include <optional>
#include <string>

namespace rehearse::traces::tensorflow {
namespace {

std::optional<int64_t> number_at(std::string_view text, size_t from) {
  int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data() + from, text.data() + text.size(), value);
  if (error != std::errc() || value < 0) return std::nullopt;
  return value;
}

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

CopyDirection direction_in(std::string_view text) {
  struct Word {
    std::string_view part;
    CopyDirection direction;
  };
  static constexpr std::array<Word, 12> kWords = {
      {{"H2D", CopyDirection::kHostToDevice},
       {"HtoD", CopyDirection::kHostToDevice},
       {"HostToDevice", CopyDirection::kHostToDevice},
       {"D2H", CopyDirection::kDeviceToHost},
       {"DtoH", CopyDirection::kDeviceToHost},
       {"DeviceToHost", CopyDirection::kDeviceToHost},
       {"D2D", CopyDirection::kDeviceToDevice},
       {"DtoD", CopyDirection::kDeviceToDevice},
       {"DeviceToDevice", CopyDirection::kDeviceToDevice},
       {"P2P", CopyDirection::kPeer},
       {"PtoP", CopyDirection::kPeer},
       {"Peer", CopyDirection::kPeer}}};
  for (const Word& w : kWords) {
    if (has(text, w.part)) return w.direction;
  }
  const bool from_device = has(text, "kind_src:device"), to_device = has(text, "kind_dst:device");
  const bool told = has(text, "kind_src:") && has(text, "kind_dst:");
  if (!told) return CopyDirection::kUnknown;
  if (from_device) {
    return to_device ? CopyDirection::kDeviceToDevice : CopyDirection::kDeviceToHost;
  }
  return to_device ? CopyDirection::kHostToDevice : CopyDirection::kUnknown;
}

}  // namespace

Plane plane_of(std::string_view name) {
  for (const std::string_view prefix : {"/device:GPU:", "/device:TPU:"}) {
    if (!name.starts_with(prefix)) continue;
    const auto device = number_at(name, prefix.size());
    if (!device || *device >= (1 << 16)) return {};
    return {PlaneKind::kDevice, *device, prefix[8] == 'T'};
  }
  if (name == "Task Environment") return {PlaneKind::kEnvironment, 0, false};
  if (name == "/host:metadata") return {};
  if (name.starts_with("/host:")) return {PlaneKind::kHost, 0, false};
  return {};
}

DeviceLine device_line_of(const Plane& plane, std::string_view name, int64_t id) {
  if (name.starts_with("Stream #")) return {LineUse::kStream, number_at(name, 8).value_or(id)};
  if (name == "Steps") return {LineUse::kSteps, 0};
  // A TPU shows its work nowhere else.
  if (plane.tpu && name == "XLA Ops") return {LineUse::kStream, id};
  return {};
}

Copy copy_of(std::string_view name, std::string_view details) {
  Copy out;
  if (const size_t size = details.find("size:"); size != std::string_view::npos) {
    const auto bytes = number_at(details, size + 5);
    if (bytes && *bytes < (Bytes{1} << 50)) out.bytes = *bytes;
  }
  out.direction = direction_in(name);
  if (out.direction == CopyDirection::kUnknown) out.direction = direction_in(details);
  return out;
}

bool is_copy(std::string_view name) {
  return name.starts_with("Memcpy") || name.starts_with("MEMCPY") ||
         name.starts_with("CopyDeviceTo") || name.starts_with("CopyHostTo");
}

bool is_memset(std::string_view name) {
  return name.starts_with("Memset") || name.starts_with("MEMSET");
}

}  // namespace rehearse::traces::tensorflow
