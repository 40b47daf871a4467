// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "traces/evidence/evidence.hpp"
#include "traces/evidence/names.hpp"
#include "traces/import/flight_recorder/flight_recorder.hpp"
#include "traces/import/scan.hpp"

namespace rehearse::traces::flight_recorder {
namespace {

using Kind = Value::Kind;

// A dict of fields has a few dozen; larger ones are refused so that looking into them stays cheap.
constexpr size_t kMaxFields = 512;
constexpr size_t kMaxGroups = 65'536;
constexpr size_t kMaxRanks = size_t{1} << 20;
constexpr size_t kMaxTensors = 4096;
constexpr size_t kMaxFrames = 64;
constexpr size_t kMaxText = 1024;
constexpr int64_t kMostCalls = int64_t{1} << 53;
// Below the largest record of a .rtrace.
constexpr size_t kMostEvidenceBytes = size_t{24} << 20;

class Converter {
 public:
  Converter(const Values& values, const std::string& file, Findings& findings)
      : values_(values), file_(file), findings_(findings) {}

  Result<pb::FlightRecorder> run(ValueId root) {
    const Value& top = values_.at(root);
    const bool bare = top.kind == Kind::kList;  // dumps of PyTorch 2.2 are the entries alone
    const Value* entries = bare ? &top : values_.find(top, "entries");
    const Value* config = values_.find(top, "pg_config");
    if (entries == nullptr && config == nullptr) {
      return fail(Code::kBadInput, "no flight recorder dump: it has neither entries nor pg_config",
                  file_, "give a file that TORCH_NCCL_DEBUG_INFO_TEMP_FILE names");
    }
    out_.set_version(text(values_.find(top, "version")));
    if (const auto rank = integer(values_.find(top, "rank"));
        rank && *rank >= 0 && *rank < (int64_t{1} << 24)) {
      out_.set_rank(static_cast<uint32_t>(*rank));
    }
    const Value* nccl = values_.find(top, "nccl_version");
    out_.set_nccl_version(text(nccl != nullptr ? nccl : values_.find(top, "comm_lib_version")));
    if (config != nullptr) add_groups(*config);
    if (const Value* status = values_.find(top, "pg_status")) add_status(*status);
    if (entries != nullptr && entries->kind == Kind::kList) add_entries(*entries);
    if (bare && out_.entries().empty()) {
      return fail(Code::kBadInput, "no flight recorder dump: a list without a record of a call",
                  file_, "give a file that TORCH_NCCL_DEBUG_INFO_TEMP_FILE names");
    }
    std::sort(out_.mutable_groups()->begin(), out_.mutable_groups()->end(),
              [](const pb::FlightGroup& a, const pb::FlightGroup& b) { return a.id() < b.id(); });
    return std::move(out_);
  }

 private:
  static std::string text(const Value* value) {
    if (value == nullptr) return "";
    if (value->kind == Kind::kText) return value->text.substr(0, kMaxText);
    if (value->kind == Kind::kInteger) return std::to_string(value->integer);
    if (value->kind == Kind::kFloat) return fmt::format("{}", value->number);
    return "";
  }
  static std::optional<int64_t> integer(const Value* value) {
    if (value == nullptr) return std::nullopt;
    if (value->kind == Kind::kInteger || value->kind == Kind::kBool) return value->integer;
    if (value->kind == Kind::kFloat && std::abs(value->number) < 9e18) {
      return static_cast<int64_t>(value->number);
    }
    // Tools that write dumps anew make text of numbers, and of True and False.
    if (value->kind == Kind::kText) {
      if (value->text == "true" || value->text == "True") return 1;
      Scan scan(value->text);
      const auto number = scan.integer();
      if (number && scan.at_end()) return number;
    }
    return std::nullopt;
  }
  // The number of a call or a record: nothing where no job comes to it. Readers may take the difference of two.
  std::optional<int64_t> ordinal(const Value* value) {
    const auto number = integer(value);
    if (!number || (*number >= -2 && *number <= kMostCalls)) return number;
    odd("flight-recorder-number-unused", std::to_string(*number),
        "no call of a job has such a number; it is taken as not told");
    return std::nullopt;
  }
  const Value* field(const Value& dict, std::string_view key) const {
    return dict.items.size() > 2 * kMaxFields ? nullptr : values_.find(dict, key);
  }
  void odd(std::string_view id, const std::string& where, std::string_view advice,
           uint64_t count = 1) {
    findings_.add(id, Severity::kDataLoss, fmt::format("{}: {}", file_, where), advice, count);
  }

