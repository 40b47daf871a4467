// SPDX-License-Identifier: Apache-2.0
#include "validation/nccl_vectors.hpp"

#include <unistd.h>
#include <zlib.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "tests/project.hpp"

namespace rehearse::nccl_vectors_test {
using namespace rehearse;
using namespace rehearse::validation;
namespace fs = std::filesystem;

namespace {

fs::path golden() { return tests::project() / "tests/golden/nccl"; }

std::string unpacked(const char* name) {
  const gzFile file = gzopen((golden() / name).c_str(), "rb");
  REQUIRE(file);
  std::string text;
  char buffer[4096];
  for (int n = 0; (n = gzread(file, buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<std::size_t>(n));
  }
  gzclose(file);
  return text;
}

// A folder with the first rows of the three files, plain, to be spoilt by a test.
struct Folder {
  Folder() {
    std::string name = (fs::temp_directory_path() / "rehearse-XXXXXX").string();
    path = ::mkdtemp(name.data());
    shapes = unpacked("nccl_shapes.csv.gz");
    tuning = first_lines(unpacked("nccl_tuning_table.csv.gz"), kTuningLines);
    choice = first_lines(unpacked("nccl_choice.csv.gz"), 21);
  }
  ~Folder() { fs::remove_all(path); }

  static constexpr int kTuningLines = 13;  // the header and the first shape

  static std::string first_lines(const std::string& text, int n) {
    std::size_t end = 0;
    for (int i = 0; i < n; ++i) end = text.find('\n', end) + 1;
    return text.substr(0, end);
  }

  void write() const {
    std::ofstream(path / "nccl_shapes.csv") << shapes;
    std::ofstream(path / "nccl_tuning_table.csv") << tuning;
    std::ofstream(path / "nccl_choice.csv") << choice;
  }

  [[nodiscard]] Error error() const {
    write();
    const auto report = check_vectors(path);
    REQUIRE(!report.has_value());
    return report.error();
  }

  fs::path path;
  std::string shapes, tuning, choice;
};

void replace(std::string& text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("every golden vector of NCCL 2.28.9 is reproduced", "[nccl][vectors]") {
  const auto report = check_vectors(golden());
  REQUIRE(report.has_value());
  CHECK(report->shapes == 178);
  CHECK(report->tuning_rows == 3080);
  CHECK(report->choice_rows == 24030);
  CHECK(report->mismatches == 0);
  CHECK(report->differences.empty());
  // Printed with nine digits: nothing but the printing is lost.
  CHECK(report->max_relative_error < 1e-8);
}

TEST_CASE("plain vector files are read like packed ones", "[nccl][vectors]") {
  Folder folder;
  folder.write();
  const auto report = check_vectors(folder.path);
  REQUIRE(report.has_value());
  CHECK(report->tuning_rows == Folder::kTuningLines - 1);
  CHECK(report->choice_rows == 20);
  CHECK(report->mismatches == 0);
}

TEST_CASE("a folder with some of the vector files is checked as far as it goes",
          "[nccl][vectors]") {
  Folder folder;
  folder.write();
  fs::remove(folder.path / "nccl_shapes.csv");
  auto report = check_vectors(folder.path);
  REQUIRE(report.has_value());
  CHECK(report->choice_rows == 20);
  CHECK(report->mismatches == 0);
  CHECK(report->absent == std::vector<std::string>{"nccl_shapes.csv"});
  fs::remove(folder.path / "nccl_choice.csv");
  report = check_vectors(folder.path);
  REQUIRE(report.has_value());
  CHECK(report->rows() == Folder::kTuningLines - 1);
  folder.write();
  fs::remove(folder.path / "nccl_tuning_table.csv");
  report = check_vectors(folder.path);
  REQUIRE(report.has_value());
  CHECK(report->rows() == 20);
  fs::remove(folder.path / "nccl_shapes.csv");
  CHECK(check_vectors(folder.path).error().code == Code::kMissingInput);
}

TEST_CASE("a vector that differs is reported with its row and column", "[nccl][vectors]") {
  Folder folder;
  replace(folder.choice, "1,Broadcast,64,16,1,RING,LL,114.603371,1,96,",
          "1,Broadcast,64,16,1,RING,LL128,115.603371,2,96,");
  folder.write();
  const auto report = check_vectors(folder.path);
  REQUIRE(report.has_value());
  CHECK(report->mismatches == 1);
  REQUIRE(report->differences.size() == 3);
  CHECK(report->differences[0].row == 2);
  CHECK(report->differences[0].column == "proto");
  CHECK(report->differences[0].expected == "LL128");
  CHECK(report->differences[0].computed == "LL");
  CHECK(report->differences[1].column == "time_us");
  CHECK(report->differences[2].column == "max_channels");
  CHECK(report->max_relative_error == Approx(1 / 115.603371).epsilon(1e-4));
}

TEST_CASE("a cell of the cost table that should not be there is a mismatch", "[nccl][vectors]") {
  Folder folder;
  folder.tuning = Folder::first_lines(folder.tuning, Folder::kTuningLines - 1);
  folder.write();
  const auto report = check_vectors(folder.path);
  REQUIRE(report.has_value());
  CHECK(report->mismatches == 1);
  REQUIRE(report->differences.size() == 1);
  CHECK(report->differences[0].expected == "unavailable");
}

TEST_CASE("a folder without vectors is missing input", "[nccl][vectors]") {
  const auto report = check_vectors("no/such/folder");
  REQUIRE(!report.has_value());
  CHECK(report.error().code == Code::kMissingInput);
}

TEST_CASE("malformed vectors are refused with file and line", "[nccl][vectors]") {
  Folder folder;
  SECTION("a missing field") {
    replace(folder.choice, "1,Broadcast,172,43,", "1,Broadcast,172,");
    CHECK(folder.error().where == (folder.path / "nccl_choice.csv").string() + ":3");
  }
  SECTION("a field that is no number") {
    replace(folder.choice, "1,Broadcast,172,43,", "1,Broadcast,172,many,");
    CHECK(folder.error().where == (folder.path / "nccl_choice.csv").string() + ":3");
  }
  SECTION("a result that is no number") {
    replace(folder.choice, "114.603371", "soon");
    CHECK(folder.error().where == (folder.path / "nccl_choice.csv").string() + ":2");
  }
  SECTION("an unknown function") {
    replace(folder.tuning, "Broadcast,RING,SIMPLE", "Broadcost,RING,SIMPLE");
    CHECK(folder.error().where == (folder.path / "nccl_tuning_table.csv").string() + ":3");
  }
  SECTION("a shape NCCL cannot have") {
    replace(folder.shapes, "\n1,5,8,40,", "\n1,50,8,40,");
    CHECK(folder.error().where == (folder.path / "nccl_shapes.csv").string() + ":2");
  }
  SECTION("a shape that is not there") {
    replace(folder.choice, "\n1,Broadcast,", "\n99999,Broadcast,");
    CHECK(folder.error().code == Code::kBadInput);
  }
  SECTION("a missing column") {
    replace(folder.shapes, "cc_min", "cc_lowest");
    CHECK(folder.error().where == (folder.path / "nccl_shapes.csv").string() + ":1");
  }
  SECTION("an empty file") {
    folder.shapes.clear();
    CHECK(folder.error().code == Code::kBadInput);
  }
}

TEST_CASE("empty lines, a byte order mark and line ends of other systems do not matter",
          "[nccl][vectors]") {
  Folder folder;
  folder.shapes = "\xef\xbb\xbf" + folder.shapes + "\n\r\n";
  folder.tuning += "\n";
  for (std::size_t at = 0; (at = folder.choice.find('\n', at)) != std::string::npos; at += 2) {
    folder.choice.insert(at, "\r");
  }
  folder.write();
  const auto report = check_vectors(folder.path);
  INFO((report ? "" : report.error().message()));
  REQUIRE(report);
  CHECK(report->mismatches == 0);
  CHECK(report->choice_rows == 20);
}

}  // namespace rehearse::nccl_vectors_test
