// SPDX-License-Identifier: Apache-2.0
// How a library tells that it is still working. Libraries never print; the command line decides whether
// there is a terminal to draw a bar on. Calls come from one thread at a time.
#pragma once

#include <cstdint>
#include <string_view>

namespace rehearse {

class Reporter {
 public:
  virtual ~Reporter() = default;
  // `done` of `total` units of `what` ("ranks", "bytes"); total 0: unknown. Cheap to call often.
  virtual void progress(std::string_view what, uint64_t done, uint64_t total) = 0;
  // One line for the user that is neither an error nor a finding.
  virtual void note(std::string_view text) = 0;
  // True when the user asked to stop; long loops look at it and return Code::kInterrupted.
  [[nodiscard]] virtual bool interrupted() const { return false; }
};

// Says nothing; for tests and inner runs.
class SilentReporter final : public Reporter {
 public:
  void progress(std::string_view, uint64_t, uint64_t) override {}
  void note(std::string_view) override {}
};

}  // namespace rehearse
