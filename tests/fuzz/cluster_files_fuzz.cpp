// SPDX-License-Identifier: Apache-2.0
// Any bytes as files of a cluster, divided by lines of "----": what each is, the configuration they make, the check of
// it, and the files with its fixes made.
#include <string>
#include <vector>

#include "faults/check/check.hpp"
#include "faults/check/files/collect.hpp"
#include "tests/fuzz/reader_fuzz.hpp"

using namespace rehearse;
using namespace rehearse::faults;

namespace {

const Rules& shipped_rules() {
  static const auto rules = Rules::load_shipped();
  if (!rules) __builtin_trap();
  return *rules;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Rules& rules = shipped_rules();
  std::vector<ClusterFile> files;
  std::string_view text = traces::fuzz_bytes(data, size);
  while (!text.empty() && files.size() < 8) {
    const size_t end = text.find("\n----\n");
    files.push_back({"file" + std::to_string(files.size()), std::string(text.substr(0, end)), {}});
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 6);
  }
  const auto collected = collect(files, rules.tables());
  if (!collected) {
    if (collected.error().what.empty()) __builtin_trap();
    return 0;
  }
  if (collected->roles.size() != files.size()) __builtin_trap();
  const pb::CheckReport report = check(collected->document, rules, "fuzz");
  if (repaired_files(files, *collected, report).size() != files.size()) __builtin_trap();
  return 0;
}
