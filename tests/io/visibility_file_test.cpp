// SPDX-License-Identifier: BSD-3-Clause
// Every writer read back by its reader: values, counts, times and metadata exactly; odd shapes;
// broken files.
#include <fitsio.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <ctime>
#include <functional>
#include <random>
#include <thread>

#include "ryle/io/base/observation_json.hpp"
#include "ryle/io/base/publish.hpp"
#include "ryle/io/recover/unfinished.hpp"
#include "ryle/io/visibility/visibility_file.hpp"
#include "ryle/io/visibility/visibility_layout.hpp"
#include "tests/io/scratch.hpp"
#include "tests/io/simulated_sky.hpp"
#include "tests/support/data_path.hpp"

namespace ryle {
namespace {

namespace fs = std::filesystem;
using test::exit_code_of;
using test::Scratch;
using test::Shape;

/// Every value different, some counts 0 (their value is 0 then), so that any misplacement shows.
VisibilityDump random_dump(const Observation& o, std::int64_t index) {
  VisibilityDump dump = test::make_dump(o, {}, index);
  std::mt19937_64 random(static_cast<std::uint64_t>(index) + 7);
  std::normal_distribution<float> normal;
  for (std::size_t k = 0; k < dump.data.size(); ++k) {
    dump.counts[k] = random() % 7 == 0 ? 0 : static_cast<std::uint32_t>(random() % 50000 + 1);
    dump.data[k] = dump.counts[k] == 0 ? cf32(0) : cf32(normal(random), normal(random));
  }
  return dump;
}

void write_file(const std::string& path, const Observation& o, std::int64_t n_dumps) {
  auto writer = open_visibility_writer(path, o, false);
  for (std::int64_t d = 0; d < n_dumps; ++d) writer->write(random_dump(o, d));
  writer->publish(o);
}

constexpr int kCannot_mount = 200;  ///< exit code of a child that may not mount

std::vector<std::string> suffixes() { return {".ms", ".uvfits", ".uvh5"}; }

/// MS support is optional: without casacore every MS call must say so, and the rest of the test
/// goes on.
bool unavailable(const std::string& path, const Observation& o) {
  try {
    open_visibility_writer(path, o, false);
  } catch (const UnsupportedError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("casacore"));
    return true;
  }
  return false;
}

void expect_equal_dumps(const VisibilityDump& read, const VisibilityDump& written,
                        const std::string& where) {
  EXPECT_EQ(read.start_tai_ns, written.start_tai_ns) << where;
  EXPECT_EQ(read.centroid_tai_ns, written.centroid_tai_ns) << where;
  EXPECT_EQ(read.interval_s, written.interval_s) << where;
  EXPECT_EQ(read.n_spectra, written.n_spectra) << where;
  ASSERT_EQ(read.data.size(), written.data.size()) << where;
  EXPECT_TRUE(read.counts == written.counts) << where;
  EXPECT_TRUE(read.data == written.data) << where;  // float32 to float32: exact
}

struct RoundTrip : testing::TestWithParam<std::string> {};

TEST_P(RoundTrip, EverythingComesBackExactly) {
  const Scratch dir;
  for (const Shape& shape :
       {Shape{}, Shape{1, 4, 2}, Shape{3, 1, 2}, Shape{5, 3, 1}, Shape{1, 1, 1}, Shape{17, 5, 2}}) {
    const Observation o = test::make_observation(shape);
    const std::string path =
        dir / ("v" + std::to_string(shape.n_antennas) + std::to_string(shape.n_channels) +
               std::to_string(shape.n_pols) + GetParam());
    if (unavailable(path, o)) GTEST_SKIP() << "skipped: built without casacore";
    write_file(path, o, 3);
    const VisibilityFile file = read_visibility_file(path);
    EXPECT_EQ(observation_to_json(file.observation), observation_to_json(o)) << path;
    EXPECT_EQ(file.observation.applied.delay_s, o.applied.delay_s);
    EXPECT_EQ(file.observation.applied.input_rms_lsb, o.applied.input_rms_lsb);
    EXPECT_EQ(file.observation.applied.saturated_fraction, o.applied.saturated_fraction);
    EXPECT_EQ(file.observation.applied.filter_response, o.applied.filter_response);
    EXPECT_TRUE(file.observation.applied.gains == o.applied.gains);
    ASSERT_EQ(file.dumps.size(), 3U) << path;
    for (std::int64_t d = 0; d < 3; ++d) {
      expect_equal_dumps(file.dumps[static_cast<std::size_t>(d)], random_dump(o, d), path);
    }
  }
}

TEST_P(RoundTrip, NoDumpsIsAValidFile) {
  const Scratch dir;
  const Observation o = test::make_observation({});
  if (unavailable(dir / ("x" + GetParam()), o)) GTEST_SKIP() << "skipped: built without casacore";
  write_file(dir / ("v" + GetParam()), o, 0);
  const VisibilityFile file = read_visibility_file(dir / ("v" + GetParam()));
  EXPECT_TRUE(file.dumps.empty());
  EXPECT_EQ(observation_to_json(file.observation), observation_to_json(o));
}

TEST_P(RoundTrip, MetadataKnownAtTheEndIsWritten) {
  const Scratch dir;
  Observation o = test::make_observation({});
  if (unavailable(dir / ("x" + GetParam()), o)) GTEST_SKIP() << "skipped: built without casacore";
  const std::string path = dir / ("v" + GetParam());
  auto writer = open_visibility_writer(path, o, false);
  writer->write(random_dump(o, 0));
  o.provenance.notes["loss_ppm"] = "4321";
  o.applied.input_rms_lsb.assign(o.array.inputs.size(), 9.5);
  writer->publish(o);
  const VisibilityFile file = read_visibility_file(path);
  EXPECT_EQ(file.observation.provenance.notes.at("loss_ppm"), "4321");
  EXPECT_EQ(file.observation.applied.input_rms_lsb.back(), 9.5);
  EXPECT_THROW(writer->write(random_dump(o, 1)), IoError);
}

/// What recovery finds of an unfinished product: its whole dumps, the first of those written.
void expect_recoverable(const Scratch& dir, const std::string& name, const Observation& o,
                        std::int64_t at_least, const std::string& where) {
  const auto done = recover(find_unfinished(dir.path()), {});
  ASSERT_EQ(done.size(), 1U) << where;
  ASSERT_EQ(done[0].outcome, Recovered::Outcome::published) << where << " " << done[0].message;
  EXPECT_GE(done[0].integrations, at_least) << where;
  EXPECT_THAT(dir.names(), testing::ElementsAre(name)) << where;
  const VisibilityFile file = read_visibility_file(dir / name);
  ASSERT_EQ(static_cast<std::int64_t>(file.dumps.size()), done[0].integrations) << where;
  for (std::size_t d = 0; d < file.dumps.size(); ++d)
    expect_equal_dumps(file.dumps[d], random_dump(o, static_cast<std::int64_t>(d)), where);
}

TEST_P(RoundTrip, UnpublishedWriterLeavesWhatIsWhole) {
  const Observation o = test::make_observation({});
  const Scratch empty;
  const std::string name = "v" + GetParam();
  if (unavailable(empty / ("x" + GetParam()), o)) GTEST_SKIP() << "skipped: built without casacore";
  { const auto writer = open_visibility_writer(empty / name, o, false); }
  EXPECT_THAT(empty.names(), testing::IsEmpty());
  const Scratch dir;
  {
    auto writer = open_visibility_writer(dir / name, o, false);
    writer->write(random_dump(o, 0));
  }
  EXPECT_FALSE(part_in_use(dir / name));
  expect_recoverable(dir, name, o, 1, GetParam());
}

TEST_P(RoundTrip, InjectedErrorsLeaveWhatIsWhole) {
  const Observation o = test::make_observation({});
  const std::string name = "v" + GetParam();
  for (const std::string failing : {"first write", "third write", "fsync", "rename"}) {
    const Scratch dir;
    if (unavailable(dir / ("x" + GetParam()), o)) GTEST_SKIP() << "skipped: built without casacore";
    int n_writes = 0;
    set_publish_fault_hook([&](std::string_view operation, const std::string&) {
      if (operation == "write") ++n_writes;
      const bool now = operation == "write" ? (failing == "first write" && n_writes == 1) ||
                                                  (failing == "third write" && n_writes == 3)
                                            : operation == failing;
      return now ? ENOSPC : 0;
    });
    std::string message;
    try {
      write_file(dir / name, o, 4);
      ADD_FAILURE() << failing;
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), ExitCode::io);
      message = error.what();
    }
    set_publish_fault_hook({});
    if (failing == "first write") {
      EXPECT_THAT(dir.names(), testing::IsEmpty());
      continue;
    }
    const int whole = failing == "third write" ? 2 : 4;
    EXPECT_THAT(message, testing::AllOf(testing::HasSubstr(std::to_string(whole) + " whole"),
                                        testing::HasSubstr("ryle recover")));
    EXPECT_FALSE(fs::exists(dir / name)) << failing;
    expect_recoverable(dir, name, o, whole, GetParam() + " " + failing);
  }
}

