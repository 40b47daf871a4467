// SPDX-License-Identifier: Apache-2.0
// Any bytes into the importer of tables of nvidia-smi; what it accepts must expand or be refused.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/install.hpp"
#include "platforms/import/import.hpp"

using namespace rehearse;
using namespace rehearse::platforms;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto folder = shipped("platforms/catalogue");
  if (!folder) __builtin_trap();
  static const auto machines = Machines::load(PlatformCatalogue(*folder));
  if (!machines) __builtin_trap();
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto imported = import_nvidia_smi({"fuzz", text}, *machines, {});
  if (!imported) {
    if (imported.error().what.empty() || imported.error().where.empty()) __builtin_trap();
    return 0;
  }
  const auto whole = expanded(imported->platform, "fuzz", *machines);
  if (!whole && whole.error().what.empty()) __builtin_trap();
  return 0;
}
