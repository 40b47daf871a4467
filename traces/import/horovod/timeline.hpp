// SPDX-License-Identifier: Apache-2.0
// The events of a timeline, one after the other, as what they mean: phases of tensors, ready ranks, and
// collectives with their tensors.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/finding.hpp"
#include "traces/model/trace.hpp"

namespace rehearse::traces::horovod {

// One event of the file; views die with the parse.
struct Event {
  char phase = 0;
  std::string_view name;
  int64_t pid = -1;
  std::optional<Nanos> time;
  std::string_view dtype, shape;        // args of the end of a collective
  std::string_view label;               // args.name
  std::optional<int64_t> epoch_micros;  // args.start_time_since_epoch_in_micros
};

struct Place {  // of an event in the file
  uint64_t offset = 0, number = 0;
};

struct Phase {
  uint32_t tensor = 0;
  std::string name;
  Nanos start = 0, end = 0;
};

struct Ready {
  RankId rank = 0;
  Nanos time = 0;
};

// One tensor going through one collective.
struct TensorCall {
  uint32_t tensor = 0;
  Collective collective = Collective::kAllReduce;
  std::string name;          // of the activity that moved the data, or of the operation
  Nanos start = 0, end = 0;  // of that activity
  Bytes bytes = 0;           // of the output; 0: not told
  DType dtype = DType::kUnknown;
  std::vector<Ready> ready;
};

// Elements of "[3, 4]"; 1 for "[]"; nothing when it is no shape.
[[nodiscard]] std::optional<int64_t> elements_of(std::string_view shape);

class Timeline {
 public:
  Timeline(Findings& findings, std::string file) : findings_(findings), file_(std::move(file)) {}
  void add(const Event& event, const Place& place);
  // The file is over; phases that are still open are findings.
  void finish();

  [[nodiscard]] const std::vector<std::string>& tensors() const { return tensors_; }
  [[nodiscard]] std::vector<Phase>& phases() { return phases_; }
  [[nodiscard]] std::vector<TensorCall>& calls() { return calls_; }
  // Ready ranks per tensor, in order of the file; also those that no collective followed.
  struct Tick {
    uint32_t tensor = 0;
    Ready ready;
  };
  [[nodiscard]] const std::vector<Tick>& ticks() const { return ticks_; }
  [[nodiscard]] const std::vector<Nanos>& cycles() const { return cycles_; }
  [[nodiscard]] Nanos epoch() const { return epoch_; }  // 0: not told

 private:
  struct Open {
    std::string name;
    Nanos start = 0;
  };
  struct Row {  // one pid
    uint32_t tensor = 0;
    bool named = false;
    std::vector<Open> open;
    std::vector<Ready> ready;
    std::optional<TensorCall> call;
    bool moved = false;  // an activity that moves data was seen in the open collective
  };
  [[nodiscard]] std::string at(const Place& place) const;
  Row* row_of(int64_t pid, const Place& place);
  void metadata(const Event& event, const Place& place);
  void begin(Row& row, const Event& event, const Place& place);
  void end(Row& row, const Event& event, const Place& place);
  void tick(Row& row, const Event& event, const Place& place);
  void close_call(Row& row, const Event& event, const Place& place);

  Findings& findings_;
  std::string file_;
  std::unordered_map<int64_t, Row> rows_;
  std::map<std::string, uint32_t, std::less<>> ids_;
  std::vector<std::string> tensors_;
  std::vector<Phase> phases_;
  std::vector<TensorCall> calls_;
  std::vector<Tick> ticks_;
  std::vector<Nanos> cycles_;
  Nanos epoch_ = 0;
};

}  // namespace rehearse::traces::horovod
