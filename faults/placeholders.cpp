// SPDX-License-Identifier: Apache-2.0
#include "faults/placeholders.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "base/document.hpp"
#include "base/proto/options.pb.h"
#include "base/text.hpp"

namespace rehearse::faults {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr std::string_view kMax = "max ";
constexpr std::string_view kValue = "value ";

bool is_name(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return !text.empty() && letter(text.front()) &&
         std::all_of(text.begin(), text.end(), [&](char c) {
           return letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
         });
}

struct Step {
  std::string field;
  std::optional<int> index;  // unset: all elements
};

Result<Step> parse_step(const std::string& part) {
  Step step;
  const size_t bracket = part.find('[');
  step.field = part.substr(0, bracket);
  if (bracket == part.npos) return step;
  if (part.back() != ']') return fail(Code::kBadInput, "missing ] in '" + part + "'");
  const std::string inner = part.substr(bracket + 1, part.size() - bracket - 2);
  if (inner == "*") return step;
  int index = 0;
  const auto [end, ec] = std::from_chars(inner.data(), inner.data() + inner.size(), index);
  if (ec != std::errc() || end != inner.data() + inner.size() || index < 0) {
    return fail(Code::kBadInput, "'" + inner + "' is neither an index nor *");
  }
  step.index = index;
  return step;
}

struct Largest {
  std::optional<double> value;
  std::string_view suffix;
};

std::optional<double> number(const Message& message, const FieldDescriptor& field) {
  const Reflection& r = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return r.GetInt32(message, &field);
    case FieldDescriptor::CPPTYPE_INT64:
      return static_cast<double>(r.GetInt64(message, &field));
    case FieldDescriptor::CPPTYPE_UINT32:
      return r.GetUInt32(message, &field);
    case FieldDescriptor::CPPTYPE_UINT64:
      return static_cast<double>(r.GetUInt64(message, &field));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return r.GetDouble(message, &field);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return r.GetFloat(message, &field);
    default:
      return std::nullopt;
  }
}

std::string_view suffix_of(const FieldDescriptor& field) {
  switch (field.options().GetExtension(pb::unit)) {
    case pb::BYTES:
      return "B";
    case pb::BYTES_PER_SECOND:
      return "B/s";
    case pb::NANOSECONDS:
      return "ns";
    case pb::FLOPS:
      return "FLOPS";
    case pb::HERTZ:
      return "Hz";
    default:
      return "";
  }
}

Result<void> collect(const Message& message, const std::vector<Step>& steps, size_t at,
                     Largest& largest) {
  const Step& step = steps[at];
  const FieldDescriptor* field = message.GetDescriptor()->FindFieldByName(step.field);
  if (!field) {
    std::vector<std::string> names;
    names.reserve(static_cast<size_t>(message.GetDescriptor()->field_count()));
    for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
      names.push_back(message.GetDescriptor()->field(i)->name());
    }
    const std::string near = nearest(step.field, names);
    return fail(Code::kBadInput, fmt::format("there is no '{}'", step.field), {},
                near.empty() ? "" : fmt::format("did you mean '{}'?", near));
  }
  const bool last = at + 1 == steps.size();
  if (last) {
    const auto value = field->is_repeated() ? std::nullopt : number(message, *field);
    if (!value) return fail(Code::kBadInput, fmt::format("'{}' is not a number", step.field));
    if (!largest.value || *value > *largest.value) largest.value = value;
    largest.suffix = suffix_of(*field);
    return {};
  }
  if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || field->is_map()) {
    return fail(Code::kBadInput, fmt::format("'{}' has no fields", step.field));
  }
  const Reflection& r = *message.GetReflection();
  if (!field->is_repeated()) return collect(r.GetMessage(message, field), steps, at + 1, largest);
  for (int i = 0; i < r.FieldSize(message, field); ++i) {
    if (step.index && *step.index != i) continue;
    auto done = collect(r.GetRepeatedMessage(message, field, i), steps, at + 1, largest);
    if (!done) return done;
  }
  return {};
}

Result<std::string> value_of(std::string_view inner, const Placeholders& placeholders) {
  if (inner.starts_with(kMax)) {
    if (!placeholders.document) return std::string("1");
    return largest_at(*placeholders.document, inner.substr(kMax.size()));
  }
  if (inner.starts_with(kValue)) {
    if (!placeholders.document) return std::string("1");
    RH_TRY(std::string text, get_path(*placeholders.document, inner.substr(kValue.size())));
    text = text.substr(0, text.find('\n'));
    // It is put between quotes of the file's own.
    const bool quoted = text.size() > 1 && (text.front() == '"' || text.front() == '\'');
    return quoted ? text.substr(1, text.size() - 2) : text;
  }
  const auto found = placeholders.values.find(std::string(inner));
  if (found != placeholders.values.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [name, value] : placeholders.values) names.push_back(name);
  const std::string near = nearest(inner, names);
  return fail(
      Code::kBadInput, fmt::format("no parameter '{}'", inner), {},
      near.empty() ? "declare it under parameters" : fmt::format("did you mean '{}'?", near));
}

}  // namespace

std::string place_in(std::string_view text, size_t offset, const std::string& file) {
  const std::string_view before = text.substr(0, offset);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t start = before.rfind('\n');
  const size_t column = offset - (start == before.npos ? 0 : start + 1) + 1;
  return fmt::format("{}:{}:{}", file, line, column);
}

Result<std::string> largest_at(const Message& message, std::string_view path) {
  std::vector<Step> steps;
  for (const std::string& part : split(path, '.')) {
    RH_TRY(Step step, parse_step(part));
    steps.push_back(std::move(step));
  }
  Largest largest;
  if (const auto done = collect(message, steps, 0, largest); !done) {
    return tl::unexpected(done.error());
  }
  if (!largest.value) return fail(Code::kBadInput, fmt::format("nothing at '{}'", path));
  return fmt::format("{}{}", *largest.value, largest.suffix);
}

Result<std::string> substitute(std::string_view text, const std::string& file,
                               const Placeholders& placeholders) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size(); ++at) {
    const size_t close = text[at] == '{' ? text.find_first_of("{}\n", at + 1) : text.npos;
    const std::string_view inner =
        close != text.npos && text[close] == '}' ? text.substr(at + 1, close - at - 1) : "";
    if (!is_name(inner) && !inner.starts_with(kMax) && !inner.starts_with(kValue)) {
      out += text[at];
      continue;
    }
    auto value = value_of(inner, placeholders);
    if (!value) {
      Error error = std::move(value).error();
      error.where = place_in(text, at, file);
      return tl::unexpected(std::move(error));
    }
    out += *value;
    at = close;
  }
  return out;
}

}  // namespace rehearse::faults
