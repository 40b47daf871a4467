// SPDX-License-Identifier: Apache-2.0
// The table of formats that can be imported. Adding one: a folder traces/import/<format>/ with a
// sniffer and a reader, and one line in format.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "traces/import/part.hpp"
#include "traces/import/source.hpp"

namespace rehearse::traces {

enum class Holds {
  kRecording,  // what ran, with times
  kEvidence,   // what a run left otherwise, as data
  kPrinted,    // evidence among other lines that a program prints
  kLayout,     // how large a job is, and nothing that ran
};

struct Format {
  std::string_view name;   // "kineto"
  std::string_view title;  // "PyTorch profiler (Kineto) JSON"
  Holds holds = Holds::kRecording;
  // Looks at the first bytes (uncompressed, up to 256 KiB) only; the first format that says yes
  // reads.
  bool (*sniff)(std::string_view head) = nullptr;
  Result<FilePart> (*read)(Source& source, ReadContext& context) = nullptr;
};

// In the order in which they are asked: the more particular first.
[[nodiscard]] std::span<const Format> formats();
// The format whose sniffer accepts `head`, or null.
[[nodiscard]] const Format* format_of(std::string_view head);
// What unknown content looks like, for messages: "a JSON object with the keys a, b", "text", ...
[[nodiscard]] std::string describe(std::string_view head);

}  // namespace rehearse::traces
