// SPDX-License-Identifier: Apache-2.0
#include "faults/lessons/lab_catalogue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/atomic_file.hpp"
#include "base/document.hpp"
#include "base/install.hpp"
#include "base/text.hpp"
#include "faults/fault_use.hpp"
#include "faults/lessons/placement.hpp"
#include "faults/lessons/remarks.hpp"
#include "faults/placeholders.hpp"
#include "faults/symptoms/classifier.hpp"
#include "faults/two_documents.hpp"

namespace rehearse::faults {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxLabBytes = 1u << 20;
constexpr int kMostBackgroundLines = 24;  // one screen

// The checks that go beyond the schema's types; each error points at the text it is about.
class LabForm {
 public:
  LabForm(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  [[nodiscard]] tl::unexpected<Error> refuse(std::string_view at, std::string what,
                                             std::string fix = {}) const {
    const size_t found = text_.find(at);
    return bad_input(std::move(what), place_in(text_, found == text_.npos ? 0 : found, file_),
                     std::move(fix));
  }

  [[nodiscard]] Result<void> head(const pb::Lab& lab) const {
    const std::string stem = fs::path(file_).stem().string();
    if (lab.id() != stem) {
      return refuse("id:", fmt::format("id '{}' in a file named '{}'", lab.id(), stem),
                    "give the file the name of its id");
    }
    if (symptom_label(lab.category()).empty() || lab.category() == kHealthy) {
      return refuse("category:", fmt::format("no symptom category '{}'", lab.category()),
                    "use the ids of faults/symptoms/categories.yaml, A1 to D2.7");
    }
    const std::pair<const char*, const std::string*> texts[] = {{"title", &lab.title()},
                                                                {"learn", &lab.learn()},
                                                                {"goal", &lab.goal()},
                                                                {"background", &lab.background()},
                                                                {"scenario", &lab.scenario()}};
    for (const auto& [name, value] : texts) {
      if (value->empty())
        return refuse("id:", fmt::format("no {}", name), fmt::format("add `{}`", name));
    }
    if (lab.level() == pb::Lab::LEVEL_UNSPECIFIED || lab.minutes() == 0) {
      return refuse("id:", "no level or no minutes", "add `level: first` and `minutes: 20`");
    }
    const auto lines = std::count(lab.background().begin(), lab.background().end(), '\n');
    if (lines > kMostBackgroundLines) {
      return refuse("background:", fmt::format("the background has {} lines", lines),
                    fmt::format("keep it to one screen, {} lines", kMostBackgroundLines));
    }
    if (!lab.fault().empty() && !lab.parameters().empty()) {
      return refuse("parameters:", "a fault of the catalogue has its own parameters",
                    "leave out `parameters` or `fault`");
    }
    return {};
  }

  [[nodiscard]] Result<void> script(const pb::Lab& lab, const pb::LabScript& script) const {
    if (lab.fault().empty() && (script.patch_size() == 0 || script.fixes_size() == 0)) {
      return refuse("---", "neither a fault of the catalogue nor a patch with a fix",
                    "add `fault` above, or `patch` and `fixes` below the line `---`");
    }
    if (script.report().empty() || script.explanation().empty()) {
      return refuse("---", "no report or no explanation", "add them below the line `---`");
    }
    uint32_t cost = 0;
    for (const pb::Hint& hint : script.hints()) cost += hint.cost();
    if (script.hints_size() == 0 || cost > 100) {
      return refuse("hints:", fmt::format("{} hints for {} points", script.hints_size(), cost),
                    "give at least one, for at most 100 points together");
    }
    if (script.wrong_size() < 2) {
      return refuse("wrong:", "fewer than two wrong repairs",
                    "add repairs that do not repair, with the remark that the check must make");
    }
    for (const pb::Attempt& wrong : script.wrong()) {
      if (is_remark(wrong.remark())) continue;
      return refuse("remark: " + wrong.remark(), fmt::format("no remark '{}'", wrong.remark()),
                    "one of " + join_words(remark_ids()));
    }
    return {};
  }

 private:
  std::string_view text_;
  const std::string& file_;
};

// A fault without a file that has the lab's own parameters, so that placing works alike.
std::shared_ptr<const FaultEntry> own_fault(const pb::Lab& lab, const std::string& file) {
  FaultEntry entry{.fault = {}, .file = file, .edits = {}};
  entry.fault.set_id(lab.id());
  entry.fault.set_name(lab.title());
  *entry.fault.mutable_parameters() = lab.parameters();
  return std::make_shared<const FaultEntry>(std::move(entry));
}

}  // namespace

Result<pb::LabScript> read_script(const LabEntry& lab,
                                  const std::map<std::string, std::string>& values,
                                  const pb::Scenario* document) {
  RH_TRY(const std::string text,
         substitute(lab.script, lab.file, {.values = values, .document = document}));
  pb::LabScript script;
  if (auto read = read_document(text, lab.file, script); !read) {
    return tl::unexpected(read.error());
  }
  return script;
}

Result<LabEntry> read_lab(std::string_view text, const std::string& file,
                          const FaultCatalogue& faults) {
  const LabForm form(text, file);
  RH_TRY(TwoDocuments documents, split_documents(text, file, "report, hints and explanation"));
  LabEntry entry{.lab = {}, .file = file, .script = std::move(documents.second), .fault = {}};
  if (auto read = read_document(documents.first, file, entry.lab); !read) {
    return tl::unexpected(read.error());
  }
  if (auto good = form.head(entry.lab); !good) return tl::unexpected(good.error());
  entry.fault = own_fault(entry.lab, file);
  if (!entry.lab.fault().empty()) {
    const auto found = faults.find(entry.lab.fault());
    if (!found) return form.refuse("fault:", found.error().what, found.error().fix);
    entry.fault = *found;
  }
  for (const pb::Placing& placing : entry.lab.place()) {
    if (const auto values = values_of(placing, entry.fault->fault); !values) {
      return form.refuse("parameter: " + placing.parameter(), values.error().what,
                         values.error().fix);
    }
  }
  RH_TRY(const pb::LabScript script, read_script(entry, stand_ins(entry.fault->fault), nullptr));
  if (auto good = form.script(entry.lab, script); !good) return tl::unexpected(good.error());
  return entry;
}

Result<LabCatalogue> LabCatalogue::load_shipped(std::span<const fs::path> extra) {
  RH_TRY(const FaultCatalogue faults, FaultCatalogue::load_shipped());
  RH_TRY(const fs::path folder, shipped("faults/lessons/labs"));
  std::vector<fs::path> folders{folder};
  folders.insert(folders.end(), extra.begin(), extra.end());
  LabCatalogue catalogue;
  std::set<std::string> ids;
  for (const fs::path& each : folders) {
    RH_TRY(const std::vector<fs::path> files, yaml_files(each));
    for (const fs::path& file : files) {
      RH_TRY(const std::string text, read_file(file, kMaxLabBytes));
      RH_TRY(LabEntry entry, read_lab(text, file.string(), faults));
      const LabForm form(text, entry.file);
      if (!ids.insert(entry.lab.id()).second) {
        return form.refuse("id:", fmt::format("there is already a lab {}", entry.lab.id()),
                           "choose another id");
      }
      for (const std::string& before : entry.lab.after()) {
        if (ids.count(before) > 0) continue;
        return form.refuse("after:", fmt::format("there is no lab {} before this one", before),
                           "name labs with smaller ids");
      }
      catalogue.entries_.push_back(std::make_shared<const LabEntry>(std::move(entry)));
    }
  }
  return catalogue;
}

Result<std::shared_ptr<const LabEntry>> LabCatalogue::find(std::string_view id) const {
  std::vector<std::string> ids;
  for (const auto& entry : entries_) {
    if (lower_case(entry->lab.id()) == lower_case(id)) return entry;
    ids.push_back(entry->lab.id());
  }
  const std::string near = nearest(id, ids);
  return fail(Code::kUsage, fmt::format("there is no lab {}", in_quotes(id)), {},
              near.empty() ? "`rehearse learn list` shows them"
                           : fmt::format("did you mean {}? `rehearse learn list` shows all", near));
}

Result<pb::Repairs> shipped_repairs() {
  RH_TRY(const fs::path file, shipped("faults/lessons/repairs.yaml"));
  pb::Repairs repairs;
  if (auto read = read_document_file(file.string(), repairs); !read) {
    return tl::unexpected(read.error());
  }
  return repairs;
}

}  // namespace rehearse::faults
