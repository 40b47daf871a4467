// SPDX-License-Identifier: Apache-2.0
#include "base/atomic_file.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>

namespace rehearse::atomic_file_test {
using namespace rehearse;
namespace fs = std::filesystem;

namespace {

// An empty folder that goes away with the test.
struct Folder {
  explicit Folder(const fs::path& in = fs::temp_directory_path()) {
    std::string name = (in / "rehearse-XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  ~Folder() { fs::remove_all(path); }
  [[nodiscard]] size_t entries() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(path), {}));
  }
  fs::path path;
};

}  // namespace

TEST_CASE("a written file reads back and leaves no temporary", "[files]") {
  Folder folder;
  const fs::path target = folder.path / "out.json";
  REQUIRE(write_file(target, "hello\n", Overwrite::kRefuse));
  CHECK(*read_file(target, 100) == "hello\n");
  CHECK(folder.entries() == 1);
}

TEST_CASE("memory under /dev/shm is written as any folder is", "[files]") {
  if (::access("/dev/shm", W_OK) != 0) return;
  Folder folder("/dev/shm");
  const fs::path target = folder.path / "out.json";
  REQUIRE(write_file(target, "old", Overwrite::kRefuse));
  REQUIRE(!write_file(target, "new", Overwrite::kRefuse));
  CHECK(*read_file(target, 100) == "old");
  CHECK(folder.entries() == 1);
}

TEST_CASE("an existing file is replaced only when asked", "[files]") {
  Folder folder;
  const fs::path target = folder.path / "out.json";
  REQUIRE(write_file(target, "old", Overwrite::kRefuse));
  ::chmod(target.c_str(), 0640);
  const auto refused = write_file(target, "new", Overwrite::kRefuse);
  REQUIRE(!refused);
  CHECK(refused.error().code == Code::kUsage);
  CHECK(*read_file(target, 100) == "old");
  REQUIRE(write_file(target, "new", Overwrite::kReplace));
  CHECK(*read_file(target, 100) == "new");
  struct stat status {};
  ::stat(target.c_str(), &status);
  CHECK((status.st_mode & 0777) == 0640);
}

TEST_CASE("a file that appears while another is written is not replaced", "[files]") {
  Folder folder;
  const fs::path target = folder.path / "out";
  auto file = AtomicFile::create(target, Overwrite::kRefuse);
  REQUIRE(file);
  REQUIRE(file->write("mine"));
  std::ofstream(target) << "theirs";
  CHECK(!file->commit());
  CHECK(*read_file(target, 100) == "theirs");
  CHECK(folder.entries() == 1);
}

TEST_CASE("a file that does not wait for the disk is whole and leaves nothing behind", "[files]") {
  Folder folder;
  const fs::path target = folder.path / "point.json";
  REQUIRE(write_file_unsynced(target, "one", Overwrite::kReplace));
  REQUIRE(write_file_unsynced(target, "two", Overwrite::kReplace));
  CHECK(*read_file(target, 100) == "two");
  CHECK(!write_file_unsynced(target, "three", Overwrite::kRefuse));
  CHECK(folder.entries() == 1);
}

TEST_CASE("nothing is visible before the commit nor left after giving up", "[files]") {
  Folder folder;
  const fs::path target = folder.path / "out";
  {
    auto file = AtomicFile::create(target, Overwrite::kRefuse);
    REQUIRE(file);
    REQUIRE(file->write("half"));
    CHECK(file->size() == 4);
    CHECK(!fs::exists(target));
    AtomicFile moved = std::move(*file);
    REQUIRE(moved.write("way"));
    CHECK(moved.size() == 7);
  }
  CHECK(folder.entries() == 0);
}

TEST_CASE("two writers of one target do not share a temporary", "[files]") {
  Folder folder;
  const fs::path target = folder.path / "out";
  auto a = AtomicFile::create(target, Overwrite::kReplace);
  auto b = AtomicFile::create(target, Overwrite::kReplace);
  REQUIRE((a && b));
  REQUIRE(a->write("aaaa"));
  REQUIRE(b->write("bb"));
  REQUIRE(a->commit());
  REQUIRE(b->commit());
  CHECK(*read_file(target, 100) == "bb");
  CHECK(folder.entries() == 1);
}

