// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/document/path.hpp"
#include "base/text.hpp"

namespace rehearse::document {
namespace {

std::optional<int> whole(std::string_view text) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, ec] = std::from_chars(text.data(), end, value);
  if (ec != std::errc() || stop != end || text.starts_with('-')) return std::nullopt;
  return value;
}

// One selection on one repeated field.
class Selection {
 public:
  Selection(const Message& owner, const FieldDescriptor& field)
      : owner_(owner), field_(field), count_(owner.GetReflection()->FieldSize(owner, &field)) {}

  Result<std::vector<int>> select(std::string_view text) {
    if (count_ == 0)
      return refuse(fmt::format("{} is empty", field_.name()), "there is nothing to select");
    Result<void> ok;
    if (text == "*") {
      add_range(0, count_ - 1);
    } else if (const size_t equals = text.find('='); equals != text.npos) {
      ok = by_field(text.substr(0, equals), text.substr(equals + 1));
    } else {
      for (const std::string& item : split(text, ',')) {
        if (ok) ok = add(item);
      }
    }
    if (!ok) return tl::unexpected(std::move(ok).error());
    std::sort(chosen_.begin(), chosen_.end());
    chosen_.erase(std::unique(chosen_.begin(), chosen_.end()), chosen_.end());
    return std::move(chosen_);
  }

 private:
  [[nodiscard]] static tl::unexpected<Error> refuse(std::string what, std::string fix) {
    return fail(Code::kBadInput, std::move(what), {}, std::move(fix));
  }
  void add_range(int first, int last) {
    for (int i = first; i <= last; ++i) chosen_.push_back(i);
  }

  Result<void> add(std::string_view item) {
    if (!item.empty() && item.find_first_not_of("0123456789-") == item.npos) {
      const size_t dash = item.find('-');
      const auto first = whole(item.substr(0, dash));
      const auto last = dash == item.npos ? first : whole(item.substr(dash + 1));
      if (!first || !last || *first > *last) {
        return refuse(fmt::format("{} is neither an index nor a range", in_quotes(item)),
                      "write 3 or 8-15");
      }
      if (*last >= count_) {
        return refuse(fmt::format("{} has {} element{}, so there is no {}[{}]", field_.name(),
                                  count_, count_ == 1 ? "" : "s", field_.name(), *last),
                      fmt::format("use an index from 0 to {}", count_ - 1));
      }
      add_range(*first, *last);
      return {};
    }
    return by_key(item);
  }

  Result<void> by_key(std::string_view text) {
    const FieldDescriptor* key = key_of(field_);
    if (key == nullptr) {
      return refuse(
          fmt::format("{} has no names, so {} selects nothing", field_.name(), in_quotes(text)),
          "use an index, a range or *");
    }
    if (add_equal(*key, text) > 0) return {};
    std::vector<std::string> names;
    names.reserve(static_cast<size_t>(count_));
    for (int i = 0; i < count_; ++i) names.push_back(show_scalar(value_of(*key, i), {key, key}));
    const std::string near = nearest(text, names);
    if (names.size() > 8) names.resize(8);
    return refuse(
        fmt::format("no element of {} has the {} {}", field_.name(), key->name(), in_quotes(text)),
        near.empty()
            ? fmt::format("there are {}{}", join_words(names), count_ > 8 ? " and more" : "")
            : fmt::format("did you mean '{}'?", near));
  }

  Result<void> by_field(std::string_view name, std::string_view text) {
    if (!is_message(field_)) {
      return refuse(fmt::format("the elements of {} have no fields", field_.name()),
                    "use an index, a range or *");
    }
    RH_TRY(const FieldDescriptor* field, find_field(*field_.message_type(), name));
    if (field->is_repeated() || is_message(*field)) {
      return refuse(fmt::format("{} is not a single value to compare with", field->name()),
                    "compare another field");
    }
    // JSON's rules: any value that can stand in the field may be asked for, 0 among them.
    if (auto parsed = parse_scalar(text, {field, field, Dialect::kJson}); !parsed) {
      return tl::unexpected(std::move(parsed).error());
    }
    if (add_equal(*field, text) > 0) return {};
    return refuse(
        fmt::format("no element of {} has {} = {}", field_.name(), field->name(), in_quotes(text)),
        "select another value");
  }

  size_t add_equal(const FieldDescriptor& field, std::string_view text) {
    const auto wanted = parse_scalar(text, {&field, &field, Dialect::kJson});
    const size_t before = chosen_.size();
    for (int i = 0; wanted && i < count_; ++i) {
      if (value_of(field, i) == *wanted) chosen_.push_back(i);
    }
    return chosen_.size() - before;
  }
  [[nodiscard]] Scalar value_of(const FieldDescriptor& field, int index) const {
    return get_scalar(owner_.GetReflection()->GetRepeatedMessage(owner_, &field_, index), field,
                      kSingle);
  }

  const Message& owner_;
  const FieldDescriptor& field_;
  int count_;
  std::vector<int> chosen_;
};

}  // namespace

Result<std::vector<int>> select(const Message& owner, const FieldDescriptor& field,
                                std::string_view selector) {
  return Selection(owner, field).select(selector);
}

}  // namespace rehearse::document
