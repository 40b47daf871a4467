// SPDX-License-Identifier: Apache-2.0
// The communicators of one rank: the process groups that its profile lists, then those that only its calls mention.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "traces/import/kineto/communication.hpp"

namespace rehearse::traces::kineto {

inline constexpr int64_t kMostOfOne = 1 << 20;  // members of one communicator

// The members that a call names, as a whole list or as first, stride and number; none where it names only some.
[[nodiscard]] std::vector<RankId> members_of(const CallFacts& facts);

class Groups {
 public:
  // How many calls tell nothing of their group but its size.
  using Sizes = std::map<int64_t, uint64_t>;

  // Fills `table`, which must outlive this.
  Groups(const Metadata& metadata, const Sizes& sizes, std::vector<Communicator>& table);
  // The place in the table of the communicator that a call runs on.
  uint32_t of(const CallFacts& facts);
  // Sizes of groups whose members follow from the layout of the job.
  [[nodiscard]] const std::set<int64_t>& assumed() const { return assumed_; }

 private:
  uint32_t of_size(int64_t size);
  uint32_t whole_job();
  uint32_t named(const std::string& name, const std::string& description,
                 const std::vector<RankId>& members);

  std::vector<Communicator>& table_;
  std::string backend_;
  std::optional<RankId> rank_;
  int64_t world_ = 0, consecutive_ = 0;
  std::set<int64_t> assumed_;
  std::map<std::string, uint32_t> by_name_;
  std::optional<uint32_t> default_;
  uint64_t held_ = 0;  // members that calls told of
};

}  // namespace rehearse::traces::kineto
