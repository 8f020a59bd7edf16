// SPDX-License-Identifier: BSD-3-Clause
// T-XE-07, T-FX-04 (index tables), T-XE-09 (rotation): what finish_dump does to known sums.
#include "ryle/engine/correlate/finish.hpp"

#include <numbers>

#include "tests/engine/correlate/voltages.hpp"

namespace ryle::correlate::test {
namespace {

// conventions.md 5, frozen: b = j(j+1)/2 + i.
TEST(Order, PairTableIsFrozen) {
  constexpr std::int64_t kTable[5][5] = {
      {0}, {1, 2}, {3, 4, 5}, {6, 7, 8, 9}, {10, 11, 12, 13, 14}};
  for (std::int64_t j = 0; j < 5; ++j) {
    for (std::int64_t i = 0; i <= j; ++i) EXPECT_EQ(pair_index(i, j), kTable[j][i]);
  }
}

// Sums with a value that names its pair and channel, Hermitian by construction.
Sums named_sums(std::int64_t n_channels, std::int64_t n_inputs) {
  Sums sums;
  for (std::int64_t c = 0; c < n_channels; ++c) {
    for (std::int64_t j = 0; j < n_inputs; ++j) {
      for (std::int64_t i = 0; i <= j; ++i) {
        const std::int64_t im = i == j ? 0 : 100 * i + j + 1;
        sums.integer.push_back({10 * (1000 * c + 100 * i + j + 1), 10 * im});
        sums.counts.push_back(10);
      }
    }
  }
  sums.n_spectra = 12;
  return sums;
}

cf64 named(std::int64_t c, std::int64_t i, std::int64_t j) {
  if (i > j) return std::conj(named(c, j, i));
  return {static_cast<double>(1000 * c + 100 * i + j + 1),
          i == j ? 0.0 : static_cast<double>(100 * i + j + 1)};
}

TEST(Order, Triangle) {
  FinishConfig config;
  config.order = Order::triangle;
  const Finished done = finish_dump(named_sums(2, 4), config, 4);
  ASSERT_EQ(done.n_products, 10);
  ASSERT_EQ(done.n_channels, 2);
  EXPECT_EQ(done.n_spectra, 12);
  for (std::int64_t c = 0; c < 2; ++c) {
    for (std::int64_t j = 0; j < 4; ++j) {
      for (std::int64_t i = 0; i <= j; ++i) {
        EXPECT_EQ(done.mean[c * 10 + pair_index(i, j)], named(c, i, j));
        EXPECT_EQ(done.counts[c * 10 + pair_index(i, j)], 10u);
      }
    }
  }
}

TEST(Order, MatrixHasBothHalves) {
  FinishConfig config;
  config.order = Order::matrix;
  const Finished done = finish_dump(named_sums(2, 3), config, 3);
  ASSERT_EQ(done.n_products, 9);
  for (std::int64_t c = 0; c < 2; ++c) {
    for (std::int64_t i = 0; i < 3; ++i) {
      for (std::int64_t j = 0; j < 3; ++j) EXPECT_EQ(done.mean[c * 9 + 3 * i + j], named(c, i, j));
    }
  }
}

// Inputs wired in an irregular order, one polarization missing.
TEST(Order, ProductsFollowTheInputMap) {
  FinishConfig config;
  config.map = {3, {4, 1, 0, 3, 2, -1}};  // antenna 2 has no Y
  const Finished done = finish_dump(named_sums(2, 5), config, 5);
  ASSERT_EQ(done.n_products, 24);
  for (std::int64_t c = 0; c < 2; ++c) {
    for (std::int64_t j = 0; j < 3; ++j) {
      for (std::int64_t i = 0; i <= j; ++i) {
        for (std::int64_t pi = 0; pi < 2; ++pi) {
          for (std::int64_t pj = 0; pj < 2; ++pj) {
            const std::int64_t at = c * 24 + (j * (j + 1) / 2 + i) * 4 + 2 * pi + pj;
            const std::int64_t p = config.map.input[2 * i + pi];
            const std::int64_t q = config.map.input[2 * j + pj];
            const bool missing = p < 0 || q < 0;
            EXPECT_EQ(done.mean[at], missing ? cf64{} : named(c, p, q)) << i << j << pi << pj;
            EXPECT_EQ(done.counts[at], missing ? 0u : 10u);
          }
        }
      }
    }
  }
  // YX = conj(XY) of one antenna.
  EXPECT_EQ(done.mean[1], std::conj(done.mean[2]));
}

// T-XE-07, T-FX-04: in channel c only inputs (a_c, b_c) carry a signal; exactly their product and
// autos are non-zero.
TEST(Order, OnePairPerChannel) {
  constexpr std::int64_t kN = 6;
  constexpr std::int64_t kSpectra = 70;
  const std::int64_t channels = n_pairs(kN);
  Voltages v(SampleFormat::ci8, channels, kSpectra, kN);
  v.fill([](std::int64_t c, std::int64_t t, std::int64_t p) -> cf64 {
    const auto [i, j] = pair_of(c);
    if (p != i && p != j) return 0;
    // v_i = (5 + i)(1 + 0i), v_j = v_i e^(-i pi/2) 2: V_ij = v_i conj(v_j) has phase +90 degrees.
    const double amplitude = static_cast<double>(1 + t % 3);
    return p == i ? cf64{amplitude, 0} : cf64{0, -2 * amplitude};
  });
  double power = 0;
  for (std::int64_t t = 0; t < kSpectra; ++t)
    power += static_cast<double>((1 + t % 3) * (1 + t % 3));
  power /= kSpectra;
  for (const auto& implementation : cpu_names(SampleFormat::ci8)) {
    Queue queue = Queue::cpu(1);
    auto correlator = make_correlator(queue, config_of(v, implementation));
    correlator->execute(queue, v.input());
    Sums sums;
    correlator->finish(queue, sums);
    FinishConfig config;
    config.order = Order::matrix;
    const Finished done = finish_dump(sums, config, kN);
    for (std::int64_t c = 0; c < channels; ++c) {
      const auto [i, j] = pair_of(c);
      for (std::int64_t a = 0; a < kN; ++a) {
        for (std::int64_t b = 0; b < kN; ++b) {
          cf64 want = 0;
          if (i == j) {
            if (a == i && b == i) want = power;
          } else {
            if (a == i && b == i) want = power;
            if (a == j && b == j) want = 4 * power;
            if (a == i && b == j) want = {0, 2 * power};
            if (a == j && b == i) want = {0, -2 * power};
          }
          ASSERT_NEAR(std::abs(done.mean[(c * kN + a) * kN + b] - want), 0, 1e-12)
              << implementation << " " << a << b;
        }
      }
    }
  }
}

TEST(Finish, CountZeroGivesZero) {
  Sums sums = named_sums(1, 2);
  sums.counts = {4, 0, 2};
  FinishConfig config;
  config.order = Order::triangle;
  const Finished done = finish_dump(sums, config, 2);
  EXPECT_EQ(done.mean[0], (cf64{2.5, 0}));
  EXPECT_EQ(done.mean[1], (cf64{0, 0}));
  EXPECT_EQ(done.mean[2], (cf64{510, 0}));
  EXPECT_EQ(done.counts, (std::vector<std::uint32_t>{4, 0, 2}));
}

TEST(Finish, GainsMultiplyAndConjugate) {
  const Sums sums = named_sums(2, 3);
  FinishConfig config;
  config.order = Order::triangle;
  for (std::int64_t k = 0; k < 6; ++k)
    config.gains.push_back(std::polar(1.0 + static_cast<double>(k), 0.3 * static_cast<double>(k)));
  const Finished done = finish_dump(sums, config, 3);
  for (std::int64_t c = 0; c < 2; ++c) {
    for (std::int64_t j = 0; j < 3; ++j) {
      for (std::int64_t i = 0; i <= j; ++i) {
        const cf64 want =
            named(c, i, j) * config.gains[i * 2 + c] * std::conj(config.gains[j * 2 + c]);
        EXPECT_LE(std::abs(done.mean[c * 6 + pair_index(i, j)] - want), 1e-15 * 4 * std::abs(want));
      }
    }
  }
}

// T-XE-09 in terms of finish: a delay d_p in front of the correlator, v_p = exp(-2 pi i nu (-d_p)),
// is undone to phase 0. 3 km at 300 MHz is 3000 turns: in double 3000 * 2^-53 * 2 pi is 2e-12 rad.
TEST(Finish, RotationUndoesDelays) {
  constexpr std::int64_t kN = 4;
  constexpr std::int64_t kChannels = 5;
  const std::vector<double> delays_s = {0, 1.17e-6, -3.3e-7, 1.0e-5};
  FinishConfig config;
  config.order = Order::triangle;
  config.frequency = {300e6, 1.3e6, kChannels};
  Sums sums;
  for (std::int64_t c = 0; c < kChannels; ++c) {
    for (std::int64_t j = 0; j < kN; ++j) {
      for (std::int64_t i = 0; i <= j; ++i) {
        // The wave reaches p early by d_p (conventions.md 5): v_p = exp(+2 pi i nu d_p).
        const double turns = std::remainder(config.frequency.center_hz(c) * delays_s[i], 1) -
                             std::remainder(config.frequency.center_hz(c) * delays_s[j], 1);
        sums.real.push_back(3.0 * std::polar(1.0, 2 * std::numbers::pi * turns));
        sums.counts.push_back(3);
      }
    }
  }
  const Finished done = finish_dump(sums, config, kN, delays_s);
  for (const auto& v : done.mean) EXPECT_LE(std::abs(v - 1.0), 1e-11);
}

TEST(Finish, RejectsWhatDoesNotFit) {
  FinishConfig config;
  config.order = Order::triangle;
  EXPECT_THROW(finish_dump(named_sums(1, 3), config, 4), ConfigError);
  EXPECT_THROW(finish_dump(Sums{}, config, 4), ConfigError);
  EXPECT_THROW(finish_dump(named_sums(1, 3), config, 3, std::vector<double>{1, 2}), ConfigError);
  EXPECT_THROW(finish_dump(named_sums(1, 3), config, 3, std::vector<double>{1, 2, 3}), ConfigError);
  config.gains.resize(2);
  EXPECT_THROW(finish_dump(named_sums(1, 3), config, 3), ConfigError);
  config = {};
  EXPECT_THROW(finish_dump(named_sums(1, 3), config, 3), ConfigError);
  config.map = {2, {0, 1, 2, 3}};
  EXPECT_THROW(finish_dump(named_sums(1, 3), config, 3), ConfigError);
}

// T-FX-12: std(Re V) of noise on noise = sqrt(P_1 P_2 / (2 M)), slope -1/2, no floor. K estimates
// have a relative error of 1/sqrt(2 K): 5 sigma of 4096 (64 inputs: 2016 pairs x 2 parts) is 5.5 %.
TEST(Finish, Radiometer) {
  constexpr std::int64_t kN = 64;
  constexpr std::int64_t kLongest = 1 << 14;
  Voltages v(SampleFormat::ci8, 1, kLongest, kN);
  v.fill([](std::int64_t, std::int64_t t, std::int64_t p) -> cf64 {
    const std::uint64_t key =
        combine(99, static_cast<std::uint64_t>(p), static_cast<std::uint64_t>(t)) & ~1ull;
    const auto code = [](double x) { return std::nearbyint(std::clamp(16 * x, -127.0, 127.0)); };
    return {code(gaussian(key)), code(gaussian(key ^ 1))};
  });
  Queue queue = Queue::cpu(1);
  auto correlator = make_correlator(queue, config_of(v, "cpu"));
  for (std::int64_t m = 64; m <= kLongest; m *= 4) {
    Input part = v.input();
    part.n_spectra = m;
    part.blocks.n_blocks = m / 64;
    correlator->execute(queue, part);
    Sums sums;
    correlator->finish(queue, sums);
    FinishConfig config;
    config.order = Order::triangle;
    const Finished done = finish_dump(sums, config, kN);
    double variance = 0;
    for (std::int64_t j = 0; j < kN; ++j) {
      for (std::int64_t i = 0; i < j; ++i) {
        const double power =
            done.mean[pair_index(i, i)].real() * done.mean[pair_index(j, j)].real();
        variance += std::norm(done.mean[pair_index(i, j)]) / power;
      }
    }
    variance /= n_pairs(kN) - kN;  // re and im together: 1/M
    EXPECT_NEAR(std::sqrt(variance * static_cast<double>(m)), 1, 5 / std::sqrt(2 * 4032.0)) << m;
  }
}

}  // namespace
}  // namespace ryle::correlate::test
