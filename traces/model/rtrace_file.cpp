// SPDX-License-Identifier: Apache-2.0
#include "traces/model/rtrace_file.hpp"

#include <fmt/format.h>

#include <new>
#include <optional>
#include <utility>

#include "traces/evidence/evidence.hpp"
#include "traces/model/rtrace_block.hpp"

namespace rehearse::traces {
namespace {

constexpr const char* kDamaged = "the file is damaged; copy or write it again";
// Bytes of strings, communicators and ranks together, decompressed: far more than any real job has.
constexpr uint64_t kMaxMetadata = uint64_t{1} << 30;

Result<void> check_start(const ByteSource& source) {
  if (source.size() == 0) {
    return fail(Code::kBadInput, "the file is empty", source.where(0), "copy or write it again");
  }
  std::string start;
  const uint64_t length = std::min(source.size(), kFileStart);
  if (auto done = source.read(0, length, start); !done) return done;
  const std::string_view magic = std::string_view(start).substr(0, kRtraceMagic.size());
  if (magic != kRtraceMagic.substr(0, magic.size())) {
    return fail(Code::kBadInput, "is not a .rtrace file", source.where(0),
                "traces of other formats are read by `rehearse import`");
  }
  if (length < kFileStart) {
    return fail(Code::kBadInput, "the file is cut inside its first bytes; nothing can be read",
                source.where(length), "copy or write it again");
  }
  const auto major = static_cast<uint8_t>(start[6]), minor = static_cast<uint8_t>(start[7]);
  if (major == kRtraceMajor && minor == kRtraceMinor) return {};
  const bool newer = major > kRtraceMajor || (major == kRtraceMajor && minor > kRtraceMinor);
  return fail(Code::kBadInput,
              fmt::format("is of .rtrace version {}.{}; this rehearse reads {}.{}", major, minor,
                          kRtraceMajor, kRtraceMinor),
              source.where(kRtraceMagic.size()),
              newer ? "read it with a newer rehearse" : "import the original trace again");
}

// The index that the trailer names, when both are whole.
std::optional<std::pair<pb::TraceIndex, uint64_t>> find_index(const ByteSource& source) {
  if (source.size() < kFileStart + kRecordHeader + kTrailer) return std::nullopt;
  const uint64_t end = source.size() - kTrailer;
  RecordRoom room;
  if (!source.read(end, kTrailer, room.payload)) return std::nullopt;
  const std::optional<uint64_t> offset = index_offset_from(room.payload);
  if (!offset || *offset < kFileStart || *offset > end - kRecordHeader) return std::nullopt;
  if (!source.read(*offset, kRecordHeader, room.payload) ||
      head_from(room.payload).length != end - *offset - kRecordHeader) {
    return std::nullopt;
  }
  const auto plain = read_record(source, *offset, RecordType::kIndex, room);
  pb::TraceIndex index;
  if (!plain || !parse(*plain, index)) return std::nullopt;
  return std::pair(std::move(index), *offset);
}

// Every byte between the start and the index belongs to the record that the index says.
Result<void> check_against_records(const ByteSource& source, const pb::TraceIndex& index,
                                   uint64_t end) {
  uint64_t at = kFileStart;
  std::string bytes;
  const auto bad = [&](std::string_view what) {
    return fail(Code::kBadInput, std::string(what), source.where(at), kDamaged);
  };
  for (const pb::IndexEntry& entry : index.entries()) {
    if (entry.offset() != at || end - at < kRecordHeader)
      return bad("the index names no record here");
    if (auto done = source.read(at, kRecordHeader, bytes); !done) return done;
    const RecordHead head = head_from(bytes);
    if (static_cast<uint32_t>(head.type) != entry.type() || !complaint_about(head).empty() ||
        head.length > end - at - kRecordHeader) {
      return bad("the head of a record does not match the index");
    }
    at += kRecordHeader + head.length;
  }
  if (at != end) return bad("the index does not name the record here");
  return {};
}

struct Walk {
  pb::TraceIndex index;
  uint64_t end = kFileStart;  // first byte that is in no whole record
  std::string why;
};

// The records up to the first that is not whole, or up to the index.
Walk walk(const ByteSource& source, uint64_t max_operations) {
  Walk found;
  RecordRoom room;
  pb::OperationBlock block;
  while (found.index.operations() <= max_operations) {
    if (source.size() - found.end < kRecordHeader) {
      found.why = "the file ends here";
      break;
    }
    if (!source.read(found.end, kRecordHeader, room.payload)) {
      found.why = "the file cannot be read here";
      break;
    }
    const RecordHead head = head_from(room.payload);
    if (head.type == RecordType::kIndex) {
      found.why = "the index or the end mark is not whole";
      break;
    }
    const auto plain = read_record(source, found.end, head.type, room);
    if (!plain) {
      found.why = plain.error().what;
      break;
    }
    pb::IndexEntry entry;
    entry.set_type(static_cast<uint32_t>(head.type));
    entry.set_offset(found.end);
    if (head.type == RecordType::kOperations) {
      if (!parse(*plain, block)) {
        found.why = "block that cannot be parsed";
        break;
      }
      entry.set_rank(block.rank());
      entry.set_count(block.count());
      found.index.set_operations(found.index.operations() + block.count());
    }
    *found.index.add_entries() = entry;
    found.end += kRecordHeader + head.length;
  }
  return found;
}

RankTrace rank_from(const pb::RankRecord& record) {
  RankTrace rank;
  rank.rank = record.rank();
  rank.host = record.host();
  rank.gpu = record.gpu();
  rank.gpu_model = record.gpu_model();
  rank.gpu_memory = record.gpu_memory();
  rank.visible_gpus = record.visible_gpus();
  rank.env.insert(record.env().begin(), record.env().end());
  rank.clock_offset = record.clock_offset();
  for (const pb::LaneRecord& lane : record.lanes()) {
    rank.lanes.push_back({static_cast<LaneKind>(lane.kind()), lane.id(), lane.name()});
  }
  for (const pb::StepRecord& step : record.steps()) {
    rank.steps.push_back({step.number(), step.start(), step.end()});
  }
  return rank;
}

// Fills the file from the records its index names.
class Loader {
 public:
  Loader(RtraceFile& file, const ReadOptions& options) : file_(file), options_(options) {}
  Result<void> load();

