// SPDX-License-Identifier: BSD-3-Clause
// T-FI-01..04 at the level of the protocol: write, fsync, rename, directory fsync.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "ryle/core/error.hpp"
#include "ryle/io/base/publish.hpp"
#include "tests/io/scratch.hpp"

namespace ryle {
namespace {

namespace fs = std::filesystem;
using test::contents;
using test::exit_code_of;
using test::Scratch;

TEST(Publish, PartIsHiddenBesideTheProduct) {
  EXPECT_EQ(part_path("/data/vis.uvh5"), "/data/.vis.uvh5.part");
  EXPECT_EQ(part_path("vis.ms/"), ".vis.ms.part");
  EXPECT_EQ(part_path("a/./b.fits"), "a/.b.fits.part");
}

TEST(Publish, OrderIsWriteFsyncRenameDirectoryFsync) {
  const Scratch dir;
  std::vector<std::string> order;
  set_publish_fault_hook([&](std::string_view operation, const std::string&) {
    order.emplace_back(operation);
    return 0;
  });
  publish_bytes(dir / "x.bin", "hello", false);
  set_publish_fault_hook({});
  EXPECT_THAT(
      order, testing::ElementsAre("create", "lock", "write", "fsync", "rename", "fsync_directory"));
  EXPECT_EQ(contents(dir / "x.bin"), "hello");
  EXPECT_THAT(dir.names(), testing::ElementsAre("x.bin"));  // neither .part nor lock stays
}

TEST(Publish, DirectoryProductFsyncsEveryFile) {
  const Scratch dir;
  const std::string path = dir / "vis.ms";
  prepare_part(path, false);
  fs::create_directories(part_path(path) + "/SUB");
  std::ofstream(part_path(path) + "/a") << "1";
  std::ofstream(part_path(path) + "/SUB/b") << "2";
  int files = 0;
  int directories = 0;
  set_publish_fault_hook([&](std::string_view operation, const std::string&) {
    files += operation == "fsync";
    directories += operation == "fsync_directory";
    return 0;
  });
  publish_part(path, false);
  set_publish_fault_hook({});
  EXPECT_EQ(files, 2);
  EXPECT_EQ(directories, 3);  // vis.ms, SUB and the directory that holds the name
  EXPECT_EQ(contents(path + "/SUB/b"), "2");
}

TEST(Publish, FailedWriteFsyncOrRenameLeavesNothing) {
  for (const char* failing : {"create", "write", "fsync", "rename"}) {
    const Scratch dir;
    set_publish_fault_hook([&](std::string_view operation, const std::string&) {
      return operation == failing ? ENOSPC : 0;
    });
    EXPECT_EQ(exit_code_of([&] { publish_bytes(dir / "x.bin", "hello", false); }), ExitCode::io)
        << failing;
    set_publish_fault_hook({});
    EXPECT_THAT(dir.names(), testing::IsEmpty()) << failing;
  }
}

TEST(Publish, FailedFsyncKeepsTheOldProduct) {
  const Scratch dir;
  publish_bytes(dir / "x.bin", "old", false);
  set_publish_fault_hook([](std::string_view operation, const std::string&) {
    return operation == "fsync" ? EIO : 0;
  });
  EXPECT_THROW(publish_bytes(dir / "x.bin", "new", true), IoError);
  set_publish_fault_hook({});
  EXPECT_EQ(contents(dir / "x.bin"), "old");
}

TEST(Publish, ExistingNameIsRejectedUnlessOverwritten) {
  const Scratch dir;
  publish_bytes(dir / "x.bin", "old", false);
  EXPECT_EQ(exit_code_of([&] { publish_bytes(dir / "x.bin", "new", false); }),
            ExitCode::cannot_create);
  EXPECT_EQ(contents(dir / "x.bin"), "old");
  publish_bytes(dir / "x.bin", "new", true);
  EXPECT_EQ(contents(dir / "x.bin"), "new");
  EXPECT_THAT(dir.names(), testing::ElementsAre("x.bin"));
}

TEST(Publish, NameTakenMeanwhileKeepsTheFinishedPart) {
  const Scratch dir;
  const std::string path = dir / "x.bin";
  prepare_part(path, false);
  std::ofstream(part_path(path)) << "mine";
  std::ofstream(path) << "theirs";
  EXPECT_EQ(exit_code_of([&] { publish_part(path, false); }), ExitCode::cannot_create);
  EXPECT_EQ(contents(path), "theirs");
  EXPECT_EQ(contents(part_path(path)), "mine");
}

TEST(Publish, OverwritesADirectoryAtomically) {
  const Scratch dir;
  const std::string path = dir / "vis.ms";
  for (const char* round : {"1", "2"}) {
    prepare_part(path, true);
    fs::create_directories(part_path(path));
    std::ofstream(part_path(path) + "/" + round) << round;
    std::ofstream(part_path(path) + "/table.info") << "Type = Measurement Set\n";
    publish_part(path, true);
  }
  EXPECT_FALSE(fs::exists(path + "/1"));
  EXPECT_EQ(contents(path + "/2"), "2");
  EXPECT_THAT(dir.names(), testing::ElementsAre("vis.ms"));
}

// `-o DIRECTORY --overwrite` once deleted the directory with all that was in it.
TEST(Publish, OverwritingTakesNoDirectoryDeviceOrSocket) {
  const Scratch dir;
  for (const char* name : {"folder", "folder.ms", "folder.fits"}) {
    const std::string path = dir / name;
    fs::create_directories(path + "/inside");
    std::ofstream(path + "/inside/data") << "years of work";
    std::ofstream(path + "/table.dat") << "not casacore's";
    EXPECT_EQ(exit_code_of([&] { publish_bytes(path, "new", true); }), ExitCode::cannot_create);
    EXPECT_EQ(contents(path + "/inside/data"), "years of work");
  }
  fs::create_directories(dir / "set.fits");
  std::ofstream(dir / "set.fits/table.info") << "Type = Measurement Set\n";
  EXPECT_EQ(exit_code_of([&] { prepare_part(dir / "set.fits", true); }), ExitCode::cannot_create);
  ASSERT_EQ(::mkfifo((dir / "fifo").c_str(), 0600), 0);
  EXPECT_EQ(exit_code_of([&] { prepare_part(dir / "fifo", true); }), ExitCode::cannot_create);
  fs::create_directory_symlink(dir / "folder", dir / "link");
  EXPECT_EQ(exit_code_of([&] { prepare_part(dir / "link", true); }), ExitCode::cannot_create);
  EXPECT_EQ(exit_code_of([&] { require_creatable("/dev/null", true); }), ExitCode::cannot_create);
}

// The directory may come while the product is written: the finished data stay beside it.
TEST(Publish, ADirectoryThatCameMeanwhileIsKept) {
  const Scratch dir;
  const std::string path = dir / "x.bin";
  prepare_part(path, true);
  std::ofstream(part_path(path)) << "mine";
  fs::create_directories(path + "/theirs");
  EXPECT_EQ(exit_code_of([&] { publish_part(path, true); }), ExitCode::cannot_create);
  EXPECT_TRUE(fs::exists(path + "/theirs"));
  EXPECT_EQ(contents(part_path(path)), "mine");
}

TEST(Publish, ACheckBeforeTheRunChangesNothing) {
  const Scratch dir;
  std::ofstream(part_path(dir / "v.uvh5")) << "left by a crash";
  require_creatable(dir / "v.uvh5", true);
  EXPECT_EQ(contents(part_path(dir / "v.uvh5")), "left by a crash");
  EXPECT_EQ(exit_code_of([&] { require_creatable(dir / "none/v.uvh5", true); }),
            ExitCode::cannot_create);
  prepare_part(dir / "own.fits", false);
  require_creatable(dir / "own.fits", false);  // written by this process
  discard_part(dir / "own.fits");
}

TEST(Publish, DeadPartIsRemovedALiveOneIsRejected) {
  const Scratch dir;
  const std::string path = dir / "x.bin";
  std::ofstream(part_path(path)) << "left by a crash";
  publish_bytes(path, "fresh", false);
  EXPECT_EQ(contents(path), "fresh");

  const std::string busy = dir / "busy.bin";
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    prepare_part(busy, false);
    std::ofstream(part_path(busy)) << "growing";
    (void)!::write(ready[1], "x", 1);
    ::pause();
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_EQ(exit_code_of([&] { prepare_part(busy, false); }), ExitCode::cannot_create);
  EXPECT_EQ(contents(part_path(busy)), "growing");
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
  publish_bytes(busy, "done", false);  // the lock died with its owner
  EXPECT_EQ(contents(busy), "done");
}

TEST(Publish, MissingAndForbiddenDirectories) {
  const Scratch dir;
  EXPECT_EQ(exit_code_of([&] { publish_bytes(dir / "no/such/x.bin", "a", false); }),
            ExitCode::cannot_create);
  EXPECT_EQ(exit_code_of([&] { publish_bytes("", "a", false); }), ExitCode::cannot_create);
  if (::access("/proc/1", W_OK) != 0 || ::geteuid() == 0) {
    // A read-only file system, root or not: /sys or /proc refuse to create files.
    const ExitCode code = exit_code_of([&] { publish_bytes("/proc/ryle-test.bin", "a", false); });
    EXPECT_THAT(code,
                testing::AnyOf(ExitCode::no_permission, ExitCode::cannot_create, ExitCode::io));
    EXPECT_NE(code, ExitCode::ok);
  }
  if (::geteuid() != 0) {
    fs::permissions(dir.path(), fs::perms::owner_read | fs::perms::owner_exec);
    EXPECT_EQ(exit_code_of([&] { publish_bytes(dir / "x.bin", "a", false); }),
              ExitCode::no_permission);
    fs::permissions(dir.path(), fs::perms::owner_all);
  }
}

TEST(Publish, FileSizeLimitIsAnIoErrorWithoutAFile) {
  const Scratch dir;
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    ::_exit(static_cast<int>(
        exit_code_of([&] { publish_bytes(dir / "x.bin", std::string(5000, 'x'), false); })));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), static_cast<int>(ExitCode::io));
  EXPECT_THAT(dir.names(), testing::IsEmpty());
}

