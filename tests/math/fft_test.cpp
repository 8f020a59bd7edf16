// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/math/fft.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "ryle/core/error.hpp"
#include "ryle/core/random.hpp"

namespace ryle::math {
namespace {

std::vector<cf64> noise(std::int64_t n) {
  std::vector<cf64> x(static_cast<std::size_t>(n));
  for (std::int64_t j = 0; j < n; ++j) x[j] = {gaussian(4 * j), gaussian(4 * j + 1)};
  return x;
}

std::vector<cf64> direct_transform(const std::vector<cf64>& x) {
  const auto n = static_cast<std::int64_t>(x.size());
  std::vector<cf64> y(x.size());
  for (std::int64_t k = 0; k < n; ++k) {
    for (std::int64_t j = 0; j < n; ++j) y[k] += x[j] * unit_root(-j * k, n);
  }
  return y;
}

double relative_rms_error(const std::vector<cf64>& got, const std::vector<cf64>& want) {
  double error = 0;
  double power = 0;
  for (std::size_t k = 0; k < want.size(); ++k) {
    error += std::norm(got[k] - want[k]);
    power += std::norm(want[k]);
  }
  return std::sqrt(error / power);
}

TEST(Fft, equals_the_direct_sum_at_every_kind_of_size) {
  for (const std::int64_t n : {1,   2,   3,   4,   5,   6,   7,   8,   9,   11,  12,   13,  14,
                               15,  16,  17,  21,  25,  28,  31,  35,  49,  60,  64,   97,  105,
                               121, 128, 210, 243, 343, 360, 509, 512, 625, 720, 1000, 1024}) {
    const auto x = noise(n);
    auto y = x;
    Fft(n).forward(y.data());
    // Each of log2 n stages adds a rounding of 2^-53 or so; the direct sum itself errs by sqrt(n)
    // 2^-53.
    const double bound = 1e-15 * (4 * std::log2(n + 1.0) + std::sqrt(n));
    EXPECT_LT(relative_rms_error(y, direct_transform(x)), bound) << "n = " << n;
  }
}

TEST(Fft, inverse_undoes_forward_at_large_sizes) {
  for (const std::int64_t n : {65536, 100000, 65537, 3 * 5 * 7 * 1024}) {
    const auto x = noise(n);
    auto y = x;
    const Fft fft(n);
    fft.forward(y.data());
    double in = 0;
    double out = 0;
    for (std::int64_t k = 0; k < n; ++k) {
      in += std::norm(x[k]);
      out += std::norm(y[k]);
    }
    EXPECT_NEAR(out / (in * static_cast<double>(n)), 1, 1e-12) << "Parseval, n = " << n;
    fft.inverse(y.data());
    EXPECT_LT(relative_rms_error(y, x), 1e-14 * std::log2(n)) << "n = " << n;
  }
}

TEST(Fft, forward_has_the_minus_sign) {
  constexpr std::int64_t kN = 60;
  std::vector<cf64> x(kN);
  for (std::int64_t j = 0; j < kN; ++j) x[j] = unit_root(7 * j, kN);
  Fft(kN).forward(x.data());
  EXPECT_NEAR(x[7].real(), kN, 1e-12);
  EXPECT_NEAR(std::abs(x[kN - 7]), 0, 1e-12);
}

TEST(Fft, unit_roots_are_symmetric_and_exact_on_the_axes) {
  EXPECT_EQ(unit_root(5, 20), cf64(0, 1));
  EXPECT_EQ(unit_root(-5, 20), cf64(0, -1));
  EXPECT_EQ(unit_root(10, 20), cf64(-1, 0));
  EXPECT_EQ(unit_root(std::int64_t{7} << 50, 7), cf64(1, 0));
  for (std::int64_t k = 0; k < 360; ++k) {
    EXPECT_EQ(unit_root(k, 360), std::conj(unit_root(-k, 360)));
    EXPECT_NEAR(unit_root(k, 360).real(), std::cos(k * 3.14159265358979323846 / 180), 1e-15);
    EXPECT_NEAR(unit_root(k, 360).imag(), std::sin(k * 3.14159265358979323846 / 180), 1e-15);
  }
}

TEST(Fft, one_plan_serves_many_threads) {
  const Fft fft(1000);
  const Fft prime(997);
  auto want = noise(1000);
  auto want_prime = noise(997);
  fft.forward(want.data());
  prime.forward(want_prime.data());
  std::vector<std::thread> threads;
  int wrong[4] = {};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int repeat = 0; repeat < 20; ++repeat) {
        auto x = noise(1000);
        auto y = noise(997);
        fft.forward(x.data());
        prime.forward(y.data());
        wrong[t] += x != want || y != want_prime;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const int w : wrong) EXPECT_EQ(w, 0);
}

TEST(Fft, rejects_impossible_sizes) {
  EXPECT_THROW(Fft(0), ConfigError);
  EXPECT_THROW(Fft(-4), ConfigError);
}

}  // namespace
}  // namespace ryle::math
