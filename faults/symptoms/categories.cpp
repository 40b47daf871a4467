// SPDX-License-Identifier: Apache-2.0
#include "faults/symptoms/categories.hpp"

#include <fmt/format.h>

#include <cctype>
#include <set>

#include "base/atomic_file.hpp"
#include "base/document.hpp"
#include "base/install.hpp"
#include "faults/placeholders.hpp"

namespace rehearse::faults {
namespace {

std::string folded(std::string_view text) {
  std::string out;
  for (const char c : text) out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// True when `part` is one of the labels that `label` joins with " & " or " / ".
bool joins(const std::string& label, const std::string& part) {
  for (size_t at = label.find(part); at != label.npos; at = label.find(part, at + 1)) {
    const std::string_view before = std::string_view(label).substr(0, at);
    const std::string_view after = std::string_view(label).substr(at + part.size());
    const bool starts = before.empty() || before.ends_with(" & ") || before.ends_with(" / ");
    const bool ends = after.empty() || after.starts_with(" & ") || after.starts_with(" / ");
    if (starts && ends) return true;
  }
  return false;
}

}  // namespace

Result<Categories> Categories::read(std::string_view text, const std::string& file) {
  Categories categories;
  if (auto read = read_document(text, file, categories.table_); !read) {
    return tl::unexpected(read.error());
  }
  std::set<std::string> ids;
  for (const pb::SymptomCategory& category : categories.table_.categories()) {
    const size_t at = text.find("id: " + category.id());
    const std::string where = place_in(text, at == text.npos ? 0 : at, file);
    if (category.id().empty() || category.label().empty()) {
      return fail(Code::kBadInput, "a category needs an id and a label", where);
    }
    if (!ids.insert(category.id()).second) {
      return fail(Code::kBadInput, fmt::format("category '{}' twice", category.id()), where);
    }
  }
  return categories;
}

Result<Categories> Categories::load_shipped() {
  RH_TRY(const auto path, shipped("faults/symptoms/categories.yaml"));
  RH_TRY(const std::string text, read_file(path, kMaxDocumentBytes));
  return read(text, path.string());
}

const pb::SymptomCategory* Categories::find(std::string_view id) const {
  for (const pb::SymptomCategory& category : table_.categories()) {
    if (category.id() == id) return &category;
  }
  return nullptr;
}

uint32_t Categories::solved(std::string_view category, std::string_view pattern) const {
  const pb::SymptomCategory* found = find(category);
  if (!found || pattern.empty()) return 0;
  const std::string wanted = folded(pattern);
  uint32_t count = 0;
  for (const pb::FixPattern& fix : found->fixes()) {
    if (joins(folded(fix.pattern()), wanted)) count += fix.count();
  }
  return count;
}

}  // namespace rehearse::faults
