// SPDX-License-Identifier: Apache-2.0
// The catalogue of faults: one YAML file each (faults/proto/fault.proto says what is in it),
// shipped in faults/catalogue and in folders of the user's own. Everything about a fault is data; a
// new fault that existing patches can express needs no code. Immutable once loaded; safe to share.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "faults/proto/fault.pb.h"

namespace rehearse::faults {

// A fault as its file has it.
struct FaultEntry {
  pb::Fault fault;   // patch and fixes with the defaults of the parameters filled in
  std::string file;  // for places in messages
  std::string
      edits;  // second document with its placeholders; blank lines before it keep line numbers
};

class FaultCatalogue {
 public:
  // Reads every *.yaml of the folders, in the order of their names. An id that occurs twice, also
  // across folders, is refused; so is a file that breaks the schema (file:line:column).
  [[nodiscard]] static Result<FaultCatalogue> load(std::span<const std::filesystem::path> folders);
  // The shipped catalogue and then `extra`.
  [[nodiscard]] static Result<FaultCatalogue> load_shipped(
      std::span<const std::filesystem::path> extra = {});

  // By id.
  [[nodiscard]] const std::vector<std::shared_ptr<const FaultEntry>>& entries() const {
    return entries_;
  }
  // kUsage with the nearest id when there is none.
  [[nodiscard]] Result<std::shared_ptr<const FaultEntry>> find(std::string_view id) const;
  // Those that contain every word of `text` in any of their texts (letter case does not matter).
  [[nodiscard]] std::vector<std::shared_ptr<const FaultEntry>> search(std::string_view text) const;

 private:
  std::vector<std::shared_ptr<const FaultEntry>> entries_;
};

// Reads one file's text; `file` is the name used in places. The id must be the file's name.
[[nodiscard]] Result<FaultEntry> read_fault(std::string_view text, const std::string& file);

}  // namespace rehearse::faults
