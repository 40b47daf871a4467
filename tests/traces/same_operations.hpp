// SPDX-License-Identifier: Apache-2.0
// Compares two tellings of the same run.
#pragma once

#include <string>

#include "traces/model/trace.hpp"

namespace rehearse::traces::samples {

// "" when ranks, lanes (in any order, by kind and id), steps, communicators (by id) and operations agree in
// every field; else the first difference in words.
[[nodiscard]] std::string difference(const Trace& a, const Trace& b);

// Takes the memory events out.
void drop_memory(Operations& ops);

}  // namespace rehearse::traces::samples
