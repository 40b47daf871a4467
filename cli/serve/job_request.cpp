// SPDX-License-Identifier: Apache-2.0
#include "cli/serve/job_request.hpp"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "base/document.hpp"
#include "base/text.hpp"
#include "sim/proto/scenario.pb.h"

namespace rehearse::serve {
namespace {

constexpr size_t kMaxName = 100;
constexpr std::string_view kTraceEnding = ".rtrace";

bool is_word(std::string_view text) {
  const auto good = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
  };
  return !text.empty() && text.size() <= kMaxName && text[0] != '-' && text[0] != '.' &&
         std::ranges::all_of(text, good);
}

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= 9 &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

Result<nlohmann::ordered_json> parse_json(std::string_view body) {
  auto json = nlohmann::ordered_json::parse(body, nullptr, false);
  if (json.is_discarded() || !json.is_object()) {
    return bad_input("not a JSON object", "body", "see /api/v1/openapi.json");
  }
  return json;
}

// Words of a command end at a zero byte.
Result<void> check_text(const std::string& text, const std::string& where) {
  if (text.find('\0') == text.npos) return {};
  return bad_input("a zero byte in the text", where, "remove it");
}

// True for the fields by which a scenario names other documents: like, file, and whatever_file.
bool names_document(const google::protobuf::FieldDescriptor& field) {
  const std::string& name = field.name();
  return name == "like" || name == "file" || name.ends_with("_file");
}

// The first text in such a field that is neither a catalogue's entry, a shipped scenario nor a trace of
// the library; "" when there is none. By reflection, so that a field that is new tomorrow is seen.
std::string foreign_name(const google::protobuf::Message& message, const KnownFile& known) {
  using google::protobuf::FieldDescriptor;
  std::vector<const FieldDescriptor*> fields;
  const auto& reflection = *message.GetReflection();
  reflection.ListFields(message, &fields);
  std::string scratch;
  for (const FieldDescriptor* field : fields) {
    const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        const auto& inner = field->is_repeated() ? reflection.GetRepeatedMessage(message, field, i)
                                                 : reflection.GetMessage(message, field);
        if (std::string found = foreign_name(inner, known); !found.empty()) return found;
      }
      if (field->cpp_type() != FieldDescriptor::CPPTYPE_STRING || !names_document(*field)) continue;
      const std::string& text =
          field->is_repeated() ? reflection.GetRepeatedStringReference(message, field, i, &scratch)
                               : reflection.GetStringReference(message, field, &scratch);
      const bool entry =
          is_word(text) && text.find('.') == text.npos && !field->name().ends_with("_file");
      const bool trace = field->name() == "file" && is_trace_name(text);
      if (!text.empty() && !entry && !trace && !(known && known(text))) return text;
    }
  }
  return {};
}

Result<void> check_edits(const pb::Subject& subject) {
  if (subject.edits_size() > kMaxEdits) {
    return fail(Code::kLimit, fmt::format("more than {} edits", kMaxEdits), "body: /edits",
                "put them into the scenario as patches");
  }
  for (int i = 0; i < subject.edits_size(); ++i) {
    const pb::Edit& edit = subject.edits(i);
    const std::string where = fmt::format("body: /edits/{}", i);
    const int given = (edit.set().empty() ? 0 : 1) + (edit.fault().empty() ? 0 : 1) +
                      (edit.patch().empty() ? 0 : 1);
    if (given != 1) {
      return bad_input("an edit is one of set, fault and patch", where,
                       "as {\"fault\": \"F16:node=1\"}");
    }
    for (const std::string& text : {edit.set(), edit.fault(), edit.patch()}) {
      if (auto good = check_text(text, where); !good) return good;
    }
  }
  return {};
}

Result<void> check(const pb::Subject& subject) {
  const int given = (subject.scenario().empty() ? 0 : 1) + (subject.yaml().empty() ? 0 : 1) +
                    (subject.trace().empty() ? 0 : 1);
  if (given != 1) {
    return bad_input("what to simulate is one of scenario, yaml and trace", "body: /subject",
                     "as {\"scenario\": \"ddp-16\"}");
  }
  if (!subject.scenario().empty() &&
      (!is_word(subject.scenario()) || subject.scenario().find('.') != std::string::npos)) {
    return bad_input("not the name of a shipped scenario", "body: /subject/scenario",
                     "GET /api/v1/scenarios lists them");
  }
  if (!subject.trace().empty() && !is_trace_name(subject.trace())) {
    return bad_input("not the name of a trace", "body: /subject/trace",
                     "GET /api/v1/traces lists them");
  }
  if (!subject.yaml().empty()) {
    pb::Scenario scenario;
    if (auto good = read_text(subject.yaml(), kScenarioFile, {}, scenario); !good) return good;
  }
  return check_edits(subject);
}

Result<void> check_report(const pb::JobRequest& request) {
  const auto& ids = request.outcomes();
  if (ids.empty() || ids.size() > static_cast<int>(kMaxOutcomes)) {
    return bad_input(fmt::format("a report is made of 1 to {} runs", kMaxOutcomes),
                     "body: /outcomes", "as {\"outcomes\": [\"17\"]}");
  }
  if (std::ranges::all_of(ids, is_number)) return {};
  return bad_input("not the id of a job", "body: /outcomes", "GET /api/v1/jobs lists them");
}

