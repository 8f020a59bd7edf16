// SPDX-License-Identifier: BSD-3-Clause
// Files by time and by size: one after the other they are the run, exactly.
#include "ryle/stage/rotation.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ryle/core/error.hpp"
#include "ryle/core/sha256.hpp"
#include "ryle/stage/product_set.hpp"
#include "tests/product/scratch.hpp"
#include "tests/product/simulated_sky.hpp"

namespace ryle::stage {
namespace {

namespace fs = std::filesystem;
using test::Scratch;

// Integrations of 0.499968 s, as whole spectra make them.
VisibilityDump dump_at(const Observation& o, std::int64_t index) {
  VisibilityDump dump = test::make_dump(o, {}, index);
  dump.interval_s = 0.499968;
  dump.start_tai_ns = test::kStart_tai_ns + index * 499'968'000;
  dump.centroid_tai_ns = dump.start_tai_ns + 249'984'000;
  for (std::size_t k = 0; k < dump.data.size(); ++k) {
    dump.counts[k] = static_cast<std::uint32_t>(1 + (k * 7 + static_cast<std::size_t>(index)) % 99);
    dump.data[k] = cf32(static_cast<float>(k), static_cast<float>(index));
  }
  return dump;
}

std::vector<std::string> write_run(const std::string& directory, double segment_s,
                                   double segment_mib, int n_dumps) {
  ObservationConfig config;
  config.output.directory = directory;
  config.output.name = "run";
  config.output.ms = config.output.uvfits = false;
  config.output.segment_s = segment_s;
  config.output.segment_mib = segment_mib;
  const Observation o = test::make_observation({});
  ProductSet products(config, {});
  for (int d = 0; d < n_dumps; ++d) products.write(dump_at(o, d), o, 0);
  products.publish(o);
  EXPECT_TRUE(products.errors().empty());
  return products.published();
}

std::vector<VisibilityDump> read_all(const std::vector<std::string>& files) {
  std::vector<VisibilityDump> dumps;
  for (const auto& file : files) {
    for (auto& dump : read_visibility_file(file).dumps) dumps.push_back(std::move(dump));
  }
  return dumps;
}

void expect_same(const std::vector<VisibilityDump>& a, const std::vector<VisibilityDump>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t d = 0; d < a.size(); ++d) {
    EXPECT_EQ(a[d].start_tai_ns, b[d].start_tai_ns) << d;
    EXPECT_EQ(a[d].n_spectra, b[d].n_spectra) << d;
    EXPECT_TRUE(a[d].data == b[d].data) << d;
    EXPECT_TRUE(a[d].counts == b[d].counts) << d;
  }
}

TEST(Rotation, TwoSecondsHoldFourIntegrationsAndTheFilesAreTheRun) {
  const Scratch one, many;
  const auto whole = write_run(one.path(), 0, 0, 11);
  EXPECT_EQ(one.names(), (std::vector<std::string>{"run.uvh5"}));  // no manifest of one file
  const auto files = write_run(many.path(), 2, 0, 11);
  ASSERT_EQ(files.size(), 3u);
  EXPECT_EQ(fs::path(files[0]).filename(), "run_20260131T230000.250Z_s0001.uvh5");
  EXPECT_TRUE(std::is_sorted(files.begin(), files.end()));
  EXPECT_EQ(read_visibility_file(files[0]).dumps.size(), 4u);
  EXPECT_EQ(read_visibility_file(files[2]).dumps.size(), 3u);
  expect_same(read_all(files), read_all(whole));
}

TEST(Rotation, TheManifestNamesEveryFileWithItsFingerprint) {
  const Scratch dir;
  const auto files = write_run(dir.path(), 2, 0, 6);
  ASSERT_EQ(files.size(), 2u);
  std::ifstream in(dir / "run.manifest.jsonl");
  std::string line;
  std::size_t k = 0;
  while (std::getline(in, line)) {
    ASSERT_LT(k, files.size());
    const auto entry = nlohmann::json::parse(line);
    const std::string bytes = test::contents(files[k]);
    EXPECT_EQ(entry.at("name"), fs::path(files[k]).filename().string());
    EXPECT_EQ(entry.at("bytes"), bytes.size());
    EXPECT_EQ(entry.at("sha256"), sha256_hex(bytes));
    EXPECT_EQ(entry.at("segment"), k + 1);
    EXPECT_EQ(entry.at("start_tai_ns"),
              test::kStart_tai_ns + static_cast<std::int64_t>(4 * k) * 499'968'000);
    EXPECT_EQ(entry.at("integrations"), k == 0 ? 4 : 2);
    ++k;
  }
  EXPECT_EQ(k, 2u);
}

TEST(Rotation, ASizeLimitIsKept) {
  const Scratch dir;
  const std::int64_t bytes = Rotation::dump_bytes(dump_at(test::make_observation({}), 0));
  const double mib = 2.5 * static_cast<double>(bytes) / 1048576;
  const auto files = write_run(dir.path(), 0, mib, 5);
  ASSERT_EQ(files.size(), 3u);
  EXPECT_EQ(read_visibility_file(files[0]).dumps.size(), 2u);
  // A limit below one integration: one in each file.
  const Scratch tiny;
  EXPECT_EQ(write_run(tiny.path(), 0, mib / 10, 3).size(), 3u);
}

TEST(Rotation, ASenderRestartBeginsNewFilesToo) {
  const Scratch dir;
  ObservationConfig config;
  config.output.directory = dir.path();
  config.output.name = "run";
  config.output.ms = config.output.uvfits = false;
  config.output.segment_s = 60;
  const Observation o = test::make_observation({});
  ProductSet products(config, {});
  products.write(dump_at(o, 0), o, 0);
  products.write(dump_at(o, 1), o, 1);
  products.publish(o);
  EXPECT_EQ(products.published().size(), 2u);
}

TEST(Rotation, StartIsRefusedWithoutRoomForTwoSegments) {
  const Scratch dir;
  try {
    write_run(dir.path(), 0, 9e6, 1);  // 9 TiB
    FAIL();
  } catch (const IoError& error) {
    EXPECT_NE(std::string(error.what()).find("segment_mib"), std::string::npos) << error.what();
    EXPECT_EQ(error.exit_code(), ExitCode::io);
  }
  EXPECT_TRUE(dir.names().empty());
}

}  // namespace
}  // namespace ryle::stage