/// Writes dumps in a process of its own until the disk is full, and tells of each; returns how many
/// it told of. `run` sets the disk up in the child and says how it ends.
int full_disk_writer(const std::function<int(const std::function<void()>&)>& run) {
  int pipe_ends[2];
  EXPECT_EQ(::pipe(pipe_ends), 0);
  const pid_t child = ::fork();
  if (child == 0)
    ::_exit(run([&] {
      if (::write(pipe_ends[1], "x", 1) != 1) ::_exit(2);
    }));
  ::close(pipe_ends[1]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status)) << "killed by signal " << WTERMSIG(status);
  char byte = 0;
  int told = 0;
  while (::read(pipe_ends[0], &byte, 1) == 1) ++told;
  ::close(pipe_ends[0]);
  if (WEXITSTATUS(status) == kCannot_mount) return -1;
  EXPECT_EQ(WEXITSTATUS(status), static_cast<int>(ExitCode::io));
  return told;
}

TEST_P(RoundTrip, FullDiskAtAnyPointLeavesWhatIsWhole) {
  const Shape shape{8, 16, 2};
  const Observation o = test::make_observation(shape);
  const std::string name = "v" + GetParam();
  const Scratch probe;
  if (unavailable(probe / ("x" + GetParam()), o)) GTEST_SKIP() << "skipped: built without casacore";
  int maximum = 0;
  for (const rlim_t limit_bytes :
       {100, 5'000, 40'000, 90'000, 200'000, 201'000, 240'000, 300'000, 400'000, 600'000}) {
    const Scratch dir;
    const int told = full_disk_writer([&](const std::function<void()>& tell) {
      ::signal(SIGXFSZ, SIG_IGN);
      const rlimit limit{limit_bytes, limit_bytes};
      ::setrlimit(RLIMIT_FSIZE, &limit);
      return static_cast<int>(exit_code_of([&] {
        auto writer = open_visibility_writer(dir / name, o, false);
        for (int d = 0; d < 60; ++d) {
          writer->write(random_dump(o, d));
          tell();
        }
        writer->publish(o);
      }));
    });
    maximum = std::max(maximum, told);
    EXPECT_FALSE(fs::exists(dir / name)) << limit_bytes;
    if (told == 0) {
      EXPECT_THAT(dir.names(), testing::IsEmpty()) << limit_bytes;
    } else {
      expect_recoverable(dir, name, o, told, GetParam() + " " + std::to_string(limit_bytes));
    }
  }
  EXPECT_GE(maximum, 2);
}

// The disk fills up when all is written but what comes at the end: a product, or all of it stays.
TEST_P(RoundTrip, FullDiskAtTheEndLeavesWhatIsWhole) {
  const Observation o = test::make_observation({8, 16, 2});
  const std::string name = "v" + GetParam();
  const Scratch probe;
  if (unavailable(probe / ("x" + GetParam()), o)) GTEST_SKIP() << "skipped: built without casacore";
  std::uintmax_t largest = 0;  // of the files as they are before the end
  {
    auto writer = open_visibility_writer(probe / name, o, false);
    for (int d = 0; d < 3; ++d) writer->write(random_dump(o, d));
    for (const auto& entry : fs::recursive_directory_iterator(probe.path()))
      if (entry.is_regular_file()) largest = std::max(largest, entry.file_size());
  }
  int n_left = 0;
  for (const std::uintmax_t more : {0, 300, 3'000, 6'000, 20'000}) {
    const Scratch dir;
    const pid_t child = ::fork();
    if (child == 0) {
      ::signal(SIGXFSZ, SIG_IGN);
      ::_exit(static_cast<int>(exit_code_of([&] {
        auto writer = open_visibility_writer(dir / name, o, false);
        for (int d = 0; d < 3; ++d) writer->write(random_dump(o, d));
        const rlimit limit{largest + more, largest + more};
        ::setrlimit(RLIMIT_FSIZE, &limit);
        writer->publish(o);
      })));
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status)) << "killed by signal " << WTERMSIG(status) << " at " << more;
    const std::string where = GetParam() + " " + std::to_string(more);
    if (WEXITSTATUS(status) == 0) {
      EXPECT_EQ(read_visibility_file(dir / name).dumps.size(), 3U) << where;
      continue;
    }
    EXPECT_EQ(WEXITSTATUS(status), static_cast<int>(ExitCode::io)) << where;
    expect_recoverable(dir, name, o, 3, where);
    ++n_left;
  }
  RecordProperty("left" + GetParam().substr(1), n_left);
}

TEST_P(RoundTrip, SmallFileSystemFillsUpAndNothingWholeIsLost) {
  if (::geteuid() != 0) GTEST_SKIP() << "skipped: mounting a small file system needs root";
  const Observation o = test::make_observation({16, 32, 2});
  const VisibilityDump dump = random_dump(o, 0);
  const Scratch dir;
  if (unavailable(dir / ("x" + GetParam()), o)) GTEST_SKIP() << "skipped: built without casacore";
  for (const char* size : {"16k", "300k", "2m", "9m"}) {
    const int result = full_disk_writer([&](const std::function<void()>&) {
      // A mount namespace of its own: the file system ends with the child.
      if (::unshare(CLONE_NEWNS) != 0 ||
          ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
          ::mount("tmpfs", dir.path().c_str(), "tmpfs", 0, (std::string("size=") + size).c_str()) !=
              0) {
        return kCannot_mount;
      }
      // 136 baselines x 32 channels x 4 products x 13 bytes: 60 dumps of 0.23 MB fill each of them.
      // Written by a process of its own: what a library holds of a failed file dies with it.
      void* shared =
          ::mmap(nullptr, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
      auto* const n_told = static_cast<int*>(shared);
      const pid_t writing = ::fork();
      if (writing == 0) {
        ::_exit(static_cast<int>(exit_code_of([&] {
          auto writer = open_visibility_writer(dir / ("v" + GetParam()), o, false);
          for (int d = 0; d < 60; ++d, ++*n_told) writer->write(dump);
          writer->publish(o);
        })));
      }
      int ended = 0;
      ::waitpid(writing, &ended, 0);
      const int code = WIFEXITED(ended) ? WEXITSTATUS(ended) : 203;
      const int told = *n_told;
      if (told == 0) return dir.names().empty() ? code : 201;
      const auto found = recover(find_unfinished(dir.path()), {.write = false});
      const bool whole = found.size() == 1 && found[0].integrations >= told;
      if (!whole) {
        std::fprintf(stderr, "%s of %s: %d told, %zu found, %s\n", GetParam().c_str(), size, told,
                     found.size(), found.empty() ? "" : found[0].message.c_str());
      }
      return whole ? code : 202;
    });
    if (result < 0) GTEST_SKIP() << "skipped: this root may not mount";
  }
}

TEST_P(RoundTrip, KilledAtRandomInstantsLeavesOnlyWholeFiles) {
  const Observation o = test::make_observation({4, 3, 2});
  const Scratch dir;
  if (unavailable(dir / ("x" + GetParam()), o)) GTEST_SKIP() << "skipped: built without casacore";
  std::mt19937_64 random(11);
  for (int round = 0; round < 12; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (int k = 0;; ++k)
        write_file(dir / ("r" + std::to_string(round) + "_" + std::to_string(k) + GetParam()), o,
                   2);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5 + random() % 60));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  for (const std::string& name : dir.names()) {
    if (name.front() == '.') continue;
    const VisibilityFile file = read_visibility_file(dir / name);
    ASSERT_EQ(file.dumps.size(), 2U) << name;
    expect_equal_dumps(file.dumps[1], random_dump(o, 1), name);
  }
}

TEST_P(RoundTrip, ExistingNameNeedsOverwrite) {
  const Scratch dir;
  const Observation o = test::make_observation({});
  const std::string path = dir / ("v" + GetParam());
  if (unavailable(dir / ("x" + GetParam()), o)) GTEST_SKIP() << "skipped: built without casacore";
  write_file(path, o, 1);
  EXPECT_EQ(exit_code_of([&] { open_visibility_writer(path, o, false); }), ExitCode::cannot_create);
  auto writer = open_visibility_writer(path, o, true);
  writer->write(random_dump(o, 0));
  writer->write(random_dump(o, 1));
  EXPECT_EQ(read_visibility_file(path).dumps.size(),
            1U);  // the old one stands until the new one is whole
  writer->publish(o);
  EXPECT_EQ(read_visibility_file(path).dumps.size(), 2U);
}

TEST_P(RoundTrip, RelativeNamesWork) {
  const Scratch dir;
  const std::string suffix = GetParam();
  const Observation o = test::make_observation({});
  if (unavailable(dir / ("v" + suffix), o)) GTEST_SKIP() << "skipped: built without casacore";
  const fs::path before = fs::current_path();
  fs::current_path(dir.path());
  for (const std::string& name : {"v" + suffix, "./w" + suffix}) {
    EXPECT_NO_THROW(write_file(name, o, 2)) << name;
    EXPECT_NO_THROW(EXPECT_EQ(read_visibility_file(name).dumps.size(), 2u)) << name;
  }
  fs::current_path(before);
  EXPECT_THAT(dir.names(), testing::ElementsAre("v" + suffix, "w" + suffix));
}

TEST_P(RoundTrip, WrongShapesAreRejected) {
  const Scratch dir;
  const Observation o = test::make_observation({});
  const std::string path = dir / ("v" + GetParam());
  if (unavailable(dir / ("x" + GetParam()), o)) GTEST_SKIP() << "skipped: built without casacore";
  auto writer = open_visibility_writer(path, o, false);
  VisibilityDump dump = random_dump(o, 0);
  dump.n_channels -= 1;
  EXPECT_EQ(exit_code_of([&] { writer->write(dump); }), ExitCode::config);
  dump = random_dump(o, 0);
  dump.counts.pop_back();
  EXPECT_EQ(exit_code_of([&] { writer->write(dump); }), ExitCode::config);
  writer->write(random_dump(o, 0));  // a rejected dump does not spoil the file
  writer->publish(o);
  EXPECT_EQ(read_visibility_file(path).dumps.size(), 1U);
}

TEST_P(RoundTrip, TruncatedFilesAreRejected) {
  if (GetParam() == ".ms") GTEST_SKIP() << "skipped: an MS is a directory";
  const Scratch dir;
  const Observation o = test::make_observation({});
  const std::string path = dir / ("v" + GetParam());
  write_file(path, o, 3);
  const auto size = fs::file_size(path);
  for (const double part : {0.0, 0.01, 0.3, 0.6, 0.9}) {
    const std::string cut = dir / ("cut" + GetParam());
    fs::copy_file(path, cut, fs::copy_options::overwrite_existing);
    fs::resize_file(cut, static_cast<std::uintmax_t>(part * static_cast<double>(size)));
    EXPECT_EQ(exit_code_of([&] { read_visibility_file(cut); }), ExitCode::bad_data) << part;
  }
}

INSTANTIATE_TEST_SUITE_P(Format, RoundTrip, testing::ValuesIn(suffixes()),
                         [](const auto& info) { return info.param.substr(1); });

TEST(VisibilityFile, UnknownSuffixNamesTheKnownOnes) {
  const Observation o = test::make_observation({});
  try {
    open_visibility_writer("/tmp/vis.dat", o, false);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(),
                testing::AllOf(testing::HasSubstr(".ms"), testing::HasSubstr(".uvh5")));
  }
}

