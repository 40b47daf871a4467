// SPDX-License-Identifier: Apache-2.0
// The records of a capture file as plain structs, field by field as in traces/proto/capture.proto, which
// says what each means. Times are nanoseconds after the session's origin. A field that the schema calls
// optional is -1 here when it is left out. Views must stay valid only during Encoder::put().
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace rehearse::capture_file {

struct Session {
  int64_t origin = 0;  // Unix nanoseconds
  uint32_t process = 0;
  std::string_view host{};
  int64_t rank = -1;
  int64_t world_size = -1;
  int64_t local_rank = -1;
  std::string_view program{};
  std::string_view library{};
  uint32_t cupti_version = 0;
  uint32_t nccl_version = 0;
};

struct String {
  uint32_t id = 0;
  std::string_view text{};  // clipped at kLongestText
};

struct Dimensions {
  uint32_t x = 0, y = 0, z = 0;
};

struct Kernel {
  int64_t start = 0;
  uint64_t duration = 0;
  uint32_t name = 0;
  uint32_t device = 0;
  uint32_t stream = 0;
  uint64_t correlation = 0;
  uint32_t context = 0;
  Dimensions grid{};
  Dimensions block{};
  uint32_t registers = 0;
  uint32_t static_shared = 0;
  uint32_t dynamic_shared = 0;
  uint64_t graph_node = 0;
  uint32_t graph = 0;
};

struct Api {
  int64_t start = 0;
  uint64_t duration = 0;
  uint32_t name = 0;
  uint32_t thread = 0;
  uint64_t correlation = 0;
  int32_t result = 0;
  bool driver = false;
};

struct Copy {
  int64_t start = 0;
  uint64_t duration = 0;
  uint64_t bytes = 0;
  uint32_t kind = 0;
  uint32_t device = 0;
  uint32_t stream = 0;
  uint64_t correlation = 0;
  uint32_t context = 0;
  int64_t from_device = -1;
  int64_t to_device = -1;
  uint64_t graph_node = 0;
};

struct Fill {
  int64_t start = 0;
  uint64_t duration = 0;
  uint64_t bytes = 0;
  uint32_t device = 0;
  uint32_t stream = 0;
  uint64_t correlation = 0;
  uint32_t context = 0;
  uint64_t graph_node = 0;
};

struct Wait {
  int64_t start = 0;
  uint64_t duration = 0;
  uint32_t type = 0;
  uint64_t correlation = 0;
  int64_t stream = -1;
  uint32_t event = 0;
  uint32_t context = 0;
  uint64_t event_sync = 0;
};

struct Event {
  uint64_t correlation = 0;
  uint32_t event = 0;
  uint32_t stream = 0;
  uint32_t context = 0;
  uint32_t device = 0;
  uint64_t event_sync = 0;
  int64_t at = 0;
};

struct Correlation {
  uint32_t kind = 0;
  uint64_t external = 0;
  uint64_t correlation = 0;
};

struct Range {
  int64_t start = 0;
  int64_t duration = -1;
  uint32_t thread = 0;
  uint32_t domain = 0;
  uint32_t name = 0;
  bool process_wide = false;
  uint64_t communicator = 0;
  int64_t bytes = -1;
  int64_t reduction = -1;
  int64_t root = -1;
  int64_t peer = -1;
  int64_t ranks = -1;
  int64_t rank = -1;
  int64_t device = -1;
};

struct NcclStart {
  uint64_t id = 0;
  uint32_t type = 0;
  uint64_t parent = 0;
  int64_t at = 0;
  uint32_t thread = 0;
  uint64_t communicator = 0;
  uint32_t function = 0;
  uint64_t count = 0;
  uint32_t datatype = 0;
  int64_t root = -1;
  int64_t sequence = -1;
  uint32_t channels = 0;
  uint32_t warps = 0;
  uint32_t algorithm = 0;
  uint32_t protocol = 0;
  uint32_t channel = 0;
  uint32_t steps = 0;
  uint64_t chunk = 0;
  bool send = false;
  bool graph_captured = false;
  uint32_t step = 0;
  uint64_t gpu_time = 0;
};

struct NcclState {
  uint64_t id = 0;
  uint32_t state = 0;
  int64_t at = 0;
  uint64_t bytes = 0;
  uint64_t gpu_time = 0;
};

struct NcclStop {
  uint64_t id = 0;
  int64_t at = 0;
};

struct Communicator {
  uint64_t id = 0;
  std::string_view name{};
  uint32_t nodes = 0;
  uint32_t ranks = 0;
  uint32_t rank = 0;
  int64_t at = 0;
};

struct Graph {
  int64_t start = 0;
  uint64_t duration = 0;
  uint32_t graph = 0;
  uint32_t device = 0;
  uint32_t stream = 0;
  uint64_t correlation = 0;
  uint32_t context = 0;
};

struct Overhead {
  int64_t start = 0;
  uint64_t duration = 0;
  uint32_t kind = 0;
  uint32_t thread = 0;
};

struct Memory {
  int64_t at = 0;
  int64_t bytes = 0;
  uint64_t block = 0;
  uint32_t device = 0;
  uint32_t thread = 0;
};

struct Thread {
  uint32_t thread = 0;
  uint32_t name = 0;
};

struct Device {
  uint32_t device = 0;
  std::string_view model{};
  uint64_t memory = 0;
  std::string_view bus{};
  uint32_t multiprocessors = 0;
};

struct Variable {
  std::string_view name{};
  std::string_view value{};
};

struct Clock {
  int64_t at = 0;
  int64_t monotonic = 0;
  uint64_t gpu = 0;
};

struct Drops {
  uint32_t source = 0;
  uint64_t records = 0;
};

struct Message {
  std::string_view text{};
};

struct Tuning {
  uint64_t communicator = 0;
  uint32_t function = 0;
  uint64_t bytes = 0;
  uint32_t algorithms = 0;
  uint32_t protocols = 0;
  std::span<const float> cost{};  // at most kMostCosts are kept
  uint32_t ranks = 0;
  uint32_t nodes = 0;
  uint32_t operations = 0;
};

struct End {
  uint64_t records = 0;
};

struct Library {
  std::string_view name{};
  uint32_t version = 0;
};

}  // namespace rehearse::capture_file
