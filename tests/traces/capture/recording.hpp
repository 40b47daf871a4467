// SPDX-License-Identifier: Apache-2.0
// Runs the watched program with the capture library in it, and reads what it left.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/temporary_folder.hpp"
#include "traces/import/import.hpp"
#include "traces/proto/capture.pb.h"

namespace rehearse::tests {

struct Run {
  int code = -1;    // exit code
  int signal = 0;   // that ended it
  std::string out;  // stdout
  std::string err;
};

class Recording {
 public:
  // All doors open, everything into `folder`.
  Recording();
  // Replaces or adds a variable.
  Recording& with(const std::string& name, const std::string& value);
  // The watched program with these words; `while_running` sees its process id.
  [[nodiscard]] Run run(const std::vector<std::string>& words);
  // The same, ended by SIGKILL when the files have grown to `bytes`.
  [[nodiscard]] Run run_and_kill(const std::vector<std::string>& words, size_t bytes);

  [[nodiscard]] std::vector<std::filesystem::path> files() const;
  // All records of all files, decoded by libprotobuf.
  [[nodiscard]] std::vector<pb::CaptureRecord> records() const;
  [[nodiscard]] Result<traces::Imported> import() const;

  TemporaryFolder temporary;
  std::filesystem::path folder;  // of the capture files

 private:
  [[nodiscard]] pid_t start(const std::vector<std::string>& words, Run& run);
  std::map<std::string, std::string> environment_;
};

// Names of a session's strings, over all records.
[[nodiscard]] std::map<uint32_t, std::string> names_of(
    const std::vector<pb::CaptureRecord>& records);
[[nodiscard]] size_t lines_of(const std::string& text);

}  // namespace rehearse::tests
