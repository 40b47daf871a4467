// SPDX-License-Identifier: Apache-2.0
// Counted with python's json, pickle, csv and re modules by count_evidence_files.py.
#include <array>

#include "tests/traces/real_files.hpp"

namespace rehearse::traces::real {
namespace {

// clang-format off
constexpr auto kFlightRecorderFiles = std::to_array<File>({
    {"flight_recorder/README.md", "", {}, "known are"},
    {"flight_recorder/gpu_error_1st/fault_injection.log", "", {}, "known are"},
    {"flight_recorder/gpu_error_1st/ground_truth.json", "", {}, "known are"},
    {"flight_recorder/gpu_error_1st/json/rank00.json", "flight-recorder", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 20}},
    {"flight_recorder/gpu_error_1st/json/rank01.json", "flight-recorder", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 20}},
    {"flight_recorder/gpu_error_1st/json/rank02.json", "flight-recorder", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 20}},
    {"flight_recorder/gpu_error_1st/json/rank03.json", "flight-recorder", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 20}},
    {"flight_recorder/gpu_error_1st/json/rank04.json", "flight-recorder", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 8}},
    {"flight_recorder/gpu_error_1st/json/rank05.json", "flight-recorder", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 8}},
    {"flight_recorder/gpu_error_1st/json/rank06.json", "flight-recorder", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 8}},
    {"flight_recorder/gpu_error_1st/json/rank07.json", "flight-recorder", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 8}},
    {"flight_recorder/gpu_error_1st/json/rank08.json", "flight-recorder", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 19}},
    {"flight_recorder/gpu_error_1st/json/rank09.json", "flight-recorder", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 19}},
    {"flight_recorder/gpu_error_1st/json/rank10.json", "flight-recorder", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 19}},
    {"flight_recorder/gpu_error_1st/json/rank11.json", "flight-recorder", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 19}},
    {"flight_recorder/gpu_error_1st/json/rank12.json", "flight-recorder", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 27}},
    {"flight_recorder/gpu_error_1st/json/rank13.json", "flight-recorder", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 16}},
    {"flight_recorder/gpu_error_1st/json/rank14.json", "flight-recorder", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 43}},
    {"flight_recorder/gpu_error_1st/json/rank15.json", "flight-recorder", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 15}},
    {"flight_recorder/gpu_error_1st/pickle/_dump_0", "flight-recorder-pickle", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 20}},
    {"flight_recorder/gpu_error_1st/pickle/_dump_1", "flight-recorder-pickle", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 20}},
    {"flight_recorder/gpu_error_1st/pickle/_dump_10", "flight-recorder-pickle", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 19}},
    {"flight_recorder/gpu_error_1st/pickle/_dump_11", "flight-recorder-pickle", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 19}},
    {"flight_recorder/gpu_error_1st/pickle/_dump_12", "flight-recorder-pickle", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 27}},
    {"flight_recorder/gpu_error_1st/pickle/_dump_13", "flight-recorder-pickle", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 16}},
    {"flight_recorder/gpu_error_1st/pickle/_dump_14", "flight-recorder-pickle", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 43}},
    {"flight_recorder/gpu_error_1st/pickle/_dump_15", "flight-recorder-pickle", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 15}},
    {"flight_recorder/gpu_error_1st/pickle/_dump_2", "flight-recorder-pickle", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 20}},
    {"flight_recorder/gpu_error_1st/pickle/_dump_3", "flight-recorder-pickle", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 20}},
    {"flight_recorder/gpu_error_1st/pickle/_dump_4", "flight-recorder-pickle", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 8}},
    {"flight_recorder/gpu_error_1st/pickle/_dump_5", "flight-recorder-pickle", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 8}},
    {"flight_recorder/gpu_error_1st/pickle/_dump_6", "flight-recorder-pickle", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 8}},
    {"flight_recorder/gpu_error_1st/pickle/_dump_7", "flight-recorder-pickle", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 8}},
    {"flight_recorder/gpu_error_1st/pickle/_dump_8", "flight-recorder-pickle", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 19}},
    {"flight_recorder/gpu_error_1st/pickle/_dump_9", "flight-recorder-pickle", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 19}},
    {"flight_recorder/lock_gil_1st/fault_injection.log", "", {}, "known are"},
    {"flight_recorder/lock_gil_1st/ground_truth.json", "", {}, "known are"},
    {"flight_recorder/lock_gil_1st/json/rank00.json", "flight-recorder", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 11}},
    {"flight_recorder/lock_gil_1st/json/rank01.json", "flight-recorder", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 11}},
    {"flight_recorder/lock_gil_1st/json/rank02.json", "flight-recorder", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 11}},
    {"flight_recorder/lock_gil_1st/json/rank03.json", "flight-recorder", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 11}},
    {"flight_recorder/lock_gil_1st/json/rank04.json", "flight-recorder", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 11}},
    {"flight_recorder/lock_gil_1st/json/rank05.json", "flight-recorder", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 11}},
    {"flight_recorder/lock_gil_1st/json/rank06.json", "flight-recorder", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 11}},
    {"flight_recorder/lock_gil_1st/json/rank07.json", "flight-recorder", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 11}},
    {"flight_recorder/lock_gil_1st/json/rank08.json", "flight-recorder", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 9}},
    {"flight_recorder/lock_gil_1st/json/rank09.json", "flight-recorder", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 0}},
    {"flight_recorder/lock_gil_1st/json/rank10.json", "flight-recorder", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 9}},
    {"flight_recorder/lock_gil_1st/json/rank11.json", "flight-recorder", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 9}},
    {"flight_recorder/lock_gil_1st/json/rank12.json", "flight-recorder", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 9}},
    {"flight_recorder/lock_gil_1st/json/rank13.json", "flight-recorder", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 9}},
    {"flight_recorder/lock_gil_1st/json/rank14.json", "flight-recorder", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 0}},
    {"flight_recorder/lock_gil_1st/json/rank15.json", "flight-recorder", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 9}},
    {"flight_recorder/lock_gil_1st/pickle/_dump_0", "flight-recorder-pickle", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 11}},
    {"flight_recorder/lock_gil_1st/pickle/_dump_1", "flight-recorder-pickle", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 11}},
    {"flight_recorder/lock_gil_1st/pickle/_dump_10", "flight-recorder-pickle", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 9}},
    {"flight_recorder/lock_gil_1st/pickle/_dump_11", "flight-recorder-pickle", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 9}},
    {"flight_recorder/lock_gil_1st/pickle/_dump_12", "flight-recorder-pickle", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 9}},
    {"flight_recorder/lock_gil_1st/pickle/_dump_13", "flight-recorder-pickle", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 9}},
    {"flight_recorder/lock_gil_1st/pickle/_dump_14", "flight-recorder-pickle", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 0}},
    {"flight_recorder/lock_gil_1st/pickle/_dump_15", "flight-recorder-pickle", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 9}},
    {"flight_recorder/lock_gil_1st/pickle/_dump_2", "flight-recorder-pickle", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 11}},
    {"flight_recorder/lock_gil_1st/pickle/_dump_3", "flight-recorder-pickle", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 11}},
    {"flight_recorder/lock_gil_1st/pickle/_dump_4", "flight-recorder-pickle", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 11}},
    {"flight_recorder/lock_gil_1st/pickle/_dump_5", "flight-recorder-pickle", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 11}},
    {"flight_recorder/lock_gil_1st/pickle/_dump_6", "flight-recorder-pickle", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 11}},
    {"flight_recorder/lock_gil_1st/pickle/_dump_7", "flight-recorder-pickle", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 11}},
    {"flight_recorder/lock_gil_1st/pickle/_dump_8", "flight-recorder-pickle", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 9}},
    {"flight_recorder/lock_gil_1st/pickle/_dump_9", "flight-recorder-pickle", {0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 0}},
});
// clang-format on

}  // namespace

std::span<const File> flight_recorder_files() { return kFlightRecorderFiles; }

}  // namespace rehearse::traces::real
