// SPDX-License-Identifier: Apache-2.0
// What the server answers: the pages and the JSON API of /api/v1 (cli/serve/openapi.json). Knows
// nothing of sockets. Safe to call from any thread.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/serve/door.hpp"
#include "cli/serve/http.hpp"
#include "cli/serve/jobs.hpp"
#include "cli/serve/labs.hpp"
#include "cli/serve/library.hpp"
#include "cli/serve/queries.hpp"

namespace rehearse::serve {

struct ApiOptions {
  uint64_t upload_bytes = uint64_t{2} << 30;
  int streams = 64;   // of events at a time
  bool labs = false;  // this program has `learn`
};

class Api {
 public:
  // FOLDER/passing is for files of questions that are being answered, FOLDER/labs for labs; all
  // arguments outlive the Api.
  Api(Jobs& jobs, Library& library, Queries& queries, const std::filesystem::path& folder,
      Door door, ApiOptions options);

  // Never throws.
  [[nodiscard]] Answer answer(const Request& request);

  // Method, pattern and handler; {x} stands for one part of the path.
  using Words = std::vector<std::string>;  // what stands in the places of {x}
  using Handler = Answer (Api::*)(const Request&, const Words&);
  struct Route {
    const char* method;
    const char* pattern;
    Handler handler;
  };

 private:
  static const std::vector<Route>& routes();
  [[nodiscard]] Answer dispatch(const Request& request);
  [[nodiscard]] Answer index(const Request&, const Words&);
  [[nodiscard]] Answer asset(const Request&, const Words&);
  [[nodiscard]] Answer metrics(const Request&, const Words&);
  [[nodiscard]] Answer about(const Request&, const Words&);
  [[nodiscard]] Answer openapi(const Request&, const Words&);
  [[nodiscard]] Answer platforms(const Request&, const Words&);
  [[nodiscard]] Answer platform(const Request&, const Words&);
  [[nodiscard]] Answer faults(const Request&, const Words&);
  [[nodiscard]] Answer fault(const Request&, const Words&);
  [[nodiscard]] Answer scenarios(const Request&, const Words&);
  [[nodiscard]] Answer scenario(const Request&, const Words&);
  [[nodiscard]] Answer preview(const Request&, const Words&);
  [[nodiscard]] Answer traces(const Request&, const Words&);
  [[nodiscard]] Answer trace(const Request&, const Words&);
  [[nodiscard]] Answer trace_file(const Request&, const Words&);
  [[nodiscard]] Answer remove_trace(const Request&, const Words&);
  [[nodiscard]] Answer upload(const Request&, const Words&);
  [[nodiscard]] Answer import(const Request&, const Words&);
  [[nodiscard]] Answer jobs(const Request&, const Words&);
  [[nodiscard]] Answer submit(const Request&, const Words&);
  [[nodiscard]] Answer job(const Request&, const Words&);
  [[nodiscard]] Answer job_events(const Request&, const Words&);
  [[nodiscard]] Answer events(const Request&, const Words&);
  [[nodiscard]] Answer result(const Request&, const Words&);
  [[nodiscard]] Answer file(const Request&, const Words&);
  [[nodiscard]] Answer cancel(const Request&, const Words&);
  [[nodiscard]] Answer remove_job(const Request&, const Words&);
  [[nodiscard]] Answer compare(const Request&, const Words&);
  [[nodiscard]] Answer labs(const Request&, const Words&);
  [[nodiscard]] Answer lab(const Request&, const Words&);
  [[nodiscard]] Answer lab_files(const Request&, const Words&);
  [[nodiscard]] Answer lab_action(const Request&, const Words&);

  [[nodiscard]] Answer asked(const Words& words);
  [[nodiscard]] Result<std::string> expand(const pb::Subject& subject);

  Jobs& jobs_;
  Library& library_;
  Queries& queries_;
  Labs labs_;
  std::filesystem::path folder_;
  Door door_;
  ApiOptions options_;
  std::atomic<uint64_t> answered_{0};
  std::atomic<uint64_t> next_folder_{0};
  std::shared_ptr<std::atomic<int>> streams_;  // shared with the streams themselves
};

// What a done job gets beside its files: the summary of a run, the trace of an import.
[[nodiscard]] Jobs::Finish finish_with(Library& library);

}  // namespace rehearse::serve
