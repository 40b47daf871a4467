// SPDX-License-Identifier: Apache-2.0
// One physical line of a file with NCCL output: what stands before NCCL's own text, and the
// messages in it. Processes write into one file without a lock, so a message may begin anywhere,
// also glued to other text ("sumoneflow-27:433602:433862 [5] NCCL INFO ..."), and several may
// stand in one line.
//
//   [time ]host:pid:tid [device] [place [(function) ]]NCCL INFO|WARN|TRACE|CALL text
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse::traces::nccl_log {

enum class Level { kInfo, kWarn, kTrace, kCall };

// Views into the line.
struct Message {
  Level level = Level::kInfo;
  std::string_view time;  // inside the brackets before the host, "" without
  std::string_view host;
  int64_t pid = 0;
  int64_t thread = 0;
  int device = -1;         // -1: not said
  std::string_view place;  // "transport/net.cc:123" before NCCL WARN, "" without
  std::string_view text;   // up to the next message or the end of the line
};

struct LogLine {
  std::string_view other;  // before the first message; the whole line when there is none
  std::vector<Message> messages;
};

// Hosts that have been seen standing alone, and host:pid of each; they tell where a glued name
// begins.
using Hosts = std::set<std::string, std::less<>>;

// `hosts` learns the names of messages that stand at the start of a line.
[[nodiscard]] LogLine split_line(std::string_view line, Hosts& hosts);

// A message whose host and process were taken away, by whoever collected the lines:
//   [time ][label:][ [device] ][place ]NCCL INFO|WARN|TRACE|CALL text
// Its host is then the label of its launcher ("3: ", "[1,3]<stdout>:", "node1: "), "" without one, and
// its process and thread are 0. `line` is as it was read, with what launchers put before it.
[[nodiscard]] std::optional<Message> unplaced_message(std::string_view line);

// Without the sequences that color a terminal (ESC [ ... letter). Ray writes them into its logs.
[[nodiscard]] std::string without_colors(std::string_view line);

// Without what launchers put before lines: "3: " (srun -l), "[1,0]<stdout>:" and
// "[1,mpirank:0,algo-1]<stdout>:" (mpirun). What others put there is left: messages of NCCL and rows
// of nccl-tests are found behind it.
[[nodiscard]] std::string_view without_launcher_prefix(std::string_view line);

}  // namespace rehearse::traces::nccl_log
