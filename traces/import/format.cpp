// SPDX-License-Identifier: Apache-2.0
#include "traces/import/format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "traces/import/capture/capture.hpp"
#include "traces/import/chakra/chakra.hpp"
#include "traces/import/csv/csv.hpp"
#include "traces/import/csv/job.hpp"
#include "traces/import/flight_recorder/flight_recorder.hpp"
#include "traces/import/horovod/horovod.hpp"
#include "traces/import/inspector/inspector.hpp"
#include "traces/import/kineto/kineto.hpp"
#include "traces/import/nccl_log/nccl_log.hpp"
#include "traces/import/nccl_tests/nccl_tests.hpp"
#include "traces/import/nsys/nsys.hpp"
#include "traces/import/pytorch_et/pytorch_et.hpp"
#include "traces/import/rtrace/rtrace.hpp"
#include "traces/import/tensorflow/tensorflow.hpp"

namespace rehearse::traces {
namespace {

constexpr auto kFormats = std::to_array<Format>({
    {"rtrace", "rehearse trace (.rtrace)", Holds::kRecording, rtrace::sniff, rtrace::read},
    {"capture", "rehearse capture", Holds::kRecording, capture::sniff, capture::read},
    {"nsys", "Nsight Systems SQLite export", Holds::kRecording, nsys::sniff, nsys::read},
    {"chakra", "Chakra execution trace (protobuf or JSON)", Holds::kRecording, chakra::sniff,
     chakra::read},
    {"horovod", "Horovod timeline", Holds::kRecording, horovod::sniff, horovod::read},
    {"xspace", "TensorFlow or JAX profile (XSpace)", Holds::kRecording, tensorflow::sniff_xspace,
     tensorflow::read_xspace},
    {"tensorboard", "TensorBoard trace viewer JSON", Holds::kRecording,
     tensorflow::sniff_trace_json, tensorflow::read_trace_json},
    {"pytorch-et", "PyTorch execution trace JSON", Holds::kRecording, pytorch_et::sniff,
     pytorch_et::read},
    {"inspector", "NCCL Inspector JSON lines", Holds::kEvidence, inspector::sniff, inspector::read},
    {"flight-recorder", "PyTorch flight recorder JSON", Holds::kEvidence,
     flight_recorder::sniff_json, flight_recorder::read},
    {"flight-recorder-pickle", "PyTorch flight recorder pickle", Holds::kEvidence,
     flight_recorder::sniff_pickle, flight_recorder::read},
    {"nccl-log", "NCCL log (NCCL_DEBUG)", Holds::kPrinted, nccl_log::sniff, nccl_log::read},
    {"nccl-tests", "nccl-tests output", Holds::kPrinted, nccl_tests::sniff, nccl_log::read},
    {"nccl-tests-json", "nccl-tests report (JSON)", Holds::kEvidence, nccl_tests::sniff_json,
     nccl_tests::read_json},
    {"nccl-tests-csv", "nccl-tests figures as CSV", Holds::kEvidence, nccl_tests::sniff_csv,
     nccl_tests::read_csv},
    {"kineto", "PyTorch profiler (Kineto) or Chrome JSON", Holds::kRecording, kineto::sniff,
     kineto::read},
    {"csv", "table of operations (CSV)", Holds::kRecording, csv::sniff, csv::read},
    {"job", "size and layout of a job (YAML)", Holds::kLayout, csv::sniff_job, csv::read_job},
});

struct Magic {
  std::string_view bytes;
  const char* what;
};
using namespace std::string_view_literals;
constexpr std::array<Magic, 13> kMagics = {
    {{"SQLite format 3"sv, "a SQLite database"},
     {"\x7f"
      "ELF"sv,
      "a program (ELF)"},
     {"PK\x03\x04"sv, "a zip archive"},
     {"\x89PNG"sv, "a PNG image"},
     {"%PDF"sv, "a PDF document"},
     {"BZh"sv, "a bzip2 archive"},
     {"\xfd"
      "7zXZ"sv,
      "an xz archive"},
     {"\x1f\x8b"sv, "gzip inside gzip or zstd: unpack it once"},
     {"\x28\xb5\x2f\xfd"sv, "zstd inside gzip or zstd: unpack it once"},
     {"\xff\xfe"sv, "text in UTF-16: convert it (iconv -f UTF-16 -t UTF-8)"},
     {"\xfe\xff"sv, "text in UTF-16: convert it (iconv -f UTF-16 -t UTF-8)"},
     {"\x80\x02"sv, "a Python pickle"},
     {"\x80\x04"sv, "a Python pickle"}}};

// The schema of a document that rehearse itself wrote (`--json`): "rehearse.outcome/1"; "" for anything else.
std::string_view own_schema(std::string_view head) {
  constexpr std::string_view key = "\"schema\"";
  const size_t at = head.substr(0, 256).find(key);
  if (!head.starts_with('{') || at == head.npos) return {};
  const size_t value = head.find_first_not_of(" \t\r\n:", at + key.size());
  if (value == head.npos || !head.substr(value).starts_with("\"rehearse.")) return {};
  return head.substr(value + 1, head.find('"', value + 1) - value - 1);
}

// The first keys of a JSON object, as far as they can be seen without parsing.
std::string first_keys(std::string_view head) {
  std::string keys;
  int depth = 0, found = 0;
  for (size_t i = 0; i < head.size() && found < 4; ++i) {
    const char c = head[i];
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (c != '"') continue;
    size_t close = i + 1;
    while (close < head.size() && head[close] != '"') close += head[close] == '\\' ? 2 : 1;
    if (close >= head.size()) break;
    const size_t after = head.find_first_not_of(" \t\r\n", close + 1);
    if (depth == 1 && after != std::string_view::npos && head[after] == ':') {
      keys += fmt::format("{}{}", found++ > 0 ? ", " : "",
                          head.substr(i + 1, std::min<size_t>(close - i - 1, 40)));
    }
    i = close;
  }
  return keys;
}

bool is_text(std::string_view head) {
  return std::all_of(head.begin(), head.end(), [](char c) {
    const auto u = static_cast<unsigned char>(c);
    return u >= 0x20 || c == '\n' || c == '\r' || c == '\t';
  });
}

}  // namespace

std::span<const Format> formats() { return kFormats; }

const Format* format_of(std::string_view head) {
  if (!own_schema(head).empty()) return nullptr;
  const auto hit = std::find_if(kFormats.begin(), kFormats.end(),
                                [&](const Format& f) { return f.sniff(head); });
  return hit == kFormats.end() ? nullptr : &*hit;
}

std::string describe(std::string_view head) {
  if (head.empty()) return "an empty file";
  if (const auto schema = own_schema(head); !schema.empty()) {
    return fmt::format("a document of rehearse ({})", schema);
  }
  for (const Magic& m : kMagics) {
    if (head.starts_with(m.bytes)) return m.what;
  }
  const size_t first = head.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (first == std::string_view::npos) return "a blank file";
  if (is_text(head.substr(0, 4096))) {
    if (head[first] == '{') {
      const std::string keys = first_keys(head);
      return keys.empty() ? "a JSON object without known keys"
                          : "a JSON object with the keys " + keys;
    }
    if (head[first] == '[') {  // or what a logger puts before its lines: "[rank0]: ..."
      const size_t inside = head.find_first_not_of(" \t\r\n", first + 1);
      if (inside < head.size() && (head[inside] == '{' || head[inside] == '[' ||
                                   head[inside] == '"' || head[inside] == ']')) {
        return "a JSON array that holds no trace events";
      }
    }
    const std::string_view line =
        head.substr(first, std::min<size_t>(head.find('\n', first) - first, 60));
    return fmt::format("text that begins with \"{}\"", line);
  }
  std::string hex;
  for (const char c : head.substr(0, 8))
    hex += fmt::format("{:02x} ", static_cast<unsigned char>(c));
  hex.pop_back();
  return "binary data that begins with " + hex;
}

}  // namespace rehearse::traces
