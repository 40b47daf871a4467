// SPDX-License-Identifier: Apache-2.0
// An XML file whose elements know where they stand. Bounded in size and depth; entities are not
// expanded. A view of its text: elements die with the file.
#pragma once

#include <memory>
#include <pugixml.hpp>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace rehearse::platforms {

class XmlFile {
 public:
  // kBadInput with file:line:column when the text is not one well-formed element; kLimit when it is
  // larger or nested deeper than any topology.
  static Result<XmlFile> parse(std::string text, std::string name);

  [[nodiscard]] pugi::xml_node root() const { return document_->document_element(); }
  [[nodiscard]] const std::string& name() const { return name_; }
  // "topo.xml:12:5", counted from 1.
  [[nodiscard]] std::string place(const pugi::xml_node& element) const;

 private:
  [[nodiscard]] std::string place_at(size_t offset) const;

  std::string name_;
  std::vector<size_t> lines_;  // offset of the first byte of each line
  std::unique_ptr<pugi::xml_document> document_;
};

// A whole number within bounds, decimal or 0x hexadecimal, from an attribute that must be there.
[[nodiscard]] Result<int64_t> whole(const XmlFile& file, const pugi::xml_node& element,
                                    const char* attribute, int64_t least, int64_t most);
// A number that is not negative; `otherwise` when the attribute is missing.
[[nodiscard]] Result<double> decimal(const XmlFile& file, const pugi::xml_node& element,
                                     const char* attribute, double otherwise);

}  // namespace rehearse::platforms
