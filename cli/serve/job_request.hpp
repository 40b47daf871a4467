// SPDX-License-Identifier: Apache-2.0
// What strangers ask for, checked before anything is started: bodies of the API become a Subject or
// a JobRequest, and those become the words of a command of this program. Nothing here names a file
// that the asker chose: scenarios are text or shipped, traces are names of the library, jobs are
// numbers.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "cli/serve/job.pb.h"

namespace rehearse::serve {

constexpr uint64_t kMaxBody = 1u << 20;  // bytes of a request that is not a trace
constexpr int kMaxEdits = 64;
constexpr size_t kMaxOutcomes = 16;

// {"kind": "run", "subject": {...}} and {"scenario": "ddp-16", "edits": [{"fault": "F16"}]}.
// Errors name the place as a JSON pointer ("body: /subject/edits/0"), in scenario text as
// line and column.
[[nodiscard]] Result<pb::JobRequest> parse_job(std::string_view body);
[[nodiscard]] Result<pb::Subject> parse_subject(std::string_view body);

// Reads a document that somebody sent, which may name entries of the catalogues, shipped scenarios and
// traces of the library, and files that are `known` (empty: none). No field of it leads anywhere else.
using KnownFile = std::function<bool(const std::string&)>;
[[nodiscard]] Result<void> read_text(const std::string& yaml, const std::string& name,
                                     const KnownFile& known, google::protobuf::Message& message);

// Letters, digits, dot, dash and underscore, not beginning with a dot or dash, ending in .rtrace.
[[nodiscard]] bool is_trace_name(std::string_view name);
// The nearest name of that kind for a file called so: "run 1/rank0.json.gz" -> "rank0.rtrace".
[[nodiscard]] std::string trace_name_for(std::string_view file);

// The trace of the library that a checked subject needs; "" when it needs none.
[[nodiscard]] std::string trace_of(const pb::Subject& subject);

// Words behind the verb that stand for the subject, once it lies in the worker's folder as
// kScenarioFile or under the trace's name.
constexpr const char* kScenarioFile = "scenario.yaml";
[[nodiscard]] std::vector<std::string> words_of(const pb::Subject& subject);

// The whole command of a job; runs in the job's folder, beside the folders of other jobs.
[[nodiscard]] std::vector<std::string> words_of(const pb::JobRequest& request);

// What the worker's standard output is called in the job's folder, and other files it writes there.
constexpr const char* kResultFile = "result.json";
constexpr const char* kReportFile = "report.html";
constexpr const char* kTraceFile = "trace.rtrace";
constexpr const char* kUploadFile = "upload";

}  // namespace rehearse::serve
