// SPDX-License-Identifier: Apache-2.0
// Two copies of the library in one process (a door opened through one path, a door through another) would
// record everything twice.
#pragma once

namespace rehearse::capture {

// True when another loaded object has our doors and a session open.
[[nodiscard]] bool another_library_records();

}  // namespace rehearse::capture

// Exported, for the other copy: 1 while this one records.
extern "C" [[gnu::visibility("default")]] int rehearse_capture_recording();
