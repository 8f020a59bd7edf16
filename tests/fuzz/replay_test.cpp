// SPDX-License-Identifier: BSD-3-Clause
// The fuzz bodies over the real files (or made-up headers when they are not there) and random
// damage to them: seconds in every test run, hours under libFuzzer.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <vector>

#include "tests/fuzz/bodies.hpp"
#include "tests/fuzz/scan_body.hpp"
#include "tests/support/data_path.hpp"

namespace ryle::fuzz {
namespace {

using Bytes = std::vector<std::byte>;

std::vector<Bytes> seeds() {
  std::vector<Bytes> all{{}, Bytes(1), Bytes(4104), Bytes(16, std::byte{0xFF})};
  const auto text = [&](const std::string& s) {
    const auto bytes = std::as_bytes(std::span(s));
    all.emplace_back(bytes.begin(), bytes.end());
  };
  text(
      R"({"frequency": 1575420000.0, "baseband_frequency": 4092000.0, "sampling_frequency": 16368000.0})");
  text("2026-06-12T11:20:40+00:00");
  text(
      "HDR_SIZE 256\nNCHAN 4\nNPOL 2\nNDIM 2\nNBIT 8\nBW -4.0\nFREQ 1\nTSAMP 1.0\nMJD_START "
      "60000.5\n" +
      std::string(600, '\0'));
  text(std::string("MW32\x01\x02\x00\x02\0\0\0\0\0\0\0\x01", 16) + std::string(64, 'x'));
  for (const char* name :
       {"lwa/tbx-test.dat", "lwa/tbf-mini-test.dat", "lwa/tbf-test.dat", "lwa/tbn-test.dat",
        "baseband/sample.vdif", "baseband/sample_mwa.vdif", "baseband/sample_arochime.vdif",
        "baseband/sample_bps1.vdif", "baseband/sample_drao_corrupted.vdif",
        "baseband/sample_puppi.raw", "baseband/sample_vegas.raw", "baseband/sample.dada",
        "baseband/sample_meerkat.dada"}) {
    const auto path = test::data_file(name);
    if (!path) continue;
    std::ifstream in(*path, std::ios::binary);
    Bytes bytes(24576);
    in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    bytes.resize(static_cast<std::size_t>(in.gcount()));
    all.push_back(bytes);
    for (const std::size_t frame :
         {std::size_t{1564}, std::size_t{1560}, std::size_t{1048}, std::size_t{544}}) {
      if (bytes.size() > frame)
        all.emplace_back(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(frame));
    }
  }
  return all;
}

class Replay : public ::testing::TestWithParam<Body> {};

TEST_P(Replay, SeedsAndDamage) {
  std::mt19937_64 random(11);
  const bool scans = GetParam().name == "scans";
  const bool slow = GetParam().name == "recordings";
  for (const auto& seed : scans ? scan_seeds() : seeds()) {
    GetParam().run(seed);
    for (int k = 0; k < (scans ? 150 : slow ? 24 : 60); ++k) {
      Bytes bytes = seed;
      const int changes = 1 + static_cast<int>(random() % 6);
      for (int c = 0; c < changes && !bytes.empty(); ++c) {
        // Headers are where the decisions are: half of the damage goes into the first 100 bytes;
        // the headers of FITS and zip are everywhere.
        const std::size_t reach =
            !scans && random() % 2 == 0 ? std::min<std::size_t>(bytes.size(), 100) : bytes.size();
        bytes[random() % reach] = std::byte(random() & 255);
      }
      if (random() % 3 == 0) bytes.resize(random() % (bytes.size() + 1));
      GetParam().run(bytes);
    }
  }
}

// Damage to what is refused anyway would prove nothing.
TEST(ScanSeeds, AreFilesOfScans) {
  for (const auto& seed : scan_seeds()) EXPECT_TRUE(is_scans(seed));
}

INSTANTIATE_TEST_SUITE_P(Fuzz, Replay, ::testing::ValuesIn(bodies().begin(), bodies().end()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace ryle::fuzz
