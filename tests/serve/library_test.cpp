// SPDX-License-Identifier: Apache-2.0
#include "cli/serve/library.hpp"

#include <catch2/catch.hpp>

#include "base/atomic_file.hpp"
#include "tests/temporary_folder.hpp"

namespace rehearse::library_test {
using namespace rehearse;
using namespace rehearse::serve;
namespace fs = std::filesystem;

namespace {

Request with_body(const std::string& text) {
  Request request;
  request.body = [text](uint64_t, const std::function<bool(std::string_view)>& take) {
    take(text);
    return Result<void>();
  };
  return request;
}

size_t entries_in(const fs::path& folder) {
  return static_cast<size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

}  // namespace

TEST_CASE("an unknown upload does not take the others with it", "[serve]") {
  const tests::TemporaryFolder folder;
  const auto library = Library::open(folder.path);
  REQUIRE(library);
  const auto first = library->keep_upload(with_body("a"), "rank0.json", 100);
  const auto second = library->keep_upload(with_body("b"), "rank0.json", 100);
  REQUIRE(first);
  REQUIRE(second);
  const fs::path job = folder.path / "job";
  fs::create_directory(job);
  const auto taken = library->take_uploads({*first, std::string(32, '0'), *second}, job);
  REQUIRE_FALSE(taken);
  CHECK(taken.error().code == Code::kMissingInput);
  CHECK(entries_in(folder.path / "uploads") == 2);
  // Named twice is wanted once.
  REQUIRE(library->take_uploads({*first, *second, *first}, job));
  CHECK(entries_in(folder.path / "uploads") == 0);
  CHECK(entries_in(job / "upload") == 2);
  CHECK_FALSE(library->take_uploads({*first}, job));
}

TEST_CASE("an upload that nobody wants is dropped", "[serve]") {
  const tests::TemporaryFolder folder;
  const auto library = Library::open(folder.path);
  REQUIRE(library);
  const auto upload = library->keep_upload(with_body("a"), "rank0.json", 100);
  REQUIRE(upload);
  library->discard_upload("../traces");
  library->discard_upload(*upload);
  CHECK(entries_in(folder.path / "uploads") == 0);
  CHECK(entries_in(folder.path) == 2);
}

}  // namespace rehearse::library_test
