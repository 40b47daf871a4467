// SPDX-License-Identifier: Apache-2.0
#include "cli/serve/library.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "base/atomic_file.hpp"
#include "cli/serve/door.hpp"
#include "cli/serve/job_request.hpp"

namespace rehearse::serve {
namespace {
namespace fs = std::filesystem;

constexpr size_t kMaxUploads = 4096;

tl::unexpected<Error> io_error(const std::error_code& ec, const fs::path& where) {
  return fail(Code::kIo, "the operating system refuses: " + ec.message(), where.string(),
              "look at space and permissions there");
}

// The name a file had, as far as it is harmless: ranks are sometimes told by it.
std::string harmless(const std::string& name) {
  std::string out;
  for (const char c : name.substr(name.find_last_of("/\\") + 1)) {
    const bool good = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' ||
                      (c == '.' && !out.empty());
    if (good && out.size() < 100) out += c;
  }
  return out.empty() || out[0] == '-' ? "file" + out : out;
}

bool is_upload(const std::string& id) {
  return id.size() == 32 && std::ranges::all_of(id, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

// Not a copy: both are in the server's folder.
Result<void> link(const fs::path& from, const fs::path& to) {
  std::error_code ec;
  fs::create_hard_link(from, to, ec);
  if (ec) fs::copy_file(from, to, ec);
  if (ec) return io_error(ec, to);
  return {};
}

}  // namespace

Result<Library> Library::open(const fs::path& folder) {
  Library library(folder);
  std::error_code ec;
  fs::remove_all(library.uploads_, ec);
  fs::create_directories(library.uploads_, ec);
  if (!ec) fs::create_directories(library.traces_, ec);
  if (ec) return io_error(ec, folder);
  return library;
}

Result<std::vector<LibraryTrace>> Library::traces() const {
  std::vector<LibraryTrace> out;
  std::error_code ec;
  for (fs::directory_iterator at(traces_, ec), end; !ec && at != end; at.increment(ec)) {
    const std::string name = at->path().filename().string();
    std::error_code file;
    if (is_trace_name(name) && at->is_regular_file(file))
      out.push_back({name, at->file_size(file)});
  }
  if (ec) return io_error(ec, traces_);
  std::ranges::sort(out, {}, &LibraryTrace::name);
  return out;
}

Result<fs::path> Library::trace(const std::string& name) const {
  std::error_code ec;
  if (is_trace_name(name) && fs::is_regular_file(traces_ / name, ec)) return traces_ / name;
  return fail(Code::kMissingInput, "there is no such trace in the library",
              "trace " + name.substr(0, 100), "GET /api/v1/traces lists them");
}

Result<void> Library::remove(const std::string& name) const {
  RH_TRY(const fs::path file, trace(name));
  std::error_code ec;
  fs::remove(file, ec);
  if (ec) return io_error(ec, file);
  return {};
}

Result<std::string> Library::add(const fs::path& file, const std::string& name) const {
  const std::string stem = fs::path(name).stem().string();
  for (int i = 1; i < 10000; ++i) {
    const std::string free = i == 1 ? name : fmt::format("{}-{}.rtrace", stem, i);
    std::error_code ec;
    fs::create_hard_link(file, traces_ / free, ec);
    if (!ec) return free;
    if (ec != std::errc::file_exists) return io_error(ec, traces_ / free);
  }
  return fail(Code::kLimit, "too many traces of this name", name, "delete some");
}

Result<void> Library::lay_out(const pb::Subject& subject, const fs::path& folder) const {
  if (!subject.yaml().empty()) {
    auto written = write_file(folder / kScenarioFile, subject.yaml(), Overwrite::kReplace);
    if (!written) return written;
  }
  const std::string name = trace_of(subject);
  if (name.empty()) return {};
  RH_TRY(const fs::path file, trace(name));
  return link(file, folder / name);
}

Result<std::string> Library::keep_upload(const Request& request, const std::string& name,
                                         uint64_t most) const {
  std::error_code ec;
  const auto waiting =
      std::distance(fs::directory_iterator(uploads_, ec), fs::directory_iterator());
  if (ec) return io_error(ec, uploads_);
  if (static_cast<size_t>(waiting) >= kMaxUploads) {
    return fail(Code::kLimit, "too many files wait to be imported", "uploads",
                "import them: POST /api/v1/traces");
  }
  RH_TRY(const std::string id, random_token());
  const fs::path folder = uploads_ / id;
  fs::create_directory(folder, ec);
  if (ec) return io_error(ec, folder);
  const auto keep = [&]() -> Result<void> {
    RH_TRY(AtomicFile file, AtomicFile::create(folder / harmless(name), Overwrite::kRefuse));
    Result<void> written = {};
    auto read = request.body(most, [&](std::string_view piece) {
      written = file.write(piece);
      return written.has_value();
    });
    if (!written) return written;
    if (!read) return read;
    return file.commit();
  };
  if (auto kept = keep(); !kept) {
    fs::remove_all(folder, ec);
    return tl::unexpected(std::move(kept).error());
  }
  return id;
}

Result<void> Library::take_uploads(const std::vector<std::string>& ids,
                                   const fs::path& folder) const {
  std::error_code ec;
  std::map<std::string, fs::path> files;  // by id
  for (const std::string& id : ids) {
    fs::directory_iterator at;
    if (is_upload(id)) at = fs::directory_iterator(uploads_ / id, ec);
    if (!is_upload(id) || ec || at == fs::directory_iterator()) {
      return fail(Code::kMissingInput, "there is no such upload", "upload " + id.substr(0, 40),
                  "upload the file again: POST /api/v1/uploads");
    }
    files.emplace(id, at->path());
  }
  fs::create_directory(folder / kUploadFile, ec);
  if (ec) return io_error(ec, folder);
  for (const std::string& id : ids) {
    const auto taken = files.extract(id);
    if (taken.empty()) continue;  // named twice
    const fs::path& file = taken.mapped();
    fs::path to = folder / kUploadFile / file.filename();
    // Files of two folders may be called the same.
    if (fs::exists(to, ec))
      to = folder / kUploadFile / (id.substr(0, 8) + "-" + to.filename().string());
    fs::rename(file, to, ec);
    if (ec) return io_error(ec, to);
    discard_upload(id);
  }
  return {};
}

void Library::discard_upload(const std::string& id) const {
  std::error_code ec;
  if (is_upload(id)) fs::remove_all(uploads_ / id, ec);
}

}  // namespace rehearse::serve
