// SPDX-License-Identifier: BSD-3-Clause
// T-FI-05: what a killed writer leaves is recovered to the last whole integration, and no further.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <thread>

#include "ryle/io/base/publish.hpp"
#include "ryle/io/beam/sigproc.hpp"
#include "ryle/io/recover/unfinished.hpp"
#include "ryle/io/visibility/visibility_file.hpp"
#include "tests/io/scratch.hpp"
#include "tests/io/simulated_sky.hpp"

namespace ryle {
namespace {

namespace fs = std::filesystem;
using test::Scratch;
using Outcome = Recovered::Outcome;

VisibilityDump random_dump(const Observation& o, std::int64_t index) {
  VisibilityDump dump = test::make_dump(o, {}, index);
  std::mt19937_64 random(static_cast<std::uint64_t>(index) + 31);
  std::normal_distribution<float> normal;
  for (std::size_t k = 0; k < dump.data.size(); ++k) {
    dump.counts[k] = random() % 7 == 0 ? 0 : static_cast<std::uint32_t>(random() % 50000 + 1);
    dump.data[k] = dump.counts[k] == 0 ? cf32(0) : cf32(normal(random), normal(random));
  }
  return dump;
}

Observation observation() {
  Observation o = test::make_observation({});
  o.applied.gains.assign(o.array.inputs.size() * 4, cf64(0.5, -1.25));
  o.applied.delay_s.assign(o.array.inputs.size(), 1e-9 / 3);
  return o;
}

/// A process of its own opens `paths`, writes to all of them dump by dump, tells after each, and is
/// killed: by itself after `n_dumps`, or from outside after `after`. Returns the dumps it told of.
int killed_writer(const std::vector<std::string>& paths, int n_dumps,
                  std::chrono::microseconds after = std::chrono::seconds(60)) {
  int pipe_ends[2];
  EXPECT_EQ(::pipe(pipe_ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const Observation o = observation();
    std::vector<std::unique_ptr<VisibilityWriter>> writers;
    for (const auto& path : paths) writers.push_back(open_visibility_writer(path, o, false));
    for (int d = 0; d < n_dumps; ++d) {
      for (const auto& writer : writers) writer->write(random_dump(o, d));
      if (::write(pipe_ends[1], "x", 1) != 1) ::_exit(2);
    }
    ::raise(SIGKILL);
  }
  ::close(pipe_ends[1]);
  if (after < std::chrono::seconds(60)) {
    std::this_thread::sleep_for(after);
    ::kill(child, SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  char byte = 0;
  int told = 0;
  while (::read(pipe_ends[0], &byte, 1) == 1) ++told;
  ::close(pipe_ends[0]);
  return told;
}

void expect_dumps(const std::string& path, std::int64_t n) {
  const VisibilityFile file = read_visibility_file(path);
  ASSERT_EQ(static_cast<std::int64_t>(file.dumps.size()), n) << path;
  for (std::int64_t d = 0; d < n; ++d) {
    const VisibilityDump want = random_dump(file.observation, d);
    const VisibilityDump& got = file.dumps[static_cast<std::size_t>(d)];
    EXPECT_EQ(got.start_tai_ns, want.start_tai_ns) << path;
    EXPECT_EQ(got.interval_s, want.interval_s) << path;
    EXPECT_EQ(got.n_spectra, want.n_spectra) << path;
    EXPECT_TRUE(got.counts == want.counts) << path << " " << d;
    EXPECT_TRUE(got.data == want.data) << path << " " << d;
  }
  EXPECT_EQ(file.observation.applied.gains, observation().applied.gains) << path;
  EXPECT_EQ(file.observation.applied.delay_s, observation().applied.delay_s) << path;
  EXPECT_THAT(file.observation.provenance.notes.at("recovered"), testing::HasSubstr("killed"));
}

bool without_casacore(const std::string& suffix) {
  const Scratch dir;
  try {
    open_visibility_writer(dir / ("x" + suffix), observation(), false);
    return false;
  } catch (const UnsupportedError&) {
    return true;
  }
}

struct Unfinished_ : testing::TestWithParam<std::string> {
  void SetUp() override {
    if (without_casacore(GetParam())) GTEST_SKIP() << "skipped: built without casacore";
  }
};

TEST_P(Unfinished_, WholeIntegrationsOfAKilledWriterArePublished) {
  const Scratch dir;
  const std::string path = dir / ("v" + GetParam());
  ASSERT_EQ(killed_writer({path}, 3), 3);
  const auto found = find_unfinished(dir.path());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].path, part_path(path));
  EXPECT_EQ(found[0].final_path, path);
  EXPECT_FALSE(found[0].in_use);
  EXPECT_GT(found[0].bytes, 3 * 36 * 16 * 8);
  const auto looked = recover(found, {.write = false});
  EXPECT_EQ(looked[0].outcome, Outcome::whole);
  EXPECT_EQ(looked[0].integrations, 3);
  EXPECT_FALSE(fs::exists(path));
  const auto done = recover(found, {});
  ASSERT_EQ(done[0].outcome, Outcome::published) << done[0].message;
  EXPECT_EQ(done[0].product, path);
  EXPECT_TRUE(done[0].removed);
  EXPECT_THAT(dir.names(), testing::ElementsAre("v" + GetParam()));
  expect_dumps(path, 3);
}

// Every dump the writer told of comes back, at most the one under way more, none wrong. casacore
// cannot open a set killed within a flush: then nothing is published and nothing removed.
TEST_P(Unfinished_, KilledAtAnyMomentNothingWholeIsLost) {
  std::mt19937 random(5);
  for (int k = 0; k < 8; ++k) {
    const Scratch dir;
    const std::string path = dir / ("v" + GetParam());
    const int told =
        killed_writer({path}, 1000, std::chrono::microseconds(5000 + random() % 60000));
    const auto done = recover(find_unfinished(dir.path()), {});
    if (done.empty()) continue;  // killed before it opened the file
    if (told == 0 && done[0].outcome != Outcome::published) continue;
    if (GetParam() == ".ms" && done[0].outcome == Outcome::lost) {
      EXPECT_THAT(done[0].message, testing::HasSubstr("cannot read the unfinished"));
      EXPECT_TRUE(fs::exists(done[0].source.path));
      continue;
    }
    ASSERT_EQ(done[0].outcome, Outcome::published) << done[0].message;
    EXPECT_GE(done[0].integrations, told);
    EXPECT_LE(done[0].integrations, told + 1);
    expect_dumps(path, done[0].integrations);
  }
}

// Bytes of the second of three dumps are changed: only the first is published.
TEST_P(Unfinished_, ADamagedDumpEndsWhatIsPublished) {
  const Scratch dir;
  const std::string path = dir / ("v" + GetParam());
  killed_writer({path}, 3);
  const VisibilityDump second = random_dump(observation(), 1);
  std::size_t at = 0;
  while (second.counts[at] == 0) ++at;
  char bytes[4];
  const float real = second.data[at].real();
  std::memcpy(bytes, &real, 4);
  if (GetParam() == ".uvfits") std::reverse(bytes, bytes + 4);  // FITS is big-endian
  std::vector<fs::path> files;
  if (fs::is_directory(part_path(path))) {
    for (const auto& e : fs::recursive_directory_iterator(part_path(path)))
      if (e.is_regular_file()) files.push_back(e.path());
  } else {
    files.emplace_back(part_path(path));
  }
  int changed = 0;
  for (const auto& file : files) {
    std::string text = test::contents(file.string());
    const std::size_t place = text.find(std::string(bytes, 4));
    if (place == std::string::npos) continue;
    text[place] = static_cast<char>(text[place] ^ 1);
    std::ofstream(file, std::ios::binary) << text;
    ++changed;
  }
  ASSERT_EQ(changed, 1);
  const auto done = recover(find_unfinished(dir.path()), {});
  ASSERT_EQ(done[0].outcome, Outcome::published) << done[0].message;
  expect_dumps(path, 1);
}

// The same of a weight: a count of the second dump.
TEST(Unfinished, ADamagedWeightEndsWhatIsPublished) {
  const Scratch dir;
  const std::string path = dir / "v.uvh5";
  killed_writer({path}, 3);
  std::string text = test::contents(part_path(path));
  const VisibilityDump second = random_dump(observation(), 1);
  std::size_t at = std::string::npos;
  for (std::size_t k = 0; at == std::string::npos; ++k) {
    ASSERT_LT(k, second.counts.size());
    const auto sample =
        static_cast<float>(second.counts[k] / static_cast<double>(second.n_spectra));
    const std::string bytes(reinterpret_cast<const char*>(&sample), 4);
    const std::size_t place = text.find(bytes);
    if (second.counts[k] != 0 && text.find(bytes, place + 1) == std::string::npos) at = place;
  }
  text[at] = static_cast<char>(text[at] ^ 1);
  std::ofstream(part_path(path), std::ios::binary) << text;
  const auto done = recover(find_unfinished(dir.path()), {});
  ASSERT_EQ(done[0].outcome, Outcome::published) << done[0].message;
  expect_dumps(path, 1);
}

TEST_P(Unfinished_, ALivingWriterIsLeftAlone) {
  const Scratch dir;
  const std::string path = dir / ("v" + GetParam());
  const Observation o = observation();
  auto writer = open_visibility_writer(path, o, false);
  writer->write(random_dump(o, 0));
  const auto found = find_unfinished(path);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].in_use);
  EXPECT_EQ(recover(found, {.remove = true})[0].outcome, Outcome::in_use);
  writer->publish(o);
  EXPECT_EQ(read_visibility_file(path).dumps.size(), 1u);
}

// The next run under the same name must not cost what the killed one had.
TEST_P(Unfinished_, ALaterRunOfTheSameNameKeepsThemAside) {
  const Scratch dir;
  const std::string path = dir / ("v" + GetParam());
  killed_writer({path}, 2);
  const Observation o = observation();
  auto writer = open_visibility_writer(path, o, false);
  writer->write(random_dump(o, 7));
  writer->publish(o);
  const auto done = recover(find_unfinished(path), {});
  ASSERT_EQ(done.size(), 1u);
  ASSERT_EQ(done[0].outcome, Outcome::published) << done[0].message;
  EXPECT_EQ(done[0].product, dir / ("v_recovered" + GetParam()));
  expect_dumps(done[0].product, 2);
  EXPECT_EQ(read_visibility_file(path).dumps[0].start_tai_ns, random_dump(o, 7).start_tai_ns);
  EXPECT_THAT(dir.names(), testing::ElementsAre("v" + GetParam(), "v_recovered" + GetParam()));
}

// A full disk while the recovered product is written: what was recoverable stays, --delete or not.
TEST_P(Unfinished_, NothingReadableIsDeletedWhenPublishingFails) {
  const Scratch dir;
  const std::string path = dir / ("v" + GetParam());
  killed_writer({path}, 2);
  set_publish_fault_hook([](std::string_view operation, const std::string&) {
    return operation == "write" ? ENOSPC : 0;
  });
  const auto failed = recover(find_unfinished(path), {.remove = true});
  set_publish_fault_hook({});
  EXPECT_EQ(failed[0].outcome, Outcome::failed);
  EXPECT_FALSE(failed[0].removed);
  EXPECT_TRUE(fs::exists(failed[0].source.path)) << failed[0].source.path;
  const auto done = recover(find_unfinished(path), {});
  ASSERT_EQ(done.size(), 1u);
  ASSERT_EQ(done[0].outcome, Outcome::published) << done[0].message;
  expect_dumps(path, 2);
}

/// Another process writes the product: the lock is held through a descriptor of its own.
class Locked {
 public:
  explicit Locked(const std::string& final_path)
      : fd_(::open((part_path(final_path) + ".lock").c_str(), O_CREAT | O_RDWR, 0644)) {
    EXPECT_EQ(::flock(fd_, LOCK_EX | LOCK_NB), 0);
  }
  ~Locked() { ::close(fd_); }