// Between the open and the flock of the lock file its owner removes it, and a third process makes
// and locks another: the lock of a file that has lost its name would exclude nobody.
TEST(Publish, ALockIsThatOfTheNameNotOfARemovedFile) {
  const Scratch dir;
  const std::string path = dir / "x.bin";
  const std::string lock = part_path(path) + ".lock";
  int n_locks = 0;
  set_publish_fault_hook([&](std::string_view operation, const std::string& at) {
    if (operation == "lock" && n_locks++ == 0) {
      EXPECT_EQ(at, lock);
      fs::rename(lock, dir / "removed");  // keeps its inode, so that the next has another
      std::ofstream(lock) << "";
    }
    return 0;
  });
  prepare_part(path, false);
  set_publish_fault_hook({});
  EXPECT_EQ(n_locks, 2);
  const int fd = ::open(lock.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  EXPECT_NE(::flock(fd, LOCK_EX | LOCK_NB), 0) << "the name is not locked";
  ::close(fd);
  discard_part(path);
}

TEST(Publish, KilledAtRandomInstantsLeavesOnlyWholeProducts) {
  const Scratch dir;
  std::mt19937_64 random(5);
  int n_final = 0;
  for (int round = 0; round < 40; ++round) {
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      for (int k = 0;; ++k) {
        const std::string content(30000, static_cast<char>('a' + k % 26));
        publish_bytes(dir / (std::to_string(round) + "_" + std::to_string(k) + ".bin"), content,
                      false);
        if (k == 0 && ::write(ready[1], "x", 1) != 1) ::_exit(1);
      }
    }
    // The instants are counted from the first product: a busy machine may take long to get there.
    ::close(ready[1]);
    char byte = 0;
    ASSERT_EQ(::read(ready[0], &byte, 1), 1);
    ::close(ready[0]);
    std::this_thread::sleep_for(std::chrono::microseconds(2000 + random() % 12000));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  for (const std::string& name : dir.names()) {
    if (name.front() == '.') continue;
    ++n_final;
    const std::string content = contents(dir / name);
    ASSERT_EQ(content.size(), 30000U) << name;
    EXPECT_EQ(content.find_first_not_of(content.front()), std::string::npos) << name;
  }
  EXPECT_GE(n_final, 40);
}

}  // namespace
}  // namespace ryle
