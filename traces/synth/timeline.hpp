// SPDX-License-Identifier: Apache-2.0
// When every collective and message of a job ends, the same for all its members. The scripts of all
// ranks are played together once without keeping their operations:
//
//   collective  end = latest arrival of a member + nominal transfer time
//   message     end = max(sender ready, receiver ready, end of the message before) + transfer time
//
// Only these ends are kept. A rank is then played alone against them (Recorder), which gives the
// times it had in the joint run exactly, so ranks can be made in any order and on any number of
// threads. Cost: one pass over all instructions; memory: 8 bytes per collective and a few kB per
// rank.
#pragma once

#include <optional>
#include <vector>

#include "base/error.hpp"
#include "traces/synth/layout.hpp"
#include "traces/synth/player.hpp"
#include "traces/synth/script.hpp"

namespace rehearse::synth {

class Timeline {
 public:
  // kInternal when the scripts wait for each other in a circle. `script_of[rank]` indexes
  // `scripts`.
  static Result<Timeline> create(const Layout& layout, const pb::Synth& options,
                                 const std::vector<Script>& scripts,
                                 const std::vector<uint32_t>& script_of);
  // Board of a Player: every end is known. Thread-safe.
  void post(const Place&, Nanos) const {}
  [[nodiscard]] std::optional<Nanos> end(const Place& place) const;

 private:
  friend class JointBoard;
  explicit Timeline(const Layout& layout) : layout_(&layout) {}
  // Messages go around the stages: two channels per stage, to the next and to the previous one.
  [[nodiscard]] size_t channel(const Place& place) const;

  const Layout* layout_;
  std::vector<std::vector<Nanos>> ends_;      // by communicator, sequence
  std::vector<std::vector<Nanos>> messages_;  // by channel, message
};

}  // namespace rehearse::synth