 private:
  int fd_;
};

TEST(Unfinished, AnOldOneIsRecoveredBesideALiveRunOfItsName) {
  const Scratch dir;
  const std::string path = dir / "v.uvh5";
  killed_writer({path}, 2);
  fs::rename(part_path(path), dir / ".v.uvh5.dead");
  const Locked live(path);
  const auto done = recover(find_unfinished(path), {.remove = true});
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].outcome, Outcome::published) << done[0].message;
  expect_dumps(dir / "v_recovered.uvh5", 2);
}

// Between the search and the recovery a run began to write one of them: the others go on.
TEST(Unfinished, OneInUseDoesNotEndTheRecovery) {
  const Scratch dir;
  killed_writer({dir / "a.uvfits", dir / "b.uvh5"}, 2);
  const auto found = find_unfinished(dir.path());
  const Locked live(dir / "a.uvfits");
  const auto done = recover(found, {.remove = true});
  ASSERT_EQ(done.size(), 2u);
  EXPECT_FALSE(done[0].removed);
  EXPECT_TRUE(fs::exists(part_path(dir / "a.uvfits")));
  EXPECT_EQ(done[1].outcome, Outcome::published) << done[1].message;
}

INSTANTIATE_TEST_SUITE_P(Formats, Unfinished_, testing::Values(".uvh5", ".uvfits", ".ms"),
                         [](const auto& info) { return info.param.substr(1); });

