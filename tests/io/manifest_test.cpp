// SPDX-License-Identifier: BSD-3-Clause
// The list of the files of a run: whole lines whatever the disk does, names that mean the files.
#include "ryle/io/base/manifest.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "ryle/io/base/publish.hpp"
#include "ryle/io/base/sha256.hpp"
#include "tests/io/scratch.hpp"

namespace ryle {
namespace {

namespace fs = std::filesystem;
using test::exit_code_of;
using test::Scratch;

std::vector<std::string> lines_of(const std::string& path) {
  std::istringstream in(test::contents(path));
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Pieces of any length give the sum of the whole, across every block boundary.
TEST(Sha256, PiecesAreTheWhole) {
  std::string text;
  for (int k = 0; k < 300; ++k) text += static_cast<char>(k * 37);
  for (std::size_t length : {0u, 1u, 55u, 56u, 63u, 64u, 65u, 127u, 128u, 300u}) {
    for (std::size_t piece : {1u, 7u, 63u, 64u, 65u, 300u}) {
      io::Sha256 hash;
      for (std::size_t at = 0; at < length; at += piece)
        hash.update(std::string_view(text).substr(at, std::min(piece, length - at)));
      EXPECT_EQ(hash.hex(), io::sha256_hex(text.substr(0, length))) << length << " by " << piece;
    }
  }
}

TEST(Sha256, Fips180Examples) {
  EXPECT_EQ(io::sha256_hex("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(io::sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(io::sha256_hex(std::string(64, 'a')),
            "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
}

TEST(Manifest, ALineTheDiskHasNoRoomForLeavesNothing) {
  const Scratch dir;
  std::ofstream(dir / "a.uvh5") << "a";
  append_manifest(dir / "m", {dir / "a.uvh5", 1, 0, 1, 1});
  const std::string before = test::contents(dir / "m");
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const rlimit little{before.size() + 10, old.rlim_max};  // a short write of 10 bytes
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &little), 0);
  const ExitCode code = exit_code_of([&] {
    append_manifest(dir / "m", {dir / "a.uvh5", 2, 0, 1, 1});
  });
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
  ::signal(SIGXFSZ, handler);
  EXPECT_EQ(code, ExitCode::io);
  EXPECT_EQ(test::contents(dir / "m"), before);
}

TEST(Manifest, AHalfLineOfAKilledRunSpoilsNoOther) {
  const Scratch dir;
  std::ofstream(dir / "a.uvh5") << "a";
  std::ofstream(dir / "m") << "{\"name\":\"ha";
  append_manifest(dir / "m", {dir / "a.uvh5", 1, 0, 1, 1});
  const auto lines = lines_of(dir / "m");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(nlohmann::json::parse(lines[1]).at("name"), "a.uvh5");
}

TEST(Manifest, NamesAreThoseFromItsDirectory) {
  const Scratch dir;
  fs::create_directory(dir / "in");
  const fs::path before = fs::current_path();
  fs::current_path(dir.path());
  std::ofstream("a.uvh5") << "a";
  append_manifest("in/m", {dir / "a.uvh5", 1, 0, 1, 1});  // one relative, one absolute
  append_manifest(dir / "in/m", {"a.uvh5", 1, 0, 1, 1});
  append_manifest("m", {"./a.uvh5", 1, 0, 1, 1});
  fs::current_path(before);
  for (const auto& line : lines_of(dir / "in/m"))
    EXPECT_EQ(nlohmann::json::parse(line).at("name"), "../a.uvh5");
  EXPECT_EQ(nlohmann::json::parse(lines_of(dir / "m").at(0)).at("name"), "a.uvh5");
}

TEST(Manifest, ItsNameIsMadeDurableOnce) {
  const Scratch dir;
  std::ofstream(dir / "a.uvh5") << "a";
  std::vector<std::string> synced;
  set_publish_fault_hook([&](std::string_view operation, const std::string& path) {
    if (operation == "fsync_directory") synced.push_back(path);
    return 0;
  });
  append_manifest(dir / "m", {dir / "a.uvh5", 1, 0, 1, 1});
  append_manifest(dir / "m", {dir / "a.uvh5", 2, 0, 1, 1});
  set_publish_fault_hook({});
  EXPECT_EQ(synced, std::vector<std::string>{dir.path()});
}

}  // namespace
}  // namespace ryle
