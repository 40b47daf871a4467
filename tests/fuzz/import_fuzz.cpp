// SPDX-License-Identifier: Apache-2.0
// Any bytes as one or two files of an import: told by content, merged, matched, aligned, and built into a
// program. A line of "----" divides the files.
#include "tests/fuzz/memory_file.hpp"
#include "tests/fuzz/reader_fuzz.hpp"
#include "traces/import/import.hpp"
#include "traces/program/program.hpp"

using namespace rehearse;
using namespace rehearse::traces;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr std::string_view kDivider = "\n----\n";
  const std::string_view bytes = fuzz_bytes(data, size);
  const size_t cut = bytes.find(kDivider);
  const MemoryFile first(bytes.substr(0, cut));
  const MemoryFile second(cut == std::string_view::npos ? std::string_view()
                                                        : bytes.substr(cut + kDivider.size()));
  std::vector<std::filesystem::path> files = {first.path()};
  if (cut != std::string_view::npos) files.push_back(second.path());
  ImportOptions options;
  options.cut_files = CutFiles::kAccept;
  options.source.max_bytes = 64 << 20;
  options.assume_symmetric = 1;
  SilentReporter silent;
  const auto imported = import_files(files, options, silent);
  if (!imported) {
    if (imported.error().what.empty()) __builtin_trap();
    return 0;
  }
  if (imported->trace.ranks.size() > 64) return 0;
  const auto program = build_program(imported->trace);
  if (!program && program.error().what.empty()) __builtin_trap();
  return 0;
}