// Its journal is a file beside it: without, the UVH5 file of the run is what is left.
TEST(Unfinished, UvfitsWithoutItsJournalIsMadeAgainFromUvh5OrNotAtAll) {
  const Scratch dir;
  killed_writer({dir / "a.uvfits", dir / "a.uvh5", dir / "b.uvfits"}, 2);
  for (const char* name : {"a.uvfits", "b.uvfits"}) fs::remove(journal_of(part_path(dir / name)));
  const auto done = recover(find_unfinished(dir.path()), {});
  ASSERT_EQ(done.size(), 3u);
  EXPECT_EQ(done[0].outcome, Outcome::published) << done[0].message;
  EXPECT_EQ(done[1].outcome, Outcome::published) << done[1].message;
  EXPECT_THAT(done[1].message, testing::HasSubstr("a.uvh5"));
  EXPECT_EQ(done[2].outcome, Outcome::lost);
  EXPECT_THAT(done[2].message, testing::HasSubstr("UVFITS"));
  EXPECT_FALSE(done[2].removed);
  EXPECT_TRUE(fs::exists(part_path(dir / "b.uvfits")));
  const VisibilityFile file = read_visibility_file(dir / "a.uvfits");
  ASSERT_EQ(file.dumps.size(), 2u);
  EXPECT_TRUE(file.dumps[1].data == random_dump(observation(), 1).data);
  recover(find_unfinished(dir / "b.uvfits"), {.remove = true});
  EXPECT_THAT(dir.names(), testing::ElementsAre(".a.uvfits.dead", "a.uvfits", "a.uvh5"));
}

