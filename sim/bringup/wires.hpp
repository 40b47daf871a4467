// SPDX-License-Identifier: Apache-2.0
// What joins the processes of a job once they know each other: which adapters each may use, how the whole job would
// sit in one communicator, who watches over calls. Shared by the states from NCCL's transports on; lives as long as
// one of them.
#pragma once

#include <optional>
#include <vector>

#include "platforms/model/links.hpp"
#include "sim/bringup/job.hpp"
#include "sim/nccl/traffic.hpp"

namespace rehearse::sim::bringup {

class Wires {
 public:
  explicit Wires(Job& job);

  [[nodiscard]] Job& job() { return job_; }
  // Processes that were started, and their nodes, rising.
  [[nodiscard]] const std::vector<size_t>& there() const { return there_; }
  [[nodiscard]] const std::vector<uint32_t>& nodes() const { return nodes_; }
  [[nodiscard]] bool several_nodes() const { return nodes_.size() > 1; }
  [[nodiscard]] Process& process(size_t p) { return job_.processes[p]; }

  // The adapters that a process may use for RDMA.
  [[nodiscard]] std::vector<const pb::Nic*> adapters(size_t p);
  // Its own among them; it talks to those of the same place on other nodes. Null: none.
  [[nodiscard]] const pb::Nic* adapter(size_t p);
  // Where the ranks of the job sit and how they are joined; built when first asked for. Null: NCCL would refuse.
  [[nodiscard]] const CommunicatorModel* world();
  // PyTorch's watchdog ends a call that does not end; others wait.
  void watch(size_t p, Trouble& trouble);
  // Those without trouble of their own wait in the state of the first that has one.
  void rest_waits();

 private:
  Job& job_;
  std::vector<size_t> there_;
  std::vector<uint32_t> nodes_;
  bool asked_ = false;
  std::optional<platforms::Links> links_;
  std::optional<CommunicatorModel> world_;
};

}  // namespace rehearse::sim::bringup
