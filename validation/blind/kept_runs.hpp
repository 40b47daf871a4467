// SPDX-License-Identifier: Apache-2.0
// Runs of campaigns in a folder, one file each, named by what the run is (program, catalogue, faults, seed, kind of
// evidence) and written whole or not at all. So a campaign that was stopped goes on where it was, and several processes may share
// one. A damaged file is the same as none: the run is made again.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "faults/fault_catalogue.hpp"
#include "validation/proto/campaign.pb.h"

namespace rehearse::validation {

// What decides a run but the run itself: the sources of the program, and the faults it may find.
[[nodiscard]] std::string identity_of(const std::string& program,
                                      const faults::FaultCatalogue& catalogue);

class KeptRuns {
 public:
  // Creates the folder when it is not there. `identity` is that of identity_of().
  [[nodiscard]] static Result<KeptRuns> open(const std::filesystem::path& folder,
                                             std::string identity);

  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  // nullopt: not there.
  [[nodiscard]] std::optional<pb::CampaignRun> find(const std::string& run) const;
  [[nodiscard]] Result<void> put(const std::string& run, const pb::CampaignRun& row) const;

 private:
  KeptRuns(std::filesystem::path folder, std::string identity)
      : folder_(std::move(folder)), identity_(std::move(identity)) {}
  [[nodiscard]] std::filesystem::path path_of(const std::string& run) const;

  std::filesystem::path folder_;
  std::string identity_;
};

}  // namespace rehearse::validation
