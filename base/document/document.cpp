// SPDX-License-Identifier: Apache-2.0
#include "base/document.hpp"

#include <algorithm>
#include <system_error>

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

Result<std::vector<std::filesystem::path>> yaml_files(const std::filesystem::path& folder) {
  std::error_code ec;
  std::vector<std::filesystem::path> files;
  std::filesystem::directory_iterator entries(folder, ec);
  for (; !ec && entries != std::filesystem::directory_iterator(); entries.increment(ec)) {
    if (entries->path().extension() == ".yaml") files.push_back(entries->path());
  }
  if (ec) {
    return fail(Code::kMissingInput, "cannot read the folder: " + ec.message(), folder.string(),
                "give a folder of YAML files (*.yaml)");
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace rehearse