TEST(VisibilityFile, MissingFileIsNoInput) {
  for (const std::string& suffix : suffixes()) {
    EXPECT_EQ(exit_code_of([&] { read_visibility_file("/nonexistent/v" + suffix); }),
              ExitCode::no_input);
  }
}

TEST(VisibilityFile, DamagedDumpIsCaughtByItsChecksum) {
  const Scratch dir;
  const Observation o = test::make_observation({});
  const std::string path = dir / "v.uvh5";
  write_file(path, o, 2);
  const VisibilityDump dump = random_dump(o, 1);
  // Find the float of one value in the file and change its last bit: nothing else in HDF5 would
  // notice.
  std::string bytes = test::contents(path);
  std::size_t k = dump.data.size() - 1;
  while (dump.counts[k] == 0) --k;
  char needle[4];
  const float value = dump.data[k].real();
  std::memcpy(needle, &value, 4);
  const std::size_t at = bytes.find(std::string(needle, 4));
  ASSERT_NE(at, std::string::npos);
  bytes[at] = static_cast<char>(bytes[at] ^ 1);
  std::ofstream(path, std::ios::binary) << bytes;
  EXPECT_EQ(exit_code_of([&] { read_visibility_file(path); }), ExitCode::bad_data);
}

// One bit of nsamples, or one flag, of the second of two dumps: found by its own checksum.
TEST(VisibilityFile, DamagedWeightsAreCaughtByTheirChecksum) {
  const Observation o = test::make_observation({});
  const VisibilityDump dump = random_dump(o, 1);
  const auto order = io::aips_pol_order(dump.n_pol_products);
  std::vector<float> samples(dump.data.size());
  std::string flags(dump.data.size(), '\0');
  const double whole = static_cast<double>(dump.n_spectra);
  io::dump_to_rows(dump, dump.counts, order, samples.data(),
                   [whole](std::uint32_t c) { return static_cast<float>(c / whole); });
  io::dump_to_rows(dump, dump.counts, order, flags.data(),
                   [](std::uint32_t c) { return static_cast<char>(c == 0); });
  const std::string weights(reinterpret_cast<const char*>(samples.data()), 4 * samples.size());
  for (const std::string& needle : {weights, flags}) {
    const Scratch dir;
    const std::string path = dir / "v.uvh5";
    write_file(path, o, 2);
    std::string bytes = test::contents(path);
    const std::size_t at = bytes.find(needle);
    ASSERT_NE(at, std::string::npos);
    bytes[at + needle.size() / 2] = static_cast<char>(bytes[at + needle.size() / 2] ^ 1);
    std::ofstream(path, std::ios::binary) << bytes;
    try {
      read_visibility_file(path);
      ADD_FAILURE() << "not found";
    } catch (const FormatError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("weights_crc32c of dump 1"));
    }
  }
}

