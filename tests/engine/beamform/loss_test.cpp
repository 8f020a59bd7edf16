// SPDX-License-Identifier: BSD-3-Clause
// T-BF-08, 09: masks and lost samples.
#include "tests/engine/beamform/harness.hpp"

namespace ryle::beamform::test {
namespace {

Config small(std::int64_t antennas) {
  Config c;
  c.n_antennas = antennas;
  c.n_beams = 5;
  c.n_channels = 2;
  c.max_spectra = 200;
  return c;
}

// Weight 0 equals the array without the antenna, to the bit.
TEST(Loss, AMaskedAntennaIsNotThere) {
  const Config full = small(6);
  Config without = small(4);
  Stream stream(full, 100), rest(without, 100);
  auto weights = random_weights(full);
  std::vector<cf32> kept;
  for (std::size_t k = 0; k < weights.size(); ++k) {
    const std::size_t antenna = k % 6;
    if (antenna == 1 || antenna == 4) {
      weights[k] = 0;
    } else {
      kept.push_back(weights[k]);
    }
  }
  for (std::int64_t c = 0; c < 2; ++c) {
    for (std::int64_t t = 0; t < 100; ++t) {
      std::int64_t to = 0;
      for (std::int64_t a = 0; a < 6; ++a) {
        if (a != 1 && a != 4) *rest.at(c, t, to++) = *stream.at(c, t, a);
      }
    }
  }
  for (const auto& name : cpu_names(full)) {
    EXPECT_EQ(numbers(full, run(full, name, weights, stream.all())),
              numbers(without, run(without, name, kept, rest.all())))
        << name;
  }
}

struct Lossy {
  explicit Lossy(const Config& c) : config(c), stream(c, 200) {
    const std::int64_t slots = 4, words = words_for_bits(c.n_inputs());
    present.assign(static_cast<std::size_t>(c.n_channels * slots * words), 0);
    for (std::int64_t channel = 0; channel < c.n_channels; ++channel) {
      for (std::int64_t slot = 0; slot < slots; ++slot) {
        auto* row = present.data() + (channel * slots + slot) * words;
        for (std::int64_t i = 0; i < c.n_inputs(); ++i) {
          const bool all_lost = channel == 1 && slot == 2;
          const bool lost = all_lost || (slot == 1 && i % 3 == 0) || (slot == 3 && i == channel);
          if (!lost) {
            set_bit(row, i);
            continue;
          }
          for (std::int64_t t = 50 * slot; t < 50 * (slot + 1); ++t)
            std::memset(stream.at(channel, t, i), 0, static_cast<std::size_t>(stream.bytes));
        }
      }
    }
  }
  Input input() {
    Input in = stream.all(7);
    in.present = present.data();
    in.slot_spectra = 50;
    return in;
  }
  Config config;
  Stream stream;
  std::vector<std::uint64_t> present;
};

TEST(Loss, ImplementationsAgreeWithTheReference) {
  for (const auto mode : {LossMode::renormalize, LossMode::raw}) {
    for (const std::int64_t pols : {1, 2}) {
      for (const std::int64_t integration : {1, 8, 60}) {
        Config c = small(10);
        c.n_pols = pols;
        c.loss = mode;
        c.integration = integration;
        c.incoherent = {std::vector<std::uint8_t>(10, 1)};
        Lossy lossy(c);
        const auto weights = random_weights(c);
        const Result want = run(c, "reference", weights, lossy.input());
        const auto expected = numbers(c, want);
        for (const auto& name : cpu_names(c)) {
          const Result got = run(c, name, weights, lossy.input());
          double largest = 0;
          for (const double v : expected) largest = std::max(largest, v);
          expect_close(numbers(c, got), expected, 1e-5 * largest, name);
          EXPECT_EQ(got.n_used, want.n_used) << name;
          for (std::size_t k = 0; k < want.weight_power.size(); ++k)
            EXPECT_NEAR(got.weight_power[k], want.weight_power[k], 1e-4) << name;
        }
      }
    }
  }
}

// A constant signal of equal weights: renormalized beams do not see the loss, counts are exact.
TEST(Loss, RenormalizesPerSlotAndMeanOverWhatWasThere) {
  Config c = small(6);
  c.weights = WeightFormat::f32;
  c.integration = 200;
  Lossy lossy(c);
  for (std::int64_t channel = 0; channel < 2; ++channel) {
    for (std::int64_t t = 0; t < 200; ++t) {
      for (std::int64_t i = 0; i < 6; ++i) {
        const bool there = test_bit(lossy.present.data() + (channel * 4 + t / 50), i);
        *lossy.stream.at(channel, t, i) = there ? 0x30 : 0x00;
      }
    }
  }
  const std::vector<cf32> weights(static_cast<std::size_t>(5 * 2 * 6), cf32(1));
  auto names = cpu_names(c);
  names.push_back("reference");
  for (const auto& name : names) {
    Input input = lossy.input();
    input.first_tick = 0;
    const Result r = run(c, name, weights, input);
    for (const double v : numbers(c, r)) EXPECT_NEAR(v, 18.0 * 18, 1e-3) << name;
    // channel 0: 50 spectra x (6 + 4 + 6 + 5); channel 1: x (6 + 4 + 0 + 5)
    for (std::size_t beam = 0; beam < 5; ++beam) {
      EXPECT_EQ(r.n_used[2 * beam], 50u * 21) << name;
      EXPECT_EQ(r.n_used[2 * beam + 1], 50u * 15) << name;
      EXPECT_FLOAT_EQ(r.weight_power[2 * beam], 21.0f / 4) << name;
    }
    Config raw = c;
    raw.loss = LossMode::raw;
    const auto p = numbers(raw, run(raw, name, weights, input));
    EXPECT_NEAR(p[0], 9.0 * (36 + 16 + 36 + 25) / 4, 1e-3) << name;
    EXPECT_NEAR(p[1], 9.0 * (36 + 16 + 0 + 25) / 4, 1e-3) << name;
  }
}

TEST(Loss, OneMaskForAllChannels) {
  Config c = small(6);
  Lossy lossy(c);
  Input input = lossy.input();
  input.present_per_channel = false;
  const std::vector<cf32> weights(static_cast<std::size_t>(5 * 2 * 6), cf32(1));
  const Result want = run(c, "reference", weights, input);
  for (const auto& name : cpu_names(c)) {
    const Result got = run(c, name, weights, input);
    EXPECT_EQ(got.n_used, want.n_used) << name;
    EXPECT_EQ(got.n_used[0], got.n_used[1]) << name;
  }
}

}  // namespace
}  // namespace ryle::beamform::test
