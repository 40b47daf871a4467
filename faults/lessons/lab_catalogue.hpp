// SPDX-License-Identifier: Apache-2.0
// The labs: one YAML file each (faults/proto/lab.proto says what is in it), shipped in faults/lessons/labs and in folders
// of a teacher's own. Everything about a lab is data. Immutable once loaded; safe to share.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "faults/fault_catalogue.hpp"
#include "faults/proto/lab.pb.h"
#include "sim/proto/scenario.pb.h"

namespace rehearse::faults {

// A lab as its file has it.
struct LabEntry {
  pb::Lab lab;
  std::string file;    // for places in messages
  std::string script;  // second document with its placeholders; blank lines keep line numbers
  // The fault of the catalogue, or one that has only the lab's own parameters.
  std::shared_ptr<const FaultEntry> fault;
};

class LabCatalogue {
 public:
  // The shipped labs and then those of `extra`. A file that breaks the schema is refused (file:line:column), and so is an
  // id that occurs twice or a lab that comes after one that is not there.
  [[nodiscard]] static Result<LabCatalogue> load_shipped(
      std::span<const std::filesystem::path> extra = {});

  // By id.
  [[nodiscard]] const std::vector<std::shared_ptr<const LabEntry>>& entries() const {
    return entries_;
  }
  // kUsage with the nearest id when there is none; letter case does not matter.
  [[nodiscard]] Result<std::shared_ptr<const LabEntry>> find(std::string_view id) const;

 private:
  std::vector<std::shared_ptr<const LabEntry>> entries_;
};

// Reads one file's text; `file` is the name used in places. The id must be the file's name.
[[nodiscard]] Result<LabEntry> read_lab(std::string_view text, const std::string& file,
                                        const FaultCatalogue& faults);

// The script with placeholders replaced. `document` (expanded) is where {value PATH} looks; null: it becomes 1.
[[nodiscard]] Result<pb::LabScript> read_script(const LabEntry& lab,
                                                const std::map<std::string, std::string>& values,
                                                const pb::Scenario* document);

// What can be done to a job besides editing its files (faults/lessons/repairs.yaml).
[[nodiscard]] Result<pb::Repairs> shipped_repairs();

// A file for a lab of one's own, complete enough to be read; `id` is its name.
[[nodiscard]] std::string lab_skeleton(const std::string& id);

}  // namespace rehearse::faults
