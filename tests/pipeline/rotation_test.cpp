// SPDX-License-Identifier: BSD-3-Clause
// Files by time and by size: one after the other they are the run, exactly.
#include "ryle/pipeline/base/rotation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "ryle/core/baseline.hpp"
#include "ryle/core/error.hpp"
#include "ryle/io/base/publish.hpp"
#include "ryle/io/base/sha256.hpp"
#include "ryle/io/recover/unfinished.hpp"
#include "ryle/pipeline/visibility/dump_writer.hpp"
#include "ryle/pipeline/visibility/product_set.hpp"
#include "ryle/pipeline/visibility/setup.hpp"
#include "tests/io/scratch.hpp"
#include "tests/io/simulated_sky.hpp"

namespace ryle::pipeline {
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

ObservationConfig uvh5_only(const std::string& directory, double segment_s) {
  ObservationConfig config;
  config.output.directory = directory;
  config.output.name = "run";
  config.output.ms = config.output.uvfits = false;
  config.output.segment_s = segment_s;
  return config;
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
  products.finish_manifest();
  EXPECT_TRUE(products.errors().empty());
  EXPECT_TRUE(products.warnings().empty());
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
    EXPECT_EQ(entry.at("sha256"), io::sha256_hex(bytes));
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

// Boundaries stay on start + k S: 0.7 s integrations, S = 1 s. Counted from each first integration
// every one would open files of its own.
TEST(Rotation, BoundariesDoNotDrift) {
  const Scratch dir;
  const Observation o = test::make_observation({});
  ProductSet products(uvh5_only(dir.path(), 1), {});
  for (int d = 0; d < 10; ++d) {
    VisibilityDump dump = dump_at(o, d);
    dump.interval_s = 0.7;
    dump.start_tai_ns = test::kStart_tai_ns + d * 700'000'000LL;
    products.write(dump, o, 0);
  }
  products.publish(o);
  std::vector<std::size_t> sizes;
  for (const auto& file : products.published())
    sizes.push_back(read_visibility_file(file).dumps.size());
  EXPECT_EQ(sizes, (std::vector<std::size_t>{1, 2, 1, 2, 1, 2, 1}));
}

// One format fails at the end of files: the others are published all the same.
TEST(Rotation, OneThatCannotBePublishedTakesNoOtherWithIt) {
  const Scratch dir;
  ObservationConfig config = uvh5_only(dir.path(), 2);
  config.output.uvfits = true;
  config.output.on_disk_full = "stop";
  const Observation o = test::make_observation({});
  ProductSet products(config, {});
  products.write(dump_at(o, 0), o, 0);
  set_publish_fault_hook([](std::string_view operation, const std::string& path) {
    return operation == "rename" && path.ends_with(".uvfits") ? EIO : 0;
  });
  EXPECT_THROW(products.publish(o), IoError);
  set_publish_fault_hook({});
  ASSERT_EQ(products.published().size(), 1u);
  EXPECT_EQ(read_visibility_file(products.published()[0]).dumps.size(), 1u);
}

// One format fails in the middle: its whole integrations stay for recovery, the others go on, and
// what the product lacks is counted.
TEST(Rotation, AFormatThatFailsKeepsWhatIsWhole) {
  const Scratch dir;
  ObservationConfig config = uvh5_only(dir.path(), 0);
  config.output.uvfits = true;
  const Observation o = test::make_observation({});
  ProductSet products(config, {});
  int n_writes = 0;
  set_publish_fault_hook([&](std::string_view operation, const std::string& path) {
    return operation == "write" && path.ends_with(".uvfits") && ++n_writes == 3 ? ENOSPC : 0;
  });
  for (int d = 0; d < 5; ++d) products.write(dump_at(o, d), o, 0);
  products.publish(o);
  set_publish_fault_hook({});
  EXPECT_EQ(products.dumps_lost(), 3);
  ASSERT_EQ(products.errors().size(), 1u);
  EXPECT_NE(products.errors()[0].find("2 whole integrations stay"), std::string::npos);
  ASSERT_EQ(products.published().size(), 1u);
  EXPECT_EQ(read_visibility_file(products.published()[0]).dumps.size(), 5u);
  const auto done = recover(find_unfinished(dir.path()), {});
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].integrations, 2);
  EXPECT_EQ(read_visibility_file(done[0].product).dumps.size(), 2u);
}

// With "stop" the run ends with the error; the files that can be are published first.
TEST(Rotation, StopPublishesTheOthers) {
  const Scratch dir;
  ObservationConfig config = uvh5_only(dir.path(), 0);
  config.output.uvfits = true;
  config.output.on_disk_full = "stop";
  const Observation o = test::make_observation({});
  ProductSet products(config, {});
  products.write(dump_at(o, 0), o, 0);
  set_publish_fault_hook([&](std::string_view operation, const std::string& path) {
    return operation == "write" && path.ends_with(".uvfits") ? ENOSPC : 0;
  });
  EXPECT_THROW(products.write(dump_at(o, 1), o, 0), IoError);
  set_publish_fault_hook({});
  EXPECT_NE(products.publish_rest(o).find("published "), std::string::npos);
  ASSERT_EQ(products.published().size(), 1u);
  EXPECT_GE(read_visibility_file(products.published()[0]).dumps.size(), 1u);
}

