// SPDX-License-Identifier: Apache-2.0
#include "sim/bringup/texts.hpp"

#include <algorithm>
#include <cctype>

#include "base/document.hpp"
#include "base/install.hpp"

namespace rehearse::sim::bringup {
namespace {

// An enum's value as documents write it.
template <typename Enum>
std::string written_name(Enum value, const std::string& (*name)(Enum)) {
  std::string out = name(value);
  for (char& c : out)
    c = c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

template <typename List>
bool among(const List& list, const std::string& name) {
  return list.empty() || std::find(list.begin(), list.end(), name) != list.end();
}

}  // namespace

Result<pb::BringUpTexts> load_texts() {
  RH_TRY(const std::filesystem::path path, shipped("sim/bringup/texts.yaml"));
  pb::BringUpTexts texts;
  if (auto read = read_document_file(path.string(), texts); !read) {
    return tl::unexpected(read.error());
  }
  return texts;
}

std::string filled(std::string_view text, const Facts& facts) {
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    const size_t close = text[at] == '{' ? text.find('}', at) : text.npos;
    const auto fact = close == text.npos
                          ? facts.end()
                          : facts.find(std::string(text.substr(at + 1, close - at - 1)));
    if (fact == facts.end()) {
      out += text[at];
      continue;
    }
    out += fact->second;
    at = close;
  }
  return out;
}

std::string text_of(const pb::BringUpTexts& texts, const pb::Launch& launch,
                    const Trouble& trouble) {
  const std::string framework =
      written_name(launch.framework(), &pb::Framework_Name<pb::Framework>);
  const std::string launcher = written_name(launcher_of(launch), &pb::Launcher_Name<pb::Launcher>);
  for (const pb::BringUpText& row : texts.texts()) {
    if (row.state() != trouble.state || row.error() != trouble.error) continue;
    if (!among(row.frameworks(), framework) || !among(row.launchers(), launcher)) continue;
    const std::string& version =
        row.library() == "nccl" ? launch.nccl_version() : launch.framework_version();
    // Without a version: a current release.
    if (version.empty()
            ? !row.before().empty()
            : (!row.from().empty() && compare_versions(version, row.from()) < 0) ||
                  (!row.before().empty() && compare_versions(version, row.before()) >= 0)) {
      continue;
    }
    return filled(row.text(), trouble.facts);
  }
  return "";
}

}  // namespace rehearse::sim::bringup
