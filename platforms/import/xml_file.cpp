// SPDX-License-Identifier: Apache-2.0
#include "platforms/import/xml_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "base/text.hpp"

namespace rehearse::platforms {
namespace {

constexpr size_t kMaxXmlBytes = 16u << 20;
constexpr int kMaxDepth = 48;

tl::unexpected<Error> bad_number(const XmlFile& file, const pugi::xml_node& element,
                                 const char* attribute, const std::string& wanted) {
  const std::string_view text = element.attribute(attribute).value();
  if (element.attribute(attribute).empty()) {
    return fail(Code::kBadInput, fmt::format("<{}> has no {}", element.name(), attribute),
                file.place(element), fmt::format("write {}=\"...\": {}", attribute, wanted));
  }
  return fail(Code::kBadInput,
              fmt::format("{} of <{}> is {}", attribute, element.name(), in_quotes(text)),
              file.place(element), "write " + wanted);
}

}  // namespace

Result<XmlFile> XmlFile::parse(std::string text, std::string name) {
  if (text.size() > kMaxXmlBytes) {
    return fail(Code::kLimit,
                fmt::format("{} bytes of XML, at most {} are read", text.size(), kMaxXmlBytes),
                name, "give the topology or graph file alone");
  }
  XmlFile file;
  file.name_ = std::move(name);
  file.lines_.push_back(0);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') file.lines_.push_back(i + 1);
  }
  file.document_ = std::make_unique<pugi::xml_document>();
  const pugi::xml_parse_result parsed = file.document_->load_buffer(
      text.data(), text.size(), pugi::parse_default, pugi::encoding_utf8);
  if (!parsed) {
    return fail(Code::kBadInput, fmt::format("not well-formed XML: {}", parsed.description()),
                file.place_at(static_cast<size_t>(std::max<ptrdiff_t>(parsed.offset, 0))),
                "write the file again; it may have been cut");
  }
  struct Deep : pugi::xml_tree_walker {
    pugi::xml_node at;
    bool for_each(pugi::xml_node& node) override {
      if (depth() < kMaxDepth) return true;
      at = node;
      return false;
    }
  } deep;
  if (!file.document_->traverse(deep)) {
    return fail(Code::kLimit, fmt::format("elements are nested more than {} deep", kMaxDepth),
                file.place(deep.at), "no machine has such a PCIe tree; check the file");
  }
  return file;
}

std::string XmlFile::place_at(size_t offset) const {
  const auto line = std::upper_bound(lines_.begin(), lines_.end(), offset) - 1;
  return fmt::format("{}:{}:{}", name_, line - lines_.begin() + 1, offset - *line + 1);
}

std::string XmlFile::place(const pugi::xml_node& element) const {
  const ptrdiff_t offset = element.offset_debug();
  return offset < 0 ? name_ : place_at(static_cast<size_t>(offset));
}

Result<int64_t> whole(const XmlFile& file, const pugi::xml_node& element, const char* attribute,
                      int64_t least, int64_t most) {
  std::string_view text = element.attribute(attribute).value();
  const bool hex = text.starts_with("0x");
  if (hex) text.remove_prefix(2);
  int64_t value = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value, hex ? 16 : 10);
  if (error == std::errc() && end == last && value >= least && value <= most) return value;
  return bad_number(file, element, attribute,
                    fmt::format("a whole number from {} to {}", least, most));
}

Result<double> decimal(const XmlFile& file, const pugi::xml_node& element, const char* attribute,
                       double otherwise) {
  const std::string_view text = element.attribute(attribute).value();
  if (text.empty()) return otherwise;
  double value = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error == std::errc() && end == last && std::isfinite(value) && value >= 0) return value;
  return bad_number(file, element, attribute, "a number that is not negative");
}

}  // namespace rehearse::platforms
