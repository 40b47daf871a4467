// SPDX-License-Identifier: Apache-2.0
// Traces that were brought in, under names that are safe as file names, and files on their way to be
// imported. Several threads may use it at once: a trace appears by one link, an upload belongs to the one whose rename
// takes it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "cli/serve/http.hpp"
#include "cli/serve/job.pb.h"

namespace rehearse::serve {

struct LibraryTrace {
  std::string name;
  uint64_t bytes = 0;
};

class Library {
 public:
  // FOLDER/traces and FOLDER/uploads; uploads of an earlier server are removed.
  [[nodiscard]] static Result<Library> open(const std::filesystem::path& folder);

  // By name.
  [[nodiscard]] Result<std::vector<LibraryTrace>> traces() const;
  // The file of a trace; kMissingInput when there is none of that name.
  [[nodiscard]] Result<std::filesystem::path> trace(const std::string& name) const;
  [[nodiscard]] Result<void> remove(const std::string& name) const;
  // Adds a file under `name`, or NAME-2 and so on when that is taken; returns the name it got.
  [[nodiscard]] Result<std::string> add(const std::filesystem::path& file,
                                        const std::string& name) const;
  // Puts what a subject needs into a worker's folder: scenario.yaml, its trace.
  [[nodiscard]] Result<void> lay_out(const pb::Subject& subject,
                                     const std::filesystem::path& folder) const;

  // Keeps the body of a request as a file called like `name`; returns the upload's id.
  [[nodiscard]] Result<std::string> keep_upload(const Request& request, const std::string& name,
                                                uint64_t most) const;
  void discard_upload(const std::string& id) const;
  // Moves uploads into FOLDER/upload, for an import. kMissingInput, and none is moved, when one of them is not there.
  [[nodiscard]] Result<void> take_uploads(const std::vector<std::string>& ids,
                                          const std::filesystem::path& folder) const;

 private:
  explicit Library(const std::filesystem::path& folder)
      : traces_(folder / "traces"), uploads_(folder / "uploads") {}
  std::filesystem::path traces_, uploads_;
};

}  // namespace rehearse::serve
