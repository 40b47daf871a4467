// SPDX-License-Identifier: Apache-2.0
// Processes that each take themselves for the whole job: their communicators have one member, so that collectives
// end at once and nothing is sent.
#pragma once

#include "traces/program/program.hpp"

namespace rehearse::sim {

void separate_ranks(traces::Program& program);

}  // namespace rehearse::sim
