// SPDX-License-Identifier: Apache-2.0
// What every importer has to bear: inputs that end anywhere, and inputs with flipped bits.
#pragma once

#include <string>

namespace rehearse::traces::samples {

// Cuts `bytes` at every hundredth: each cut is refused with a place and a fix, or, when cut files are
// accepted, gives a part of the operations and the finding "file-cut". `unmarked`: cuts between two
// records may pass as whole (formats without an end).
enum class Ends { kMarked, kUnmarked };
void check_cuts(const std::string& bytes, const std::string& name, Ends ends = Ends::kUnmarked);

// Flips one bit of every byte, one at a time (of at most 1000 bytes spread over the input), and takes
// what comes: a trace that can be built into a program and (a sample of them) written, or an error with a text.
void check_flips(const std::string& bytes, const std::string& name);

}  // namespace rehearse::traces::samples
