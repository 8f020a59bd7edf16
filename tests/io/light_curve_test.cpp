// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <thread>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/io/image/light_curve.hpp"
#include "tests/io/scratch.hpp"
#include "tests/support/light_curve_reader.hpp"

namespace ryle {
namespace {

using test::exit_code_of;
using test::LightCurveReader;
using test::Scratch;

constexpr std::int64_t kStart_tai_ns = 1'800'000'037'000'000'000;

LightCurveImage image_at(std::int64_t k) {
  return {kStart_tai_ns + k * 40'000'000,
          kStart_tai_ns + k * 40'000'000 + 20'000'000,
          0.04,
          {{60e6, 100e3, 4}, {60.1e6, 100e3, 4}, {60.175e6, 50e3, 2}},
          "vis-grid",
          "sky.fits"};
}

std::vector<LightCurveSample> samples_of(std::int64_t source, std::int64_t k) {
  std::vector<LightCurveSample> samples;
  for (std::int64_t bin = 0; bin < 3; ++bin) {
    const auto v = static_cast<double>(100 * k + bin);
    samples.push_back({source,
                       bin,
                       {v, 0.25 * v, -v, 1e-9 * v},
                       bin == 2 && k == 1 ? 0.0 : 10.0,
                       1.0,
                       0.1,
                       -0.2});
  }
  return samples;
}

TEST(LightCurve, EverythingComesBack) {
  const Scratch dir;
  const std::string path = dir / "watch.sqlite";
  {
    LightCurveStore store(path);
    const auto cyg = store.source(parse_watch("Cyg A"));
    const auto sun = store.source(parse_watch("sun"));
    EXPECT_NE(cyg, sun);
    EXPECT_EQ(store.source(parse_watch("3C405")), cyg);
    for (std::int64_t k = 0; k < 3; ++k) {
      auto samples = samples_of(cyg, k);
      for (const auto& s : samples_of(sun, k + 50)) samples.push_back(s);
      store.append(image_at(k), samples);
    }
  }
  {
    LightCurveStore store(path);  // a second run goes on
    const auto cyg = store.source(parse_watch("Cyg A"));
    store.append(image_at(3), samples_of(cyg, 3));
    EXPECT_EQ(exit_code_of([&] { store.source(parse_watch("Cyg A=1,2")); }), ExitCode::config);
  }
  LightCurveReader reader(path);
  EXPECT_EQ(reader.integrity(), "ok");
  EXPECT_EQ(reader.n_images(), 4);
  const auto sources = reader.sources();
  ASSERT_EQ(sources.size(), 2U);
  EXPECT_NEAR(sources[0].fixed->ra_rad / kDegree_rad, 299.868153, 1e-9);
  EXPECT_FALSE(sources[1].fixed.has_value()) << "the Sun moves";
  const auto curve = reader.light_curve("Cyg A");
  ASSERT_EQ(curve.size(), 12U);
  for (std::size_t k = 0; k < curve.size(); ++k) {
    const auto image = static_cast<std::int64_t>(k / 3), bin = static_cast<std::int64_t>(k % 3);
    EXPECT_EQ(curve[k].start_tai_ns, image_at(image).start_tai_ns);
    EXPECT_EQ(curve[k].bin, bin);
    // The last bin has two channels instead of four.
    EXPECT_EQ(curve[k].center_hz, bin == 2 ? 60.175e6 : 60e6 + 100e3 * static_cast<double>(bin));
    EXPECT_EQ(curve[k].width_hz, bin == 2 ? 50e3 : 100e3);
    EXPECT_EQ(curve[k].l, 0.1);
    EXPECT_NEAR(curve[k].elevation_rad, 1, 1e-15);
    if (image == 1 && bin == 2) {
      EXPECT_EQ(curve[k].weight, 0);
      EXPECT_TRUE(std::isnan(curve[k].stokes[0])) << "not measured is not zero";
    } else {
      const auto v = static_cast<double>(100 * image + bin);
      EXPECT_EQ(curve[k].stokes, (std::array<double, 4>{v, 0.25 * v, -v, 1e-9 * v}));
    }
  }
  EXPECT_EQ(reader.light_curve("Sun").size(), 9U);
  EXPECT_EQ(exit_code_of([&] { reader.light_curve("Vir A"); }), ExitCode::config);
}

ImageEvent event() {
  ImageEvent e;
  e.tai_ns = kStart_tai_ns + 5;
  e.duration_s = 0.32;
  e.l = 0.3;
  e.m = -0.1;
  e.direction = {1.0, 0.5};
  e.low_hz = 55e6;
  e.high_hz = 65e6;
  e.snr = {12.5, NAN, NAN, -3};
  e.peak = 4.25;
  e.file = "a,\"b\".fits";
  e.cutout_shape = {2, 1, 3, 3};
  for (int k = 0; k < 18; ++k) e.cutout.push_back(static_cast<float>(k) * 0.1F);
  return e;
}

std::int64_t count(const std::string& path, const char* sql) {
  sqlite3* db = nullptr;
  EXPECT_EQ(sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
  sqlite3_stmt* statement = nullptr;
  EXPECT_EQ(sqlite3_prepare_v2(db, sql, -1, &statement, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
  const std::int64_t n =
      sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : -1;
  sqlite3_finalize(statement);
  sqlite3_close(db);
  return n;
}

TEST(LightCurve, BandsAreKnownByAllTheirBins) {
  const Scratch dir;
  const std::string path = dir / "watch.sqlite";
  LightCurveImage short_one = image_at(1), long_one = image_at(2);
  long_one.bins.back() = {60.2e6, 100e3, 4};
  for (int run = 0; run < 2; ++run) {
    LightCurveStore store(path);
    const auto sun = store.source(parse_watch("sun"));
    for (const auto& image : {short_one, long_one, short_one})
      store.append(image, samples_of(sun, 1));
  }
  EXPECT_EQ(count(path, "SELECT count(*) FROM band"), 2);
  EXPECT_EQ(count(path, "SELECT count(*) FROM bin"), 6);
  EXPECT_EQ(
      count(path, "SELECT count(*) FROM light_curve WHERE source = 'Sun' AND center_hz = 60.175e6"),
      4);
  EXPECT_EQ(count(path, "SELECT count(*) FROM light_curve"), 18);
}

TEST(LightCurve, OverwriteReplaces) {
  const Scratch dir;
  const std::string path = dir / "watch.sqlite";
  const auto write = [&](std::int64_t k, bool overwrite) {
    LightCurveOptions options;
    options.overwrite = overwrite;
    LightCurveStore store(path, {}, options);
    // Another place under the same name is no contradiction to what is gone.
    const auto id = store.source(parse_watch(overwrite ? "Cyg A=1,2" : "Cyg A"));
    store.append(image_at(k), samples_of(id, k));
    store.append(event());
  };
  write(0, false);
  write(1, false);
  EXPECT_EQ(LightCurveReader(path).n_images(), 2);
  write(5, true);
  {
    LightCurveReader reader(path);
    EXPECT_EQ(reader.integrity(), "ok");
    EXPECT_EQ(reader.n_images(), 1);
    EXPECT_EQ(reader.events().size(), 1U);
    ASSERT_EQ(reader.sources().size(), 1U);
    EXPECT_EQ(reader.light_curve("Cyg A").front().start_tai_ns, image_at(5).start_tai_ns);
  }
  // A database of an older schema is rejected, with the way out, and can be replaced.
  sqlite3* old = nullptr;
  sqlite3_open(path.c_str(), &old);
  sqlite3_exec(old, "PRAGMA user_version = 1", nullptr, nullptr, nullptr);
  sqlite3_close(old);
  try {
    write(6, false);
    ADD_FAILURE() << "schema 1 was written to";
  } catch (const UnsupportedError& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr("schema 1"));
    EXPECT_THAT(e.what(), testing::HasSubstr("overwrite"));
  }
  write(7, true);
  EXPECT_EQ(LightCurveReader(path).n_images(), 1);
  // What is not ours is not replaced.
  std::ofstream(dir / "text.sqlite") << std::string(4096, 'x');
  LightCurveOptions options;
  options.overwrite = true;
  EXPECT_EQ(exit_code_of([&] { LightCurveStore(dir / "text.sqlite", {}, options); }),
            ExitCode::bad_data);
}

TEST(LightCurve, Events) {
  const Scratch dir;
  LightCurveStore store(dir / "watch.sqlite");
  store.append(event());
  ImageEvent wrong = event();
  wrong.cutout.pop_back();
  EXPECT_EQ(exit_code_of([&] { store.append(wrong); }), ExitCode::config);
  LightCurveReader reader(dir / "watch.sqlite");
  const auto events = reader.events();
  ASSERT_EQ(events.size(), 1U);
  const ImageEvent want = event();
  EXPECT_EQ(events[0].tai_ns, want.tai_ns);
  EXPECT_EQ(events[0].duration_s, want.duration_s);
  EXPECT_EQ(events[0].cutout, want.cutout);
  EXPECT_EQ(events[0].cutout_shape, want.cutout_shape);
  EXPECT_EQ(events[0].snr[0], 12.5);
  EXPECT_TRUE(std::isnan(events[0].snr[1]));
  EXPECT_EQ(events[0].snr[3], -3);
  EXPECT_NEAR(events[0].direction.dec_rad, 0.5, 1e-15);
  Observation o;
  o.array.name = "LWA <SV>";
  const std::string xml = voevent_xml(want, o, 7);
  EXPECT_THAT(xml, testing::HasSubstr("ivorn=\"ivo://ryle/LWA__SV_#"));
  EXPECT_THAT(xml, testing::HasSubstr("LWA &lt;SV&gt;"));
  EXPECT_THAT(xml, testing::HasSubstr("name=\"snr_i\" value=\"12.5\""));
  EXPECT_THAT(xml, testing::Not(testing::HasSubstr("snr_q")));
}

// The child writes until it is killed: every image that is there has all its samples.
TEST(LightCurve, KilledWriterLeavesAReadableDatabase) {
  const Scratch dir;
  const std::string path = dir / "watch.sqlite";
  std::int64_t images_before = 0;
  for (int kill_no = 0; kill_no < 8; ++kill_no) {
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      LightCurveOptions options;
      options.images_per_commit = 5;
      LightCurveStore store(path, {}, options);
      const auto cyg = store.source(parse_watch("Cyg A"));
      for (std::int64_t k = 0;; ++k) {
        store.append(image_at(k), samples_of(cyg, 2));
        if (k == 10 && ::write(ready[1], "x", 1) != 1) ::_exit(1);
      }
    }
    char byte = 0;
    ASSERT_EQ(::read(ready[0], &byte, 1), 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(3 + kill_no));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ::close(ready[0]);
    ::close(ready[1]);
    LightCurveReader reader(path);
    EXPECT_EQ(reader.integrity(), "ok");
    const std::int64_t images = reader.n_images();
    EXPECT_GE(images, images_before + 10);
    EXPECT_EQ(images % 5, 0) << "whole batches";
    EXPECT_EQ(static_cast<std::int64_t>(reader.light_curve("Cyg A").size()), 3 * images);
    images_before = images;
  }
}

TEST(LightCurve, FullDiskIsSaidAndWhatWasThereStays) {
  const Scratch dir;
  const std::string path = dir / "watch.sqlite";
  LightCurveOptions options;
  options.max_bytes = 128 << 10;  // SQLite reports this limit as it reports a full disk
  options.images_per_commit = 4;
  LightCurveStore store(path, {}, options);
  const auto cyg = store.source(parse_watch("Cyg A"));
  std::int64_t k = 0;
  try {
    for (; k < 100000; ++k) store.append(image_at(k), samples_of(cyg, 2));
    FAIL() << "128 KiB hold " << k << " images";
  } catch (const IoError& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::io);
    EXPECT_THAT(error.what(), testing::HasSubstr("full"));
    EXPECT_THAT(error.what(), testing::HasSubstr(path));
  }
  EXPECT_GE(store.n_lost_images(), 1);
  EXPECT_LE(store.n_lost_images(), 4);
  LightCurveReader reader(path);
  EXPECT_EQ(reader.integrity(), "ok");
  EXPECT_EQ(reader.n_images(), k + 1 - store.n_lost_images());
}

// Files may not grow: as on a full disk.
TEST(LightCurve, NothingIsLeftWhereItCannotBegin) {
  const Scratch dir;
  rlimit limit{};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  rlimit none = limit;
  none.rlim_cur = 0;
  std::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &none);
  const ExitCode code = exit_code_of([&] { LightCurveStore(dir / "l.sqlite", {}, {}); });
  ::setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, SIG_DFL);
  EXPECT_EQ(code, ExitCode::io);
  EXPECT_TRUE(dir.names().empty());
}