TEST(VisibilityFile, MoreThan255AntennasInUvfits) {
  const Scratch dir;
  const Observation o = test::make_observation({260, 1, 1});
  write_file(dir / "v.uvfits", o, 1);
  const VisibilityFile file = read_visibility_file(dir / "v.uvfits");
  ASSERT_EQ(file.dumps.size(), 1U);
  expect_equal_dumps(file.dumps[0], random_dump(o, 0), "260 antennas");
  // Our reader takes ANTENNA1 and ANTENNA2; others know the baseline code only (conventions.md 5).
  fitsfile* raw = nullptr;
  int status = 0;
  float code = 0;
  fits_open_diskfile(&raw, (dir / "v.uvfits").c_str(), READONLY, &status);
  fits_read_grppar_flt(raw, n_pairs(260), 6, 1, &code, &status);
  fits_close_file(raw, &status);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(code, 2048.0F * 260 + 260 + 65536);
}

TEST(VisibilityFile, WritesAnMwaSecondsWorthFast) {
  const Scratch dir;
  const Observation o = test::make_observation({32, 128, 2});
  const VisibilityDump dump = random_dump(o, 0);
  for (const std::string& suffix : suffixes()) {
    if (unavailable(dir / ("x" + suffix), o)) continue;
    auto writer = open_visibility_writer(dir / ("v" + suffix), o, false);
    const std::clock_t begin = std::clock();  // of this process: others may have the machine
    for (int d = 0; d < 10; ++d) writer->write(dump);
    writer->publish(o);
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    RecordProperty("seconds" + suffix.substr(1), std::to_string(seconds));
    // 528 baselines x 128 channels x 4 products x 10 dumps; 0.1 s of a core, 10 s means
    // something is quadratic.
    EXPECT_LT(seconds, 10) << suffix;
  }
}

