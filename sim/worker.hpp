// SPDX-License-Identifier: Apache-2.0
// Runs a function in a forked child and brings its bytes back. SimGrid keeps one engine per process
// and global settings; a child per run keeps them apart, and a run that dies takes nothing with it.
#pragma once

#include <functional>
#include <string>

#include "base/error.hpp"
#include "base/reporter.hpp"

namespace rehearse::sim {

// Progress and notes of the child reach `reporter`. A child that dies by a signal is an error that
// says which; Ctrl-C ends it.
[[nodiscard]] Result<std::string> in_child(
    const std::function<Result<std::string>(Reporter&)>& work, Reporter& reporter);

}  // namespace rehearse::sim
