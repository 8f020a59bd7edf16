// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <set>

#include "ryle/wire/best2.hpp"

namespace ryle::wire {
namespace {

// adc = 8 x + (r even ? r / 2 : 4 + (r - 1) / 2) of row r and column x, element 4 r + x.
TEST(Best2Map, IsThatOfThePublishedAntennaFile) {
  for (const bool swap : {false, true}) {
    std::set<std::uint32_t> seen;
    for (std::uint32_t row = 0; row < 8; ++row) {
      for (std::uint32_t column = 0; column < 4; ++column) {
        const std::uint32_t adc = 8 * column + (row % 2 == 0 ? row / 2 : 4 + (row - 1) / 2);
        const std::uint32_t antenna = swap ? adc / 4 * 4 + (adc + 2) % 4 : adc;
        EXPECT_EQ(best2_element_of_antenna(antenna, swap), 4 * row + column);
        seen.insert(best2_element_of_antenna(adc, swap));
      }
    }
    EXPECT_EQ(seen.size(), 32u);
  }
}

TEST(Best2Map, ChannelsDescendFromTheTop) {
  EXPECT_DOUBLE_EQ(best2_center_hz(0), 417'990'234.375);
  EXPECT_DOUBLE_EQ(best2_center_hz(1023), 398'009'765.625);
}

}  // namespace
}  // namespace ryle::wire
