// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/wire/extend.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace ryle::wire {
namespace {

std::uint64_t mask_of(int bits) {
  return bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
}

// IN-03: a run of counters over several wraps, with losses at the wrap, equals the unwrapped run.
TEST(Extend, FollowsWrapsAtEveryWidth) {
  for (const int bits : {8, 16, 24, 32, 38, 48, 64}) {
    const std::int64_t half =
        bits == 64 ? std::numeric_limits<std::int64_t>::max() : std::int64_t{1} << (bits - 1);
    const std::int64_t start = bits == 64 ? half - 1'000'000 : (half << 1) - 1000;
    const std::int64_t step = bits == 8 ? 3 : 97;
    std::int64_t head = start;
    for (std::int64_t t = start; t < start + 500'000 && t > 0; t += step) {
      const std::int64_t distance = (t - start) % (std::min<std::int64_t>(half, 100)) / 2;
      ASSERT_EQ(extend(static_cast<std::uint64_t>(t) & mask_of(bits), bits, head), t) << bits;
      ASSERT_EQ(extend(static_cast<std::uint64_t>(t - distance) & mask_of(bits), bits, head),
                t - distance)
          << bits;
      head = t;
    }
  }
}

TEST(Extend, IsExactOverTheWholeHalfTurn) {
  for (int bits = 2; bits <= 16; ++bits) {
    const std::int64_t half = std::int64_t{1} << (bits - 1);
    for (const std::int64_t reference :
         {std::int64_t{0}, std::int64_t{5}, half, std::int64_t{-7}, std::int64_t{1} << 40}) {
      for (std::int64_t d = -half; d < half; ++d) {
        const std::int64_t t = reference + d;
        ASSERT_EQ(extend(static_cast<std::uint64_t>(t) & mask_of(bits), bits, reference), t)
            << bits << " " << d;
      }
    }
  }
}

// Above the width, raw bits must not matter: the header of a narrower counter may be loaded into a
// wider word.
TEST(Extend, IgnoresBitsAboveTheWidth) {
  std::mt19937_64 random(1);
  for (int k = 0; k < 1000; ++k) {
    const int bits = 8 + static_cast<int>(random() % 56);
    const std::uint64_t raw = random();
    const auto reference = static_cast<std::int64_t>(random() >> 2);
    ASSERT_EQ(extend(raw, bits, reference), extend(raw & mask_of(bits), bits, reference));
  }
}

TEST(Extend, ExtremeReferencesAreDefined) {
  EXPECT_EQ(extend(0, 64, std::numeric_limits<std::int64_t>::max()), 0);
  EXPECT_EQ(extend(~std::uint64_t{0}, 64, 0), -1);
  EXPECT_EQ(extend(0x8000000000000000u, 64, 5), std::numeric_limits<std::int64_t>::min());
}

}  // namespace
}  // namespace ryle::wire