Result<void> check(const pb::JobRequest& request) {
  if (request.title().size() > 200 || request.has_subject() == (request.outcomes_size() > 0)) {
    return bad_input(
        "a job has a subject, or outcomes to report on, and a title of at most 200 "
        "letters",
        "body", "see /api/v1/openapi.json");
  }
  switch (request.kind()) {
    case pb::JobRequest::RUN:
    case pb::JobRequest::DIAGNOSE:
    case pb::JobRequest::FIX:
    case pb::JobRequest::CHECK:
      if (!request.has_subject()) break;
      for (const std::string& also : request.also()) {
        if (request.kind() == pb::JobRequest::RUN && (also == "perfetto" || also == "timeline")) {
          continue;
        }
        return bad_input("cannot be kept of this job: " + in_quotes(also), "body: /also",
                         "a run has perfetto and timeline");
      }
      return check(request.subject());
    case pb::JobRequest::REPORT:
      return check_report(request);
    case pb::JobRequest::IMPORT:
      return bad_input("an import begins with an upload", "body: /kind", "POST /api/v1/traces");
    default:
      break;
  }
  return bad_input("the kind of job is missing or does not fit", "body: /kind",
                   "run, diagnose, fix or check with a subject; report with outcomes");
}

void add_edits(const pb::Subject& subject, std::vector<std::string>& words) {
  for (const pb::Edit& edit : subject.edits()) {
    // One word each: a value that begins with a dash is no option.
    words.push_back(!edit.set().empty()     ? "--set=" + edit.set()
                    : !edit.fault().empty() ? "--fault=" + edit.fault()
                                            : "--patch=" + edit.patch());
  }
}

}  // namespace

Result<void> read_text(const std::string& yaml, const std::string& name, const KnownFile& known,
                       google::protobuf::Message& message) {
  if (auto read = read_document(yaml, name, message); !read) return read;
  const std::string foreign = foreign_name(message, known);
  if (foreign.empty()) return {};
  return bad_input("neither in the library nor shipped: " + in_quotes(foreign), name,
                   "a trace is uploaded and named as NAME.rtrace, or that of a shipped scenario; a "
                   "platform is one of the catalogue, or written out");
}

bool is_trace_name(std::string_view name) {
  return is_word(name) && name.size() > kTraceEnding.size() && name.ends_with(kTraceEnding);
}

std::string trace_name_for(std::string_view file) {
  file.remove_prefix(std::min(file.size(), file.find_last_of("/\\") + 1));
  for (const std::string_view ending : {".gz", ".zst", ".json", ".rtrace", ".sqlite", ".csv"}) {
    if (file.size() > ending.size() && file.ends_with(ending)) file.remove_suffix(ending.size());
  }
  std::string name;
  for (const char c : file.substr(0, 60)) {
    const bool good = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' ||
                      (c == '.' && !name.empty());
    if (good && !(c == '-' && name.empty())) name += c;
  }
  if (name.empty()) name = "trace";
  return name + std::string(kTraceEnding);
}

Result<pb::Subject> parse_subject(std::string_view body) {
  RH_TRY(const auto json, parse_json(body));
  pb::Subject subject;
  if (auto read = from_json(json, subject, "body"); !read) {
    return tl::unexpected(std::move(read).error());
  }
  if (auto good = check(subject); !good) return tl::unexpected(std::move(good).error());
  return subject;
}

Result<pb::JobRequest> parse_job(std::string_view body) {
  RH_TRY(const auto json, parse_json(body));
  pb::JobRequest request;
  if (auto read = from_json(json, request, "body"); !read) {
    return tl::unexpected(std::move(read).error());
  }
  if (auto good = check(request); !good) return tl::unexpected(std::move(good).error());
  return request;
}

std::string trace_of(const pb::Subject& subject) {
  if (!subject.trace().empty()) return subject.trace();
  pb::Scenario scenario;
  if (subject.yaml().empty() || !read_document(subject.yaml(), kScenarioFile, scenario)) return {};
  return is_trace_name(scenario.trace().file()) ? scenario.trace().file() : "";
}

std::vector<std::string> words_of(const pb::Subject& subject) {
  std::vector<std::string> words;
  words.push_back(!subject.scenario().empty() ? subject.scenario()
                  : !subject.yaml().empty()   ? std::string("./") + kScenarioFile
                                              : "./" + subject.trace());
  add_edits(subject, words);
  return words;
}

std::vector<std::string> words_of(const pb::JobRequest& request) {
  std::vector<std::string> words;
  switch (request.kind()) {
    case pb::JobRequest::DIAGNOSE:
      words = {"diagnose"};
      break;
    case pb::JobRequest::FIX:
      words = {"fix"};
      break;
    case pb::JobRequest::CHECK:
      words = {"check"};
      break;
    case pb::JobRequest::REPORT:
      words = {"report"};
      for (const std::string& id : request.outcomes()) {
        words.push_back(fmt::format("../{}/{}", id, kResultFile));
      }
      words.insert(words.end(), {"-o", kReportFile, "--json"});
      return words;
    case pb::JobRequest::IMPORT:
      words = {"import", kUploadFile, "-o", kTraceFile, "--json"};
      if (request.assume_symmetric()) words.emplace_back("--assume-symmetric");
      return words;
    default:
      words = {"run"};
      break;
  }
  const std::vector<std::string> subject = words_of(request.subject());
  words.insert(words.end(), subject.begin(), subject.end());
  for (const std::string& also : request.also()) {
    words.push_back(also == "perfetto" ? "--perfetto=run.pftrace" : "--timeline=timeline.json");
  }
  words.emplace_back("--json");
  return words;
}

}  // namespace rehearse::serve