// Two killed runs of one name: nothing of one is renamed, replaced or made again by the other.
TEST(Unfinished, TwoKilledRunsOfOneNameAreKeptApart) {
  const Scratch dir;
  const std::string path = dir / "v.uvh5";
  killed_writer({path}, 2);
  killed_writer({path, dir / "v.uvfits"}, 3);
  const auto done = recover(find_unfinished(dir.path()), {});
  ASSERT_EQ(done.size(), 3u);
  for (const auto& r : done) EXPECT_EQ(r.outcome, Outcome::published) << r.message;
  expect_dumps(dir / "v.uvh5", 3);
  expect_dumps(dir / "v_recovered.uvh5", 2);
  expect_dumps(dir / "v.uvfits", 3);
  EXPECT_TRUE(done[2].removed);
  EXPECT_EQ(dir.names().size(), 3u);
}

// A name that an unfinished file waits for is not taken for another one.
TEST(Unfinished, ARecoveredNameWithAnUnfinishedOneIsNotTaken) {
  const Scratch dir;
  killed_writer({dir / "v.uvh5", dir / "v_recovered.uvh5"}, 2);
  std::ofstream(dir / "v.uvh5") << "taken";
  const auto done = recover(find_unfinished(dir.path()), {});
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].product, dir / "v_recovered2.uvh5");
  EXPECT_EQ(done[1].outcome, Outcome::published) << done[1].message;
  EXPECT_EQ(done[1].product, dir / "v_recovered.uvh5");
}

