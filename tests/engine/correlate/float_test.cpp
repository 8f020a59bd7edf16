// SPDX-License-Identifier: BSD-3-Clause
// T-FX-03: floats against double.
#include "tests/engine/correlate/voltages.hpp"

namespace ryle::correlate::test {
namespace {

Sums run(const std::string& name, const Voltages& v, std::int64_t blocks_per_gulp = 0,
         int workers = 1) {
  Queue queue = Queue::cpu(workers);
  auto correlator = make_correlator(queue, config_of(v, name));
  EXPECT_EQ(correlator->implementation(), reported_name(name));
  const std::int64_t step = blocks_per_gulp == 0 ? v.view.n_blocks : blocks_per_gulp;
  for (std::int64_t block = 0; block < v.view.n_blocks; block += step) {
    Input part = v.input();
    part.blocks.data = v.view.cell(0, block, 0);
    part.blocks.n_blocks = std::min(step, v.view.n_blocks - block);
    part.n_spectra = std::min(part.blocks.n_blocks * spectra_per_block(v.view.format),
                              v.n_spectra - block * spectra_per_block(v.view.format));
    correlator->execute(queue, part);
  }
  Sums sums = garbage();
  correlator->finish(queue, sums);
  return sums;
}

// Products and sums of at most 256 spectra are fp32, then double. Each of the 2 x 256 additions of
// a pass rounds a partial sum of at most 256 P by 2^-24 relative: the rms over a random walk is
// below 2^-24 sqrt(512 / 3) = 7.8e-7 of sqrt(P_i P_j), and independent passes average it down.
// T-FX-03 asks for 2e-6.
TEST(Float, WithinRoundingOfDouble) {
  for (const std::int64_t n : {1, 2, 7, 16, 31, 65}) {
    for (const std::int64_t t : {1, 15, 16, 17, 300, 1000}) {
      Voltages v(SampleFormat::cf32, 2, t, n, n % 2 == 1);
      v.fill_random(static_cast<std::uint64_t>(100 * n + t));
      const Sums want = expected(v);
      for (const auto& implementation : cpu_names(SampleFormat::cf32)) {
        const Sums got = run(implementation, v);
        ASSERT_EQ(got.real.size(), want.real.size());
        EXPECT_EQ(got.counts, want.counts);
        for (std::int64_t c = 0; c < 2; ++c) {
          const std::int64_t first = c * n_pairs(n);
          for (std::int64_t j = 0; j < n; ++j) {
            for (std::int64_t i = 0; i <= j; ++i) {
              const double power = std::sqrt(want.real[first + pair_index(i, i)].real() *
                                             want.real[first + pair_index(j, j)].real());
              const std::int64_t p = first + pair_index(i, j);
              ASSERT_LE(std::abs(got.real[p] - want.real[p]), 2e-6 * power)
                  << implementation << " N=" << n << " T=" << t << " " << i << "," << j;
            }
          }
        }
      }
    }
  }
}

// Integers whose products fit 24 bits are exact, in any split and with any number of workers.
TEST(Float, SmallIntegersAreExact) {
  Voltages v(SampleFormat::cf32, 3, 700, 33);
  v.fill([](std::int64_t c, std::int64_t t, std::int64_t p) {
    return Voltages::code(SampleFormat::ci8, combine(static_cast<std::uint64_t>(c + 10 * p),
                                                     static_cast<std::uint64_t>(t)));
  });
  const Sums want = expected(v);
  for (const auto& implementation : cpu_names(SampleFormat::cf32)) {
    for (const std::int64_t blocks : {0, 1, 5}) {
      EXPECT_EQ(run(implementation, v, blocks, 2).real, want.real)
          << implementation << " " << blocks;
    }
  }
}

// cf16 widens exactly: same sums as cf32 of the same values.
TEST(Float, HalvesEqualFloats) {
  constexpr std::int64_t kN = 5;
  constexpr std::int64_t kSpectra = 70;
  Voltages halves(SampleFormat::cf16, 1, kSpectra, kN);
  Voltages floats(SampleFormat::cf32, 1, kSpectra, kN);
  for (std::int64_t t = 0; t < kSpectra; ++t) {
    for (std::int64_t p = 0; p < kN; ++p) {
      const std::uint64_t bits =
          combine(static_cast<std::uint64_t>(t), static_cast<std::uint64_t>(p));
      // exponents 0 (subnormal) to 20, both signs
      const auto half = [](std::uint64_t b) {
        return static_cast<std::uint16_t>((b & 0x83ff) | (b >> 20) % 21 << 10);
      };
      const std::uint16_t parts[2] = {half(bits), half(bits >> 24)};
      auto* cell = reinterpret_cast<unsigned char*>(halves.view.cell(0, t / 32, p)) +
                   t % 32 / 16 * 64 + t % 16 * 2;
      std::memcpy(cell, &parts[0], 2);
      std::memcpy(cell + 32, &parts[1], 2);
      set_sample(floats.view, 0, t, p, get_sample(halves.view, 0, t, p));
    }
  }
  for (const auto& implementation : cpu_names(SampleFormat::cf32)) {
    EXPECT_EQ(run(implementation, halves).real, run(implementation, floats).real) << implementation;
  }
}

}  // namespace
}  // namespace ryle::correlate::test
