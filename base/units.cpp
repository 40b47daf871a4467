// SPDX-License-Identifier: Apache-2.0
#include "base/units.hpp"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <span>

#include "base/text.hpp"

namespace rehearse {
namespace {

using Wide = unsigned __int128;

// The value of a text: digits * 10^exponent.
struct Decimal {
  bool negative = false;
  Wide digits = 0;
  int exponent = 0;
};

// factor * 10^exponent of the stored unit.
struct Scale {
  std::string_view name;
  uint64_t factor = 1;
  int exponent = 0;
};

constexpr int kMaxDigits = 24;  // digits * largest factor stays below 2^128
constexpr Scale kSi[] = {{"", 1, 0},  {"k", 1, 3},  {"K", 1, 3},  {"M", 1, 6},
                         {"G", 1, 9}, {"T", 1, 12}, {"P", 1, 15}, {"E", 1, 18}};
constexpr Scale kIec[] = {
    {"Ki", 1ull << 10, 0}, {"Mi", 1ull << 20, 0}, {"Gi", 1ull << 30, 0}, {"Ti", 1ull << 40, 0}};
constexpr Scale kByteSuffixes[] = {{"B", 1, 0}};
constexpr Scale kRateSuffixes[] = {
    {"bps", 125, -3}, {"b/s", 125, -3}, {"bit/s", 125, -3}, {"Bps", 1, 0}, {"B/s", 1, 0}};
constexpr Scale kFlopsSuffixes[] = {{"FLOPS", 1, 0}, {"FLOP/s", 1, 0}, {"FLOPs", 1, 0},
                                    {"Flops", 1, 0}, {"flops", 1, 0},  {"OPS", 1, 0}};
constexpr Scale kHertzSuffixes[] = {{"Hz", 1, 0}};
constexpr Scale kTimes[] = {{"ns", 1, 0},      {"us", 1, 3},  {"\u00b5s", 1, 3},
                            {"\u03bcs", 1, 3}, {"ms", 1, 6},  {"s", 1, 9},
                            {"min", 6, 10},    {"h", 36, 11}, {"d", 864, 11}};

enum class Bare { kAccepted, kZeroOnly };
enum class Prefixes { kNone, kDecimal, kAll };

// Everything that tells one kind of quantity from another.
struct Kind {
  std::string_view noun, example, units;
  std::span<const Scale> suffixes;
  Prefixes prefixes;
  Bare bare;
};

const Kind kBytes{"size",        "25MiB",        "B, kB, MB, GB, TB, KiB, MiB, GiB or TiB",
                  kByteSuffixes, Prefixes::kAll, Bare::kAccepted};
const Kind kBandwidth{"bandwidth",
                      "100Gbps",
                      "bps, kbps, Mbps, Gbps or Tbps (bits), or B/s, kB/s, MB/s, GB/s, TB/s, "
                      "MiB/s or GiB/s (bytes)",
                      kRateSuffixes,
                      Prefixes::kAll,
                      Bare::kZeroOnly};
const Kind kDuration{"duration", "1.5us",         "ns, us, ms, s, min, h or d",
                     kTimes,     Prefixes::kNone, Bare::kZeroOnly};
const Kind kFlops{"compute rate", "312TFLOPS",        "FLOPS, MFLOPS, GFLOPS, TFLOPS or PFLOPS",
                  kFlopsSuffixes, Prefixes::kDecimal, Bare::kZeroOnly};
const Kind kHertz{"frequency",    "1410MHz",          "Hz, kHz, MHz or GHz",
                  kHertzSuffixes, Prefixes::kDecimal, Bare::kZeroOnly};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_space(char c) { return c == ' ' || c == '\t'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

tl::unexpected<Error> refuse(const Kind& kind, std::string what) {
  return fail(
      Code::kBadInput, std::move(what), {},
      fmt::format("write a number with one of {}, for example {}", kind.units, kind.example));
}

// Takes "[sign] digits [. digits] [e exponent]" off the front of `text`.
Result<Decimal> take_number(const Kind& kind, std::string_view& text) {
  const std::string_view whole = text;
  const auto not_a_number = [&] {
    return refuse(kind, fmt::format("{} is not a {}", in_quotes(whole), kind.noun));
  };
  Decimal value;
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) {
    value.negative = text.front() == '-';
    text.remove_prefix(1);
  }
  int significant = 0, seen = 0;
  bool fraction = false;
  for (; !text.empty(); text.remove_prefix(1)) {
    const char c = text.front();
    if (c == '.' && !fraction) {
      fraction = true;
      continue;
    }
    if (!is_digit(c)) break;
    ++seen;
    if (significant > 0 || c != '0') ++significant;
    if (significant > kMaxDigits || seen > 400) {
      return refuse(kind, fmt::format("{} has too many digits", in_quotes(whole)));
    }
    value.digits = value.digits * 10 + static_cast<unsigned>(c - '0');
    if (fraction) --value.exponent;
  }
  if (seen == 0) return not_a_number();
  if (text.size() > 1 && (text[0] == 'e' || text[0] == 'E')) {
    const bool sign = text[1] == '-' || text[1] == '+';
    const std::string_view digits = text.substr(sign ? 2 : 1);
    int exponent = 0;
    const auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
    if (!digits.empty() && is_digit(digits.front())) {
      if (ec != std::errc() || exponent > 1000) return not_a_number();
      value.exponent += text[1] == '-' ? -exponent : exponent;
      text = digits.substr(static_cast<size_t>(end - digits.data()));
    }
  }
  return value;
}

// The scale of a unit's name, or null factor when there is no such unit of this kind.
Scale scale_of(const Kind& kind, std::string_view unit) {
  for (const Scale& suffix : kind.suffixes) {
    if (!unit.ends_with(suffix.name)) continue;
    const std::string_view prefix = unit.substr(0, unit.size() - suffix.name.size());
    const auto find = [&](std::span<const Scale> prefixes) -> Scale {
      for (const Scale& p : prefixes) {
        if (p.name == prefix) return {unit, p.factor * suffix.factor, p.exponent + suffix.exponent};
      }
      return {unit, 0, 0};
    };
    if (kind.prefixes == Prefixes::kNone) {
      if (prefix.empty()) return {unit, suffix.factor, suffix.exponent};
      continue;
    }
    Scale found = find(kSi);
    if (found.factor == 0 && kind.prefixes == Prefixes::kAll) found = find(kIec);
    if (found.factor != 0) return found;
  }
  return {unit, 0, 0};
}

// The number in the stored unit, still exact.
Result<Decimal> parse(const Kind& kind, std::string_view text) {
  std::string_view rest = trimmed(text);
  RH_TRY(Decimal value, take_number(kind, rest));
  rest = trimmed(rest);
  if (rest.empty()) {
    if (kind.bare == Bare::kAccepted || value.digits == 0) return value;
    return refuse(kind, fmt::format("{} has no unit", in_quotes(trimmed(text))));
  }
  const Scale scale = scale_of(kind, rest);
  if (scale.factor == 0) {
    return refuse(kind, fmt::format("{} is not a unit of a {}", in_quotes(rest), kind.noun));
  }
  value.digits *= scale.factor;
  value.exponent += scale.exponent;
  return value;
}

// Nearest integer, ties to even.
Result<int64_t> to_integer(const Kind& kind, std::string_view text, Decimal value) {
  constexpr Wide kMax = static_cast<Wide>(std::numeric_limits<int64_t>::max());
  const auto overflow = [&] {
    return fail(Code::kBadInput,
                fmt::format("{} is too large for a {}", in_quotes(text), kind.noun), {},
                "the largest is 9223372036854775807 in the stored unit");
  };
  if (value.exponent < -38) return 0;
  for (; value.exponent > 0 && value.digits != 0; --value.exponent) {
    if (value.digits > kMax) return overflow();
    value.digits *= 10;
  }
  Wide divisor = 1;
  for (; value.exponent < 0; ++value.exponent) divisor *= 10;
  Wide quotient = value.digits / divisor;
  const Wide rest = value.digits % divisor;
  if (rest > divisor - rest || (rest != 0 && rest == divisor - rest && (quotient & 1) != 0))
    ++quotient;
  if (quotient > kMax + (value.negative ? 1 : 0)) return overflow();
  const auto magnitude = static_cast<uint64_t>(quotient);
  return static_cast<int64_t>(value.negative ? 0 - magnitude : magnitude);
}

Result<double> to_double(const Kind& kind, std::string_view text, const Decimal& value) {
  const std::string digits = fmt::format("{}e{}", value.digits, value.exponent);
  double result = 0;
  const auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), result);
  if (value.digits != 0 && ec != std::errc()) {
    return fail(Code::kBadInput,
                fmt::format("{} is out of range for a {}", in_quotes(text), kind.noun), {},
                fmt::format("write it like {}", kind.example));
  }
  return value.negative ? -result : result;
}

Result<int64_t> parse_integer(const Kind& kind, std::string_view text) {
  RH_TRY(const Decimal value, parse(kind, text));
  return to_integer(kind, text, value);
}

Result<double> parse_double(const Kind& kind, std::string_view text) {
  RH_TRY(const Decimal value, parse(kind, text));
  return to_double(kind, text, value);
}

}  // namespace

Result<Bytes> parse_bytes(std::string_view text) { return parse_integer(kBytes, text); }
Result<BytesPerSec> parse_bandwidth(std::string_view text) {
  return parse_double(kBandwidth, text);
}
Result<Nanos> parse_duration(std::string_view text) { return parse_integer(kDuration, text); }
Result<double> parse_flops(std::string_view text) { return parse_double(kFlops, text); }
Result<double> parse_hertz(std::string_view text) { return parse_double(kHertz, text); }

}  // namespace rehearse
