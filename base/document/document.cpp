// SPDX-License-Identifier: Apache-2.0
#include "base/document.hpp"

#include "base/atomic_file.hpp"
#include "base/document/node.hpp"
#include "base/document/reader.hpp"

namespace rehearse {

Result<void> read_document(std::string_view text, const std::string& name,
                           google::protobuf::Message& message, const Catalogue& catalogue) {
  RH_TRY(const document::Tree tree, document::parse_yaml(text, name));
  return document::Reader(name, catalogue, document::Dialect::kYaml)
      .read_message(*tree.root, message);
}

Result<void> read_document_file(const std::string& path, google::protobuf::Message& message,
                                const Catalogue& catalogue) {
  RH_TRY(const std::string text, read_file(path, kMaxDocumentBytes));
  return read_document(text, path, message, catalogue);
}

}  // namespace rehearse
