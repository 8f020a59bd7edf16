// SPDX-License-Identifier: BSD-3-Clause
// The main function of every GoogleTest program. Tests run beside each other, each in a process of
// its own, and name their files as they like: every process therefore has a folder for temporary
// files that no other sees.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>

namespace {

/// Where testing::TempDir(), std::filesystem::temp_directory_path() and started programs put their
/// files; goes with the process.
class OwnTemporaryFolder {
 public:
  OwnTemporaryFolder() {
    path_ = (std::filesystem::temp_directory_path() / "ryle-test-XXXXXX").string();
    if (::mkdtemp(path_.data()) == nullptr) {
      std::perror(path_.c_str());
      ::_exit(71);
    }
    ::setenv("TMPDIR", path_.c_str(), 1);
    ::setenv("TEST_TMPDIR", path_.c_str(), 1);
    // Rates of this machine that somebody measured are no part of a test.
    ::setenv("XDG_CACHE_HOME", (path_ + "/cache").c_str(), 1);
  }
  OwnTemporaryFolder(const OwnTemporaryFolder&) = delete;
  OwnTemporaryFolder& operator=(const OwnTemporaryFolder&) = delete;
  ~OwnTemporaryFolder() {
    if (::getpid() != owner_) return;  // a test's fork
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

 private:
  std::string path_;
  pid_t owner_ = ::getpid();
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  const OwnTemporaryFolder folder;
  return RUN_ALL_TESTS();
}