  void add_groups(const Value& config);
  void add_status(const Value& status);
  void add_ranks(const Value* ranks, pb::FlightGroup& group);
  void add_entries(const Value& entries);
  bool add_entry(const Value& in, pb::FlightEntry& out);
  void add_tensors(const Value* sizes, const Value* dtypes,
                   google::protobuf::RepeatedPtrField<pb::FlightTensor>* out);
  void add_frames(const Value* frames, pb::FlightEntry& out);

  const Values& values_;
  const std::string& file_;
  Findings& findings_;
  pb::FlightRecorder out_;
  std::map<std::string, int> group_index_;
};

// A list of numbers, or the text "[0, 2]".
void Converter::add_ranks(const Value* ranks, pb::FlightGroup& group) {
  const auto add = [&](int64_t rank) {
    if (rank >= 0 && rank < (int64_t{1} << 24) &&
        static_cast<size_t>(group.ranks_size()) < kMaxRanks) {
      group.add_ranks(static_cast<uint32_t>(rank));
    } else {
      odd("flight-recorder-rank-odd", "group " + group.name(), "ranks that cannot be are left out");
    }
  };
  if (ranks == nullptr) return;
  if (ranks->kind == Kind::kList) {
    for (size_t i = 0; i < std::min(ranks->items.size(), kMaxRanks); ++i) {
      if (const auto rank = integer(&values_.at(ranks->items[i]))) add(*rank);
    }
  } else if (ranks->kind == Kind::kText) {
    Scan scan(ranks->text);
    (void)scan.literal("[");
    while (const auto rank = scan.integer()) {
      add(*rank);
      if (!scan.literal(",")) break;
    }
  }
}

void Converter::add_groups(const Value& config) {
  if (config.kind != Kind::kDict) return;
  for (size_t i = 0; i + 1 < config.items.size(); i += 2) {
    const Value& facts = values_.at(config.items[i + 1]);
    const std::string id = text(&values_.at(config.items[i]));
    if (group_index_.contains(id) || group_index_.size() >= kMaxGroups ||
        facts.kind != Kind::kDict || out_.ByteSizeLong() > kMostEvidenceBytes) {
      odd("flight-recorder-group-unused", "group " + id, "twice, too many or no dict");
      continue;
    }
    group_index_.emplace(id, out_.groups_size());
    pb::FlightGroup& group = *out_.add_groups();
    group.set_id(id);
    group.set_name(text(field(facts, "name")));
    group.set_description(text(field(facts, "desc")));
    group.set_last_enqueued(-2);
    group.set_last_started(-2);
    group.set_last_completed(-2);
    add_ranks(field(facts, "ranks"), group);
  }
}

void Converter::add_status(const Value& status) {
  if (status.kind != Kind::kDict) return;
  for (size_t i = 0; i + 1 < status.items.size(); i += 2) {
    const Value& facts = values_.at(status.items[i + 1]);
    const std::string id = text(&values_.at(status.items[i]));
    auto known = group_index_.find(id);
    if (known == group_index_.end()) {
      if (group_index_.size() >= kMaxGroups) {
        odd("flight-recorder-group-unused", "group " + id, "twice, too many or no dict");
        continue;
      }
      known = group_index_.emplace(id, out_.groups_size()).first;
      out_.add_groups()->set_id(id);
    }
    pb::FlightGroup& group = *out_.mutable_groups(known->second);
    group.set_last_enqueued(ordinal(field(facts, "last_enqueued_collective")).value_or(-2));
    group.set_last_started(ordinal(field(facts, "last_started_collective")).value_or(-2));
    group.set_last_completed(ordinal(field(facts, "last_completed_collective")).value_or(-2));
  }
}

void Converter::add_tensors(const Value* sizes, const Value* dtypes,
                            google::protobuf::RepeatedPtrField<pb::FlightTensor>* out) {
  if (sizes == nullptr || sizes->kind != Kind::kList) return;
  for (size_t i = 0; i < std::min(sizes->items.size(), kMaxTensors); ++i) {
    const Value& dims = values_.at(sizes->items[i]);
    pb::FlightTensor& tensor = *out->Add();
    for (size_t k = 0; k < std::min<size_t>(dims.items.size(), 16); ++k) {
      if (const auto size = integer(&values_.at(dims.items[k]))) tensor.add_sizes(*size);
    }
    if (dtypes != nullptr && dtypes->kind == Kind::kList && i < dtypes->items.size()) {
      tensor.set_dtype(text(&values_.at(dtypes->items[i])));
    }
  }
  if (sizes->items.size() > kMaxTensors) {
    odd("flight-recorder-tensors-cut", "an entry", "only the first 4096 tensors of a call are kept",
        sizes->items.size() - kMaxTensors);
  }
}

void Converter::add_frames(const Value* frames, pb::FlightEntry& out) {
  if (frames == nullptr || frames->kind != Kind::kList) return;
  for (size_t i = 0; i < std::min(frames->items.size(), kMaxFrames); ++i) {
    const Value& frame = values_.at(frames->items[i]);
    if (frame.kind == Kind::kText) {
      out.add_frames(text(&frame));
    } else if (frame.kind == Kind::kDict) {
      out.add_frames(fmt::format("{} {}:{}", text(field(frame, "name")),
                                 text(field(frame, "filename")), text(field(frame, "line"))));
    }
  }
}

bool Converter::add_entry(const Value& in, pb::FlightEntry& out) {
  if (in.kind != Kind::kDict || in.items.size() > 2 * kMaxFields) return false;
  const auto number = [&](std::string_view key, int64_t otherwise) {
    return integer(field(in, key)).value_or(otherwise);
  };
  const auto ordinal = [&](std::string_view key, int64_t otherwise) {
    return this->ordinal(field(in, key)).value_or(otherwise);
  };
  out.set_profiling_name(text(field(in, "profiling_name")));
  if (out.profiling_name().empty() && field(in, "record_id") == nullptr) return false;
  out.set_record_id(ordinal("record_id", -1));
  out.set_group_id(text(field(in, "pg_id")));
  if (const Value* group = field(in, "process_group");
      group != nullptr && group->items.size() >= 2) {
    out.set_group_name(text(&values_.at(group->items[0])));
    out.set_group_description(text(&values_.at(group->items[1])));
  } else if (const auto known = group_index_.find(out.group_id()); known != group_index_.end()) {
    // Before version 2 an entry names its group by number only.
    out.set_group_name(out_.groups(known->second).name());
    out.set_group_description(out_.groups(known->second).description());
  }
  out.set_collective_seq(ordinal("collective_seq_id", ordinal("seq_id", -1)));
  out.set_p2p_seq(ordinal("p2p_seq_id", -1));
  out.set_op_id(ordinal("op_id", -1));
  const std::string& name = out.profiling_name();
  const size_t colon = name.find(':') == std::string::npos ? 0 : name.find(':') + 1;
  out.set_collective(
      collective_name(std::string_view(name).substr(colon, name.find(' ', colon) - colon)));
  // PyTorch 2.2 counted microseconds.
  const int64_t us = std::clamp<int64_t>(number("time_created_us", 0), 0, INT64_MAX / 1000);
  out.set_created_ns(number("time_created_ns", us * 1000));
  if (const auto at = integer(field(in, "time_discovered_started_ns"))) out.set_started_ns(*at);
  if (const auto at = integer(field(in, "time_discovered_completed_ns"))) out.set_completed_ns(*at);
  if (const Value* d = field(in, "duration_ms"); d != nullptr) {
    if (d->kind == Kind::kFloat && std::isfinite(d->number)) out.set_duration_ms(d->number);
    if (d->kind == Kind::kInteger) out.set_duration_ms(static_cast<double>(d->integer));
  }
  add_tensors(field(in, "input_sizes"), field(in, "input_dtypes"), out.mutable_inputs());
  add_tensors(field(in, "output_sizes"), field(in, "output_dtypes"), out.mutable_outputs());
  out.set_state(text(field(in, "state")));
  out.set_retired(number("retired", 0) != 0);
  out.set_timeout_ms(number("timeout_ms", 0));
  out.set_p2p(number("is_p2p", 0) != 0);
  add_frames(field(in, "frames"), out);
  return true;
}

void Converter::add_entries(const Value& entries) {
  out_.set_entries_total(entries.items.size());
  size_t bytes = out_.ByteSizeLong(), left_out = 0;
  // The newest entries tell most: what does not fit is left out at the front.
  std::vector<pb::FlightEntry> kept;
  for (size_t i = entries.items.size(); i-- > 0;) {
    if (kept.size() >= static_cast<size_t>(kFlightEntries) || bytes > kMostEvidenceBytes) {
      left_out = i + 1;
      break;
    }
    pb::FlightEntry entry;
    if (!add_entry(values_.at(entries.items[i]), entry)) {
      odd("flight-recorder-entry-unused", fmt::format("entry {}", i), "it is no record of a call");
      continue;
    }
    bytes += entry.ByteSizeLong();
    kept.push_back(std::move(entry));
  }
  if (left_out > 0) {
    odd("flight-recorder-entries-cut", fmt::format("entry {}", left_out - 1),
        "only the newest entries are kept", left_out);
  }
  for (auto it = kept.rbegin(); it != kept.rend(); ++it) *out_.add_entries() = std::move(*it);
}

}  // namespace

Result<pb::FlightRecorder> to_recorder(const Values& values, ValueId root, const std::string& file,
                                       Findings& findings) {
  return Converter(values, file, findings).run(root);
}

}  // namespace rehearse::traces::flight_recorder
