// SPDX-License-Identifier: Apache-2.0
#include "faults/fault_catalogue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "base/atomic_file.hpp"
#include "base/document.hpp"
#include "base/install.hpp"
#include "base/text.hpp"
#include "faults/fault_use.hpp"
#include "faults/placeholders.hpp"
#include "faults/symptoms/classifier.hpp"
#include "faults/two_documents.hpp"

namespace rehearse::faults {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxFileBytes = 1u << 20;

// The checks that go beyond the schema's types; each error points at the text it is about.
class Check {
 public:
  Check(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  [[nodiscard]] Error error(std::string_view at, std::string what, std::string fix = {}) const {
    const size_t found = text_.find(at);
    return {Code::kBadInput, std::move(what),
            place_in(text_, found == text_.npos ? 0 : found, file_), std::move(fix)};
  }

  [[nodiscard]] Result<void> head(const pb::Fault& fault) const {
    const auto refuse = [&](auto&&... parts) { return tl::unexpected(error(parts...)); };
    const std::string stem = fs::path(file_).stem().string();
    if (fault.id().empty()) return refuse("", "no id", fmt::format("add `id: {}`", stem));
    if (fault.id() != stem) {
      return refuse("id:", fmt::format("id '{}' in a file named '{}'", fault.id(), stem),
                    "give the file the name of its id");
    }
    if (fault.patch_size() > 0 || fault.fixes_size() > 0) {
      return refuse(fault.patch_size() > 0 ? "patch:" : "fixes:",
                    "patch and fixes belong to the second document",
                    "move them below a line `---`");
    }
    if (fault.name().empty()) return refuse("id:", "no name", "add `name`");
    if (fault.cause().empty())
      return refuse("id:", "no cause", "add `cause`: what is wrong, in a sentence");
    if (fault.mechanism_size() == 0)
      return refuse("id:", "no mechanism", "add `mechanism`, e.g. plat or conf");
    if (fault.grade() == pb::Fault::GRADE_UNSPECIFIED) {
      return refuse("id:", "no grade", "add `grade`: full, partly or by-rule");
    }
    for (const std::string& id : fault.symptoms()) {
      if (!symptom_label(id).empty() && id != kHealthy) continue;
      return refuse(id, fmt::format("no symptom category '{}'", id),
                    "use the ids of faults/symptoms/categories.yaml, A1 to D2.7");
    }
    std::set<std::string> names;
    int strengths = 0;
    for (const pb::Parameter& p : fault.parameters()) {
      if (auto ok = parameter(p); !ok) return ok;
      if (!names.insert(p.name()).second) {
        return refuse("name: " + p.name(), fmt::format("parameter '{}' twice", p.name()));
      }
      strengths += p.strength() ? 1 : 0;
    }
    if (strengths > 1) return refuse("strength", "more than one parameter is the strength");
    return {};
  }

 private:
  [[nodiscard]] Result<void> parameter(const pb::Parameter& p) const {
    const std::string at = "name: " + p.name();
    const auto refuse = [&](auto&&... parts) { return tl::unexpected(error(at, parts...)); };
    const auto valid = [](char c) {
      return std::islower(static_cast<unsigned char>(c)) || c == '_';
    };
    if (p.name().empty() || p.name() == "max" ||
        !std::all_of(p.name().begin(), p.name().end(), valid)) {
      return refuse(fmt::format("'{}' is not a parameter name", p.name()),
                    "use lower-case letters and `_`");
    }
    if (p.kind() == pb::Parameter::KIND_UNSPECIFIED) {
      return refuse(fmt::format("parameter '{}' has no kind", p.name()),
                    "add `kind`, e.g. rank or number");
    }
    if (p.default_().empty()) {
      return refuse(fmt::format("parameter '{}' has no default", p.name()), "add `default`");
    }
    for (const std::string* bound : {&p.at_least(), &p.at_most()}) {
      pb::Parameter free = p;
      free.clear_at_least();
      free.clear_at_most();
      free.clear_choices();
      if (bound->empty()) continue;
      if (const auto parsed = parse_value(free, *bound); !parsed) {
        return refuse(fmt::format("bound of '{}': {}", p.name(), parsed.error().what),
                      parsed.error().fix);
      }
    }
    if (const auto parsed = parse_value(p, p.default_()); !parsed) {
      return refuse(fmt::format("default of '{}': {}", p.name(), parsed.error().what),
                    parsed.error().fix);
    }
    std::vector<std::string> usual(p.usual().begin(), p.usual().end());
    for (const std::string* end : {&p.usual_from(), &p.usual_to()}) {
      if (!end->empty()) usual.push_back(*end);
    }
    for (const std::string& value : usual) {
      if (const auto parsed = parse_value(p, value); !parsed) {
        return refuse(fmt::format("usual value of '{}': {}", p.name(), parsed.error().what),
                      parsed.error().fix);
      }
    }
    if (p.usual_from().empty() != p.usual_to().empty()) {
      return refuse(fmt::format("'{}' has one end of its usual values", p.name()),
                    "give both `usual-from` and `usual-to`");
    }
    if (p.strength() && (p.at_least().empty() || p.at_most().empty())) {
      return refuse(fmt::format("strength '{}' needs bounds", p.name()),
                    "add `at-least` and `at-most`");
    }
    return {};
  }

  std::string_view text_;
  const std::string& file_;
};

}  // namespace

Result<FaultEntry> read_fault(std::string_view text, const std::string& file) {
  const Check check(text, file);
  RH_TRY(TwoDocuments documents, split_documents(text, file, "patch and fixes"));
  FaultEntry entry{.fault = {}, .file = file, .edits = std::move(documents.second)};
  if (auto read = read_document(documents.first, file, entry.fault); !read) {
    return tl::unexpected(read.error());
  }
  if (const auto ok = check.head(entry.fault); !ok) return tl::unexpected(ok.error());
  RH_TRY(pb::FaultEdits edits, read_edits(entry, stand_ins(entry.fault), nullptr));
  if (edits.patch_size() == 0 && entry.fault.grade() != pb::Fault::BY_RULE) {
    return tl::unexpected(check.error("---", "no patch", "add `patch`: what the fault changes"));
  }
  for (const pb::Fix& fix : edits.fixes()) {
    if (!fix.change().empty()) continue;
    return tl::unexpected(check.error("fixes:", fmt::format("fix '{}' has no change", fix.name()),
                                      "say what a person would change"));
  }
  *entry.fault.mutable_patch() = std::move(*edits.mutable_patch());
  *entry.fault.mutable_fixes() = std::move(*edits.mutable_fixes());
  return entry;
}

Result<FaultCatalogue> FaultCatalogue::load(std::span<const fs::path> folders) {
  FaultCatalogue catalogue;
  for (const fs::path& folder : folders) {
    RH_TRY(const std::vector<fs::path> files, yaml_files(folder));
    for (const fs::path& file : files) {
      RH_TRY(const std::string text, read_file(file, kMaxFileBytes));
      RH_TRY(FaultEntry entry, read_fault(text, file.string()));
      for (const auto& other : catalogue.entries_) {
        if (other->fault.id() != entry.fault.id()) continue;
        return tl::unexpected(
            Check(text, entry.file)
                .error("id:", fmt::format("there is already a fault {}", entry.fault.id()),
                       "choose another id; it is taken by " + other->file));
      }
      catalogue.entries_.push_back(std::make_shared<const FaultEntry>(std::move(entry)));
    }
  }
  std::sort(catalogue.entries_.begin(), catalogue.entries_.end(),
            [](const auto& a, const auto& b) { return a->fault.id() < b->fault.id(); });
  return catalogue;
}

Result<FaultCatalogue> FaultCatalogue::load_shipped(std::span<const fs::path> extra) {
  RH_TRY(const fs::path folder, shipped("faults/catalogue"));
  std::vector<fs::path> folders{folder};
  folders.insert(folders.end(), extra.begin(), extra.end());
  return load(folders);
}

Result<std::shared_ptr<const FaultEntry>> FaultCatalogue::find(std::string_view id) const {
  std::vector<std::string> ids;
  for (const auto& entry : entries_) {
    if (entry->fault.id() == id) return entry;
    ids.push_back(entry->fault.id());
  }
  const std::string near = nearest(id, ids);
  return fail(Code::kUsage, fmt::format("no fault '{}' in the catalogue", id), {},
              near.empty() ? "`rehearse faults` lists them"
                           : fmt::format("did you mean {}? `rehearse faults` lists all", near));
}

std::vector<std::shared_ptr<const FaultEntry>> FaultCatalogue::search(std::string_view text) const {
  std::vector<std::shared_ptr<const FaultEntry>> found;
  const std::vector<std::string> words = split(lower_case(text), ' ');
  for (const auto& entry : entries_) {
    const std::string all = lower_case(entry->fault.id() + ' ' + write_document(entry->fault));
    if (std::all_of(words.begin(), words.end(),
                    [&](const std::string& w) { return all.find(w) != all.npos; })) {
      found.push_back(entry);
    }
  }
  return found;
}

}  // namespace rehearse::faults
