// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "traces/capture_file/encoder.hpp"
#include "traces/import/capture/capture.hpp"
#include "traces/import/capture/records.hpp"
#include "traces/import/capture/session.hpp"
#include "traces/import/devices.hpp"
#include "traces/import/rank_of_name.hpp"
#include "traces/model/utf8.hpp"

namespace rehearse::traces::capture {
namespace {

constexpr uint64_t kProgressEvery = 1 << 16;
constexpr size_t kMostProcesses = 4096;
constexpr uint32_t kMostRanks = 1 << 24;

class Reader {
 public:
  Reader(Source& source, ReadContext& context)
      : source_(source), context_(context), records_(source) {}

  Result<FilePart> read() {
    pb::CaptureRecord record;
    for (;;) {
      RH_TRY(const Records::Next next, records_.next());
      if (next == Records::Next::kEnd) break;
      const std::string_view bytes = records_.record();
      const activity::Place place{nullptr, records_.count() - 1, records_.offset()};
      if (!record.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
        ++unreadable_;
        continue;
      }
      if (record.what_case() == pb::CaptureRecord::kSession) {
        if (auto begun = begin(record.session()); !begun) return tl::unexpected(begun.error());
      } else if (session_) {
        session_->add(record, place);
      } else {
        ++unreadable_;
      }
      if (records_.count() % kProgressEvery == 0) {
        if (context_.reporter.interrupted()) return fail(Code::kInterrupted, "interrupted");
        context_.reporter.progress("records", records_.count(), 0);
      }
    }
    end_session();
    tell_damage();
    return finish();
  }

 private:
  Result<void> begin(const pb::CaptureSession& about) {
    if (about.version() > capture_file::kVersion) {
      return fail(Code::kBadInput,
                  fmt::format("a capture file of version {}, this program reads up to {}",
                              about.version(), capture_file::kVersion),
                  source_.name(),
                  "import it with the version of rehearse that recorded it, or newer");
    }
    end_session();
    auto known = processes_.find(about.process());
    if (known == processes_.end()) {
      if (processes_.size() >= kMostProcesses) {
        return fail(Code::kLimit, fmt::format("more than {} processes in one file", kMostProcesses),
                    source_.name(), "import the files of single processes");
      }
      activity::Builder builder(context_,
                                fmt::format("{}, process {}", source_.name(), about.process()));
      known =
          processes_.emplace(about.process(), std::make_unique<Process>(std::move(builder))).first;
      known->second->about = about;
    }
    session_.emplace(about, *known->second, context_, source_.name());
    return {};
  }

  void end_session() {
    if (!session_) return;
    session_->finish();
    if (!session_->ended()) {
      context_.findings.add("capture-not-ended", Severity::kWarning, source_.name(),
                            "the recorded process was killed, or the file is cut: what was not yet "
                            "written is missing");
    }
    session_.reset();
  }

  void tell_damage() {
    const Records::Skipped& skipped = records_.skipped();
    if (skipped.stretches > 0) {
      context_.findings.add(
          "record-damaged", Severity::kDataLoss,
          fmt::format("{}: byte {}, {} bytes in all", source_.name(), skipped.first, skipped.bytes),
          "stretches that hold no record with a right check are skipped", skipped.stretches);
    }
    if (unreadable_ > 0) {
      context_.findings.add(
          "record-unreadable", Severity::kDataLoss, source_.name(),
          "records that are not as the schema says, or stand before the first session, "
          "are left out",
          unreadable_);
    }
    if (records_.tail() > 0 || source_.cut()) {
      context_.findings.add("file-cut", Severity::kDataLoss,
                            fmt::format("{}: byte {}, record {}", source_.name(),
                                        source_.offset() - records_.tail(), records_.count()),
                            records_.gave_up()
                                ? "too much of the file is damaged; the rest was not read"
                                : "the file ends inside a record; all records before it are used");
    }
  }

