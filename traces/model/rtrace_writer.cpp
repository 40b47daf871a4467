// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <optional>
#include <set>

#include "traces/model/rtrace.hpp"
#include "traces/model/rtrace_block.hpp"
#include "traces/model/rtrace_file.hpp"
#include "traces/model/rtrace_format.hpp"

namespace rehearse::traces {
namespace {

// A StringBlock is closed at this many bytes or values.
constexpr size_t kStringBytes = size_t{4} << 20;
constexpr int kStringValues = 65'536;

pb::RankRecord record_of(const RankTrace& rank) {
  pb::RankRecord record;
  record.set_rank(rank.rank);
  record.set_host(rank.host);
  record.set_gpu(rank.gpu);
  record.set_gpu_model(rank.gpu_model);
  record.set_gpu_memory(rank.gpu_memory);
  record.set_visible_gpus(rank.visible_gpus);
  record.mutable_env()->insert(rank.env.begin(), rank.env.end());
  record.set_clock_offset(rank.clock_offset);
  record.set_operations(rank.ops.size());
  for (const Lane& lane : rank.lanes) {
    pb::LaneRecord& out = *record.add_lanes();
    out.set_kind(static_cast<uint32_t>(lane.kind));
    out.set_id(lane.id);
    out.set_name(lane.name);
  }
  for (const Step& step : rank.steps) {
    pb::StepRecord& out = *record.add_steps();
    out.set_number(step.number);
    out.set_start(step.start);
    out.set_end(step.end);
  }
  return record;
}

}  // namespace

struct RtraceWriter::Impl {
  std::filesystem::path path;
  AtomicFile file;
  pb::TraceIndex index{};
  std::vector<Communicator> communicators{};
  std::set<RankId> ranks{};
  std::optional<Strings> appended_to{};  // until the first rank shows that its strings start alike
  size_t strings = 1;                    // written; the empty string is never
  bool has_header = false;

