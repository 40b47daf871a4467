// SPDX-License-Identifier: Apache-2.0
// What a training framework does around kernels and collectives, written into a Script. PyTorch:
//
//   main thread       forward, optimizer; hands over to the autograd thread for backward
//   compute stream    all kernels and copies, in launch order
//   NCCL streams      one per communicator. A collective waits for an event recorded on the compute
//   stream
//                     at the call; whoever needs its result waits for an event recorded after it
//                     (ProcessGroupNCCL). Pipeline sends and receives have one stream per
//                     direction.
//
// Horovod adds a background thread that issues fused all-reduces on its own stream; TensorFlow runs
// forward and backward on one executor thread with one NCCL stream for all communicators. Not
// thread-safe; names go to the Strings given.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "traces/synth/costs.hpp"
#include "traces/synth/layout.hpp"
#include "traces/synth/script.hpp"

namespace rehearse::synth {

using EventSlot = uint32_t;

// A collective in words: `bytes` is the whole buffer (all-reduce, all-to-all) or the gathered
// buffer (all-gather, reduce-scatter).
struct Collect {
  Group group = Group::kWorld;
  traces::Collective kind = traces::Collective::kAllReduce;
  Bytes bytes = 0;
  traces::DType dtype = traces::DType::kUnknown;
};

enum class Toward : uint8_t { kNext, kPrevious };

class Framework {
 public:
  // `rank` is any rank of the role: its group sizes hold for all of them.
  Framework(const pb::Synth& options, const Layout& layout, const Costs& costs, RankId rank,
            traces::Strings& strings);

  [[nodiscard]] const Costs& costs() const { return costs_; }
  [[nodiscard]] uint32_t size(Group group) const { return layout_.size(rank_, group); }

  void kernel(std::string_view name, Nanos duration);
  void copy(std::string_view name, traces::CopyDirection direction, Bytes bytes);
  void host(std::string_view name, Nanos duration);
  // Allocates and returns the address id to free.
  uint32_t allocate(std::string_view name, Bytes bytes);
  void free(std::string_view name, uint32_t address);
  // Allocates before the first step, for good.
  void allocate_once(std::string_view name, Bytes bytes);

  // Puts a collective on its NCCL stream behind what is on the compute stream now. The event slot
  // must be joined once. Only for groups of more than one.
  [[nodiscard]] EventSlot start(const Collect& what);
  // The compute stream goes on after that event.
  void join(EventSlot event);
  // start + join; nothing for a group of one.
  void run(const Collect& what);
  // Pipeline neighbours; a receive holds the compute stream until it is there, a send does not.
  void send(Toward toward, Bytes bytes);
  void receive(Toward from, Bytes bytes);

  // Backward runs on the autograd thread between the two.
  void begin_backward();
  void end_backward();
  void begin(std::string_view annotation);
  void end();
  // loss.item(): copies the loss and waits for the device.
  void finish_step();

  // Parts used by Horovod's background thread (horovod.hpp).
  // Issues a buffer from the background thread, `wait` from now and once what is on the compute stream now
  // has been reached; several tensors are copied into it and out of it. The event must be given to await().
  struct FusedBuffer {
    Collect what;
    size_t tensors = 1;
    Nanos wait = 0;
  };
  [[nodiscard]] EventSlot start_fused(const FusedBuffer& buffer);
  void await(EventSlot event);
  // Nominal time the issuing host thread has spent so far in this step.
  [[nodiscard]] Nanos host_time() const { return host_time_; }

  [[nodiscard]] Script take();

 private:
  uint8_t add_lane(traces::LaneKind kind, int64_t id, std::string_view name);
  uint8_t stream_of(Group group);
  uint8_t stream_of(Toward toward, traces::Collective direction);
  void put(Do what, uint8_t stream, std::string_view name, uint32_t index, int64_t value);
  void call(const CallSpec& spec, uint8_t stream);
  [[nodiscard]] CallSpec spec_of(const Collect& what) const;
  void point_to_point(Toward toward, traces::Collective direction, Bytes bytes);
  void record(uint8_t stream, EventSlot event);
  void wait(uint8_t stream, EventSlot event);
  [[nodiscard]] EventSlot take_event();

  const Layout& layout_;
  const Costs& costs_;
  RankId rank_;
  traces::Strings& strings_;
  Script script_;
  bool single_thread_, single_stream_;
  uint8_t main_ = 0, backward_ = 0, background_ = 0, compute_ = 0;
  uint8_t now_ = 0;  // the host lane that issues
  Nanos host_time_ = 0;
  std::map<int, uint8_t> streams_;
  std::vector<EventSlot> free_events_;
  std::vector<uint32_t> free_addresses_;
  std::map<uint32_t, Bytes> live_;
  uint32_t addresses_ = 0;
  std::vector<uint32_t> open_;
};

}  // namespace rehearse::synth
