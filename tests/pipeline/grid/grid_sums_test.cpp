// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/grid/grid_sums.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace ryle::pipeline {
namespace {

std::vector<double> wild_terms(int n) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> digits(-1, 1);
  std::uniform_int_distribution<int> exponent(-90, 90);
  std::vector<double> terms;
  for (int k = 0; k < n; ++k) terms.push_back(std::ldexp(digits(random), exponent(random)));
  return terms;
}

TEST(ExactPlane, OneTermIsItself) {
  ExactPlane plane(1);
  EXPECT_EQ(plane.value(0), 0);
  for (double x : {1.0, -1.0, 0x1.fffffffffffffp+31, 0x1.0000000000001p-32, -0x1.8p-1074,
                   0x1.fffffffffffffp+1000, 3.0e-310}) {
    ExactPlane one(1);
    one.add(0, x);
    EXPECT_EQ(one.value(0), x);
  }
  for (double x : wild_terms(1'000)) {
    ExactPlane one(1);
    one.add(0, 0);
    one.add(0, x);
    ASSERT_EQ(one.value(0), x);
  }
}

TEST(ExactPlane, AnyOrderGivesTheSameDigits) {
  std::vector<double> terms = wild_terms(200);
  ExactPlane want(1);
  for (double x : terms) want.add(0, x);
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    std::shuffle(terms.begin(), terms.end(), random);
    ExactPlane parts(3), sum(1);
    for (std::size_t k = 0; k < terms.size(); ++k)
      parts.add(static_cast<std::int64_t>(k * 7 % 3), terms[k]);
    for (std::int64_t p : {2, 0, 1}) sum.add(0, parts, p);
    ASSERT_TRUE(std::equal(sum.digits(0), sum.digits(0) + 3, want.digits(0)));
    ASSERT_EQ(*sum.levels(0), *want.levels(0));
  }
}

TEST(ExactPlane, SumsAreThoseOfLongDouble) {
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> u(0.5, 1.5);
  ExactPlane plane(1);
  long double want = 0;
  for (int k = 0; k < 10'000; ++k) {
    const double x = u(random) * (k % 3 == 0 ? -1 : 1);
    plane.add(0, x);
    want += x;
  }
  // Cut at 2^-64 of numbers of about 1, ten thousand times.
  EXPECT_NEAR(plane.value(0), static_cast<double>(want), 1e-12);
}

}  // namespace
}  // namespace ryle::pipeline
