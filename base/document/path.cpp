// SPDX-License-Identifier: Apache-2.0
#include "base/document/path.hpp"

#include <fmt/format.h>

#include "base/document/reader.hpp"
#include "base/text.hpp"

namespace rehearse::document {
namespace {

// A name and what stands in brackets behind it; offsets are into the path.
struct Segment {
  size_t begin = 0, end = 0;
  std::string_view name;
  std::optional<std::string_view> selector;
};

class Resolver {
 public:
  explicit Resolver(std::string_view path) : path_(path) {}

  // Resolves the rest of the path from `begin` on, below `message`.
  Result<void> walk(const Message& message, size_t begin) {
    RH_TRY(const Segment segment, segment_at(begin));
    auto found = find_field(*message.GetDescriptor(), segment.name);
    if (!found)
      return marked(segment.begin, segment.begin + segment.name.size(), std::move(found).error());
    const FieldDescriptor& field = **found;
    if (field.is_map()) return walk_map(message, field, segment);
    if (field.is_repeated()) return walk_list(message, field, segment);
    if (segment.selector)
      return refuse(segment, fmt::format("{} is not a list", field.name()), "remove the brackets");
    if (at_end(segment)) return finish(field, kSingle);
    if (!is_message(field))
      return refuse(segment, fmt::format("{} is a single value without parts", field.name()),
                    "end the path here");
    return below(message.GetReflection()->GetMessage(message, &field), {&field, kSingle},
                 segment.end + 1);
  }

  std::vector<Target> take() { return std::move(targets_); }

 private:
  [[nodiscard]] tl::unexpected<Error> marked(size_t begin, size_t end, Error error) const {
    error.where = fmt::format("{}>>{}<<{}", path_.substr(0, begin),
                              path_.substr(begin, end - begin), path_.substr(end));
    return tl::unexpected(std::move(error));
  }
  [[nodiscard]] tl::unexpected<Error> refuse(const Segment& segment, std::string what,
                                             std::string fix) const {
    return marked(segment.begin, segment.end,
                  Error{Code::kBadInput, std::move(what), {}, std::move(fix)});
  }
  [[nodiscard]] bool at_end(const Segment& segment) const { return segment.end == path_.size(); }

  [[nodiscard]] Result<Segment> segment_at(size_t begin) const {
    Segment segment;
    segment.begin = begin;
    segment.end = std::min(path_.find_first_of(".[", begin), path_.size());
    segment.name = path_.substr(begin, segment.end - begin);
    if (segment.name.empty())
      return refuse(segment, "a name is missing here", "write names joined by dots");
    if (at_end(segment) || path_[segment.end] == '.') return segment;
    const size_t close = path_.find(']', segment.end);
    if (close == path_.npos) {
      segment.end = path_.size();
      return refuse(segment, "a closing bracket is missing",
                    "write name[3], name[8-15], name[*] or name[text]");
    }
    segment.selector = path_.substr(segment.end + 1, close - segment.end - 1);
    segment.end = close + 1;
    if (!at_end(segment) && path_[segment.end] != '.') {
      return refuse(segment, "only a dot may follow a bracket", "write names joined by dots");
    }
    return segment;
  }

  Result<void> finish(const FieldDescriptor& field, int index,
                      std::optional<std::string> key = {}) {
    targets_.push_back({steps_, &field, index, std::move(key)});
    return {};
  }

  Result<void> below(const Message& message, Target::Step step, size_t begin) {
    steps_.push_back(step);
    auto result = walk(message, begin);
    steps_.pop_back();
    return result;
  }

  Result<void> walk_list(const Message& message, const FieldDescriptor& field,
                         const Segment& segment) {
    const auto& reflection = *message.GetReflection();
    if (!segment.selector) {
      if (at_end(segment)) return finish(field, kSingle);
      return refuse(
          segment,
          fmt::format("{} is a list of {}", field.name(), reflection.FieldSize(message, &field)),
          fmt::format("say which: {0}[0], {0}[*]", field.name()));
    }
    auto chosen = select(message, field, *segment.selector);
    if (!chosen) return marked(segment.begin, segment.end, std::move(chosen).error());
    if (!at_end(segment) && !is_message(field)) {
      return refuse(segment,
                    fmt::format("the elements of {} are single values without parts", field.name()),
                    "end the path here");
    }
    for (const int index : *chosen) {
      auto ok = at_end(segment) ? finish(field, index)
                                : below(reflection.GetRepeatedMessage(message, &field, index),
                                        {&field, index}, segment.end + 1);
      if (!ok) return ok;
    }
    return {};
  }

  Result<void> walk_map(const Message& message, const FieldDescriptor& field,
                        const Segment& segment) {
    const FieldDescriptor& value = *field.message_type()->map_value();
    if (!segment.selector && at_end(segment)) return finish(field, kSingle);
    Segment entry = segment;
    std::string_view key;
    if (segment.selector) {
      key = *segment.selector;
    } else {
      entry.begin = segment.end + 1;
      // Keys of plain values may contain dots; keys of messages end at one.
      entry.end =
          is_message(value) ? std::min(path_.find('.', entry.begin), path_.size()) : path_.size();
      key = path_.substr(entry.begin, entry.end - entry.begin);
    }
    if (key.empty())
      return refuse(entry, fmt::format("a key of {} is missing", field.name()), "name an entry");
    if (at_end(entry)) return finish(field, kSingle, std::string(key));
    if (!is_message(value))
      return refuse(entry,
                    fmt::format("the entries of {} are single values without parts", field.name()),
                    "end the path here");
    const FieldDescriptor& key_field = *field.message_type()->map_key();
    std::vector<std::string> names;
    for (const auto& [name, index] : entries_by_key(message, field)) {
      names.push_back(show_scalar(name, {&key_field, &key_field}));
      if (names.back() != key) continue;
      steps_.push_back({&field, index});
      const Message& found = message.GetReflection()->GetRepeatedMessage(message, &field, index);
      auto result =
          below(found.GetReflection()->GetMessage(found, &value), {&value, kSingle}, entry.end + 1);
      steps_.pop_back();
      return result;
    }
    const std::string near = nearest(key, names);
    return refuse(
        entry, fmt::format("{} has no entry {}", field.name(), in_quotes(key)),
        near.empty() ? "assign the whole entry first" : fmt::format("did you mean '{}'?", near));
  }

  std::string_view path_;
  std::vector<Target::Step> steps_;
  std::vector<Target> targets_;
};

}  // namespace

Result<std::vector<Target>> resolve(const Message& message, std::string_view path) {
  if (path.size() > kMaxPathBytes) {
    return fail(Code::kLimit, fmt::format("the path is longer than {} bytes", kMaxPathBytes),
                in_quotes(path), "write a shorter path");
  }
  if (invalid_utf8(path) != path.npos)
    return fail(Code::kBadInput, "the path is not UTF-8 text", {}, "check the encoding");
  Resolver resolver(path);
  if (auto ok = resolver.walk(message, 0); !ok) return tl::unexpected(std::move(ok).error());
  return resolver.take();
}

}  // namespace rehearse::document