// ---- files of others: geometry must come out right whatever their convention
// ---------------------------------------

double slope_noted(const VisibilityFile& file) {
  const std::string note = file.observation.provenance.notes.at("uvw");
  return std::stod(note.substr(note.find("slope ") + 6));
}

TEST(ForeignFile, MwaUvfits) {
  RYLE_REQUIRE_DATA(path, "vis/pyuvdata/1133866760.uvfits");
  const VisibilityFile file = read_visibility_file(path);
  EXPECT_EQ(file.observation.array.n_antennas(), 105);
  EXPECT_EQ(file.observation.frequency.n_channels, 11);
  EXPECT_DOUBLE_EQ(file.observation.frequency.first_center_hz, 153.875e6);
  ASSERT_EQ(file.dumps.size(), 1U);
  EXPECT_EQ(utc_iso(file.dumps[0].centroid_tai_ns, 0).substr(0, 16), "2015-12-11T10:59");
  EXPECT_NEAR(slope_noted(file), 1.0, 0.001);  // r_1 - r_2, conventions.md 5
}

TEST(ForeignFile, OvroMeasurementSetHasTheOtherDirection) {
  RYLE_REQUIRE_DATA(path,
                    "vis/pyuvdata/2018-03-21-01_26_33_0004384620257280_000000_downselected.ms");
  VisibilityFile file;
  try {
    file = read_visibility_file(path);
  } catch (const UnsupportedError&) {
    GTEST_SKIP() << "skipped: built without casacore";
  }
  EXPECT_EQ(file.observation.array.n_antennas(), 20);
  EXPECT_EQ(file.observation.frequency.n_channels, 109);
  ASSERT_EQ(file.dumps.size(), 1U);
  EXPECT_LT(slope_noted(file), -0.99);
  VisibilityReadOptions as_stored;
  as_stored.conjugate = Conjugate::no;
  const VisibilityFile raw = read_visibility_file(path, as_stored);
  const auto k = static_cast<std::size_t>(file.dumps[0].index(3, pair_index(0, 1), 0));
  EXPECT_NE(raw.dumps[0].data[k], cf32(0));
  EXPECT_EQ(file.dumps[0].data[k], std::conj(raw.dumps[0].data[k]));
}

