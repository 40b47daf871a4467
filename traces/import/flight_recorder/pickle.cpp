// SPDX-License-Identifier: Apache-2.0
#include "traces/import/flight_recorder/pickle.hpp"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <optional>
#include <unordered_map>

#include "base/text.hpp"

namespace rehearse::traces::flight_recorder {
namespace {

using Kind = Value::Kind;
constexpr size_t kMaxValues = size_t{1} << 26;
constexpr size_t kMaxMemo = size_t{1} << 22;

// What the refused opcodes do, in the words of Python's pickle module.
const char* forbidden(uint8_t opcode) {
  switch (opcode) {
    case 'c':
      return "names a class or function (GLOBAL)";
    case 0x93:
      return "names a class or function (STACK_GLOBAL)";
    case 'R':
      return "calls a function (REDUCE)";
    case 'b':
      return "sets the state of an object (BUILD)";
    case 'i':
    case 'o':
      return "makes an object (INST, OBJ)";
    case 0x81:
    case 0x92:
      return "makes an object (NEWOBJ)";
    case 'P':
    case 'Q':
      return "names an object outside (PERSID)";
    case 0x82:
    case 0x83:
    case 0x84:
      return "names an extension (EXT)";
    case 0x97:
    case 0x98:
      return "names a buffer outside (NEXT_BUFFER)";
    default:
      return nullptr;
  }
}

void append_utf8(uint32_t point, std::string& out) {
  const auto byte = [&](uint32_t bits) { out += static_cast<char>(bits); };
  if (point < 0x80) return byte(point);
  if (point < 0x800) {
    byte(0xc0 | point >> 6);
  } else if (point < 0x10000) {
    byte(0xe0 | point >> 12);
    byte(0x80 | (point >> 6 & 0x3f));
  } else {
    byte(0xf0 | point >> 18);
    byte(0x80 | (point >> 12 & 0x3f));
    byte(0x80 | (point >> 6 & 0x3f));
  }
  byte(0x80 | (point & 0x3f));
}

// Text as protocol 0 prints it: characters by number in hexadecimal (\u20ac, \x0a) and, other than in `raw` text, by
// letter. Bytes of raw text are Latin-1. Nothing when an escape is none.
std::optional<std::string> unescaped(std::string_view text, bool raw) {
  constexpr std::string_view kLetters = "ntr\\'\"", kMeant = "\n\t\r\\'\"";
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      append_utf8(static_cast<uint8_t>(text[i]), out);
      continue;
    }
    const char kind = ++i < text.size() ? text[i] : '\0';
    const size_t digits = kind == 'u' && raw ? 4 : kind == 'U' && raw ? 8 : kind == 'x' ? 2 : 0;
    if (digits > 0 && !(raw && kind == 'x')) {
      uint32_t point = 0;
      const std::string_view hex = text.substr(i + 1, digits);
      const auto [stop, error] = std::from_chars(hex.data(), hex.data() + hex.size(), point, 16);
      if (error != std::errc{} || hex.size() < digits || stop != hex.data() + digits ||
          point > 0x10ffff) {
        return std::nullopt;
      }
      append_utf8(point, out);
      i += digits;
    } else if (const size_t letter = kLetters.find(kind);
               !raw && letter != std::string_view::npos) {
      out += kMeant[letter];
    } else if (raw) {
      out += '\\';
      --i;  // a backslash that escapes nothing stands for itself
    } else {
      return std::nullopt;
    }
  }
  return out;
}

class Unpickler {
 public:
  Unpickler(std::string_view bytes, const std::string& name, Values& values)
      : bytes_(bytes), name_(name), values_(values) {}

  Result<ValueId> run() {
    while (true) {
      if (values_.size() > kMaxValues)
        return fail(Code::kLimit, "more values than a dump has", at());
      opcode_at_ = pos_;
      if (pos_ >= bytes_.size()) return bad("the pickle ends before its end mark");
      const auto opcode = static_cast<uint8_t>(bytes_[pos_++]);
      if (opcode == '.') {
        if (stack_.size() != 1 || !marks_.empty())
          return bad("end mark with a stack of other size");
        return stack_.back();
      }
      if (auto done = step(opcode); !done) return tl::unexpected(done.error());
    }
  }

