// SPDX-License-Identifier: Apache-2.0
// The results of a study in a folder, one file per point named by what the point is (program, scenario,
// trace, changes), each written whole or not at all. Any number of processes may work in one folder; a point
// that is computed twice is written twice with the same bytes.
//
//   points/ID.json        the row of a point
//   points/ID.lost.json   the point was lost (killed, out of memory or time); computed again when asked
//   results.csv, results.jsonl   all rows in the order of the study, once they are there
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/study/plan.hpp"
#include "cli/study/row.hpp"
#include "faults/fault_catalogue.hpp"

namespace rehearse::cli {

// What a scenario is, before the changes of a point: the sources of the program, document, trace, and the faults it may be given.
[[nodiscard]] Result<std::string> identity_of(const sim::Scenario& scenario,
                                              const faults::FaultCatalogue& catalogue);
// The name of a point's file.
[[nodiscard]] std::string point_id(const std::string& identity, const std::vector<Edit>& edits);

class Store {
 public:
  // Creates the folder when it is not there.
  [[nodiscard]] static Result<Store> open(const std::filesystem::path& folder);

  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  // nullopt: not computed yet, or lost.
  [[nodiscard]] std::optional<Row> find(const std::string& id) const;
  [[nodiscard]] std::optional<Row> find_lost(const std::string& id) const;
  [[nodiscard]] Result<void> put(const std::string& id, const Row& row) const;
  [[nodiscard]] Result<void> put_lost(const std::string& id, const Row& row) const;
  // results.csv and results.jsonl of these points, by their number in the plan.
  [[nodiscard]] Result<void> publish(const Plan& plan, const std::map<size_t, Row>& rows,
                                     const Goal& goal) const;

 private:
  explicit Store(std::filesystem::path folder) : folder_(std::move(folder)) {}
  std::filesystem::path folder_;
};

}  // namespace rehearse::cli
