// SPDX-License-Identifier: Apache-2.0
#include "base/document/scalar.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

#include "base/text.hpp"
#include "base/units.hpp"

namespace rehearse::document {
namespace {

using google::protobuf::Reflection;

template <typename T>
T value_at(const Message& m, const FieldDescriptor& f, int index,
           T (Reflection::*single)(const Message&, const FieldDescriptor*) const,
           T (Reflection::*element)(const Message&, const FieldDescriptor*, int) const) {
  const Reflection& r = *m.GetReflection();
  return index == kSingle ? (r.*single)(m, &f) : (r.*element)(m, &f, index);
}

template <typename T>
struct Setters {
  void (Reflection::*single)(Message*, const FieldDescriptor*, T) const;
  void (Reflection::*element)(Message*, const FieldDescriptor*, int, T) const;
  void (Reflection::*append)(Message*, const FieldDescriptor*, T) const;
};

template <typename T>
void put(Message& m, const FieldDescriptor& f, int index, T value, const Setters<T>& set) {
  const Reflection& r = *m.GetReflection();
  if (index == kSingle) {
    (r.*set.single)(&m, &f, std::move(value));
  } else if (index == kAppend) {
    (r.*set.append)(&m, &f, std::move(value));
  } else {
    (r.*set.element)(&m, &f, index, std::move(value));
  }
}

tl::unexpected<Error> refuse(std::string what, std::string fix) {
  return fail(Code::kBadInput, std::move(what), {}, std::move(fix));
}

// Whole numbers are carried in 128 bits until the field's own range is known.
using Wide = __int128;
constexpr double kLargestWide = 1e30;

Result<Wide> parse_whole(std::string_view text, const FieldDescriptor& field) {
  std::string_view digits = text;
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.remove_prefix(1);
  const bool hex = digits.starts_with("0x");
  if (hex) digits.remove_prefix(2);
  uint64_t magnitude = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, ec] = std::from_chars(digits.data(), end, magnitude, hex ? 16 : 10);
  if (ec == std::errc::result_out_of_range && stop == end) {
    return refuse(fmt::format("{} of {} is too large", in_quotes(text), field.name()),
                  "write a smaller number");
  }
  if (ec != std::errc() || stop != end) {
    return refuse(fmt::format("{} must be a whole number, not {}", field.name(), in_quotes(text)),
                  "write digits only");
  }
  return negative ? -static_cast<Wide>(magnitude) : static_cast<Wide>(magnitude);
}

Result<double> parse_real(std::string_view text, const FieldDescriptor& field) {
  std::string_view digits = text;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  const char* end = digits.data() + digits.size();
  double value = 0;
  float narrow = 0;
  const bool is_float = field.cpp_type() == FieldDescriptor::CPPTYPE_FLOAT;
  const auto [stop, ec] = is_float ? std::from_chars(digits.data(), end, narrow)
                                   : std::from_chars(digits.data(), end, value);
  if (is_float) value = narrow;
  if (ec != std::errc() || stop != end || !std::isfinite(value)) {
    return refuse(fmt::format("{} must be a number, not {}", field.name(), in_quotes(text)),
                  "write a number such as 0.5");
  }
  return value;
}

Result<Scalar> parse_bool(std::string_view text, const FieldDescriptor& field) {
  for (const char* word : {"true", "True", "TRUE", "yes", "on", "1"}) {
    if (text == word) return Scalar(true);
  }
  for (const char* word : {"false", "False", "FALSE", "no", "off", "0"}) {
    if (text == word) return Scalar(false);
  }
  return refuse(fmt::format("{} must be true or false, not {}", field.name(), in_quotes(text)),
                "write true or false");
}

Result<Scalar> parse_enum(std::string_view text, const FieldDescriptor& field, Dialect dialect) {
  const EnumDescriptor& type = *field.enum_type();
  if (dialect == Dialect::kJson) {
    int32_t number = 0;
    const char* end = text.data() + text.size();
    const auto [stop, ec] = std::from_chars(text.data(), end, number);
    if (ec == std::errc() && stop == end) return Scalar(int64_t{number});
    for (int i = 0; i < type.value_count(); ++i) {
      if (word_of(*type.value(i)) == text) return Scalar(int64_t{type.value(i)->number()});
    }
  }
  RH_TRY(const EnumValueDescriptor* value, find_value(type, text));
  return Scalar(int64_t{value->number()});
}

std::string show_quantity(double value, pb::Unit unit) {
  switch (unit) {
    case pb::BYTES:
      return exact_bytes(static_cast<Bytes>(value));
    case pb::NANOSECONDS:
      return exact_duration(static_cast<Nanos>(value));
    case pb::BYTES_PER_SECOND:
      return exact_bandwidth(value);
    case pb::FLOPS:
      return exact_flops(value);
    case pb::HERTZ:
      return exact_hertz(value);
    default:
      return fmt::format("{}", value);
  }
}

Result<void> check_bounds(std::string_view text, double value, ScalarType type) {
  // to_json writes fields that were never set as 0, in or out of bounds.
  if (type.dialect == Dialect::kJson && value == 0) return {};
  const auto& options = type.options->options();
  const pb::Unit unit = unit_of(*type.options);
  const auto outside = [&](std::string_view relation, double bound) {
    return refuse(fmt::format("{} must be {} {}, not {}", type.options->name(), relation,
                              show_quantity(bound, unit), in_quotes(text)),
                  "change the value");
  };
  if (options.HasExtension(pb::at_least)) {
    const double bound = options.GetExtension(pb::at_least);
    if (options.GetExtension(pb::exclusive) && value <= bound) return outside("above", bound);
    if (value < bound) return outside("at least", bound);
  }
  if (options.HasExtension(pb::at_most)) {
    const double bound = options.GetExtension(pb::at_most);
    if (value > bound) return outside("at most", bound);
  }
  return {};
}

Result<Scalar> whole_in_range(std::string_view text, Wide value, ScalarType type) {
  const auto narrow = [&](auto low, auto high) -> Result<Scalar> {
    const auto refuse_range = [&](std::string_view relation, auto bound) {
      return refuse(fmt::format("{} must be {} {}, not {}", type.options->name(), relation, bound,
                                in_quotes(text)),
                    "change the value");
    };
    if (value < static_cast<Wide>(low)) return refuse_range("at least", low);
    if (value > static_cast<Wide>(high)) return refuse_range("at most", high);
    if constexpr (std::numeric_limits<decltype(high)>::is_signed) {
      return Scalar(static_cast<int64_t>(value));
    } else {
      return Scalar(static_cast<uint64_t>(value));
    }
  };
  const auto within = [&](auto zero) {
    using T = decltype(zero);
    return narrow(std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
  };
  if (auto bounded = check_bounds(text, static_cast<double>(value), type); !bounded) {
    return tl::unexpected(std::move(bounded).error());
  }
  switch (type.field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return within(int32_t{});
    case FieldDescriptor::CPPTYPE_UINT32:
      return within(uint32_t{});
    case FieldDescriptor::CPPTYPE_UINT64:
      return within(uint64_t{});
    default:
      return within(int64_t{});
  }
}

bool is_whole(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
    case FieldDescriptor::CPPTYPE_INT64:
    case FieldDescriptor::CPPTYPE_UINT32:
    case FieldDescriptor::CPPTYPE_UINT64:
      return true;
    default:
      return false;
  }
}

Error with_field(Error error, const FieldDescriptor& field) {
  error.what = fmt::format("{}: {}", field.name(), error.what);
  return error;
}

// Numbers of either representation, with their unit.
Result<Scalar> parse_number(std::string_view text, ScalarType type) {
  const bool whole = is_whole(*type.field);
  const auto finish = [&](auto parsed) -> Result<Scalar> {
    if (!parsed) return tl::unexpected(with_field(std::move(parsed).error(), *type.options));
    if (whole) {
      if (std::abs(static_cast<double>(*parsed)) > kLargestWide) {
        return refuse(fmt::format("{} of {} is too large", in_quotes(text), type.options->name()),
                      "write a smaller number");
      }
      return whole_in_range(text, static_cast<Wide>(*parsed), type);
    }
    if (auto bounded = check_bounds(text, static_cast<double>(*parsed), type); !bounded) {
      return tl::unexpected(std::move(bounded).error());
    }
    return Scalar(static_cast<double>(*parsed));
  };
  const bool bare = !text.empty() && text.find_first_not_of("0123456789+-.eE") == text.npos;
  const pb::Unit unit =
      type.dialect == Dialect::kJson && bare ? pb::NO_UNIT : unit_of(*type.options);
  switch (unit) {
    case pb::BYTES:
      return finish(parse_bytes(text));
    case pb::NANOSECONDS:
      return finish(parse_duration(text));
    case pb::BYTES_PER_SECOND:
      return finish(parse_bandwidth(text));
    case pb::FLOPS:
      return finish(parse_flops(text));
    case pb::HERTZ:
      return finish(parse_hertz(text));
    default:
      break;
  }
  if (whole) {
    RH_TRY(const Wide value, parse_whole(text, *type.options));
    return whole_in_range(text, value, type);
  }
  RH_TRY(const double value, parse_real(text, *type.options));
  if (auto bounded = check_bounds(text, value, type); !bounded) {
    return tl::unexpected(std::move(bounded).error());
  }
  return Scalar(value);
}

}  // namespace

