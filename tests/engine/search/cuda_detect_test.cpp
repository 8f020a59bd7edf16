// SPDX-License-Identifier: BSD-3-Clause
// What the detector's kernels do to two sums in a word, on the host: all values of 16 bits. And the
// kernels that read a row once, thread by thread: statistics are those of the reference bit for
// bit, and no block with a hit is left out.
#include "tests/support/simt/cuda_names.hpp"
// The kernels follow the words of CUDA they are written in.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <tuple>

#include "ryle/core/random.hpp"
#include "ryle/engine/search/cuda/detect_pairs.cuh"
#include "ryle/engine/search/cuda/detect_rows.cuh"
#include "ryle/engine/search/detect_common.hpp"
#include "ryle/engine/search/detect_unclip.hpp"

namespace ryle::search {
namespace {

using namespace detail;

TEST(CudaDetectPairs, MomentsBetweenClips) {
  for (const auto& [center, clip] :
       {std::pair{1, 0}, {24576, 0}, {24576, 770}, {3000, 2999}, {65535, 8000}, {9000, 8190}}) {
    ASSERT_TRUE(PairSums::fits(center, clip)) << center << " " << clip;
    PairSums pairs(center, clip);
    long long n = 0, sum = 0, squares = 0;
    constexpr int kEights = 3000;
    for (int k = 0; k < kEights; ++k) {
      unsigned words[4] = {};
      for (unsigned i = 0; i < 8; ++i) {
        // Near the clips, and anywhere.
        const std::uint64_t bits = combine(7, static_cast<std::uint64_t>(8 * k) + i);
        const int around = center + (bits & 1 ? clip : -clip) + static_cast<int>(bits >> 8 & 3) - 1;
        const int value =
            bits >> 1 & 1 ? std::clamp(around, 0, 65535) : static_cast<int>(bits >> 16 & 0xffff);
        words[i / 2] |= static_cast<unsigned>(value) << 16 * (i % 2);
        const long long d = value - center;
        if (std::abs(d) > clip) continue;
        ++n;
        sum += d;
        squares += d * d;
      }
      pairs.add(words);
    }
    const PairSums::Moments m = pairs.moments(8 * kEights);
    EXPECT_GT(n, kEights / 2) << center << " " << clip;
    EXPECT_EQ(m.n, n) << center << " " << clip;
    EXPECT_EQ(m.sum, sum) << center << " " << clip;
    EXPECT_EQ(m.squares, squares) << center << " " << clip;
  }
  EXPECT_FALSE(PairSums::fits(100, 100));
  EXPECT_FALSE(PairSums::fits(24576, 8191));
}

// A unit may be too large by less than one, never too small: the screen misses nothing.
TEST(CudaDetectPairs, UnitsOfEveryValue) {
  // The highest unit is one of a sum: means are not below 0.
  for (const int low : {-1500, -10, 0, 1, 24192, 65000, 65535}) {
    for (int shift = 0; shift <= 5; ++shift) {
      const Units units(low, shift, true);
      EXPECT_TRUE(units.whole == (shift == 0 && low >= 1));
      for (unsigned x = 0; x < 65536; ++x) {
        const unsigned y = (x * 40503u + 7) & 0xffffu, expected = units.one(x) | units.one(y) << 16;
        if (units.pair<false>(x | y << 16) != expected ||
            (units.whole && units.pair<true>(x | y << 16) != expected))
          FAIL() << "value " << x << " beside " << y << ", lowest " << low << ", shift " << shift;
      }
      const auto one = [&](int x) { return static_cast<int>(units.one(x)); };
      EXPECT_EQ(one(low - 1), 1);
      EXPECT_EQ(one(low + 1), 2);
      EXPECT_EQ(one(low + (2045 << shift)), 2046);
      EXPECT_EQ(one(low + (4000 << shift)), Units::kTop);
    }
  }
}

// Terms that are added in bulk behind the last that counts change no bit.
TEST(CudaDetectPairs, VarianceLeftTermByTerm) {
  for (int k = 1; k <= 800; ++k) {
    const double z = 0.01 * k, square = z * z;
    double term = 1, sum = 1;
    for (int n = 0; 1e17 * term > sum; ++n) {
      const double factor = square * (1.0 / (2 * n + 3));
      term = term * factor;
      sum += term;
    }
    EXPECT_EQ(variance_left(z), 1 - 1 / sum) << z;
  }
}

struct RowCase {
  std::int64_t n_columns, max_width;
  double threshold, rms;
  bool weighted;
  std::uint64_t seed;
  std::int64_t first_start = 128, stat_first = 130;
  float level = 0.8f;
};

/// Rows of noise with pulses, some without scatter, and weights of their cells.
struct Rows {
  static constexpr std::int64_t kTrials = 4;
  std::int64_t stride, cells;
  std::vector<std::uint16_t> sums;
  std::vector<float> weights;

