// SPDX-License-Identifier: Apache-2.0
#include "traces/import/chakra/node.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "traces/import/wire.hpp"

namespace rehearse::traces::chakra {
namespace {

int64_t saturated(uint64_t value) {
  return static_cast<int64_t>(std::min<uint64_t>(value, INT64_MAX));
}

int64_t whole(double value) {
  return std::isfinite(value) && std::abs(value) < 9e18 ? static_cast<int64_t>(value) : 0;
}

// Field numbers of AttributeProto's oneof; each list follows its single value.
enum AttributeField : uint32_t {
  kDouble = 3,
  kFloat = 5,
  kInt32 = 7,
  kInt64 = 9,
  kUint32 = 11,
  kUint64 = 13,
  kSint32 = 15,
  kSint64 = 17,
  kFixed32 = 19,
  kFixed64 = 21,
  kSfixed32 = 23,
  kSfixed64 = 25,
  kBool = 27,
  kString = 29,
  kBytes = 31,
};

bool parse_list(uint32_t number, std::string_view message, Attribute& out) {
  WireReader reader(message);
  WireField field;
  std::vector<uint64_t> values;
  while (reader.next(field)) {
    if (field.number != 1) continue;
    if (number == kString + 1 || number == kBytes + 1) {
      if (field.type == WireType::kBytes) out.texts.push_back(field.bytes);
    } else if (!append_varints(field, values)) {
      return true;  // a list of doubles or fixed numbers: nothing here uses one
    }
  }
  const bool zigzagged = number == kSint32 + 1 || number == kSint64 + 1;
  const bool is_signed = number == kInt32 + 1 || number == kInt64 + 1;
  for (const uint64_t v : values) {
    out.numbers.push_back(zigzagged   ? zigzag(v)
                          : is_signed ? static_cast<int64_t>(v)
                                      : saturated(v));
  }
  return !reader.broken();
}

bool parse_attribute(std::string_view message, Attribute& out) {
  WireReader reader(message);
  WireField f;
  while (reader.next(f)) {
    if (f.number == 1 && f.type == WireType::kBytes) out.name = f.bytes;
    if (f.number < kDouble || f.number > kBytes + 1) continue;
    if (f.type == WireType::kBytes) {
      if (f.number == kString || f.number == kBytes) {
        out.text = f.bytes;
      } else if (!parse_list(f.number, f.bytes, out)) {
        return false;
      }
      continue;
    }
    switch (f.number) {
      case kDouble:
        out.number = whole(std::bit_cast<double>(f.value));
        break;
      case kFloat:
        out.number = whole(std::bit_cast<float>(static_cast<uint32_t>(f.value)));
        break;
      case kSint32:
      case kSint64:
        out.number = zigzag(f.value);
        break;
      case kInt32:
      case kInt64:
      case kSfixed64:
        out.number = static_cast<int64_t>(f.value);
        break;
      case kSfixed32:
        out.number = static_cast<int32_t>(f.value);
        break;
      default:
        out.number = saturated(f.value);
    }
  }
  return !reader.broken();
}

template <typename Attributes>
const Attribute* find(const Attributes& attributes, std::string_view key) {
  const auto at = std::find_if(attributes.begin(), attributes.end(),
                               [&](const Attribute& a) { return a.name == key; });
  return at == attributes.end() ? nullptr : &*at;
}

}  // namespace

const Attribute* Node::attribute(std::string_view key) const { return find(attributes, key); }

std::optional<int64_t> Node::number(std::string_view key) const {
  const Attribute* a = attribute(key);
  return a == nullptr ? std::nullopt : a->number;
}

std::string_view Node::text(std::string_view key) const {
  const Attribute* a = attribute(key);
  return a == nullptr ? std::string_view() : a->text;
}

const Attribute* FileMetadata::attribute(std::string_view key) const {
  return find(attributes, key);
}

std::string FileMetadata::text(std::string_view key) const {
  const Attribute* a = attribute(key);
  return a == nullptr ? "" : std::string(a->text);
}

std::optional<FileMetadata> parse_metadata(std::string_view message) {
  FileMetadata out;
  out.bytes.assign(message.begin(), message.end());
  WireReader reader(std::string_view(out.bytes.data(), out.bytes.size()));
  WireField f;
  std::string_view version;
  while (reader.next(f)) {
    if (f.type != WireType::kBytes) continue;
    Attribute a;
    // The first drafts had no version and the attributes in its place.
    if ((f.number == 1 || f.number == 2) && parse_attribute(f.bytes, a) && !a.name.empty()) {
      out.attributes.push_back(std::move(a));
    } else if (f.number == 1) {
      version = f.bytes;
    }
  }
  if (reader.broken()) return std::nullopt;
  const Attribute* schema = out.attribute("schema");
  out.schema = schema != nullptr ? schema->text : version;
  return std::optional<FileMetadata>(std::move(out));
}

bool parse_node(std::string_view message, Node& node) {
  node = {};
  WireReader reader(message);
  WireField f;
  bool ok = true;
  while (ok && reader.next(f)) {
    const bool varint = f.type == WireType::kVarint, bytes = f.type == WireType::kBytes;
    switch (f.number) {
      case 1:
        ok = varint;
        node.id = f.value;
        break;
      case 2:
        ok = bytes;
        node.name = f.bytes;
        break;
      case 3:
        ok = varint;
        node.type = static_cast<uint32_t>(std::min<uint64_t>(f.value, UINT32_MAX));
        break;
      case 4:
        ok = append_varints(f, node.control);
        break;
      case 5:
        ok = append_varints(f, node.data);
        break;
      case 6:
        ok = varint;
        node.start_micros = f.value;
        break;
      case 7:
        ok = varint;
        node.duration_micros = f.value;
        break;
      case 8: {
        ok = bytes && is_message(f.bytes);
        WireReader io(f.bytes);
        for (WireField v; ok && io.next(v);) {
          if (v.number == 1 && v.type == WireType::kBytes) node.input_values = v.bytes;
        }
        break;
      }
      case 10: {
        Attribute a;
        ok = bytes && parse_attribute(f.bytes, a);
        if (ok) node.attributes.push_back(std::move(a));
        break;
      }
      default:
        break;  // outputs, storage details and what is to come
    }
  }
  return ok && !reader.broken();
}

}  // namespace rehearse::traces::chakra
