// SPDX-License-Identifier: Apache-2.0
// One session of a capture file: its records become operations of the process. Names may be told after they
// are used; such records wait until the name comes or the session ends.
#pragma once

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "traces/import/activity/builder.hpp"
#include "traces/import/capture/nccl_events.hpp"
#include "traces/proto/capture.pb.h"
#include "traces/proto/evidence.pb.h"

namespace rehearse::traces::capture {

// What a process tells about itself, over all its sessions.
struct Process {
  explicit Process(activity::Builder b) : builder(std::move(b)) {}
  activity::Builder builder;
  pb::CaptureSession about;
  std::map<uint32_t, pb::CaptureDevice> devices;
  std::map<std::string, std::string> env;
  // What NCCL's tuner was shown; equal tables once.
  pb::TunerTables tuner;
  std::set<std::tuple<uint64_t, uint32_t, uint64_t, uint32_t>> tuned;
};

class Session {
 public:
  // `process` outlives the session.
  Session(const pb::CaptureSession& about, Process& process, ReadContext& context,
          std::string file);
  void add(const pb::CaptureRecord& record, const activity::Place& place);
  // All records of the session are in.
  void finish();
  [[nodiscard]] bool ended() const { return ended_; }

 private:
  struct Waiting {
    std::string record;
    activity::Place place;
  };
  // Looks a name up: 0 for id 0; sets missing_ when it is not known.
  [[nodiscard]] uint32_t name(uint32_t id);
  [[nodiscard]] std::string_view text(uint32_t id) { return context_.strings.at(name(id)); }
  [[nodiscard]] activity::Span span(int64_t start, uint64_t duration) const;
  [[nodiscard]] Nanos time(int64_t at) const;
  void use(const pb::CaptureRecord& record, const activity::Place& place);
  void range(const pb::CaptureRange& r, const activity::Place& place);
  void nccl_start(const pb::CaptureNcclStart& r);
  void tuning(const pb::CaptureTuning& r);
  void finding(const pb::CaptureRecord& record, const activity::Place& place);

  Process& process_;
  ReadContext& context_;
  std::string file_;
  Nanos origin_ = 0;
  std::unordered_map<uint32_t, uint32_t> names_;
  NcclEvents nccl_;
  std::vector<Waiting> waiting_;
  size_t waiting_bytes_ = 0;
  bool missing_ = false;    // the record at hand uses a name that is not known
  bool finishing_ = false;  // no further name will come
  uint64_t nameless_ = 0;
  bool ended_ = false;
};

}  // namespace rehearse::traces::capture
