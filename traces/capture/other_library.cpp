// SPDX-License-Identifier: Apache-2.0
#include "traces/capture/other_library.hpp"

#include <dlfcn.h>
#include <link.h>

#include <array>
#include <cstddef>

#include "traces/capture/recorder.hpp"

int rehearse_capture_recording() { return rehearse::capture::Recorder::instance().is_on() ? 1 : 0; }

namespace rehearse::capture {
namespace {

struct Objects {
  std::array<const char*, 1024> names{};
  size_t count = 0;
};

int note_object(dl_phdr_info* info, size_t, void* data) {
  auto& objects = *static_cast<Objects*>(data);
  if (info->dlpi_name != nullptr && *info->dlpi_name == '/' &&
      objects.count < objects.names.size()) {
    objects.names[objects.count++] = info->dlpi_name;
  }
  return 0;
}

}  // namespace

bool another_library_records() {
  Objects objects;
  ::dl_iterate_phdr(note_object, &objects);
  bool found = false;
  for (size_t i = 0; i < objects.count && !found; ++i) {
    void* const object = ::dlopen(objects.names[i], RTLD_LAZY | RTLD_NOLOAD);
    if (object == nullptr) continue;
    using Recording = int (*)();
    const auto recording =
        reinterpret_cast<Recording>(::dlsym(object, "rehearse_capture_recording"));
    found = recording != nullptr && recording != &rehearse_capture_recording && recording() != 0;
    ::dlclose(object);
  }
  return found;
}

}  // namespace rehearse::capture