 private:
  Result<void> step(uint8_t opcode);
  Result<void> scalar(uint8_t opcode);
  Result<void> text(uint8_t opcode);
  Result<void> printed(uint8_t opcode);
  Result<void> container(uint8_t opcode);
  Result<void> memo(uint8_t opcode);
  Result<void> memoize(uint64_t index);

  [[nodiscard]] std::string at() const { return fmt::format("{}: byte {}", name_, opcode_at_); }
  [[nodiscard]] tl::unexpected<Error> bad(std::string what) const {
    return fail(Code::kBadInput, std::move(what), at(),
                "dumps are read as plain data only: let PyTorch write the dump again, or convert "
                "it to JSON");
  }
  // `count` bytes little-endian; the number of the checked bytes.
  Result<uint64_t> natural(size_t count) {
    if (bytes_.size() - pos_ < count) return bad("the pickle ends inside a number");
    uint64_t value = 0;
    for (size_t i = 0; i < count; ++i) {
      value |= uint64_t{static_cast<uint8_t>(bytes_[pos_ + i])} << (8 * i);
    }
    pos_ += count;
    return value;
  }
  // Up to the end of the line, which protocol 0 ends everything with.
  Result<std::string_view> line() {
    const size_t end = bytes_.find('\n', pos_);
    if (end == std::string_view::npos) return bad("the pickle ends inside a line");
    const std::string_view out = bytes_.substr(pos_, end - pos_);
    pos_ = end + 1;
    return out;
  }
  Result<std::string_view> piece(size_t size_bytes) {
    RH_TRY(const uint64_t length, natural(size_bytes));
    if (length > bytes_.size() - pos_) {
      return bad(fmt::format("text of {} bytes where {} are left", length, bytes_.size() - pos_));
    }
    const std::string_view out = bytes_.substr(pos_, length);
    pos_ += length;
    return out;
  }
  void push(Value value) { stack_.push_back(values_.add(std::move(value))); }
  void push_integer(int64_t value) { push({.kind = Kind::kInteger, .integer = value}); }
  // Takes the values above the last mark, or `count` of them.
  Result<std::vector<ValueId>> above_mark() {
    if (marks_.empty()) return bad("no mark on the stack");
    const size_t mark = marks_.back();
    marks_.pop_back();
    if (mark > stack_.size()) return bad("a mark above the stack");
    std::vector<ValueId> out(stack_.begin() + static_cast<std::ptrdiff_t>(mark), stack_.end());
    stack_.resize(mark);
    return out;
  }
  Result<std::vector<ValueId>> last(size_t count) {
    const size_t floor = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() < floor + count) return bad("the stack is too short");
    std::vector<ValueId> out(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return out;
  }
  Result<void> extend(Kind kind, const std::vector<ValueId>& items) {
    const size_t floor = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() <= floor || values_.at(stack_.back()).kind != kind) {
      return bad(kind == Kind::kList ? "items for what is no list" : "items for what is no dict");
    }
    if (kind == Kind::kDict && items.size() % 2 != 0) return bad("a key without a value");
    auto& all = values_.at(stack_.back()).items;
    all.insert(all.end(), items.begin(), items.end());
    return {};
  }

  std::string_view bytes_;
  const std::string& name_;
  Values& values_;
  size_t pos_ = 0, opcode_at_ = 0;
  std::vector<ValueId> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, ValueId> memo_;
};