// A damaged line of the journal costs the dumps from there on; a NaN among the metadata costs
// nothing.
TEST(Unfinished, ADamagedJournalKeepsWhatIsBefore) {
  if (without_casacore(".ms")) GTEST_SKIP() << "skipped: built without casacore";
  const Scratch dir;
  const std::string path = dir / "v.ms";
  killed_writer({path}, 3);
  const std::string journal = part_path(path) + "/ryle_journal.jsonl";
  std::string text = test::contents(journal);
  const std::size_t delay = text.find("\"delay_s\":[") + 11;
  text.replace(delay, text.find_first_of(",]", delay) - delay, "null");
  const std::size_t third = text.rfind('\n', text.size() - 2) + 1;
  text[third] = '#';
  std::ofstream(journal, std::ios::binary) << text;
  const auto done = recover(find_unfinished(path), {});
  ASSERT_EQ(done[0].outcome, Outcome::published) << done[0].message;
  const VisibilityFile file = read_visibility_file(path);
  EXPECT_EQ(file.dumps.size(), 2u);
  EXPECT_TRUE(std::isnan(file.observation.applied.delay_s.at(0)));
}

// A build without casacore can say nothing of a Measurement Set: it leaves it alone, --delete or
// not. With casacore the test tells recover() that it has none.
TEST(Unfinished, ASetThisBuildCannotReadIsLeftAlone) {
  const Scratch dir;
  std::vector<std::string> paths{dir / "v.uvh5"};
  if (without_casacore(".ms")) {
    fs::create_directory(part_path(dir / "v.ms"));  // as another build left it
    std::ofstream(part_path(dir / "v.ms") + "/table.dat") << "tables";
  } else {
    paths.push_back(dir / "v.ms");
  }
  killed_writer(paths, 2);
  const RecoverOptions options{.remove = true, .measurement_sets = false};
  const auto done = recover(find_unfinished(dir.path()), options);
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].outcome, Outcome::published) << done[0].message;
  EXPECT_EQ(done[1].outcome, Outcome::not_judged);
  EXPECT_THAT(done[1].message, testing::HasSubstr("casacore"));
  EXPECT_FALSE(done[1].removed);
  EXPECT_TRUE(done[1].product.empty());
  EXPECT_TRUE(fs::exists(part_path(dir / "v.ms")));
  EXPECT_FALSE(fs::exists(dir / "v.ms"));
  if (without_casacore(".ms")) return;
  EXPECT_EQ(recover(find_unfinished(dir.path()), {})[0].outcome, Outcome::published);
  expect_dumps(dir / "v.ms", 2);
}

TEST(Unfinished, WhatIsGoneHasNoBytes) {
  const Scratch dir;
  fs::create_symlink("nowhere", dir / ".v.uvh5.part");
  EXPECT_EQ(find_unfinished(dir.path()).at(0).bytes, 0);
}

