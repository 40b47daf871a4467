// SPDX-License-Identifier: Apache-2.0
// Makes traces from a model and a parallel layout (traces/proto/synth.proto). The program is that
// of a real framework (framework.hpp), durations come from the GPU's data sheet (costs.hpp), and
// the recorded times are those of a joint run of all ranks in which every collective ends at the
// same moment on all its members (timeline.hpp). Same options, same bytes, for any number of
// threads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "base/reporter.hpp"
#include "platforms/proto/platform.pb.h"
#include "traces/model/trace.hpp"
#include "traces/proto/synth.pb.h"

namespace rehearse::synth {

struct Efficiencies;  // shares of the data sheet, costs.hpp

// Ranks of a generated job; beyond it complete() gives kLimit.
constexpr uint64_t kMaxRanks = 65'536;

// The options with every default filled in, checked for consistency: kBadInput (kUsage without a
// model) with the field in `where` and a value that would work in `fix`.
[[nodiscard]] Result<pb::Synth> complete(const pb::Synth& options);

// What a generated trace is kept under: other options, another data sheet or another generator, another name.
[[nodiscard]] std::string recipe_id(const pb::Synth& complete, const pb::Gpu& gpu);

// Gives the ranks of a job one at a time, in any order.
class Generator {
 public:
  // `options` from complete(); `gpu` is the data sheet of options.gpu(), expanded.
  static Result<Generator> create(const pb::Synth& options, const pb::Gpu& gpu);
  // The same with other shares than the assumed ones.
  static Result<Generator> create(const pb::Synth& options, const pb::Gpu& gpu,
                                  const Efficiencies& efficiencies);
  Generator(Generator&&) noexcept;
  Generator& operator=(Generator&&) noexcept;
  ~Generator();

  [[nodiscard]] pb::TraceHeader header() const;
  [[nodiscard]] uint32_t ranks() const;
  [[nodiscard]] const std::vector<traces::Communicator>& communicators() const;
  // Every name any rank uses; complete after create().
  [[nodiscard]] const traces::Strings& strings() const;
  // Safe to call from several threads; rank < ranks().
  [[nodiscard]] traces::RankTrace rank(traces::RankId rank) const;

 private:
  struct Impl;
  explicit Generator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// A whole trace in memory; completes the options first.
[[nodiscard]] Result<traces::Trace> synthesize(const pb::Synth& options, const pb::Gpu& gpu);
[[nodiscard]] Result<traces::Trace> synthesize(const pb::Synth& options, const pb::Gpu& gpu,
                                               const Efficiencies& efficiencies);

struct WriteOptions {
  Overwrite overwrite = Overwrite::kRefuse;
  int threads = 2;
};

// The same into a .rtrace file, a few ranks in memory at a time. Returns how many operations it
// has.
[[nodiscard]] Result<uint64_t> synthesize_to(const std::filesystem::path& path,
                                             const pb::Synth& options, const pb::Gpu& gpu,
                                             const WriteOptions& write, Reporter& reporter);

}  // namespace rehearse::synth