Result<Scalar> parse_scalar(std::string_view text, ScalarType type) {
  switch (type.field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      if (invalid_utf8(text) != text.npos) {
        return refuse(fmt::format("{} must be UTF-8 text", type.options->name()),
                      "check the encoding");
      }
      return Scalar(std::string(text));
    case FieldDescriptor::CPPTYPE_BOOL:
      return parse_bool(text, *type.options);
    case FieldDescriptor::CPPTYPE_ENUM: {
      auto value = parse_enum(text, *type.field, type.dialect);
      if (!value) return tl::unexpected(with_field(std::move(value).error(), *type.options));
      return value;
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return fail(Code::kInternal, "a message is not a scalar");
    default:
      return parse_number(text, type);
  }
}

void put_scalar(Message& m, const FieldDescriptor& f, int index, Scalar value) {
  const auto whole = [&] {
    if (const auto* s = std::get_if<int64_t>(&value)) return *s;
    return static_cast<int64_t>(std::get<uint64_t>(value));
  };
  using R = Reflection;
  switch (f.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return put<int32_t>(m, f, index, static_cast<int32_t>(whole()),
                          {&R::SetInt32, &R::SetRepeatedInt32, &R::AddInt32});
    case FieldDescriptor::CPPTYPE_INT64:
      return put<int64_t>(m, f, index, whole(), {&R::SetInt64, &R::SetRepeatedInt64, &R::AddInt64});
    case FieldDescriptor::CPPTYPE_UINT32:
      return put<uint32_t>(m, f, index, static_cast<uint32_t>(whole()),
                           {&R::SetUInt32, &R::SetRepeatedUInt32, &R::AddUInt32});
    case FieldDescriptor::CPPTYPE_UINT64:
      return put<uint64_t>(m, f, index, static_cast<uint64_t>(whole()),
                           {&R::SetUInt64, &R::SetRepeatedUInt64, &R::AddUInt64});
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return put<double>(m, f, index, std::get<double>(value),
                         {&R::SetDouble, &R::SetRepeatedDouble, &R::AddDouble});
    case FieldDescriptor::CPPTYPE_FLOAT:
      return put<float>(m, f, index, static_cast<float>(std::get<double>(value)),
                        {&R::SetFloat, &R::SetRepeatedFloat, &R::AddFloat});
    case FieldDescriptor::CPPTYPE_BOOL:
      return put<bool>(m, f, index, std::get<bool>(value),
                       {&R::SetBool, &R::SetRepeatedBool, &R::AddBool});
    case FieldDescriptor::CPPTYPE_ENUM:
      return put<int>(m, f, index, static_cast<int>(whole()),
                      {&R::SetEnumValue, &R::SetRepeatedEnumValue, &R::AddEnumValue});
    case FieldDescriptor::CPPTYPE_STRING:
      return put<std::string>(m, f, index, std::get<std::string>(std::move(value)),
                              {&R::SetString, &R::SetRepeatedString, &R::AddString});
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return;
  }
}

Scalar get_scalar(const Message& m, const FieldDescriptor& f, int index) {
  using R = Reflection;
  switch (f.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return int64_t{value_at(m, f, index, &R::GetInt32, &R::GetRepeatedInt32)};
    case FieldDescriptor::CPPTYPE_INT64:
      return int64_t{value_at(m, f, index, &R::GetInt64, &R::GetRepeatedInt64)};
    case FieldDescriptor::CPPTYPE_UINT32:
      return uint64_t{value_at(m, f, index, &R::GetUInt32, &R::GetRepeatedUInt32)};
    case FieldDescriptor::CPPTYPE_UINT64:
      return uint64_t{value_at(m, f, index, &R::GetUInt64, &R::GetRepeatedUInt64)};
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return value_at(m, f, index, &R::GetDouble, &R::GetRepeatedDouble);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return double{value_at(m, f, index, &R::GetFloat, &R::GetRepeatedFloat)};
    case FieldDescriptor::CPPTYPE_BOOL:
      return value_at(m, f, index, &R::GetBool, &R::GetRepeatedBool);
    case FieldDescriptor::CPPTYPE_ENUM:
      return int64_t{value_at(m, f, index, &R::GetEnumValue, &R::GetRepeatedEnumValue)};
    case FieldDescriptor::CPPTYPE_STRING:
      return value_at(m, f, index, &R::GetString, &R::GetRepeatedString);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      break;
  }
  return false;
}

std::string show_scalar(const Scalar& value, ScalarType type) {
  const pb::Unit unit = unit_of(*type.options);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* truth = std::get_if<bool>(&value)) return *truth ? "true" : "false";
  if (const auto* real = std::get_if<double>(&value)) {
    if (unit != pb::NO_UNIT) return show_quantity(*real, unit);
    if (type.field->cpp_type() == FieldDescriptor::CPPTYPE_FLOAT)
      return fmt::format("{}", static_cast<float>(*real));
    return fmt::format("{}", *real);
  }
  if (const auto* natural = std::get_if<uint64_t>(&value)) {
    if (unit == pb::NO_UNIT ||
        *natural > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return fmt::format("{}", *natural);
  }
  const int64_t whole = std::holds_alternative<int64_t>(value)
                            ? std::get<int64_t>(value)
                            : static_cast<int64_t>(std::get<uint64_t>(value));
  if (type.field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM)
    return show_enum(*type.field->enum_type(), whole);
  if (unit == pb::BYTES) return exact_bytes(whole);
  if (unit == pb::NANOSECONDS) return exact_duration(whole);
  if (unit != pb::NO_UNIT) return show_quantity(static_cast<double>(whole), unit);
  return fmt::format("{}", whole);
}

std::string show_enum(const EnumDescriptor& type, int64_t number) {
  const EnumValueDescriptor* value = type.FindValueByNumber(static_cast<int>(number));
  return value != nullptr ? word_of(*value) : fmt::format("{}", number);
}

}  // namespace rehearse::document
