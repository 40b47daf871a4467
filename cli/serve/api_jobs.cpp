// SPDX-License-Identifier: Apache-2.0
// The part of the API that has things done: jobs, their progress and their results.
#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "base/atomic_file.hpp"
#include "base/document.hpp"
#include "base/text.hpp"
#include "cli/serve/api.hpp"
#include "cli/serve/job_request.hpp"

namespace rehearse::serve {
namespace {
namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr size_t kPage = 50, kMaxPage = 500;
constexpr uint64_t kMaxResult = 64u << 20;  // bytes that are looked into
constexpr auto kLook = std::chrono::milliseconds(500);
constexpr int kBeat = 20;  // looks without news until a sign of life

Answer of_job(const Result<pb::Job>& job, int status = 200) {
  if (!job) {
    const bool busy = job.error().code == Code::kLimit;
    return error_answer(job.error(), busy ? 503 : job.error().code == Code::kUsage ? 409 : 0);
  }
  Answer answer = json_answer(to_json(*job), status);
  if (status == 202) answer.headers.emplace_back("Location", "/api/v1/jobs/" + job->id());
  return answer;
}

uint64_t number_in(const std::string& text, uint64_t otherwise) {
  uint64_t value = otherwise;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end ? value : otherwise;
}

Result<Json> read_json(const fs::path& file) {
  RH_TRY(const std::string text, read_file(file, kMaxResult));
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return bad_input("not a JSON document", file.filename().string());
  return json;
}

// "" and nothing where the document has no such place.
std::string text_at(const Json& json, const char* pointer) {
  const Json::json_pointer at(pointer);
  return json.contains(at) && json[at].is_string() ? json[at].get<std::string>() : "";
}
std::optional<int64_t> number_at(const Json& json, const char* pointer) {
  const Json::json_pointer at(pointer);
  if (!json.contains(at) || !json[at].is_number_integer()) return std::nullopt;
  return json[at].get<int64_t>();
}

void summarise(const Json& outcome, pb::JobSummary& summary) {
  summary.set_scenario(text_at(outcome, "/scenario"));
  summary.set_verdict(text_at(outcome, "/verdict"));
  summary.set_symptom(text_at(outcome, "/symptom/id"));
  summary.set_label(text_at(outcome, "/symptom/label"));
  summary.set_ranks(static_cast<uint32_t>(number_at(outcome, "/ranks").value_or(0)));
  if (const auto step = number_at(outcome, "/step_time_ns/mean")) summary.set_step_time_ns(*step);
  if (const auto base = number_at(outcome, "/baseline_step_time_ns/mean")) {
    summary.set_baseline_step_time_ns(*base);
  }
}

std::string event_of(const pb::Job& job) {
  const auto replace = Json::error_handler_t::replace;
  return "event: job\ndata: " + to_json(job).dump(-1, ' ', false, replace) + "\n\n";
}

// Counts the streams that are open.
class StreamPlace {
 public:
  explicit StreamPlace(std::shared_ptr<std::atomic<int>> count) : count_(std::move(count)) {
    count_->fetch_add(1);
  }
  ~StreamPlace() { count_->fetch_sub(1); }
  StreamPlace(const StreamPlace&) = delete;
  StreamPlace& operator=(const StreamPlace&) = delete;

