// SPDX-License-Identifier: Apache-2.0
#include "faults/symptoms/crash_texts.hpp"

#include <algorithm>
#include <cctype>

namespace rehearse::faults {
namespace {

// Texts as users report them: the threads of the categories in the study and of NCCL and PyTorch.
constexpr CrashText kTexts[] = {
    {"CUDA out of memory", "D1.5", "D1.5", "D1.5"},
    {"OutOfMemoryError", "D1.5", "D1.5", "D1.5"},
    {"CUDA_ERROR_OUT_OF_MEMORY", "D1.5", "D1.5", "D1.5"},
    {"DataLoader worker", "C2", "C2", "C2"},
    {"Cannot allocate memory", "B1", "C2", "D1.9"},
    {"No space left on device", "B1", "C2", "D1.6"},
    {"undefined symbol", "A1", "A1", "A1"},
    {"ModuleNotFoundError", "A2", "A2", "A2"},
    {"ImportError", "A2", "A2", "A2"},
    {"Address already in use", "B1", "B1", "D1.1"},
    {"host not found", "B1", "B1", "D1.1"},
    {"Could not resolve hostname", "B1", "B1", "D1.1"},
    {"ssh: connect to host", "B1", "B1", "D1.1"},
    {"ibv_modify_qp", "B1", "C3", "D1.1"},
    {"Duplicate GPU detected", "B1", "B1", "D1.2"},
    {"invalid device ordinal", "C5", "C5", "D1.2"},
    {"no CUDA-capable device", "C5", "C5", "D1.2"},
    {"device mismatch", "C5", "C5", "D1.2"},
    {"uncorrectable ECC error", "C5", "D1.1", "D1.1"},
    {"fallen off the bus", "C5", "D1.1", "D1.1"},
    {"Segmentation fault", "D1.7", "D1.7", "D1.7"},
    {"AttributeError", "A2", "C1", "D1.8"},
    {"FileNotFoundError", "D1.10", "D1.10", "D1.10"},
    {"No such file or directory", "D1.10", "D1.10", "D1.10"},
    {"NotImplementedError", "D1.11", "D1.11", "D1.11"},
    {"not implemented", "D1.11", "D1.11", "D1.11"},
    {"StopIteration", "C6", "C6", "C6"},
    {"size mismatch for", "C1", "C1", "C1"},
    {"Error(s) in loading state_dict", "C1", "C1", "C1"},
    {"can't pickle", "D1.6", "D1.6", "D1.6"},
    {"cannot serialize", "D1.6", "D1.6", "D1.6"},
    {"Mismatched ALLREDUCE", "D1.4", "D1.4", "D1.4"},
    {"Mismatched data types", "D1.4", "D1.4", "D1.4"},
    {"tensor shape", "D1.4", "D1.4", "D1.4"},
    {"Detected mismatch between collectives", "C3", "C3", "D1.1"},
    {"timed out", "B2", "C4", "D1.1"},
    {"timeout", "B2", "C4", "D1.1"},
    {"NCCL", "B1", "C3", "D1.1"},
    {"NET/IB", "B1", "C3", "D1.1"},
    {"Connection reset", "B1", "C3", "D1.1"},
    {"Connection refused", "B1", "C3", "D1.1"},
    {"finished reduction in the prior iteration", "C3", "C3", "D1.1"},
};

bool contains(std::string_view text, std::string_view part) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) ==
           std::tolower(static_cast<unsigned char>(b));
  };
  return std::search(text.begin(), text.end(), part.begin(), part.end(), same) != text.end();
}

}  // namespace

const CrashText* match_crash_text(std::string_view message) {
  for (const CrashText& row : kTexts) {
    if (contains(message, row.text)) return &row;
  }
  return nullptr;
}

std::string_view category_in(const CrashText& row, pb::Phase phase) {
  switch (phase) {
    case pb::STARTING:
    case pb::RENDEZVOUS:
    case pb::BOOTSTRAP:
      return row.setup;
    case pb::PREPARATION:
      return row.preparation;
    default:
      return row.training;
  }
}

}  // namespace rehearse::faults