  explicit Rows(const RowCase& c)
      : stride((c.n_columns + 7) / 8 * 8), cells((c.n_columns + 63) / 64 + 1) {
    for (std::int64_t i = 0; i < kTrials; ++i) {
      for (std::int64_t t = 0; t < stride; ++t) {
        double x =
            24576 + c.rms * gaussian(combine(c.seed, static_cast<std::uint64_t>(i * stride + t)));
        if (i == 2) x = 5;
        for (const auto& [at, width, height] :
             {std::tuple{c.n_columns / 3, 4, 6.0}, std::tuple{c.n_columns / 2 + 61, 40, 2.0},
              std::tuple{c.n_columns / 2 + 400, 1, 120.0},
              std::tuple{c.n_columns / 4 - 7, 300, 1.0}, std::tuple{c.n_columns / 5, 130, 7.0}})
          if (i == 1 && t >= at && t < at + width) x += c.rms * height;
        sums.push_back(static_cast<std::uint16_t>(std::clamp(x, 0.0, 65535.0)));
      }
      for (std::int64_t k = 0; k < cells; ++k) {
        const double w = uniform(combine(c.seed + 1, static_cast<std::uint64_t>(i * cells + k)));
        // Nearly full ones; a few empty; all kinds.
        const double minimum = i == 3 ? 0.95 : i == 0 ? 0.85 : 0.1;
        weights.push_back(
            w < 0.1 && i != 3 && k != 2
                ? 0.0f
                : static_cast<float>(std::round(1024 * (minimum + (1 - minimum) * w)) / 1024));
      }
    }
  }
};

/// Windows of a cell by their definition, in the order of kRowWindows. @shape x of the row from
/// cell 0 on, zeros behind its end
std::vector<unsigned> windows_of_cell(const std::vector<std::uint16_t>& x, int cell,
                                      const RowUnits& units) {
  // u of a column; y of 2^h columns; v of so many of them from column `first` on.
  const auto u = [&](int column) {
    const int value = x[static_cast<std::size_t>(column)];
    const int above = std::min(std::max(value, units.base) - units.base, units.end);
    return static_cast<long>((above + (1 << units.shift) - 1) >> units.shift);
  };
  const auto v = [&](int first, int h, int n) {
    long sum = 0;
    for (int k = 0; k < n; ++k) {
      long y = 0;
      for (int i = 0; i < 1 << h; ++i) y += u(first + (k << h) + i);
      sum += std::max(y - (long{units.mean} << h), 0l);
    }
    return sum;
  };
  std::vector<unsigned> windows(1);
  for (int k = 0; k < 64; ++k) {
    const int value = x[static_cast<std::size_t>(64 * cell + k)];
    windows[0] = std::max(windows[0], static_cast<unsigned>(std::min(
                                          std::max(value, units.base) - units.base, units.end)));
  }
  const auto window = [&](int h, int n_of_cell, int n_cells) {
    long maximum = 0;
    const int cell_columns = n_of_cell << h;
    for (int first = 64 * cell; first < 64 * cell + 64; first += cell_columns) {
      long sum = 0;
      for (int k = 0; k < 5; ++k) {  // all that windows from here reach
        const long of_cell = v(first + k * cell_columns, h, n_of_cell);
        sum += k < n_cells ? of_cell : 0;
        if (n_of_cell == 8 && of_cell >= long{kMaxCell}) maximum = 65535;
      }
      maximum = std::max(maximum, std::min(sum, 65535l));
    }
    windows.push_back(static_cast<unsigned>(maximum));
  };
  window(0, 2, 2);
  for (const int n : {2, 3, 4, 5}) window(0, 4, n);
  for (int h = 0; h <= kRowHalvings; ++h)
    for (const int n : {4, 5}) window(h, 8, n);
  return windows;
}

using ListedBlock = std::tuple<int, int, std::int64_t>;  // trial, octave, number

/// Statistics of the reference, windows of their definition, every block that holds a hit.
void check_rows(const RowCase& c) {
  SCOPED_TRACE(testing::Message() << c.n_columns << " columns, widths to " << c.max_width);
  const Rows rows(c);
  DetectConfig config;
  config.n_trials = Rows::kTrials;
  config.max_width = c.max_width;
  config.max_columns = c.n_columns;
  config.threshold = c.threshold;
  config.implementation = "reference";
  DetectInput in;
  in.sums = rows.sums.data();
  in.stride = rows.stride;
  in.n_columns = c.n_columns;
  in.first_start = c.first_start;
  in.end_start = c.n_columns - (c.max_width + 63) / 64 * 64;
  in.stat_first = c.stat_first;
  in.stat_end = c.n_columns - 1;
  in.weights = c.weighted ? rows.weights.data() : nullptr;
  in.weight_stride = rows.cells;
  in.level = c.level;
  Queue host = Queue::cpu(1);
  const auto reference = make_detector(host, config);
  std::vector<Hit> hits;
  reference->execute(host, in, hits);
  EXPECT_GT(hits.size(), 2u);

  const BoxcarTable table = boxcar_table(c.max_width, c.threshold);
  ASSERT_TRUE(table.covering);
  RowWork work = row_work({in.sums, false, in.stride, in.n_columns, in.first_tick, in.first_start,
                           in.end_start, in.stat_first, in.stat_end, in.weights, in.weight_stride,
                           in.level, static_cast<int>(config.n_trials)});
  ASSERT_TRUE(fits_rows(work, table));
  std::vector<TrialStart> starts(Rows::kTrials);
  std::vector<TrialMoments> moments(Rows::kTrials);
  std::vector<SeriesStatistics> statistics(Rows::kTrials), on_host(Rows::kTrials);
  std::vector<unsigned> maxima(
      static_cast<std::size_t>(Rows::kTrials * work.n_tiles * kRowWindows * 32), 0xCDCDCDCDu);
  std::vector<DeviceHit> found(1 << 16);
  unsigned n = 77;  // of the search before
  work.starts = starts.data();
  work.moments = moments.data();
  work.maxima = maxima.data();
  work.n_listed = &n;
  simt::launch({{static_cast<unsigned>(Rows::kTrials)},
                {static_cast<unsigned>(row_threads(work.half))},
                128 * static_cast<std::size_t>(2 * work.half + kRowAhead)},
               c.seed, [&] { measure_rows(work); });
  const HitList list{found.data(), &n, static_cast<unsigned>(found.size())};
  simt::launch({{1}, {static_cast<unsigned>(kListThreads)}, 0}, c.seed, [&] {
    list_blocks(work, table, statistics.data(), on_host.data(), c.threshold, list);
  });

  for (int trial = 0; trial < Rows::kTrials; ++trial) {
    const auto row = rows.sums.begin() + trial * rows.stride + work.first;
    std::vector<std::uint16_t> x(row, row + work.n_columns);
    x.resize(static_cast<std::size_t>(64 * (2 * work.half + 6)));
    for (int cell = 0; cell < 2 * work.half; cell += 3 + trial) {
      const int t = cell % work.half;
      const auto expected =
          windows_of_cell(x, cell, RowUnits(starts[static_cast<std::size_t>(trial)]));
      for (int k = 0; k < kRowWindows; ++k) {
        const unsigned both = maxima[static_cast<std::size_t>(
            ((trial * work.n_tiles + t / 32) * kRowWindows + k) * 32 + t % 32)];
        const unsigned own = cell < work.half ? both & 0xffffu : both >> 16;
        ASSERT_EQ(own, expected[static_cast<std::size_t>(k)])
            << "trial " << trial << " cell " << cell << " window " << k;
      }
    }
  }
  for (std::size_t k = 0; k < Rows::kTrials; ++k) {
    EXPECT_EQ(statistics[k].mu, reference->statistics()[k].mu) << k;
    EXPECT_EQ(statistics[k].sigma, reference->statistics()[k].sigma) << k;
    EXPECT_EQ(on_host[k].sigma, statistics[k].sigma) << k;
  }
  std::set<ListedBlock> listed;
  ASSERT_LE(n, found.size());
  for (unsigned k = 0; k < n; ++k)
    EXPECT_TRUE(listed.insert({found[k].trial, found[k].octave, found[k].start}).second)
        << "twice: trial " << found[k].trial << " octave " << found[k].octave << " block "
        << found[k].start;
  const auto all_octaves = octaves(boxcar_widths(c.max_width));
  std::set<ListedBlock> with_hit;
  for (const Hit& hit : hits) {
    int octave = 0;
    for (const auto& o : all_octaves) {
      if (std::count(o.widths.begin(), o.widths.end(), hit.width >> o.halvings) > 0 &&
          o.widths.front() << o.halvings <= hit.width && hit.width <= o.widths.back() << o.halvings)
        break;
      ++octave;
    }
    const int halvings = all_octaves.at(static_cast<std::size_t>(octave)).halvings;
    const ListedBlock block{hit.trial, octave, (hit.start - c.first_start) / (64 << halvings)};
    with_hit.insert(block);
    EXPECT_TRUE(listed.count(block) == 1)
        << "trial " << hit.trial << " start " << hit.start << " width " << hit.width;
  }
  // Of noise under nearly full weights hardly any.
  const auto of_noise = [](const std::set<ListedBlock>& blocks) {
    return std::count_if(blocks.begin(), blocks.end(),
                         [](const ListedBlock& block) { return std::get<0>(block) == 3; });
  };
  EXPECT_LT(of_noise(listed), of_noise(with_hit) + 20);
}

TEST(CudaDetectRows, OfOneWeight) {
  check_rows({6000, 256, 6, 256, false, 1});
  check_rows({3500, 7, 6, 1500, false, 4, 320, 130});
  check_rows({6000, 256, 12, 256, false, 6, 128, 130, 0.25f});  // twice the S/N
}
// What a thread puts in the place of a cell four ahead must not meet one that another still reads:
// seven cells, four in each half, are the fewest.
TEST(CudaDetectRows, ShortestRow) {
  const BoxcarTable table = boxcar_table(32, 6);
  for (const std::int64_t n_columns : {64, 200, 384, 385, 56'320, 56'321}) {
    DeviceInput in{};
    in.stride = in.n_columns = in.stat_end = n_columns;
    EXPECT_EQ(fits_rows(row_work(in), table), n_columns >= 385 && n_columns <= 56'320) << n_columns;
  }
  check_rows({448, 16, 6, 256, false, 8, 0, 0});
  check_rows({385, 13, 5, 256, true, 9, 0, 0});
}

TEST(CudaDetectRows, OfWeightedCells) {
  check_rows({7003, 256, 6, 256, true, 2});
  check_rows({4000, 100, 5, 20, true, 3, 0, 0});
  check_rows({12'500, 200, 7, 256, true, 5, 0, 0});
}

}  // namespace
}  // namespace ryle::search