 private:
  std::shared_ptr<std::atomic<int>> count_;  // outlives the Api while a stream is open
};

Answer too_many_streams() {
  return error_answer({Code::kLimit, "too many streams of events are open", "",
                       "close one, or ask for the job again and again"},
                      503);
}

// Where a look at the jobs has come to.
struct Follow {
  uint64_t seen = 0;
  int quiet = 0;
  std::shared_ptr<StreamPlace> place;  // shared: std::function copies
};

// Own part of a rank's step on average, for comparisons.
Json mean_breakdown(const Json& outcome) {
  Json mean = Json::object();
  const auto rows = outcome.find("breakdown");
  if (rows == outcome.end() || !rows->is_array() || rows->empty()) return mean;
  for (const char* part : {"compute", "communication", "wait", "host", "idle", "overlapped"}) {
    double sum = 0;
    for (const Json& row : *rows) {
      if (row.is_object() && row.contains(part) && row[part].is_number())
        sum += row[part].get<double>();
    }
    mean[part] = static_cast<int64_t>(sum / static_cast<double>(rows->size()));
  }
  return mean;
}

}  // namespace

Jobs::Finish finish_with(Library& library) {
  return [&library](pb::Job& job, const fs::path& folder) -> Result<void> {
    if (job.request().kind() == pb::JobRequest::IMPORT) {
      RH_TRY(const std::string name,
             library.add(folder / kTraceFile, trace_name_for(job.request().file())));
      job.mutable_summary()->set_trace(name);
      std::error_code ec;
      fs::remove(folder / kTraceFile, ec);
      fs::remove_all(folder / kUploadFile, ec);
    }
    if (job.request().kind() == pb::JobRequest::RUN) {
      RH_TRY(const Json outcome, read_json(folder / kResultFile));
      summarise(outcome, *job.mutable_summary());
    }
    return {};
  };
}

Answer Api::import(const Request& request, const Words&) {
  pb::JobRequest job;
  job.set_kind(pb::JobRequest::IMPORT);
  Words uploads;
  const bool listed = request.header("content-type").starts_with("application/json");
  if (listed) {
    const auto body = text_of(request, kMaxBody);
    if (!body) return error_answer(body.error());
    const Json json = Json::parse(*body, nullptr, false);
    const auto list = json.is_object() ? json.find("uploads") : json.end();
    if (!json.is_object() || list == json.end() || !list->is_array() || list->empty()) {
      return error_answer({Code::kBadInput, "there are no uploads to import", "body: /uploads",
                           "as {\"uploads\": [\"...\"], \"name\": \"mine\"}"});
    }
    for (const Json& id : *list) {
      if (!id.is_string()) {
        return error_answer({Code::kBadInput, "an upload is named by a text",
                             fmt::format("body: /uploads/{}", uploads.size()),
                             "give what POST /api/v1/uploads answered"});
      }
      uploads.push_back(id.get<std::string>());
    }
    job.set_file(text_at(json, "/name").substr(0, 200));
    job.set_assume_symmetric(json.contains("assume_symmetric") && json["assume_symmetric"] == true);
  } else {
    const auto id = library_.keep_upload(request, request.argument("name"), options_.upload_bytes);
    if (!id) return error_answer(id.error());
    uploads.push_back(*id);
    job.set_file(request.argument("name").substr(0, 200));
    job.set_assume_symmetric(request.argument("assume_symmetric") == "true");
  }
  const auto submitted = jobs_.submit(
      job, [&](const fs::path& folder) { return library_.take_uploads(uploads, folder); });
  // Of a file that came with the request nobody else knows.
  if (!submitted && !listed) library_.discard_upload(uploads.front());
  return of_job(submitted, 202);
}

Answer Api::jobs(const Request& request, const Words&) {
  const uint64_t before = number_in(request.argument("before"), 0);
  const size_t most = std::min<size_t>(number_in(request.argument("limit"), kPage), kMaxPage);
  Json rows = Json::array();
  for (const pb::Job& job : jobs_.list(before, most)) rows.push_back(to_json(job));
  return json_answer({{"schema", "rehearse.jobs/1"}, {"jobs", rows}});
}

Answer Api::submit(const Request& request, const Words&) {
  const auto body = text_of(request, kMaxBody);
  if (!body) return error_answer(body.error());
  const auto job = parse_job(*body);
  if (!job) return error_answer(job.error());
  for (int i = 0; i < job->outcomes_size(); ++i) {
    const auto part = jobs_.get(job->outcomes(i));
    if (!part) return error_answer(part.error());
    const auto kind = part->request().kind();
    const bool fits = kind == pb::JobRequest::RUN ||
                      (i > 0 && (kind == pb::JobRequest::DIAGNOSE || kind == pb::JobRequest::FIX));
    if (part->state() != pb::Job::DONE || !fits) {
      return error_answer(
          {Code::kBadInput,
           "a report is made of runs that are done, then of their diagnoses and fixes",
           "job " + part->id(), "wait for it, or leave it out"});
    }
  }
  const auto prepare = [&](const fs::path& folder) {
    return library_.lay_out(job->subject(), folder);
  };
  return of_job(jobs_.submit(*job, prepare), 202);
}

Answer Api::job(const Request&, const Words& words) { return of_job(jobs_.get(words[0])); }

Answer Api::cancel(const Request&, const Words& words) { return of_job(jobs_.cancel(words[0])); }

Answer Api::remove_job(const Request&, const Words& words) {
  if (auto removed = jobs_.remove(words[0]); !removed) {
    return error_answer(removed.error(), removed.error().code == Code::kUsage ? 409 : 0);
  }
  return {.status = 204};
}

Answer Api::file(const Request&, const Words& words) {
  const auto job = jobs_.get(words[0]);
  if (!job) return error_answer(job.error());
  for (const pb::JobFile& file : job->files()) {
    if (file.name() != words[1]) continue;
    Answer answer{.type = "application/octet-stream",
                  .file = jobs_.folder_of(job->id()) / file.name()};
    if (file.name().ends_with(".json")) answer.type = "application/json";
    if (file.name().ends_with(".yaml")) answer.type = "text/plain; charset=utf-8";
    if (file.name().ends_with(".html")) {
      answer.type = "text/html; charset=utf-8";
      // A page of its own, whatever is in it: it cannot reach this server.
      answer.headers.emplace_back("Content-Security-Policy",
                                  "sandbox allow-scripts allow-downloads allow-modals; default-src "
                                  "'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
                                  "img-src data: blob:; font-src data:");
    }
    return answer;
  }
  return error_answer({Code::kMissingInput, "the job has no such file", "job " + job->id(),
                       "its files are listed in the job"});
}

Answer Api::result(const Request& request, const Words& words) {
  const auto job = jobs_.get(words[0]);
  if (!job) return error_answer(job.error());
  if (job->state() == pb::Job::DONE) return file(request, {words[0], kResultFile});
  if (job->state() == pb::Job::FAILED) {
    return json_answer({{"schema", "rehearse.error/1"}, {"error", to_json(job->error())}}, 409);
  }
  return error_answer(
      {Code::kUsage, "the job has no result", "job " + job->id(), "wait until its state is done"},
      409);
}

Answer Api::job_events(const Request&, const Words& words) {
  if (const auto job = jobs_.get(words[0]); !job) return error_answer(job.error());
  if (streams_->load() >= options_.streams) return too_many_streams();
  auto at = std::make_shared<Follow>();
  at->place = std::make_shared<StreamPlace>(streams_);
  Answer answer{.type = "text/event-stream"};
  answer.stream = [this, at, id = words[0], last = std::string()](std::string& piece) mutable {
    at->seen = jobs_.wait(at->seen, kLook);
    const auto job = jobs_.get(id);
    if (!job || jobs_.stopping()) return false;
    std::string event = event_of(*job);
    if (event != last) {
      piece = last = std::move(event);
      at->quiet = 0;
    } else if (++at->quiet >= kBeat) {
      piece = ": still here\n\n";
      at->quiet = 0;
    }
    return !has_ended(*job);
  };
  return answer;
}

Answer Api::events(const Request&, const Words&) {
  if (streams_->load() >= options_.streams) return too_many_streams();
  auto at = std::make_shared<Follow>();
  at->place = std::make_shared<StreamPlace>(streams_);
  at->seen = jobs_.wait(0, std::chrono::milliseconds(0));
  Answer answer{.type = "text/event-stream"};
  answer.stream = [this, at](std::string& piece) {
    const uint64_t before = at->seen;
    at->seen = jobs_.wait(before, kLook);
    for (const pb::Job& job : jobs_.changed_since(before)) piece += event_of(job);
    at->quiet = piece.empty() ? at->quiet + 1 : 0;
    if (at->quiet >= kBeat) {
      piece = ": still here\n\n";
      at->quiet = 0;
    }
    return !jobs_.stopping();
  };
  return answer;
}

Answer Api::compare(const Request& request, const Words&) {
  const Words ids = split(request.argument("jobs"), ',');
  if (ids.empty() || ids[0].empty() || ids.size() > kMaxOutcomes) {
    return error_answer({Code::kUsage, fmt::format("1 to {} jobs are compared", kMaxOutcomes),
                         "jobs", "as /api/v1/compare?jobs=3,5"});
  }
  Json rows = Json::array();
  std::optional<int64_t> first;
  for (const std::string& id : ids) {
    const auto job = jobs_.get(id);
    if (!job) return error_answer(job.error());
    if (job->state() != pb::Job::DONE || job->request().kind() != pb::JobRequest::RUN) {
      return error_answer(
          {Code::kBadInput, "only runs that are done are compared", "job " + id, "leave it out"});
    }
    const auto outcome = read_json(jobs_.folder_of(id) / kResultFile);
    if (!outcome) return error_answer(outcome.error());
    Json row = {{"job", job->id()}, {"title", job->request().title()}};
    row.update(to_json(job->summary()));
    row["patches"] = outcome->value("patches", Json::array());
    row["breakdown"] = mean_breakdown(*outcome);
    const auto step = number_at(*outcome, "/step_time_ns/mean");
    if (step && !first) first = step;
    if (step && first && *first > 0) {
      row["ratio"] = static_cast<double>(*step) / static_cast<double>(*first);
    }
    rows.push_back(std::move(row));
  }
  return json_answer({{"schema", "rehearse.compare/1"}, {"runs", rows}});
}

}  // namespace rehearse::serve
