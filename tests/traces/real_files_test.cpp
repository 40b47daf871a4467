// SPDX-License-Identifier: Apache-2.0
// Every real file is imported with the counts of an independent reading, or refused with a reason.
#include "tests/traces/real_files.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <iostream>
#include <map>

#include "tests/skip.hpp"
#include "tests/traces/import_samples.hpp"

namespace rehearse::real_files_test {
using namespace rehearse;
using namespace rehearse::traces;
using real::File;
namespace fs = std::filesystem;

namespace {

struct Folder {
  const char* name;
  std::span<const File> (
      *files)();  // null: no table yet, any import or refusal with a reason holds
};

constexpr Folder kFolders[] = {
    {"kineto", real::kineto_files},       {"et", real::execution_trace_files},
    {"chakra", real::chakra_files},       {"nsys", real::nsys_files},
    {"horovod", real::horovod_files},     {"tensorflow", real::tensorflow_files},
    {"nccl", real::nccl_files},           {"flight_recorder", real::flight_recorder_files},
    {"straggler", real::straggler_files},
};

std::vector<std::string> files_below(const fs::path& data, const std::string& folder) {
  std::vector<std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(data / folder)) {
    if (entry.is_regular_file()) out.push_back(fs::relative(entry.path(), data).string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

long total(const Trace& trace, OpKind kind) {
  size_t n = 0;
  for (const RankTrace& r : trace.ranks) n += samples::count_of(r, kind);
  return static_cast<long>(n);
}

void check_count(const char* what, long want, long got) {
  INFO(what);
  if (want >= 0) CHECK(got == want);
}

void check_evidence(const real::Counts& want, const Trace& trace) {
  real::Counts got{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  for (const pb::Evidence& e : trace.evidence) {
    for (const pb::NcclCommunicator& c : e.nccl_log().communicators()) {
      ++got.communicators;
      for (const pb::NcclChoice& choice : c.choices())
        got.choices += static_cast<long>(choice.count());
      got.connections += c.connections_size();
    }
    for (const pb::MeasuredTable& table : e.measured().tables()) got.rows += table.rows_size();
    got.records += e.inspector().bytes_size();
    got.entries += e.flight_recorder().entries_size();
  }
  check_count("communicators", want.communicators, got.communicators);
  check_count("choices", want.choices, got.choices);
  check_count("connections", want.connections, got.connections);
  check_count("rows", want.rows, got.rows);
  check_count("records", want.records, got.records);
  check_count("entries", want.entries, got.entries);
}

void check_order(const Trace& trace) {
  for (const RankTrace& r : trace.ranks)
    CHECK(std::is_sorted(r.ops.start.begin(), r.ops.start.end()));
}

void check_file(const fs::path& data, const File& want) {
  INFO(want.path);
  SilentReporter silent;
  const auto got = import_files({data / want.path}, {}, silent);
  const std::string says = want.says;
  if (*want.format == '\0') {
    REQUIRE_FALSE(got);
    CHECK(got.error().code == Code::kBadInput);
    CHECK_FALSE(got.error().fix.empty());
    CHECK(got.error().message().find(says) != std::string::npos);
    return;
  }
  if (!got) FAIL_CHECK(got.error().message());
  if (!got) return;
  const Trace& trace = got->trace;
  CHECK(got->inputs.at(0).format == want.format);
  check_count("ranks", want.counts.ranks, static_cast<long>(trace.ranks.size()));
  check_count("operations", want.counts.operations, static_cast<long>(trace.operations()));
  check_count("kernels", want.counts.kernels, total(trace, OpKind::kKernel));
  check_count("calls", want.counts.calls, total(trace, OpKind::kCall));
  check_count("copies", want.counts.copies, total(trace, OpKind::kCopy));
  check_count("memsets", want.counts.memsets, total(trace, OpKind::kMemset));
  if (!trace.ranks.empty()) {
    check_count("steps", want.counts.steps, static_cast<long>(trace.ranks[0].steps.size()));
  }
  if (!says.empty()) CHECK(got->findings.count(says) > 0);
  check_evidence(want.counts, trace);
  check_order(trace);
}

// Whatever it is: no crash, and a refusal says what to do.
void check_answer(const fs::path& file) {
  INFO(file.string());
  SilentReporter silent;
  const auto got = import_files({file}, {}, silent);
  if (got) {
    CHECK(got->trace.header.inputs_size() == 1);
  } else {
    CHECK_FALSE(got.error().what.empty());
    CHECK_FALSE(got.error().fix.empty());
  }
}

}  // namespace

TEST_CASE("every real file is imported with the counts of python, or refused with a reason",
          "[import][real]") {
  const auto data = rehearse::tests::real_data();
  if (!data) return;
  for (const Folder& folder : kFolders) {
    if (!fs::exists(*data / folder.name)) {
      std::cout << "left out: no folder " << folder.name << " in REHEARSE_DATA\n";
      continue;
    }
    std::map<std::string, const File*> rows;
    if (folder.files != nullptr) {
      for (const File& file : folder.files()) {
        INFO(file.path);
        CHECK(rows.emplace(file.path, &file).second);
        CHECK(fs::exists(*data / file.path));
      }
    }
    for (const std::string& path : files_below(*data, folder.name)) {
      const auto row = rows.find(path);
      if (row != rows.end()) {
        check_file(*data, *row->second);
      } else if (folder.files == nullptr) {
        check_answer(*data / path);
      } else {
        FAIL_CHECK(path << " has no row in the table of real files");
      }
    }
  }
}

}  // namespace rehearse::real_files_test
