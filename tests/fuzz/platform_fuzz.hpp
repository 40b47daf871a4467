// SPDX-License-Identifier: Apache-2.0
// The frame of all targets that import a platform: what an importer accepts must expand or be refused, and
// each refusal says what and where.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/install.hpp"
#include "platforms/import/import.hpp"

namespace rehearse::platforms {

inline const Machines& shipped_machines() {
  static const auto folder = shipped("platforms/catalogue");
  if (!folder) __builtin_trap();
  static const auto machines = Machines::load(PlatformCatalogue(*folder));
  if (!machines) __builtin_trap();
  return *machines;
}

// `import` takes a text and the machines.
template <typename Import>
void import_any_bytes(const uint8_t* data, size_t size, Import import) {
  const Machines& machines = shipped_machines();
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto imported = import(text, machines);
  if (!imported) {
    if (imported.error().what.empty() || imported.error().where.empty()) __builtin_trap();
    return;
  }
  const auto whole = expanded(imported->platform, "fuzz", machines);
  if (!whole && whole.error().what.empty()) __builtin_trap();
}

}  // namespace rehearse::platforms