TEST(Rotation, FingerprintsAreMadeBesideTheWriter) {
  const Scratch dir;
  std::vector<std::thread::id> threads;
  set_publish_fault_hook([&](std::string_view operation, const std::string& path) {
    if (operation == "write" && path.ends_with(".jsonl"))
      threads.push_back(std::this_thread::get_id());
    return 0;
  });
  write_run(dir.path(), 2, 0, 6);
  set_publish_fault_hook({});
  ASSERT_EQ(threads.size(), 2u);
  EXPECT_NE(threads[0], std::this_thread::get_id());
}

TEST(Rotation, AManifestThatCannotBeWrittenIsAWarning) {
  const Scratch dir;
  fs::create_directory(dir / "run.manifest.jsonl");
  ObservationConfig config = uvh5_only(dir.path(), 2);
  config.output.on_disk_full = "stop";
  const Observation o = test::make_observation({});
  ProductSet products(config, {});
  for (int d = 0; d < 6; ++d) products.write(dump_at(o, d), o, 0);
  products.publish(o);
  products.finish_manifest();
  EXPECT_EQ(products.published().size(), 2u);
  EXPECT_TRUE(products.errors().empty());
  EXPECT_EQ(products.warnings().size(), 2u);
}

/// Four dumps of sums 1 through a writer, two to a file; `edit(d, dump)` completes each. The files.
template <class Edit>
std::vector<std::string> two_files(const Scratch& dir, Edit edit) {
  const Observation o = test::make_observation({});
  DumpBuilder::Setup setup;
  setup.n_inputs = o.array.n_inputs();
  setup.finish.map = input_map(o.array);
  setup.finish.frequency = o.frequency;
  ObservationConfig config = uvh5_only(dir.path(), 2);
  config.output.pictures = false;
  DumpWriter writer(config, DumpBuilder(setup), o, {}, false);
  for (int d = 0; d < 4; ++d) {
    RawDump raw;
    raw.clock.epoch_tai_ns = test::kStart_tai_ns;
    raw.first_spectrum = d;
    const auto n = static_cast<std::size_t>(n_pairs(setup.n_inputs) * o.frequency.n_channels);
    raw.sums.integer.assign(n, ci64(1, 0));
    raw.sums.counts.resize(n);
    edit(d, raw);
    raw.sums.n_spectra = raw.n_spectra;
    writer.offer(std::move(raw), {});
  }
  Queue queue = make_queue(config.runtime);
  writer.finish(queue, {}, {});
  auto files = writer.products().published();
  EXPECT_EQ(files.size(), 2u);
  files.resize(2);
  return files;
}

// A long run's early files say what they lost themselves: the last one is hours away.
TEST(Rotation, LossIsOfItsFile) {
  const Scratch dir;
  const auto files = two_files(dir, [](int d, RawDump& raw) {
    raw.n_spectra = 4;
    std::fill(raw.sums.counts.begin(), raw.sums.counts.end(), d == 0 ? 3 : 4);
  });
  const auto lost = [&](std::size_t k) {
    return std::stod(
        read_visibility_file(files[k]).observation.provenance.notes.at("lost_spectra_ppm"));
  };
  EXPECT_DOUBLE_EQ(lost(0), 125000);
  EXPECT_DOUBLE_EQ(lost(1), 0);
}

// Levels are those of the file they stand in: neither of files before it nor of the dump after it.
TEST(Rotation, LevelsAreOfTheirFile) {
  const Scratch dir;
  const auto n_inputs = static_cast<std::size_t>(test::make_observation({}).array.n_inputs());
  const auto files = two_files(dir, [&](int d, RawDump& raw) {
    raw.n_spectra = 1;
    std::fill(raw.sums.counts.begin(), raw.sums.counts.end(), 1);
    channelize::LevelStatistics levels;
    levels.n_samples = 1;
    levels.sum_of_squares = std::pow(4.0, d);
    raw.levels.assign(n_inputs, levels);
  });
  const auto rms = [&](std::size_t k) {
    return read_visibility_file(files[k]).observation.applied.input_rms_lsb.at(0);
  };
  EXPECT_DOUBLE_EQ(rms(0), std::sqrt((1.0 + 4.0) / 2));
  EXPECT_DOUBLE_EQ(rms(1), std::sqrt((16.0 + 64.0) / 2));
}

TEST(Rotation, StartIsRejectedWithoutRoomForTwoSegmentsOfTime) {
  const Scratch dir;
  EXPECT_THROW(write_run(dir.path(), 1e9, 0, 1), IoError);
}

TEST(Rotation, StartIsRejectedWithoutRoomForTwoSegments) {
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
}  // namespace ryle::pipeline
