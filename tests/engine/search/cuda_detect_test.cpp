// SPDX-License-Identifier: BSD-3-Clause
// What the detector's kernels do to two sums in a word, on the host: all values of 16 bits.
#include "tests/support/simt/cuda_names.hpp"
// The kernels follow the words of CUDA they are written in.
#include <gtest/gtest.h>

#include <cmath>

#include "ryle/core/random.hpp"
#include "ryle/engine/search/cuda_detect_pairs.cuh"
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

}  // namespace
}  // namespace ryle::search
