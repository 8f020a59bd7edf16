// SPDX-License-Identifier: BSD-3-Clause
// A run in pieces is the run in one piece, to the bit.
#include <cmath>
#include <fstream>
#include <functional>
#include <limits>

#include "ryle/core/error.hpp"
#include "ryle/core/interrupt.hpp"
#include "ryle/core/units.hpp"
#include "ryle/pipeline/grid/grid_state.hpp"
#include "tests/pipeline/grid/scans_support.hpp"

namespace ryle::pipeline {
namespace {

constexpr std::int64_t kPieceSamples = 700;

/// Three channels with noise; in the middle one values are absent here and there.
Scans scans_with_gaps() {
  Scans s = some_scans();
  std::mt19937 random(9);
  std::normal_distribution<float> noise;
  for (float& v : s.values) v += noise(random);
  for (std::size_t k = 0; k < s.lon.size(); k += 97)
    s.values[3 * k + 1] = k % 2 == 0 ? std::numeric_limits<float>::quiet_NaN()
                                     : std::numeric_limits<float>::infinity();
  s.lat[5] = 95;
  return s;
}

Scans some_of(const Scans& s, std::size_t first, std::size_t last) {
  const auto at = [](std::size_t k) { return static_cast<std::ptrdiff_t>(k); };
  return {{s.lon.begin() + at(first), s.lon.begin() + at(last)},
          {s.lat.begin() + at(first), s.lat.begin() + at(last)},
          {s.values.begin() + at(3 * first), s.values.begin() + at(3 * last)}};
}

struct Maps {
  std::vector<float> value, weight, count, noise;
  std::vector<long> weight_shape;
};
Maps read_maps(const Scratch& scratch, const std::string& name) {
  Maps m;
  std::vector<long> shape;
  m.value = read_cube(scratch.file(name + ".fits"), shape);
  m.weight = read_cube(scratch.file(name + ".weight.fits"), m.weight_shape);
  m.count = read_cube(scratch.file(name + ".count.fits"), shape);
  m.noise = read_cube(scratch.file(name + ".noise.fits"), shape);
  return m;
}
void expect_same_maps(const Maps& a, const Maps& b, const std::string& what) {
  expect_same_bits(a.value, b.value, what + ", values");
  expect_same_bits(a.weight, b.weight, what + ", weights");
  expect_same_bits(a.count, b.count, what + ", counts");
  expect_same_bits(a.noise, b.noise, what + ", noise");
}

class GridParts : public testing::Test {
 protected:
  GridParts() : scans_(scans_with_gaps()), file_(write_scans(scratch_, scans_)) {}
  GridOptions options(const std::string& name) const {
    GridOptions o = options_of(scratch_, file_);
    o.output = name.empty() ? "" : scratch_.file(name + ".fits");
    o.target = "center=120,-5 size=1x1deg cell=3arcmin proj=SIN";
    o.block_samples = kPieceSamples;
    o.noise = true;
    return o;
  }
  GridMergeOptions merge(const std::vector<std::string>& files) const {
    GridMergeOptions m;
    for (const auto& f : files) m.files.push_back(scratch_.file(f));
    m.output = scratch_.file("merged.fits");
    m.noise = m.overwrite = true;
    return m;
  }
  std::string write(const std::string& name, const Scans& s) const {
    const std::string made = write_scans(scratch_, s), path = scratch_.file(name);
    std::filesystem::rename(made, path);
    return path;
  }
  Scratch scratch_;
  Scans scans_;
  std::string file_;
};

std::string message_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}
void expect_part(const std::string& message, const std::string& part) {
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

std::string history_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string header(28'800, ' '), text;
  in.read(header.data(), static_cast<std::streamsize>(header.size()));
  for (std::size_t k = 0; k + 80 <= header.size(); k += 80)
    if (header.compare(k, 8, "HISTORY ") == 0) text += header.substr(k + 8, 72);
  return text;
}

TEST_F(GridParts, PartsOfChannelsAndWorkersChangeNothing) {
  GridOptions o = options("whole");
  const GridSummary s = grid_scans(o);
  EXPECT_EQ(s.plan.n_blocks, 6);
  EXPECT_EQ(s.blocks_done, 6);
  EXPECT_EQ(s.bad_positions, 1);
  EXPECT_EQ(s.absent.nan_value, 21);
  EXPECT_EQ(s.absent.inf_value, 21);
  const Maps whole = read_maps(scratch_, "whole");
  EXPECT_EQ(whole.weight_shape[2], 3) << "a channel has weights of its own";
  // One block is another order of sums, but the same samples.
  GridOptions once = options("once");
  once.block_samples = kGridBlockSamples;
  grid_scans(once);
  const Maps at_once = read_maps(scratch_, "once");
  expect_same_bits(whole.count, at_once.count, "counts of blocks");
  for (std::size_t i = 0; i < whole.value.size(); ++i)
    ASSERT_TRUE(std::isnan(whole.value[i]) ? std::isnan(at_once.value[i])
                                           : std::abs(whole.value[i] - at_once.value[i]) < 1e-4);
  o.output = scratch_.file("parts.fits");
  o.memory_bytes = limit_for(o, 2);
  for (int workers : {1, 3}) {
    o.n_workers = workers;
    EXPECT_EQ(grid_scans(o).blocks_done, 12);
    expect_same_maps(read_maps(scratch_, "parts"), whole, std::to_string(workers) + " workers");
  }
}

TEST_F(GridParts, PartsOfChosenChannelsAreThoseOfAll) {
  GridOptions o = options("all");
  grid_scans(o);
  const Maps all = read_maps(scratch_, "all");
  const auto plane = static_cast<std::ptrdiff_t>(all.value.size() / 3);
  o.output = scratch_.file("chosen.fits");
  o.channels = "1:3";
  o.memory_bytes = limit_for(o, 1);
  for (const bool checkpoint : {false, true}) {
    SCOPED_TRACE(checkpoint);
    if (checkpoint) o.checkpoint = scratch_.file("chosen.rgrid");
    const GridSummary s = grid_scans(o);
    EXPECT_EQ(s.n_channels, 2);
    EXPECT_EQ(s.plan.n_parts, 2);
    const Maps chosen = read_maps(scratch_, "chosen");
    expect_same_bits(chosen.value, {all.value.begin() + plane, all.value.end()}, "values");
    expect_same_bits(chosen.count, {all.count.begin() + plane, all.count.end()}, "counts");
    expect_same_bits(chosen.weight, {all.weight.begin() + plane, all.weight.end()}, "weights");
  }
}

TEST_F(GridParts, WeightsThatAllChannelsShareStandOnce) {
  for (float& v : scans_.values)
    if (!std::isfinite(v)) v = 1;
  file_ = write_scans(scratch_, scans_);
  GridOptions o = options("whole");
  grid_scans(o);
  EXPECT_EQ(read_maps(scratch_, "whole").weight_shape[2], 1);
  o.memory_bytes = limit_for(o, 1);
  grid_scans(o);
  EXPECT_EQ(read_maps(scratch_, "whole").weight_shape[2], 1) << "however the run was cut";
}

TEST_F(GridParts, AResumedRunIsTheRun) {
  grid_scans(options("whole"));
  const Maps whole = read_maps(scratch_, "whole");
  GridOptions o = options("resumed");
  o.memory_bytes = limit_for(o, 2);
  o.checkpoint = scratch_.file("resumed.rgrid");
  o.checkpoint_interval_s = 0;
  std::atomic<int> stop{0};
  int steps = 0;
  o.stop = &stop;
  set_interrupt_count(&stop);  // the file of sums is read again after the signal
  o.on_progress = [&](const GridProgress&) { stop = ++steps >= 4 ? 1 : 0; };
  GridSummary s = grid_scans(o);
  EXPECT_TRUE(s.stopped);
  EXPECT_TRUE(s.products.empty());
  EXPECT_FALSE(std::filesystem::exists(o.output));
  EXPECT_EQ(s.blocks_done, 4);
  o.resume = true;
  steps = -1;  // five more: stops in the second part
  stop = 0;
  s = grid_scans(o);
  EXPECT_TRUE(s.stopped);
  EXPECT_EQ(s.blocks_resumed, 4);
  EXPECT_EQ(s.blocks_done, 5);
  stop = 0;
  o.on_progress = {};
  s = grid_scans(o);
  set_interrupt_count(nullptr);
  EXPECT_EQ(s.blocks_resumed, 9);
  EXPECT_EQ(s.blocks_done, 3);
  EXPECT_EQ(s.absent.nan_value, 21);
  EXPECT_EQ(s.n_samples, 4'000);
  expect_same_maps(read_maps(scratch_, "resumed"), whole, "resumed");
  EXPECT_FALSE(std::filesystem::exists(o.checkpoint)) << "removed when the map is there";
}

TEST_F(GridParts, NightsAddUpInAnyOrder) {
  // Files cut where blocks are: the same blocks.
  const std::vector<std::string> nights{write("a.h5", some_of(scans_, 0, 1'400)),
                                        write("b.h5", some_of(scans_, 1'400, 2'100)),
                                        write("c.h5", some_of(scans_, 2'100, 4'000))};
  file_ = write_scans(scratch_, scans_);
  GridOptions o = options("whole");
  grid_scans(o);
  const Maps whole = read_maps(scratch_, "whole");
  o.files = nights;
  o.output = scratch_.file("together.fits");
  EXPECT_EQ(grid_scans(o).n_samples, 4'000);
  expect_same_maps(read_maps(scratch_, "together"), whole, "several files");
  o = options("");
  o.accumulate = scratch_.file("field.rgrid");
  for (std::size_t k : {1, 2, 0}) {
    o.files = {nights[k]};
    if (k == 0) o.output = scratch_.file("added.fits");
    EXPECT_EQ(grid_scans(o).n_samples, k == 1 ? 700 : k == 2 ? 2'600 : 4'000);
  }
  expect_same_maps(read_maps(scratch_, "added"), whole, "accumulated");
  o.output.clear();
  for (std::size_t k = 0; k < 3; ++k) {
    o.files = {nights[k]};
    o.accumulate = scratch_.file("night" + std::to_string(k) + ".rgrid");
    grid_scans(o);
  }
  GridMergeOptions m = merge({"night2.rgrid", "night0.rgrid", "night1.rgrid"});
  m.accumulate = scratch_.file("all.rgrid");
  const GridSummary s = merge_grids(m);
  EXPECT_EQ(s.n_samples, 4'000);
  EXPECT_EQ(s.bad_positions, 1);
  expect_same_maps(read_maps(scratch_, "merged"), whole, "merged");
  merge_grids(merge({"all.rgrid"}));
  expect_same_maps(read_maps(scratch_, "merged"), whole, "the sums of all");
  // Twice the same night, and other maps.
  o.accumulate = scratch_.file("night0.rgrid");
  o.files = {nights[0]};
  expect_part(message_of([&] { grid_scans(o); }), "would count twice");
  expect_part(message_of([&] {
                merge_grids(merge({"all.rgrid", "night1.rgrid"}));
              }),
              "would count twice");
  o.files = {nights[1]};
  GridOptions other = o;
  other.target = "center=120,-5 size=1x1deg cell=4arcmin proj=SIN";
  expect_part(message_of([&] { grid_scans(other); }), "targets differ");
  other = o;
  other.kernel = "gauss:3.5arcmin";
  expect_part(message_of([&] { grid_scans(other); }), "convolution functions differ");
  other = o;
  other.precision = grid::Precision::f64;
  other.accumulate = scratch_.file("double.rgrid");
  grid_scans(other);
  expect_part(message_of([&] {
                merge_grids(merge({"night0.rgrid", "double.rgrid"}));
              }),
              "precisions differ");
}

TEST_F(GridParts, ShardsAreConcatenatedOrAdded) {
  GridOptions o = options("whole");
  grid_scans(o);
  const Maps whole = read_maps(scratch_, "whole");
  // Two shards have channels each, five have blocks.
  for (const std::int64_t n : {2, 5}) {
    std::vector<std::string> names;
    for (std::int64_t k = n; k >= 1; --k) {
      o = options("");
      o.shard = k;
      o.n_shards = n;
      names.push_back("shard" + std::to_string(k) + "of" + std::to_string(n));
      o.accumulate = scratch_.file(names.back());
      grid_scans(o);
    }
    merge_grids(merge(names));
    expect_same_maps(read_maps(scratch_, "merged"), whole, std::to_string(n) + " shards");
    // One of them is missing: an error that names it, or a map that does.
    names.erase(names.begin() + 1);
    const std::string absent = "shard " + std::to_string(n - 1) + "/" + std::to_string(n);
    expect_part(message_of([&] { merge_grids(merge(names)); }), absent + " of the run of scans.h5");
    GridMergeOptions m = merge(names);
    m.partial = true;
    m.accumulate = scratch_.file("some.rgrid");
    const GridSummary s = merge_grids(m);
    ASSERT_EQ(s.missing.size(), 1U);
    expect_part(s.missing[0], absent);
    expect_part(history_of(m.output), "missing: " + absent);
    EXPECT_NE(read_maps(scratch_, "merged").count, whole.count);
    expect_part(message_of([&] { merge_grids(merge({"some.rgrid"})); }), absent);
  }
  o.output = scratch_.file("shard.fits");
  expect_part(message_of([&] { grid_scans(o); }), "makes no map; leave -o out");
  o.accumulate.clear();
  expect_part(message_of([&] { grid_scans(o); }), "--accumulate NAME.rgrid in place of -o");
  // Channels of one half of the samples beside channels of all.
  o = options("");
  o.channels = "0:1";
  o.accumulate = scratch_.file("first");
  grid_scans(o);
  o.channels = "1:3";
  o.accumulate = scratch_.file("others");
  o.files = {write("half.h5", some_of(scans_, 0, 1'400))};
  grid_scans(o);
  expect_part(message_of([&] { merge_grids(merge({"first", "others"})); }), "is missing");
}

// A run that was ended early leaves its file of sums: a merge says what it lacks.
TEST_F(GridParts, AnUnfinishedRunIsSaidToBeOne) {
  const std::string another_night = write("other.h5", some_of(scans_, 100, 1'000));
  write_scans(scratch_, scans_);
  GridOptions o = options("");
  o.accumulate = scratch_.file("early.rgrid");
  std::atomic<int> stop{0};
  int steps = 0;
  o.stop = &stop;
  o.on_progress = [&](const GridProgress&) { stop = ++steps >= 4 ? 1 : 0; };
  EXPECT_TRUE(grid_scans(o).stopped);
  expect_part(message_of([&] { merge_grids(merge({"early.rgrid"})); }),
              "samples 2800:3500 of scans.h5 in channels 0:3 (their run ended early)");
  GridMergeOptions m = merge({"early.rgrid"});
  m.partial = true;
  EXPECT_EQ(merge_grids(m).missing.size(), 2U);
  // Another night on top of it.
  GridOptions other = options("both");
  other.accumulate = o.accumulate;
  other.files = {another_night};
  EXPECT_EQ(grid_scans(other).missing.size(), 2U);
  expect_part(history_of(scratch_.file("both.fits")), "missing: samples 2800:3500 of scans.h5");
  o.stop = nullptr;
  o.on_progress = {};
  o.resume = true;
  EXPECT_TRUE(grid_scans(o).missing.empty());
  EXPECT_TRUE(merge_grids(merge({"early.rgrid"})).missing.empty());
}

// Other words for the same choice make another fingerprint: the samples would count twice.
TEST_F(GridParts, AFileChosenInTwoWaysIsRejected) {
  GridOptions o = options("");
  o.accumulate = scratch_.file("field.rgrid");
  grid_scans(o);
  GridOptions apart = options("");  // sums of their own are joined by nobody
  apart.accumulate = scratch_.file("other.rgrid");
  for (GridOptions* again : {&o, &apart}) again->scans.data = "/spectra";
  expect_part(message_of([&] { grid_scans(o); }), "samples of scans.h5 are in these sums already");
  grid_scans(apart);
  expect_part(message_of([&] {
                merge_grids(merge({"field.rgrid", "other.rgrid"}));
              }),
              "would count twice");
}

// Two polarizations of a file, rows of two values of a column, other channels.
TEST(GridState, DifferentSamplesOfAFileAreChosenOnce) {
  const auto run = [](const char* source, const char* pol, const char* rows, ChannelRange c) {
    return GridRunPlan{source, 1, 1, c, c, {{source, "scans.h5", 0, 100, "content", pol, rows}}};
  };
  const GridRunPlan xx = run("a", "XX", "", {0, 8});
  EXPECT_NO_THROW(require_chosen_once({xx, run("b", "YY", "", {0, 8})}));
  EXPECT_NO_THROW(require_chosen_once({xx, run("b", "XX", "", {8, 16})}));
  EXPECT_NO_THROW(require_chosen_once({xx, run("a", "XX", "", {0, 8})}));  // a later shard says so
  EXPECT_THROW(require_chosen_once({xx, run("b", "XX", "", {0, 8})}), ConfigError);
  EXPECT_THROW(require_chosen_once({xx, run("b", "mean of XX, YY", "", {0, 8})}), ConfigError);
  EXPECT_NO_THROW(require_chosen_once(
      {run("a", "XX", "IFNUM=0\n", {0, 8}), run("b", "XX", "IFNUM=1\n", {0, 8})}));
  EXPECT_THROW(require_chosen_once(
                   {run("a", "XX", "IFNUM=0\n", {0, 8}), run("b", "XX", "FDNUM=1\n", {0, 8})}),
               ConfigError);
}

TEST_F(GridParts, DamagedSumsAreNotAdded) {
  GridOptions o = options("");
  o.accumulate = scratch_.file("field.rgrid");
  grid_scans(o);
  std::fstream sums(o.accumulate, std::ios::in | std::ios::out | std::ios::binary);
  const auto middle = static_cast<std::streamoff>(std::filesystem::file_size(o.accumulate) / 4);
  sums.seekg(middle);
  const char byte = static_cast<char>(sums.get() ^ 1);
  sums.seekp(middle);
  sums.put(byte);
  sums.close();
  expect_part(message_of([&] { merge_grids(merge({"field.rgrid"})); }), "is damaged");
  expect_part(message_of([&] { merge_grids(merge({"scans.h5"})); }), "no sums of `ryle grid`");
  expect_part(message_of([&] { merge_grids(merge({"scans.h5"})); }), "`ryle grid scans.h5`");
  o.accumulate.clear();
  o.output = scratch_.file("x.fits");
  o.files = {scratch_.file("field.rgrid")};
  expect_part(message_of([&] { grid_scans(o); }), "`ryle grid merge`");
}

TEST_F(GridParts, ChannelsAndFilesAreChecked) {
  const auto rejected = [&](const std::function<void(GridOptions&)>& change) {
    GridOptions o = options("refused");
    change(o);
    return message_of([&] { grid_scans(o); });
  };
  expect_part(rejected([](GridOptions& o) { o.channels = "2:4"; }), "not among the 3");
  expect_part(rejected([](GridOptions& o) { o.channels = "1"; }), "no range");
  expect_part(rejected([](GridOptions& o) { o.channels = "1MHz:2MHz"; }), "do not say");
  expect_part(rejected([](GridOptions& o) { o.shard = 3, o.n_shards = 2; }), "shard 3/2");
  expect_part(rejected([](GridOptions& o) { o.resume = true; }), "--checkpoint");
  expect_part(rejected([](GridOptions& o) { o.block_samples = 0; }), "blocks of 0 samples");
  expect_part(rejected([](GridOptions& o) { o.memory_bytes = 80'000; }), "GiB");
  GridOptions o = options("one");
  o.channels = "1:2";
  EXPECT_EQ(grid_scans(o).n_channels, 1);
  const Maps one = read_maps(scratch_, "one");
  o = options("whole");
  grid_scans(o);
  const Maps whole = read_maps(scratch_, "whole");
  const auto n = static_cast<std::ptrdiff_t>(one.value.size());
  expect_same_bits(one.value, {whole.value.begin() + n, whole.value.begin() + 2 * n},
                   "a channel alone");
  // Frequencies 0.1 of a channel apart, both files named.
  const auto with_frequencies = [&](const std::string& name, double first_mhz) {
    const std::string path = write(name, scans_);
    const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    const double mhz[3] = {first_mhz, first_mhz + 0.5, first_mhz + 1};
    put(file, "freq_mhz", H5T_NATIVE_DOUBLE, mhz, {3});
    H5Fclose(file);
    return path;
  };
  o = options("two");
  o.scans.data = "/spectra";
  // Every file that is off is named at once, and no other.
  o.files = {with_frequencies("x.h5", 1420), with_frequencies("y.h5", 1420.05),
             with_frequencies("near.h5", 1420.01), with_frequencies("z.h5", 1420.1)};
  const std::string both = message_of([&] { grid_scans(o); });
  expect_part(both, "x.h5");
  expect_part(both, "y.h5 by 0.100");
  expect_part(both, "z.h5 by 0.200");
  expect_part(both, "2 of 4 files");
  EXPECT_EQ(both.find("near.h5"), std::string::npos) << both;
  o.files = {o.files[0], o.files[2]};
  const std::vector<std::string> warnings = grid_scans(o).warnings;
  EXPECT_TRUE(std::any_of(warnings.begin(), warnings.end(), [](const std::string& w) {
    return w.find("agree to 0.020") != std::string::npos && w.find("near.h5") != std::string::npos;
  }));
  o.files.pop_back();
  o.channels = "1420.4MHz:1421MHz";
  EXPECT_EQ(grid_scans(o).n_channels, 2);
}

TEST(GridMedians, ThatDoNotFitSayWhatWould) {
  const Scratch scratch;
  GridOptions o = options_of(scratch, write_scans(scratch, some_scans()));
  o.target = "center=120,-5 size=1x1deg cell=0.2arcmin proj=SIN";
  o.beam_fwhm_rad = 0.05 * kDegree_rad;
  o.kernel = "median";
  o.memory_bytes = 3'000'000;
  expect_part(message_of([&] { plan_grid(o); }), "smaller files, larger cells");
}

// Bands of the map: the bits of all samples at once, whatever fits.
TEST(GridMedians, BandsAreTheWholeMap) {
  const Scratch scratch;
  Scans scans = some_scans();
  for (std::size_t k = 0; k < scans.values.size(); k += 31)
    scans.values[k] = std::numeric_limits<float>::quiet_NaN();
  scans.lat[7] = 95;
  GridOptions o = options_of(scratch, write_scans(scratch, scans));
  o.target = "center=120,-5 size=1x1.6deg cell=1arcmin proj=SIN";  // 60 x 96: six strips of rows
  o.beam_fwhm_rad = 0.05 * kDegree_rad;
  o.block_samples = 400;
  std::vector<long> shape;
  for (const std::string kernel : {"median", "wmedian"}) {
    SCOPED_TRACE(kernel);
    o.kernel = kernel;
    o.memory_bytes = 0;
    const GridSummary whole = grid_scans(o);
    EXPECT_EQ(whole.plan.n_bands, 0);
    const auto value = read_cube(o.output, shape);
    const auto count = read_cube(scratch.file("map.count.fits"), shape);
    o.memory_bytes = whole.plan.total_bytes;
    while (plan_grid(o).plan.n_bands < 2) o.memory_bytes -= o.memory_bytes / 64;
    const GridSummary bands = grid_scans(o);
    EXPECT_LT(bands.plan.band_samples, 4'000);
    expect_same_bits(read_cube(o.output, shape), value, "values");
    expect_same_bits(read_cube(scratch.file("map.count.fits"), shape), count, "counts");
    EXPECT_EQ(bands.bad_positions, 1);
    EXPECT_EQ(bands.out_of_reach, whole.out_of_reach);
    EXPECT_EQ(bands.n_candidates, whole.n_candidates);
    EXPECT_EQ(bands.absent.nan_value, whole.absent.nan_value);
  }
}

TEST_F(GridParts, MedianOfBlocksIsTheMedian) {
  GridOptions o = options("median");
  o.kernel = "median:radius=4arcmin";
  o.noise = false;
  std::vector<long> shape;
  o.block_samples = kGridBlockSamples;
  grid_scans(o);
  const auto once = read_cube(o.output, shape);
  o.block_samples = kPieceSamples;
  o.memory_bytes = limit_for(o, 2);
  grid_scans(o);
  expect_same_bits(read_cube(o.output, shape), once, "medians");
  o.accumulate = scratch_.file("median.rgrid");
  expect_part(message_of([&] { grid_scans(o); }), "cannot be joined");
}

}  // namespace
}  // namespace ryle::pipeline
