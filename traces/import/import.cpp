// SPDX-License-Identifier: Apache-2.0
#include "traces/import/import.hpp"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <optional>

#include "base/text.hpp"
#include "traces/import/csv/csv.hpp"
#include "traces/import/format.hpp"
#include "traces/import/merge.hpp"

namespace rehearse::traces {
namespace {

namespace fs = std::filesystem;

struct Candidate {
  fs::path path;
  bool named = true;  // by the user, rather than found in a folder
};

Result<void> add_folder(const fs::path& folder, uint64_t most, std::vector<Candidate>& out) {
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code of_entry;  // links to nothing or in a circle are no files
    if (it->is_regular_file(of_entry)) found.push_back(it->path());
    if (found.size() > most) {
      return fail(Code::kLimit, fmt::format("more than {} files", most), folder.string(),
                  "name the folder of one job, or raise --limit files=N");
    }
  }
  if (error) return fail(Code::kIo, "cannot list the folder: " + error.message(), folder.string());
  std::sort(found.begin(), found.end());
  for (fs::path& path : found) out.push_back({std::move(path), false});
  return {};
}

std::vector<fs::path> matches_of(const fs::path& pattern) {
  glob_t hits{};
  std::vector<fs::path> out;
  if (::glob(pattern.c_str(), 0, nullptr, &hits) == 0) {
    for (size_t i = 0; i < hits.gl_pathc; ++i) out.emplace_back(hits.gl_pathv[i]);
  }
  ::globfree(&hits);
  return out;
}

Result<std::vector<Candidate>> expand(const std::vector<fs::path>& inputs, uint64_t most_files) {
  std::vector<Candidate> out;
  std::error_code ignored;  // what cannot be looked at is told when it is opened
  for (const fs::path& input : inputs) {
    std::vector<fs::path> paths = {input};
    if (!fs::exists(input, ignored) && input.string().find_first_of("*?[") != std::string::npos) {
      paths = matches_of(input);
      if (paths.empty()) {
        return fail(Code::kMissingInput, "no file matches", input.string(), "check the pattern");
      }
    }
    for (const fs::path& path : paths) {
      if (fs::is_directory(path, ignored)) {
        if (auto added = add_folder(path, most_files, out); !added)
          return tl::unexpected(added.error());
      } else {
        out.push_back({path, true});
      }
    }
  }
  return out;
}

std::string known_formats() {
  std::vector<std::string> titles;
  for (const Format& f : formats()) titles.emplace_back(f.title);
  return join_words(titles);
}

// What to do with a file that nobody reads. What it is was looked for in its content; the name only tells
// which tool can turn it into something that is read.
std::string advice_for(const fs::path& path) {
  const std::string ending = path.extension().string();
  if (ending == ".nsys-rep" || ending == ".qdrep") {
    return "nsys export --type sqlite --include-blobs=true " + path.filename().string();
  }
  if (ending == ".pftrace" || ending == ".perfetto-trace") {
    return "convert it with perfetto's traceconv json, if torch.profiler wrote it";
  }
  if (ending == ".ncu-rep")
    return "Nsight Compute records single kernels; record with nsys instead";
  if (ending == ".zip" || ending == ".tar" || ending == ".tgz" || ending == ".bz2" ||
      ending == ".xz") {
    return "unpack it and import the files inside";
  }
  return "known are " + known_formats();
}

// The user said what the columns are: a table that has them, or that is named and lacks some, which its
// reader tells.
bool is_mapped_table(std::string_view head, bool named, const ReadContext& context) {
  if (context.table == nullptr) return false;
  return csv::missing_columns(*context.table, head).empty() ||
         (named && csv::looks_like_table(head));
}

const Format* format_named(std::string_view name) {
  const auto all = formats();
  const auto hit =
      std::find_if(all.begin(), all.end(), [&](const Format& f) { return f.name == name; });
  return hit == all.end() ? nullptr : &*hit;
}

Result<void> within_limits(uint64_t operations, uint64_t ranks, const ImportOptions& options,
                           const std::string& where) {
  if (operations > options.most_operations) {
    return fail(Code::kLimit, fmt::format("more than {} operations", options.most_operations),
                where, "import fewer files, or raise --limit operations=N");
  }
  if (ranks > options.most_ranks) {
    return fail(Code::kLimit, fmt::format("more than {} ranks", options.most_ranks), where,
                "import fewer files, or raise --limit ranks=N");
  }
  return {};
}

}  // namespace

Result<Imported> import_files(const std::vector<fs::path>& inputs, const ImportOptions& options,
                              Reporter& reporter) {
  if (inputs.empty()) {
    return fail(Code::kUsage, "nothing to import", "", "name trace files, folders or globs");
  }
  RH_TRY(const std::vector<Candidate> candidates, expand(inputs, options.most_files));
  Imported out;
  uint64_t operations = 0, ranks = 0;
  pb::TableMapping mapping;
  Findings of_file;
  ReadContext context{out.trace.strings, of_file, reporter, options.cut_files};
  context.most_held = options.most_held;
  if (!options.columns.empty()) {
    RH_TRY(mapping, csv::load_mapping(options.columns.string()));
    context.table = &mapping;
  }
  std::vector<FilePart> parts;
  std::optional<Error> first_unused;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (reporter.interrupted()) return fail(Code::kInterrupted, "interrupted");
    reporter.progress("files", i, candidates.size());
    const Candidate& candidate = candidates[i];
    RH_TRY(Source source, Source::open(candidate.path, options.source));
    const Format* format = format_of(source.head());
    if (is_mapped_table(source.head(), candidate.named, context)) format = format_named("csv");
    if (format == nullptr) {
      const std::string looks = describe(source.head());
      if (candidate.named) {
        return fail(Code::kBadInput, "no known trace format: it is " + looks, source.name(),
                    advice_for(candidate.path));
      }
      out.findings.add("file-skipped", Severity::kInfo, source.name() + ": " + looks,
                       "files of unknown content inside folders are not read");
      continue;
    }
    of_file = {};
    RH_TRY(FilePart part, format->read(source, context));
    if (part.unused) {
      if (candidate.named) return tl::unexpected(std::move(*part.unused));
      out.findings.add("file-ignored", Severity::kWarning,
                       fmt::format("{}: {}", source.name(), part.unused->what),
                       "files inside folders that hold nothing to replay are passed over; name the "
                       "file to see why");
      if (!first_unused) first_unused = std::move(part.unused);
      continue;
    }
    for (const RankPart& rank : part.ranks) operations += rank.trace.ops.size();
    ranks += part.ranks.size();
    if (auto fits = within_limits(operations, ranks, options, source.name()); !fits) {
      return tl::unexpected(fits.error());
    }
    out.findings.merge(of_file);
    part.format = format->name;
    part.file = source.name();
    out.inputs.push_back({part.file, part.format, source.stored_bytes()});
    pb::InputFile* input = out.trace.header.add_inputs();
    input->set_name(candidate.path.filename().string());
    input->set_xxh3(source.xxh3());
    input->set_bytes(source.stored_bytes());
    parts.push_back(std::move(part));
  }
  reporter.progress("files", candidates.size(), candidates.size());
  if (parts.empty() && first_unused) return tl::unexpected(std::move(*first_unused));
  if (parts.empty()) {
    return fail(Code::kBadInput, "no file of a known trace format here", inputs.front().string(),
                "known are " + known_formats());
  }
  if (auto merged = merge(std::move(parts), options, out); !merged) {
    return tl::unexpected(merged.error());
  }
  return out;
}

}  // namespace rehearse::traces
