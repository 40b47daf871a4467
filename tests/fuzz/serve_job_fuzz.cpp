// SPDX-License-Identifier: Apache-2.0
// Any bytes as the body of a request to `rehearse serve`: refused with words, or a job whose command cannot reach
// outside of its folder.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/document.hpp"
#include "cli/serve/job_request.hpp"

using namespace rehearse;

namespace {

// Words are the program's own but for values, which are glued to their option.
void check_words(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word.empty() || word.find('\0') != word.npos) __builtin_trap();
  }
  const std::string& subject = words[1];
  if (subject[0] == '-' || subject[0] == '/') __builtin_trap();
  if (subject.find("..") != subject.npos && !subject.starts_with("../") &&
      !subject.starts_with("./")) {
    __builtin_trap();
  }
  if (std::count(subject.begin(), subject.end(), '/') > 2) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  if (const auto job = serve::parse_job(body)) {
    check_words(serve::words_of(*job));
    const std::string trace = serve::trace_of(job->subject());
    if (!trace.empty() && !serve::is_trace_name(trace)) __builtin_trap();
    // What is kept in job.json is read back as it was.
    pb::JobRequest again;
    if (!from_json(to_json(*job), again, "again") ||
        again.SerializeAsString() != job->SerializeAsString()) {
      __builtin_trap();
    }
  } else if (job.error().what.empty()) {
    __builtin_trap();
  }
  if (!serve::is_trace_name(serve::trace_name_for(body))) __builtin_trap();
  return 0;
}