// What the file says of itself does not fit what is in it: rejected before anything is allocated.
TEST(Unfinished, AShapeThatDoesNotFitIsRejected) {
  for (const char* lie : {"\"n_channels\":1", "\"n_channels\":0", "\"n_channels\":9"}) {
    const Scratch dir;
    const std::string path = dir / "v.uvh5";
    killed_writer({path}, 2);
    std::string text = test::contents(part_path(path));
    const std::string truth = "\"n_channels\":4";
    const std::size_t at = text.find(truth);
    ASSERT_NE(at, std::string::npos);
    text.replace(at, truth.size(), lie);
    std::ofstream(part_path(path), std::ios::binary) << text;
    const auto done = recover(find_unfinished(path), {});
    EXPECT_EQ(done[0].outcome, Outcome::lost) << lie;
    EXPECT_FALSE(fs::exists(path));
    EXPECT_TRUE(fs::exists(part_path(path)));
  }
}

TEST(Unfinished, EmptyAndUnreadableOnesAreNamed) {
  const Scratch dir;
  killed_writer({dir / "e.uvh5"}, 0);
  std::ofstream(dir / ".junk.uvh5.part") << "not HDF5";
  std::ofstream(dir / ".sky.png.part") << "half a picture";
  std::ofstream(dir / ".other") << "not ours";
  const auto done = recover(find_unfinished(dir.path()), {});
  ASSERT_EQ(done.size(), 3u);
  EXPECT_EQ(done[0].outcome, Outcome::nothing) << done[0].message;
  EXPECT_EQ(done[1].outcome, Outcome::lost);
  EXPECT_EQ(done[2].outcome, Outcome::lost);
  recover(find_unfinished(dir.path()), {.remove = true});
  EXPECT_THAT(dir.names(), testing::ElementsAre(".other"));
  EXPECT_EQ(test::exit_code_of([&] { find_unfinished(dir / "none.uvh5"); }), ExitCode::no_input);
  EXPECT_EQ(test::exit_code_of([&] { find_unfinished("/nonexistent/place"); }), ExitCode::no_input);
}

// Live beams: the header is written first, so that every whole spectrum can be had.
TEST(Unfinished, AFilterbankKeepsItsWholeSpectra) {
  const Scratch dir;
  FilterbankInfo info;
  info.n_channels = 16;
  for (int c = 0; c < 16; ++c) info.channel_center_hz.push_back(400e6 + c * 1e6);
  info.channel_width_hz = 1e6;
  info.sample_interval_s = 1e-3;
  info.bits = 8;
  const std::string path = dir / "beam.fil";
  const pid_t child = ::fork();
  if (child == 0) {
    SigprocWriter writer(path, info);
    std::vector<std::uint8_t> codes(16 * 100);
    for (std::size_t k = 0; k < codes.size(); ++k) codes[k] = static_cast<std::uint8_t>(k % 251);
    writer.append(codes.data(), 100, 100);
    ::_exit(0);  // as a kill: nobody finishes the file
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  std::ofstream(part_path(path), std::ios::app) << "half";  // of a spectrum
  EXPECT_EQ(recover(find_unfinished(dir.path()), {.write = false})[0].integrations, 100);
  { const SigprocWriter again(path, info); }  // a later run of the same name puts it aside
  EXPECT_THAT(dir.names(), testing::ElementsAre(".beam.fil.dead"));
  const auto done = recover(find_unfinished(dir.path()), {.remove = true});
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].outcome, Outcome::published) << done[0].message;
  EXPECT_EQ(done[0].unit, "spectrum");
  EXPECT_THAT(dir.names(), testing::ElementsAre("beam.fil"));
  const auto file = open_filterbank(path, {});
  EXPECT_EQ(file->info().n_samples, 100);
  std::ofstream(dir / ".junk.fil.part") << "no header";
  EXPECT_EQ(recover(find_unfinished(dir.path()), {})[0].outcome, Outcome::lost);
}

}  // namespace
}  // namespace ryle