TEST(ForeignFile, HeraUvh5WithCompressedFlags) {
  RYLE_REQUIRE_DATA(path, "vis/pyuvdata/zen.2458661.23480.HH.uvh5");
  const VisibilityFile file = read_visibility_file(path);
  EXPECT_EQ(file.dumps.size(), 20U);
  EXPECT_EQ(file.observation.array.n_antennas(), 4);
  EXPECT_LT(slope_noted(file), -0.99);  // r_j - r_i
  // LZF: none of the 1600 values of XX and YY is flagged in the file, and nothing is guessed.
  std::int64_t flagged = 0;
  for (const VisibilityDump& dump : file.dumps) {
    for (std::int64_t c = 0; c < dump.n_channels; ++c) {
      for (std::int64_t b = 0; b < dump.n_baselines; ++b) {
        for (const std::int64_t p : {0, 3})
          flagged += dump.counts[static_cast<std::size_t>(dump.index(c, b, p))] == 0;
      }
    }
  }
  EXPECT_EQ(flagged, 0);
  EXPECT_FALSE(file.observation.provenance.notes.contains("flags"));
}

TEST(ForeignFile, OtherUvfits) {
  RYLE_REQUIRE_DATA(mwa, "vis/pyuvdata/1061316296.uvfits");
  EXPECT_NEAR(slope_noted(read_visibility_file(mwa)), 1.0, 0.001);
  RYLE_REQUIRE_DATA(cotter, "vis/pyuvdata/1131733552_mini_cotter.uvfits");
  EXPECT_NEAR(slope_noted(read_visibility_file(cotter)), 1.0, 0.001);
}

}  // namespace
}  // namespace ryle