Result<void> Unpickler::scalar(uint8_t opcode) {
  switch (opcode) {
    case 'N':
      push({});
      return {};
    case 0x88:
    case 0x89:
      push({.kind = Kind::kBool, .integer = opcode == 0x88 ? 1 : 0});
      return {};
    case 'K':
    case 'M': {
      RH_TRY(const uint64_t value, natural(opcode == 'K' ? 1 : 2));
      push_integer(static_cast<int64_t>(value));
      return {};
    }
    case 'J': {
      RH_TRY(const uint64_t value, natural(4));
      push_integer(static_cast<int32_t>(static_cast<uint32_t>(value)));
      return {};
    }
    case 'G': {
      RH_TRY(const uint64_t value, natural(8));
      push({.kind = Kind::kFloat, .number = std::bit_cast<double>(__builtin_bswap64(value))});
      return {};
    }
    default: {  // LONG1, LONG4: two's complement of any length
      RH_TRY(const std::string_view digits, piece(opcode == 0x8a ? 1 : 4));
      if (digits.size() > 8) return bad("a number of more than 64 bits");
      uint64_t value = 0;
      for (size_t i = 0; i < digits.size(); ++i) {
        value |= uint64_t{static_cast<uint8_t>(digits[i])} << (8 * i);
      }
      const size_t bits = 8 * digits.size();
      if (bits > 0 && bits < 64 && ((value >> (bits - 1)) & 1) != 0) value |= ~uint64_t{0} << bits;
      push_integer(static_cast<int64_t>(value));
      return {};
    }
  }
}

Result<void> Unpickler::text(uint8_t opcode) {
  const size_t size_bytes = opcode == 0x8c || opcode == 'C' || opcode == 'U'     ? 1
                            : opcode == 0x8d || opcode == 0x8e || opcode == 0x96 ? 8
                                                                                 : 4;
  RH_TRY(const std::string_view value, piece(size_bytes));
  push({.kind = Kind::kText, .text = std::string(value)});
  return {};
}

// Protocol 0 prints its values, as Python's repr does.
Result<void> Unpickler::printed(uint8_t opcode) {
  RH_TRY(std::string_view value, line());
  if (opcode == 'V' || opcode == 'S') {
    if (opcode == 'S') {
      if (value.size() < 2 || value.front() != value.back() ||
          (value.front() != '\'' && value.front() != '"')) {
        return bad("a text without its quotes");
      }
      value = value.substr(1, value.size() - 2);
    }
    const auto text = unescaped(value, opcode == 'V');
    if (!text) return bad("an escape that no text has");
    push({.kind = Kind::kText, .text = *text});
    return {};
  }
  if (opcode == 'I' && (value == "00" || value == "01")) {
    push({.kind = Kind::kBool, .integer = value == "01" ? 1 : 0});
    return {};
  }
  if (opcode == 'L' && value.ends_with('L')) value.remove_suffix(1);
  const char* const end = value.data() + value.size();
  if (opcode == 'F') {
    double number = 0;
    const auto [stop, error] = std::from_chars(value.data(), end, number);
    if (error != std::errc{} || stop != end) return bad("no number where one should be");
    push({.kind = Kind::kFloat, .number = number});
    return {};
  }
  int64_t number = 0;
  const auto [stop, error] = std::from_chars(value.data(), end, number);
  if (error == std::errc::result_out_of_range) return bad("a number of more than 64 bits");
  if (error != std::errc{} || stop != end) return bad("no number where one should be");
  push_integer(number);
  return {};
}

Result<void> Unpickler::container(uint8_t opcode) {
  switch (opcode) {
    case '}':
      push({.kind = Kind::kDict});
      return {};
    case ']':
    case ')':
      push({.kind = Kind::kList});
      return {};
    case '(':
      marks_.push_back(stack_.size());
      return {};
    case 't':
    case 'l':
    case 'd': {
      RH_TRY(std::vector<ValueId> items, above_mark());
      if (opcode == 'd' && items.size() % 2 != 0) return bad("a key without a value");
      push({.kind = opcode == 'd' ? Kind::kDict : Kind::kList, .items = std::move(items)});
      return {};
    }
    case 0x85:
    case 0x86:
    case 0x87: {
      RH_TRY(std::vector<ValueId> items, last(opcode - 0x84u));
      push({.kind = Kind::kList, .items = std::move(items)});
      return {};
    }
    case 'e':
    case 'u': {
      RH_TRY(const std::vector<ValueId> items, above_mark());
      return extend(opcode == 'e' ? Kind::kList : Kind::kDict, items);
    }
    case 'a':
    case 's': {
      RH_TRY(const std::vector<ValueId> items, last(opcode == 'a' ? 1 : 2));
      return extend(opcode == 'a' ? Kind::kList : Kind::kDict, items);
    }
    case '0': {
      RH_TRY(const std::vector<ValueId> dropped, last(1));
      (void)dropped;
      return {};
    }
    default: {  // POP_MARK
      RH_TRY(const std::vector<ValueId> dropped, above_mark());
      (void)dropped;
      return {};
    }
  }
}