  Result<FilePart> finish() {
    const bool gpu = std::any_of(processes_.begin(), processes_.end(),
                                 [](const auto& p) { return p.second->builder.has_gpu_work(); });
    FilePart part;
    uint64_t idle = 0;
    for (auto& [pid, process] : processes_) {
      add_evidence(*process, part);
      if (process->builder.operations() == 0) continue;
      if (gpu && !process->builder.has_gpu_work()) {
        ++idle;
        continue;
      }
      add_ranks(*process, part);
    }
    if (idle > 0) {
      context_.findings.add("processes-without-gpu-work", Severity::kInfo, source_.name(),
                            "processes that put no work on a GPU are left out", idle);
    }
    if (part.ranks.empty() && part.evidence.empty()) {
      return fail(Code::kBadInput,
                  fmt::format("none of its {} records is an operation", records_.count()),
                  source_.name(),
                  "record at least one step; rehearse capture --selftest checks the machine");
    }
    return part;
  }

  static std::string nccl_version(const pb::CaptureSession& about) {
    const uint32_t v = about.nccl_version();
    return v >= 10000 ? fmt::format("{}.{}.{}", v / 10000, v / 100 % 100, v % 100) : "";
  }

  void add_evidence(Process& process, FilePart& part) {
    if (process.tuner.tables_size() == 0) return;
    pb::Evidence& evidence = part.evidence.emplace_back();
    evidence.set_source(std::filesystem::path(source_.name()).filename().string());
    *evidence.mutable_tuner() = std::move(process.tuner);
    evidence.mutable_tuner()->set_nccl_version(nccl_version(process.about));
    for (const auto& [name, value] : process.env) {
      if (name.starts_with("NCCL_")) {
        (*evidence.mutable_tuner()->mutable_environment())[name] = value;
      }
    }
  }

  void add_ranks(Process& process, FilePart& part) {
    const pb::CaptureSession& about = process.about;
    const auto place = process.builder.nccl().largest();
    if (place) part.world_size = std::max(part.world_size.value_or(0), place->size);
    if (process.builder.has_pytorch()) part.framework = "pytorch";
    if (const std::string version = nccl_version(about); !version.empty()) {
      part.nccl_version = version;
    }
    std::vector<RankPart> ranks = process.builder.finish();
    if (RankId last = 0;
        about.has_world_size() && about.world_size() > 0 &&
        rank_of_gpu(about.world_size() - 1, ranks.size(), ranks.size() - 1, last)) {
      part.world_size = std::max(part.world_size.value_or(0), last + 1);
    }
    const auto by_name = rank_of_name(source_.name());
    std::optional<RankId> number;
    if (about.has_rank() && about.rank() < kMostRanks) {
      number = about.rank();
    } else if (place && ranks.size() == 1) {
      number = static_cast<RankId>(place->position);
    } else if (by_name) {
      number = *by_name;
    }
    for (size_t i = 0; i < ranks.size(); ++i) {
      RankTrace& trace = ranks[i].trace;
      ranks[i].rank_known = number && rank_of_gpu(*number, ranks.size(), i, trace.rank);
      trace.host = to_utf8(about.host());
      trace.env = process.env;
      if (const auto device = process.devices.find(trace.gpu); device != process.devices.end()) {
        trace.gpu_model = to_utf8(device->second.model());
        trace.gpu_memory =
            static_cast<Bytes>(std::min<uint64_t>(device->second.memory(), uint64_t{1} << 50));
      }
      part.ranks.push_back(std::move(ranks[i]));
    }
  }

  Source& source_;
  ReadContext& context_;
  Records records_;
  std::map<uint32_t, std::unique_ptr<Process>> processes_;
  std::optional<Session> session_;
  uint64_t unreadable_ = 0;
};

}  // namespace

bool sniff(std::string_view head) {
  const size_t magic = head.substr(0, 64).find(capture_file::kMagic);
  return !head.empty() && head[0] == '\x0a' && magic != std::string_view::npos;
}

Result<FilePart> read(Source& source, ReadContext& context) {
  return Reader(source, context).read();
}

}  // namespace rehearse::traces::capture
