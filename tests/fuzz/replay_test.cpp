// SPDX-License-Identifier: BSD-3-Clause
// The fuzz bodies over the real files (or made-up headers when they are not there) and random
// damage to them: seconds in every test run, hours under libFuzzer.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <vector>

#include "tests/fuzz/bodies.hpp"
#include "tests/support/data_path.hpp"

namespace ryle::fuzz {
namespace {

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
        "lwa/tbw-test.dat", "lwa/drx-test.dat", "baseband/sample.vdif", "baseband/sample_mwa.vdif",
        "baseband/sample_arochime.vdif", "baseband/sample_bps1.vdif",
        "baseband/sample_drao_corrupted.vdif", "baseband/sample_puppi.raw",
        "baseband/sample_vegas.raw", "baseband/sample.dada", "baseband/sample_meerkat.dada"}) {
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

/// Damage of the kinds that find something: bits and bytes, the extremes of a number, digits of a
/// header, pieces put elsewhere, an end too early.
void damage(Bytes& bytes, std::mt19937_64& random, bool headers_first) {
  const int n_changes = 1 + static_cast<int>(random() % 6);
  for (int c = 0; c < n_changes && !bytes.empty(); ++c) {
    // Headers are where the decisions are; those of FITS, HDF5 and zip are everywhere.
    const std::size_t reach = headers_first && random() % 2 == 0
                                  ? std::min<std::size_t>(bytes.size(), 100)
                                  : bytes.size();
    const std::size_t at = random() % reach;
    switch (random() % 6) {
      case 0:
        bytes[at] ^= std::byte(1U << random() % 8);
        break;
      case 1: {
        const std::byte extreme = random() % 2 == 0 ? std::byte{0} : std::byte{0xFF};
        for (std::size_t k = at; k < std::min(bytes.size(), at + (1U << random() % 4)); ++k)
          bytes[k] = extreme;
        break;
      }
      case 2: {  // the next digit: sizes, counts, numbers of text
        std::size_t k = at;
        while (k < bytes.size() && (bytes[k] < std::byte{'0'} || bytes[k] > std::byte{'9'})) ++k;
        if (k < bytes.size()) bytes[k] = std::byte('0' + random() % 10);
        break;
      }
      case 3: {
        const std::size_t from = random() % bytes.size();
        const std::size_t n =
            std::min<std::size_t>(1 + random() % 64, bytes.size() - std::max(at, from));
        std::memmove(bytes.data() + at, bytes.data() + from, n);
        break;
      }
      default:
        bytes[at] = std::byte(random() & 255);
    }
  }
  if (random() % 4 == 0) bytes.resize(random() % (bytes.size() + 1));
}

/// What a small file asks for must not be more than this process may have. Sanitizers map terabytes
/// and are left alone.
void limit_memory() {
  std::ifstream in("/proc/self/statm");
  std::int64_t pages = 0;
  in >> pages;
  const rlim_t bytes = static_cast<rlim_t>(pages) * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
  if (bytes > rlim_t{64} << 30) return;
  rlimit limit{};
  ::getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = std::min(limit.rlim_max, bytes + (rlim_t{3} << 30));
  ::setrlimit(RLIMIT_AS, &limit);
}

/// Damaged copies of a body's files: RYLE_FUZZ_RUNS, else `otherwise`.
int n_copies(int otherwise) {
  const char* asked = std::getenv("RYLE_FUZZ_RUNS");
  return asked != nullptr ? std::max(1, std::atoi(asked)) : otherwise;
}

class Replay : public ::testing::TestWithParam<Body> {};

// 200 damaged files of each format, and more of what is quick; RYLE_FUZZ_RUNS sets their number.
TEST_P(Replay, SeedsAndDamage) {
  limit_memory();
  const Body& body = GetParam();
  std::mt19937_64 random(11);
  const auto all = body.seeds != nullptr ? body.seeds() : seeds();
  const auto n_seeds = static_cast<int>(all.size());
  const int usual = body.seeds == nullptr ? (body.name == "recordings" ? 24 : 60) * n_seeds : 200;
  const int n_each = (n_copies(usual) + n_seeds - 1) / n_seeds;
  for (std::size_t s = 0; s < all.size(); ++s) {
    const Bytes& seed = all[s];
    const std::int64_t before = n_accepted();
    body.run(seed);
    if (body.seeds != nullptr && s < body.n_whole) {
      EXPECT_GT(n_accepted(), before) << "seed " << s << " is a whole file: " << last_rejection();
    }
    for (int k = 0; k < n_each; ++k) {
      Bytes bytes = seed;
      damage(bytes, random, body.seeds == nullptr);
      body.run(bytes);
    }
  }
}

// One bit of a file with checksums: rejected, or of no consequence; never other values without a
// word.
class Checksums : public ::testing::TestWithParam<Body> {};

TEST_P(Checksums, ABitOfWhatHasOneIsNeverSilent) {
  limit_memory();
  const Body& body = GetParam();
  std::mt19937_64 random(12);
  for (const Bytes& seed : body.seeds()) {
    const auto whole = body.values(seed);
    if (!whole) continue;
    for (int k = 0; k < n_copies(200); ++k) {
      Bytes bytes = seed;
      const std::size_t at = random() % bytes.size();
      if (body.protects != nullptr && !body.protects(seed, at)) continue;
      bytes[at] ^= std::byte(1U << random() % 8);
      const auto values = body.values(bytes);
      ASSERT_TRUE(!values || *values == *whole) << "byte " << at << " is wrong and nobody says so";
    }
  }
}

std::vector<Body> bodies_with_checksums() {
  std::vector<Body> all = bodies();
  std::erase_if(all, [](const Body& body) { return body.values == nullptr; });
  return all;
}

INSTANTIATE_TEST_SUITE_P(Fuzz, Checksums, ::testing::ValuesIn(bodies_with_checksums()),
                         [](const auto& info) { return std::string(info.param.name); });
INSTANTIATE_TEST_SUITE_P(Fuzz, Replay, ::testing::ValuesIn(bodies()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace ryle::fuzz
