// SPDX-License-Identifier: Apache-2.0
// Processes of the timeline that a session of TensorFlow 1 (tf.compat.v1) gives: Timeline(step_stats)
// .generate_chrome_trace_format(). Each is a device or a part of one, named "... Compute"; streams of a GPU are
// processes of their own, and "stream:all" tells their kernels again. Pure functions.
#pragma once

#include <cstdint>
#include <string_view>

namespace rehearse::traces::tensorflow {

enum class SessionUse {
  kNone,        // no process of such a timeline, or its tensors and allocators
  kHost,        // operations as the session started them
  kStream,      // work of one stream
  kAllKernels,  // kernels of all streams of a GPU
  kAllCopies,   // copies of all streams of a GPU
};
struct SessionProcess {
  SessionUse use = SessionUse::kNone;
  int64_t device = 0;
  int64_t stream = 0;  // of kStream
};
// "/device:GPU:0/stream:all Compute", "/gpu:0/context#0/stream#1:Kernel Compute", "/job:a/task:0/device:CPU:0 Compute".
[[nodiscard]] SessionProcess session_process_of(std::string_view name);
// Whether the first bytes of a document hold one.
[[nodiscard]] bool is_session_timeline(std::string_view head);

}  // namespace rehearse::traces::tensorflow