TEST(LightCurve, LockedIsSaid) {
  const Scratch dir;
  const std::string path = dir / "watch.sqlite";
  LightCurveOptions options;
  options.busy_timeout_s = 0.05;
  LightCurveStore store(path, {}, options);
  const auto cyg = store.source(parse_watch("Cyg A"));
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  try {
    store.append(image_at(0), samples_of(cyg, 0));
    FAIL() << "the database is locked";
  } catch (const IoError& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::try_again);
    EXPECT_THAT(error.what(), testing::HasSubstr("another process"));
  }
  sqlite3_exec(other, "ROLLBACK", nullptr, nullptr, nullptr);
  store.append(image_at(0), samples_of(cyg, 0));
  store.commit();
  EXPECT_EQ(LightCurveReader(path).n_images(), 1);
  sqlite3_close(other);
}

TEST(LightCurve, RejectsOtherFiles) {
  const Scratch dir;
  std::ofstream(dir / "text.sqlite") << std::string(4096, 'x');
  EXPECT_EQ(exit_code_of([&] { LightCurveStore(dir / "text.sqlite"); }), ExitCode::bad_data);
  EXPECT_EQ(exit_code_of([&] { LightCurveStore(dir / "no/folder.sqlite"); }),
            ExitCode::cannot_create);
  sqlite3* other = nullptr;
  sqlite3_open((dir / "other.sqlite").c_str(), &other);
  sqlite3_exec(other, "CREATE TABLE t (x)", nullptr, nullptr, nullptr);
  sqlite3_close(other);
  EXPECT_EQ(exit_code_of([&] { LightCurveStore(dir / "other.sqlite"); }), ExitCode::bad_data);
  { LightCurveStore store(dir / "new.sqlite"); }
  sqlite3_open((dir / "new.sqlite").c_str(), &other);
  sqlite3_exec(other, "PRAGMA user_version = 99", nullptr, nullptr, nullptr);
  sqlite3_close(other);
  EXPECT_EQ(exit_code_of([&] { LightCurveStore(dir / "new.sqlite"); }), ExitCode::unavailable);
}

}  // namespace
}  // namespace ryle