TEST_CASE("writing through a link keeps the link", "[files]") {
  Folder folder;
  REQUIRE(write_file(folder.path / "real", "old", Overwrite::kRefuse));
  fs::create_symlink("real", folder.path / "link");
  REQUIRE(write_file(folder.path / "link", "new", Overwrite::kReplace));
  CHECK(fs::is_symlink(folder.path / "link"));
  CHECK(*read_file(folder.path / "real", 100) == "new");
}

TEST_CASE("targets that cannot be files are refused", "[files]") {
  Folder folder;
  const auto missing = write_file(folder.path / "no" / "out", "x", Overwrite::kReplace);
  REQUIRE(!missing);
  CHECK(missing.error().code == Code::kIo);
  CHECK(missing.error().what.find("No such file") != std::string::npos);
  CHECK(!missing.error().fix.empty());
  const auto directory = write_file(folder.path, "x", Overwrite::kReplace);
  REQUIRE(!directory);
  CHECK(directory.error().code == Code::kUsage);
  CHECK(!write_file("", "x", Overwrite::kReplace));
}

TEST_CASE("a full disk is an error with the system's words", "[files]") {
  if (!fs::exists("/dev/full")) return;
  const auto full = write_file("/dev/full", "x", Overwrite::kReplace);
  REQUIRE(!full);
  CHECK(full.error().code == Code::kIo);
  CHECK(full.error().what.find("No space left") != std::string::npos);
}

TEST_CASE("a pipe is written directly and stays a pipe", "[files]") {
  Folder folder;
  const fs::path pipe = folder.path / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  REQUIRE(write_file(pipe, "through", Overwrite::kRefuse));
  char buffer[16] = {};
  CHECK(::read(reader, buffer, sizeof buffer) == 7);
  CHECK(std::string(buffer) == "through");
  ::close(reader);
  CHECK(fs::is_fifo(pipe));
  CHECK(folder.entries() == 1);
}

TEST_CASE("reading refuses what is not a file of acceptable size", "[files]") {
  Folder folder;
  CHECK(read_file(folder.path / "absent", 10).error().code == Code::kMissingInput);
  CHECK(read_file(folder.path, 10).error().code == Code::kMissingInput);
  const fs::path pipe = folder.path / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(read_file(pipe, 10).error().code == Code::kMissingInput);
  REQUIRE(write_file(folder.path / "eleven", "12345678901", Overwrite::kRefuse));
  CHECK(read_file(folder.path / "eleven", 10).error().code == Code::kLimit);
  CHECK(read_file(folder.path / "eleven", 11)->size() == 11);
  CHECK(read_file("/proc/self/status", 100000)->starts_with("Name:"));
  CHECK(read_file("/proc/self/status", 5).error().code == Code::kLimit);
}

TEST_CASE("a closed file takes no more bytes", "[files]") {
  Folder folder;
  auto file = AtomicFile::create(folder.path / "out", Overwrite::kRefuse);
  REQUIRE(file);
  REQUIRE(file->commit());
  CHECK(file->write("x").error().code == Code::kInternal);
  CHECK(file->commit().error().code == Code::kInternal);
}

TEST_CASE("a writer that is killed leaves nothing behind", "[files]") {
  const Folder folder;
  const pid_t writer = ::fork();
  if (writer == 0) {
    auto file = AtomicFile::create(folder.path / "half.json", Overwrite::kRefuse);
    const bool wrote = file && file->write(std::string(1 << 20, 'x'));
    ::kill(::getpid(), wrote ? SIGKILL : SIGABRT);
  }
  int status = 0;
  REQUIRE(::waitpid(writer, &status, 0) == writer);
  REQUIRE(WIFSIGNALED(status));
  REQUIRE(WTERMSIG(status) == SIGKILL);
  CHECK(folder.entries() == 0);
}

}  // namespace rehearse::atomic_file_test
