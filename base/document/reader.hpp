// SPDX-License-Identifier: Apache-2.0
// Fills messages from nodes. One Reader per document: it counts what it visits, so that aliases and
// catalogue entries cannot multiply a small text into a huge message.
#pragma once

#include <google/protobuf/message.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/document.hpp"
#include "base/document/node.hpp"
#include "base/document/scalar.hpp"
#include "base/document/schema.hpp"

namespace rehearse::document {

class Reader {
 public:
  // `name` and `catalogue` must outlive the reader. An empty catalogue keeps `like` as written.
  Reader(const std::string& name, const Catalogue& catalogue, Dialect dialect)
      : name_(name), catalogue_(catalogue), dialect_(dialect) {}

  // Merges a node into a message.
  [[nodiscard]] Result<void> read_message(const Node& node, Message& message);
  // Assigns one field; a null node clears it.
  [[nodiscard]] Result<void> read_field(const Node& node, Message& owner,
                                        const FieldDescriptor& field);
  // Assigns or (kAppend) adds one element of a repeated field that is not a map.
  [[nodiscard]] Result<void> read_element(const Node& node, Message& owner,
                                          const FieldDescriptor& field, int index);
  // Assigns the entry `key` of a map field, adding it when absent.
  [[nodiscard]] Result<void> read_entry(const Node& node, Message& owner,
                                        const FieldDescriptor& field, std::string_view key);
  // Starts the message anew from the catalogue entry that the node names, when there is a
  // catalogue.
  [[nodiscard]] Result<void> read_like(const Node& node, Message& message);

 private:
  struct Entry {
    const Node* key;
    const Node* value;
    const FieldDescriptor* field;
  };
  [[nodiscard]] Result<std::vector<Entry>> entries_of(const Node& node, const Descriptor& type);
  [[nodiscard]] Result<void> read_mapping(const Node& node, Message& message);
  [[nodiscard]] Result<void> read_map(const Node& node, Message& owner,
                                      const FieldDescriptor& field);
  [[nodiscard]] Result<void> read_value(const Node& node, Message& owner,
                                        const FieldDescriptor& field,
                                        const FieldDescriptor& options, int index);
  [[nodiscard]] Result<void> put_entry(const Node& node, Message& owner,
                                       const FieldDescriptor& field, int index, Scalar key);
  [[nodiscard]] Result<void> check_given(const Node& node, const Message& message) const;
  [[nodiscard]] Result<void> visit(const Node& node, size_t weight);
  [[nodiscard]] tl::unexpected<Error> refuse(const Node& node, std::string what,
                                             std::string fix) const;
  [[nodiscard]] tl::unexpected<Error> placed(const Node& node, Error error) const;

  const std::string& name_;
  const Catalogue& catalogue_;
  Dialect dialect_;
  size_t visited_ = 0;
  int depth_ = 0;
};

// Where each key of a map field stands among its entries.
[[nodiscard]] std::map<Scalar, int> entries_by_key(const Message& owner,
                                                   const FieldDescriptor& field);

}  // namespace rehearse::document
