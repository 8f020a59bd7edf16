// SPDX-License-Identifier: BSD-3-Clause
// Sizes that plans tell of devices.
#include "ryle/engine/search/device_memory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "ryle/engine/search/dispersion.hpp"

namespace ryle::search {
namespace {

/// The block of Magro 2014 in one-sample steps (search.md).
DedisperseConfig paper_block() {
  Band band;
  band.channel_width_hz = 20e6 / 1024;
  for (int c = 0; c < 1024; ++c)
    band.center_hz.push_back(398e6 + (c + 0.5) * band.channel_width_hz);
  band.sample_interval_s = 51.2e-6;
  DmPlanConfig plan;
  plan.kind = "native";
  plan.dm_max = 87;
  const auto dms = dm_trials(band, plan);
  DedisperseConfig c;
  c.n_channels = 1024;
  c.n_trials = static_cast<std::int64_t>(dms.size());
  c.delays = delay_table(band, dms);
  c.max_outputs = 49152;
  for (const double hz : band.center_hz) c.dispersion.push_back(1e18 / (hz * hz));
  return c;
}

// A node that spans a fraction f of the band's nu^-2 has sweeps 0 .. S f for trials of sweeps 0 ..
// S, each end within one half by rounding, twice.
TEST(DeviceMemory, RowsBetweenThePassesOfTheTree) {
  const auto c = paper_block();
  const auto rows = tree_pass_rows(c);
  ASSERT_EQ(rows.size(), 3U);
  const auto& x = c.dispersion;
  const auto sweep = static_cast<double>(c.n_trials - 1);
  std::size_t pass = 0;
  for (const std::size_t n : {8, 64}) {
    double expected = 0;
    for (std::size_t k = 0; k < 1024; k += n)
      expected += sweep * (x[k] - x[k + n - 1]) / (x.front() - x.back()) + 1;
    EXPECT_NEAR(static_cast<double>(rows[pass++]), expected, 1024 / static_cast<double>(n));
  }
  EXPECT_EQ(rows[2], c.n_trials);
  const std::int64_t max_delay = *std::max_element(c.delays.begin(), c.delays.end());
  const std::int64_t stride = (49152 / 2 + max_delay + 2048 + 63) / 64 * 64;  // of two samples
  EXPECT_EQ(device_tree_bytes(c), (rows[0] + rows[1]) * stride * 4);
  EXPECT_EQ(device_tree_half(512), 256);  // whole tiles of 256 words
  EXPECT_EQ(device_tree_half(513), 512);
}

// 12,544 columns are 196 cells, two in each of 98 threads: 4 tiles of 32.
TEST(DeviceMemory, WindowsOfTheDetector) {
  DetectConfig c;
  c.n_trials = 10;
  c.max_width = 256;
  c.max_columns = 12'544;
  EXPECT_EQ(device_detector_bytes(c), 10 * 4 * 14 * 32 * 4);
  for (auto* reject :
       {+[](DetectConfig& d) { d.max_width = 512; }, +[](DetectConfig& d) { d.threshold = 4.9; },
        +[](DetectConfig& d) { d.max_columns = 60'000; },
        +[](DetectConfig& d) { d.max_columns = 384; },
        +[](DetectConfig& d) { d.format = SumFormat::u32; }}) {
    DetectConfig other = c;
    reject(other);
    EXPECT_EQ(device_detector_bytes(other), 0);
  }
}

// By hand, for a configuration without bursts: moments of cells twice, scales, causes; the median's
// past cells and the one that is open; two bytes a sample of each beam; a flag of each channel of a
// beam and of the user, one coefficient of the band (less than 16 channels) and ten counters.
TEST(DeviceMemory, NormalizerOfBeams) {
  NormalizeConfig c;
  c.n_channels = 10;
  c.statistics_samples = 1024;
  c.median_cells = 16;
  c.flag_spectra = false;
  ASSERT_FALSE(looks_for_bursts(c));
  const std::int64_t beams = 3, samples = 4096;
  EXPECT_EQ(device_normalizer_bytes(c, beams, samples),
            beams * 10 * 4 * (2 * 16 + 16 + 1) + beams * 10 * (1 + 8) * 16 + 2 * beams * samples +
                beams * 10 + 10 + 10 * 8 + beams * 10 * 8);
  // What masks of times, spectral kurtosis and the zero-DM filter add.
  const std::int64_t before = device_normalizer_bytes(c, beams, samples);
  c.mask.blocks.push_back({0, 1, {}});
  c.kurtosis_degrees = 2;
  c.zero_dm = ZeroDm::mean;
  EXPECT_EQ(
      device_normalizer_bytes(c, beams, samples) - before,
      10 * samples + beams * 10 * 4 * 4 + 1025 * 17 + 2 * beams * samples * 4 + beams * 10 * 4);
}

// 39 bytes a channel: 222,720 bytes of shared memory hold 5,710 of them, beyond that 528 thread
// blocks have arrays of their own, in pieces of 128 bytes.
TEST(DeviceMemory, ArraysOfManyChannels) {
  EXPECT_EQ(device_flag_room_bytes(5710), 0);
  EXPECT_EQ(device_flag_room_bytes(5711), 528 * 222848);
  EXPECT_EQ(device_flag_room_bytes(5710, 100 * 1024), 528 * 222720);  // of a smaller device
  NormalizeConfig c;
  c.n_channels = 5711;
  const std::int64_t more = device_normalizer_bytes(c, 1, 4096);
  c.n_channels = 5710;
  // Bytes of a channel: cells, the median's, flags, twelve coefficients.
  const std::int64_t rows = (4 * (2 * 16 + 16 + 1)) + (1 + 8) * 16 + 2 + 12 * 8;
  EXPECT_EQ(more - device_normalizer_bytes(c, 1, 4096), rows + 528 * 222848);
}

}  // namespace
}  // namespace ryle::search
