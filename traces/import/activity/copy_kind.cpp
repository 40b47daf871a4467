// SPDX-License-Identifier: Apache-2.0
#include "traces/import/activity/copy_kind.hpp"

#include <array>

namespace rehearse::traces::activity {

CopyKind copy_kind(int64_t kind) {
  static constexpr CopyKind kUnknown{"Memcpy", CopyDirection::kUnknown};
  static constexpr CopyKind kToDevice{"Memcpy HtoD", CopyDirection::kHostToDevice};
  static constexpr CopyKind kToHost{"Memcpy DtoH", CopyDirection::kDeviceToHost};
  static constexpr CopyKind kOnDevice{"Memcpy DtoD", CopyDirection::kDeviceToDevice};
  static constexpr CopyKind kOnHost{"Memcpy HtoH", CopyDirection::kUnknown};
  static constexpr CopyKind kPeer{"Memcpy PtoP", CopyDirection::kPeer};
  static constexpr std::array<CopyKind, 14> kKinds = {
      kUnknown,  kToDevice, kToHost, kToDevice, kToHost,   kOnDevice, kOnDevice,
      kOnDevice, kOnDevice, kOnHost, kPeer,     kToDevice, kToHost,   kOnDevice};
  return kind > 0 && kind < 14 ? kKinds[static_cast<size_t>(kind)] : kUnknown;
}

}  // namespace rehearse::traces::activity
