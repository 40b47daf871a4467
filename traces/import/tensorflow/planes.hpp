// SPDX-License-Identifier: Apache-2.0
// What the names of planes and lines of a profile mean. Pure functions.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/units.hpp"
#include "traces/model/trace.hpp"

namespace rehearse::traces::tensorflow {

enum class PlaneKind { kDevice, kHost, kEnvironment, kOther };
struct Plane {
  PlaneKind kind = PlaneKind::kOther;
  int64_t device = 0;  // of kDevice: "/device:GPU:3" is 3
  bool tpu = false;
};
[[nodiscard]] Plane plane_of(std::string_view name);

// Lines of a device.
enum class LineUse {
  kStream,   // work
  kSteps,    // one event per step
  kDerived,  // tells work of other lines again
};
struct DeviceLine {
  LineUse use = LineUse::kDerived;
  int64_t stream = 0;
};
[[nodiscard]] DeviceLine device_line_of(const Plane& plane, std::string_view name, int64_t id);

// "kind_src:device kind_dst:host size:4096 ..." or "kind:H2D size:4096 ...", else the name "MemcpyD2H".
[[nodiscard]] Copy copy_of(std::string_view name, std::string_view details);
[[nodiscard]] bool is_copy(std::string_view name);
[[nodiscard]] bool is_memset(std::string_view name);

}  // namespace rehearse::traces::tensorflow