 private:
  Result<void> load(const pb::IndexEntry& entry);
  Result<void> add_header(std::string_view bytes);
  Result<void> add_strings(std::string_view bytes);
  Result<void> add_communicator(std::string_view bytes);
  Result<void> add_rank(std::string_view bytes);
  Result<void> add_evidence(std::string_view bytes);
  Result<void> add_block(const pb::IndexEntry& entry);
  [[nodiscard]] tl::unexpected<Error> bad(std::string what) const {
    return fail(Code::kBadInput, std::move(what), file_.source.where(at_), kDamaged);
  }

  RtraceFile& file_;
  const ReadOptions& options_;
  RecordRoom room_;
  uint64_t at_ = kFileStart;
  uint64_t metadata_ = 0;
  uint64_t operations_ = 0;
  bool has_header_ = false;
};

Result<void> Loader::load() {
  for (const pb::IndexEntry& entry : file_.index.entries()) {
    at_ = entry.offset();
    if (auto done = load(entry); !done) return done;
  }
  at_ = file_.records_end;
  if (!has_header_) return bad("the file holds no whole header; nothing can be read");
  if (operations_ != file_.index.operations()) {
    return bad(fmt::format("the index counts {} operations and lists {}", file_.index.operations(),
                           operations_));
  }
  return {};
}

Result<void> Loader::load(const pb::IndexEntry& entry) {
  const auto type = static_cast<RecordType>(entry.type());
  if (!has_header_ && type != RecordType::kHeader) return bad("the first record is not the header");
  if (type == RecordType::kOperations) return add_block(entry);
  RH_TRY(const std::string_view bytes, read_record(file_.source, at_, type, room_));
  metadata_ += bytes.size();
  if (metadata_ > kMaxMetadata) {
    return fail(
        Code::kLimit,
        fmt::format("more than {} bytes of names, communicators, ranks and evidence", kMaxMetadata),
        file_.source.where(at_), "split the trace");
  }
  switch (type) {
    case RecordType::kHeader:
      return add_header(bytes);
    case RecordType::kStrings:
      return add_strings(bytes);
    case RecordType::kCommunicator:
      return add_communicator(bytes);
    case RecordType::kRank:
      return add_rank(bytes);
    case RecordType::kEvidence:
      return add_evidence(bytes);
    default:
      return bad("record that has no place here");
  }
}

Result<void> Loader::add_header(std::string_view bytes) {
  if (std::exchange(has_header_, true)) return bad("second header");
  if (!parse(bytes, file_.header)) return bad("header that cannot be parsed");
  return {};
}

Result<void> Loader::add_strings(std::string_view bytes) {
  pb::StringBlock block;
  if (!parse(bytes, block)) return bad("strings that cannot be parsed");
  for (const std::string& value : block.values()) {
    const size_t expected = file_.strings.size();
    if (file_.strings.intern(value) != expected) return bad("string that is there twice");
  }
  return {};
}

Result<void> Loader::add_communicator(std::string_view bytes) {
  pb::CommunicatorRecord record;
  if (!parse(bytes, record)) return bad("communicator that cannot be parsed");
  file_.communicators.push_back({record.id(),
                                 record.description(),
                                 {record.members().begin(), record.members().end()},
                                 record.backend()});
  return {};
}

Result<void> Loader::add_rank(std::string_view bytes) {
  pb::RankRecord record;
  if (!parse(bytes, record)) return bad("rank that cannot be parsed");
  for (const pb::LaneRecord& lane : record.lanes()) {
    if (lane.kind() > static_cast<uint32_t>(LaneKind::kProxy)) return bad("lane of unknown kind");
  }
  RankPlace place{rank_from(record), record.operations(), 0, {}};
  if (std::string wrong = complaint_about(place.rank, file_.strings.size()); !wrong.empty()) {
    return bad(std::move(wrong));
  }
  const RankId rank = record.rank();
  if (!file_.ranks.emplace(rank, std::move(place)).second) {
    return bad(fmt::format("rank {} that is there twice", rank));
  }
  return {};
}

Result<void> Loader::add_evidence(std::string_view bytes) {
  pb::Evidence evidence;
  if (!parse(bytes, evidence)) return bad("evidence that cannot be parsed");
  if (std::string wrong = complaint_about(evidence); !wrong.empty()) return bad(std::move(wrong));
  file_.evidence.push_back(std::move(evidence));
  return {};
}

Result<void> Loader::add_block(const pb::IndexEntry& entry) {
  const auto rank = file_.ranks.find(entry.rank());
  if (rank == file_.ranks.end())
    return bad(fmt::format("operations of unknown rank {}", entry.rank()));
  if (entry.count() == 0 || entry.count() > kOperationsPerBlock) {
    return bad(fmt::format("block of {} operations", entry.count()));
  }
  operations_ += entry.count();
  if (operations_ > options_.max_operations) {
    return fail(Code::kLimit, fmt::format("more than {} operations", options_.max_operations),
                file_.source.where(at_), "raise the limit or read fewer ranks");
  }
  RankPlace& place = rank->second;
  place.found += entry.count();
  if (place.found > place.operations || place.found > kMaxOperationsPerRank) {
    return bad(fmt::format("rank {} has more than the {} operations it names", entry.rank(),
                           place.operations));
  }
  place.blocks.push_back({entry.offset(), entry.count()});
  return {};
}

Result<void> judge_cut(RtraceFile& file, const Walk& found, const ReadOptions& options) {
  uint64_t whole = 0;
  std::string partial;
  for (const auto& [rank, place] : file.ranks) {
    if (place.found == place.operations) {
      ++whole;
    } else {
      partial = fmt::format("rank {}: {} of {} operations", rank, place.found, place.operations);
      file.findings.add("cut-rank", Severity::kDataLoss, partial,
                        "do not compare its times with other ranks");
    }
  }
  if (options.truncated == Truncated::kRefuse) {
    return fail(Code::kBadInput,
                fmt::format("cut or damaged: {}; {} operations and {} ranks before it are whole{}",
                            found.why, found.index.operations(), whole,
                            partial.empty() ? "" : " (" + partial + ")"),
                file.source.where(found.end),
                "copy or write the file again, or go on with what is whole (--allow-truncated)");
  }
  file.findings.add("cut-file", Severity::kDataLoss,
                    fmt::format("{}, {}", file.source.where(found.end), found.why),
                    "what follows is lost; copy or write the file again");
  return {};
}

Result<RtraceFile> open_file(const std::filesystem::path& path, const ReadOptions& options) {
  RH_TRY(ByteSource source, ByteSource::open(path));
  if (auto done = check_start(source); !done) return tl::unexpected(done.error());
  RtraceFile file{std::move(source), {}, {}, {}, {}, {}, {}, 0, {}};
  if (auto index = find_index(file.source)) {
    file.index = std::move(index->first);
    file.records_end = index->second;
    auto done = check_against_records(file.source, file.index, file.records_end);
    if (done) done = Loader(file, options).load();
    if (!done) return tl::unexpected(done.error());
    for (const auto& [rank, place] : file.ranks) {
      if (place.found != place.operations) {
        return fail(
            Code::kBadInput,
            fmt::format("rank {} has {} of its {} operations", rank, place.found, place.operations),
            file.source.where(file.records_end), kDamaged);
      }
    }
    return file;
  }
  Walk found = walk(file.source, options.max_operations);
  file.index = found.index;
  file.records_end = found.end;
  if (found.index.entries().empty()) {
    return fail(Code::kBadInput,
                fmt::format("cut or damaged: {}; nothing before it can be read", found.why),
                file.source.where(found.end), "copy or write the file again");
  }
  auto done = Loader(file, options).load();
  if (done) done = judge_cut(file, found, options);
  if (!done) return tl::unexpected(done.error());
  return file;
}

}  // namespace

Result<RtraceFile> RtraceFile::open(const std::filesystem::path& path, const ReadOptions& options) {
  try {
    return open_file(path, options);
  } catch (const std::bad_alloc&) {
    return fail(Code::kLimit, "not enough memory for the names and ranks of this file",
                path.string());
  }
}

}  // namespace rehearse::traces