  Result<void> write(RecordType type, const google::protobuf::MessageLite& message, RankId rank = 0,
                     uint32_t count = 0);
  Result<void> write_strings(const Strings& all);
  tl::unexpected<Error> misuse(std::string what) const {
    return fail(Code::kInternal, std::move(what), path.string());
  }
};

Result<void> RtraceWriter::Impl::write(RecordType type,
                                       const google::protobuf::MessageLite& message, RankId rank,
                                       uint32_t count) {
  auto bytes = pack(type, message);
  if (!bytes) {
    bytes.error().where = path.string();
    return tl::unexpected(std::move(bytes).error());
  }
  if (type != RecordType::kIndex) {
    pb::IndexEntry& entry = *index.add_entries();
    entry.set_type(static_cast<uint32_t>(type));
    entry.set_offset(file.size());
    entry.set_rank(rank);
    entry.set_count(count);
    index.set_operations(index.operations() + count);
  }
  return file.write(*bytes);
}

Result<void> RtraceWriter::Impl::write_strings(const Strings& all) {
  if (all.size() < strings) return misuse("strings that are fewer than those already written");
  if (appended_to) {
    for (uint32_t id = 0; id < appended_to->size(); ++id) {
      if (all.at(id) != appended_to->at(id)) {
        return misuse(fmt::format("string {} differs from that of the file appended to", id));
      }
    }
    appended_to.reset();
  }
  while (strings < all.size()) {
    pb::StringBlock block;
    size_t bytes = 0;
    for (; strings < all.size() && bytes < kStringBytes && block.values_size() < kStringValues;
         ++strings) {
      const std::string& value = all.at(static_cast<uint32_t>(strings));
      if (bytes > 0 && bytes + value.size() > kStringBytes) break;
      block.add_values(value);
      bytes += value.size();
    }
    if (auto done = write(RecordType::kStrings, block); !done) return done;
  }
  return {};
}

RtraceWriter::RtraceWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RtraceWriter::RtraceWriter(RtraceWriter&&) noexcept = default;
RtraceWriter& RtraceWriter::operator=(RtraceWriter&&) noexcept = default;
RtraceWriter::~RtraceWriter() = default;

Result<RtraceWriter> RtraceWriter::create(const std::filesystem::path& path, Overwrite overwrite) {
  RH_TRY(AtomicFile file, AtomicFile::create(path, overwrite));
  auto impl = std::make_unique<Impl>(Impl{.path = path, .file = std::move(file)});
  std::string start(kRtraceMagic);
  start += static_cast<char>(kRtraceMajor);
  start += static_cast<char>(kRtraceMinor);
  if (auto done = impl->file.write(start); !done) return tl::unexpected(done.error());
  return RtraceWriter(std::move(impl));
}

Result<RtraceWriter> RtraceWriter::append(const std::filesystem::path& path) {
  RH_TRY(RtraceFile old, RtraceFile::open(path, {}));
  RH_TRY(AtomicFile file, AtomicFile::create(path, Overwrite::kReplace));
  auto impl = std::make_unique<Impl>(Impl{.path = path, .file = std::move(file)});
  std::string piece;
  for (uint64_t at = 0; at < old.records_end;) {
    const uint64_t length = std::min(old.records_end - at, uint64_t{1} << 20);
    if (auto done = old.source.read(at, length, piece); !done) return tl::unexpected(done.error());
    if (auto done = impl->file.write(piece); !done) return tl::unexpected(done.error());
    at += length;
  }
  impl->has_header = true;
  impl->index = std::move(old.index);
  impl->communicators = std::move(old.communicators);
  for (const auto& [rank, place] : old.ranks) impl->ranks.insert(rank);
  impl->strings = old.strings.size();
  impl->appended_to = std::move(old.strings);
  return RtraceWriter(std::move(impl));
}

Result<void> RtraceWriter::header(const pb::TraceHeader& header) {
  if (impl_->has_header) return impl_->misuse("a trace has one header");
  impl_->has_header = true;
  pb::TraceHeader copy = header;
  repair_utf8(copy);
  return impl_->write(RecordType::kHeader, copy);
}

Result<void> RtraceWriter::communicator(const Communicator& communicator) {
  if (!impl_->has_header) return impl_->misuse("the header of a trace comes first");
  pb::CommunicatorRecord record;
  record.set_id(communicator.id);
  record.set_description(communicator.description);
  record.mutable_members()->Add(communicator.members.begin(), communicator.members.end());
  record.set_backend(communicator.backend);
  repair_utf8(record);
  impl_->communicators.push_back(communicator);
  return impl_->write(RecordType::kCommunicator, record);
}

Result<void> RtraceWriter::evidence(const pb::Evidence& evidence) {
  if (!impl_->has_header) return impl_->misuse("the header of a trace comes first");
  pb::Evidence copy = evidence;
  repair_utf8(copy);
  return impl_->write(RecordType::kEvidence, copy);
}

Result<void> RtraceWriter::rank(const RankTrace& rank, const Strings& strings) {
  if (!impl_->has_header) return impl_->misuse("the header of a trace comes first");
  if (!impl_->ranks.insert(rank.rank).second) {
    return impl_->misuse(fmt::format("rank {} is already in the file", rank.rank));
  }
  if (rank.ops.size() > kMaxOperationsPerRank) {
    return fail(Code::kLimit, fmt::format("rank {} with {} operations", rank.rank, rank.ops.size()),
                impl_->path.string(),
                fmt::format("split it; a rank holds {}", kMaxOperationsPerRank));
  }
  if (auto done = impl_->write_strings(strings); !done) return done;
  if (std::string wrong = complaint_about(rank, strings.size()); !wrong.empty())
    return impl_->misuse(wrong);
  pb::RankRecord record = record_of(rank);
  repair_utf8(record);
  if (auto done = impl_->write(RecordType::kRank, record, rank.rank); !done) return done;
  const BlockContext context{rank.lanes, strings.size(), impl_->communicators};
  pb::OperationBlock block;
  for (size_t first = 0; first < rank.ops.size(); first += kOperationsPerBlock) {
    const size_t count = std::min<size_t>(kOperationsPerBlock, rank.ops.size() - first);
    block.Clear();
    block.set_rank(rank.rank);
    if (auto done = encode_block(rank.ops, first, count, context, block); !done) {
      return impl_->misuse(fmt::format("rank {}: {}", rank.rank, done.error().what));
    }
    const auto size = static_cast<uint32_t>(count);
    if (auto done = impl_->write(RecordType::kOperations, block, rank.rank, size); !done)
      return done;
  }
  return {};
}

Result<void> RtraceWriter::commit() {
  if (!impl_->has_header) return impl_->misuse("a trace without a header");
  const uint64_t at = impl_->file.size();
  if (auto done = impl_->write(RecordType::kIndex, impl_->index); !done) return done;
  if (auto done = impl_->file.write(trailer_bytes(at)); !done) return done;
  return impl_->file.commit();
}

uint64_t RtraceWriter::operations() const { return impl_->index.operations(); }

Result<void> write_rtrace(const Trace& trace, const std::filesystem::path& path,
                          Overwrite overwrite) {
  RH_TRY(RtraceWriter writer, RtraceWriter::create(path, overwrite));
  if (auto done = writer.header(trace.header); !done) return done;
  for (const Communicator& communicator : trace.communicators) {
    if (auto done = writer.communicator(communicator); !done) return done;
  }
  for (const pb::Evidence& evidence : trace.evidence) {
    if (auto done = writer.evidence(evidence); !done) return done;
  }
  for (const RankTrace& rank : trace.ranks) {
    if (auto done = writer.rank(rank, trace.strings); !done) return done;
  }
  return writer.commit();
}

}  // namespace rehearse::traces