Result<void> Unpickler::memoize(uint64_t index) {
  if (stack_.empty()) return bad("nothing to remember");
  if (memo_.size() >= kMaxMemo) return fail(Code::kLimit, "more memos than a dump has", at());
  memo_[index] = stack_.back();
  return {};
}

Result<void> Unpickler::memo(uint8_t opcode) {
  if (opcode == 0x94) return memoize(memo_.size());
  uint64_t index = 0;
  if (opcode == 'p' || opcode == 'g') {
    RH_TRY(const std::string_view number, line());
    const char* const end = number.data() + number.size();
    const auto [stop, error] = std::from_chars(number.data(), end, index);
    if (error != std::errc{} || stop != end) return bad("no number where one should be");
  } else {
    RH_TRY(index, natural(opcode == 'q' || opcode == 'h' ? 1 : 4));
  }
  if (opcode == 'q' || opcode == 'r' || opcode == 'p') return memoize(index);
  const auto known = memo_.find(index);
  if (known == memo_.end()) return bad("a reference to what was not remembered");
  stack_.push_back(known->second);
  return {};
}

Result<void> Unpickler::step(uint8_t opcode) {
  switch (opcode) {
    case 0x80: {  // PROTO
      RH_TRY(const uint64_t protocol, natural(1));
      if (protocol < 2 || protocol > 5) return bad(fmt::format("pickle protocol {}", protocol));
      return {};
    }
    case 0x95: {  // FRAME
      RH_TRY(const uint64_t length, natural(8));
      if (length > bytes_.size() - pos_) return bad("a frame that is longer than the file");
      return {};
    }
    case 'N':
    case 0x88:
    case 0x89:
    case 'K':
    case 'M':
    case 'J':
    case 'G':
    case 0x8a:
    case 0x8b:
      return scalar(opcode);
    case 'X':
    case 0x8c:
    case 0x8d:
    case 'B':
    case 'C':
    case 0x8e:
    case 0x96:
    case 'T':
    case 'U':
      return text(opcode);
    case 'V':
    case 'S':
    case 'I':
    case 'L':
    case 'F':
      return printed(opcode);
    case '}':
    case ']':
    case ')':
    case '(':
    case 't':
    case 'l':
    case 'd':
    case 0x85:
    case 0x86:
    case 0x87:
    case 'e':
    case 'u':
    case 'a':
    case 's':
    case '0':
    case '1':
      return container(opcode);
    case 'q':
    case 'r':
    case 'h':
    case 'j':
    case 'p':
    case 'g':
    case 0x94:
      return memo(opcode);
    default:
      break;
  }
  if (const char* what = forbidden(opcode)) {
    const std::string_view rest = bytes_.substr(pos_, 60);
    const bool named = opcode == 'c';
    return bad(fmt::format("the pickle {}{}; it is not run", what,
                           named ? ": " + in_quotes(rest.substr(0, rest.find_last_of('\n'))) : ""));
  }
  return bad(fmt::format("opcode 0x{:02x}, which plain data does not need", opcode));
}

}  // namespace

const Value* Values::find(const Value& dict, std::string_view key) const {
  if (dict.kind != Kind::kDict) return nullptr;
  for (size_t i = dict.items.size(); i >= 2; i -= 2) {
    const Value& name = at(dict.items[i - 2]);
    if (name.kind == Kind::kText && name.text == key) return &at(dict.items[i - 1]);
  }
  return nullptr;
}

Result<ValueId> unpickle(std::string_view bytes, const std::string& name, Values& values) {
  return Unpickler(bytes, name, values).run();
}

}  // namespace rehearse::traces::flight_recorder
