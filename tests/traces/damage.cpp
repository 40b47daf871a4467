// SPDX-License-Identifier: Apache-2.0
#include "tests/traces/damage.hpp"

#include <catch2/catch.hpp>

#include "tests/traces/import_samples.hpp"
#include "traces/model/rtrace.hpp"
#include "traces/program/program.hpp"

namespace rehearse::traces::samples {

void check_cuts(const std::string& bytes, const std::string& name, Ends ends) {
  size_t last = 0;
  for (size_t percent = 0; percent < 100; ++percent) {
    const std::string cut = bytes.substr(0, bytes.size() * percent / 100);
    INFO(name << " cut at " << percent << " %");
    const auto refused = import_text(cut, {}, name);
    if (ends == Ends::kMarked) REQUIRE_FALSE(refused);
    if (!refused) {
      CHECK((refused.error().code == Code::kBadInput || refused.error().code == Code::kLimit));
      CHECK_FALSE(refused.error().where.empty());
      CHECK_FALSE(refused.error().fix.empty());
    }
    const auto taken = import_text(cut, {.cut_files = CutFiles::kAccept}, name);
    if (refused) REQUIRE(taken);
    if (!taken) continue;
    if (!refused) CHECK(taken->findings.count("file-cut") == 1);
    CHECK(taken->trace.operations() >= last);
    last = taken->trace.operations();
  }
  const auto whole = import_text(bytes, {}, name);
  REQUIRE(whole);
  CHECK(whole->trace.operations() >= last);
  CHECK(2 * last > whole->trace.operations());
}

void check_flips(const std::string& bytes, const std::string& name) {
  const TempFolder folder;
  SilentReporter silent;
  const size_t step = bytes.size() / 1000 + 1;
  size_t read = 0;
  for (size_t at = 0; at < bytes.size(); at += step) {
    std::string flipped = bytes;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << (at % 8)));
    const auto got =
        import_files({folder.write(name, flipped)}, {.cut_files = CutFiles::kAccept}, silent);
    INFO("byte " << at);
    if (!got) {
      CHECK_FALSE(got.error().what.empty());
      CHECK(got.error().code != Code::kInternal);
      continue;
    }
    CHECK(build_program(got->trace));
    // Each file is synced to disk: a sample is enough.
    if (read++ % 50 != 0) continue;
    const auto written =
        write_rtrace(got->trace, folder.path() / "out.rtrace", Overwrite::kReplace);
    if (!written) FAIL_CHECK(written.error().message());
  }
  CHECK(read > 0);
}

}  // namespace rehearse::traces::samples
