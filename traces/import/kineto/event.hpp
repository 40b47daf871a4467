// SPDX-License-Identifier: Apache-2.0
// One trace event, parsed as far as the import needs it. Views point into the parser and the input
// and die with the next parse. -1 and empty mean "not there" for all arguments that cannot be
// negative.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "traces/import/json_stream.hpp"
#include "traces/import/kineto/category.hpp"

namespace rehearse::traces::kineto {

// Arguments of a collective, on record_param_comms, its annotation and (2024 on) its kernel.
struct CallArgs {
  std::string_view name, dtype, group, group_description, ranks;
  int64_t elements_in = -1, elements_out = -1;
  int64_t group_size = -1, rank_start = -1, rank_stride = -1;
  int64_t source = -1, destination = -1, root = -1, sequence = -1;
  int64_t place = -1;  // "Rank": the root's place in the group where there is one, else one's own
  // From "Input Dims" and "Input type": elements of the first tensor.
  int64_t shape_elements = -1;
  std::string_view shape_type;
};

struct Event {
  char phase = 0;
  Category category = Category::kNone;
  std::string_view category_name, name;
  std::string_view pid, tid;               // as written, quotes and all
  std::optional<int64_t> start, duration;  // ns, before the base time is added
  bool has_duration = false;
  int64_t device = -1, stream = -1, correlation = 0, external = -1;
  int64_t bytes = 0, address = 0, device_type = -1;
  int64_t wait_stream = -1, wait_record = -1, wait_event = -1;
  std::string_view sync_kind, label;  // "cuda_sync_kind"; args.name of metadata
  bool has_call = false;              // `call` holds something
  CallArgs call;

  // As if fresh. Most of an event is small; `call` is touched only where it was filled.
  void clear();
};

enum class Parsed { kOk, kNotObject, kBroken };

class EventParser {
 public:
  EventParser();
  ~EventParser();
  // kBroken: the element is not JSON inside; `event` holds what came before.
  [[nodiscard]] Parsed parse(const Element& element, Event& event);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rehearse::traces::kineto
