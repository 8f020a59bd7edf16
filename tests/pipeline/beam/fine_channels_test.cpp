// SPDX-License-Identifier: BSD-3-Clause
// T-BF-23: a tone at 64 offsets across the boundary of two coarse channels, through the F-engine,
// a beam and its fine channels.
#include "ryle/pipeline/beam/fine_channels.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "ryle/core/blocks.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"

namespace ryle::pipeline {
namespace {

constexpr std::int64_t kCoarse = 8, kFine = 16, kTaps = 4, kSpectra = 128;
constexpr double kSampleRate_hz = 200e3, kWidth_hz = kSampleRate_hz / kCoarse;

// |sum h exp(2 pi i f n / rate)|^2
double response(std::span<const double> filter, double f_hz, double rate_hz) {
  cf64 sum = 0;
  for (std::size_t n = 0; n < filter.size(); ++n)
    sum += filter[n] * std::polar(1.0, 2 * kPi * f_hz * static_cast<double>(n) / rate_hz);
  return std::norm(sum);
}

channelize::Config coarse_config() {
  channelize::Config c;
  c.n_inputs = 1;
  c.n_channels = kCoarse;
  c.n_taps = kTaps;
  c.layout.format = SampleFormat::cf32;
  c.layout.sample_stride_bits = 64;
  c.layout.input_stride_bits = 64;
  c.sample_rate_hz = kSampleRate_hz;
  c.output = SampleFormat::cf32;
  c.dither = false;
  c.max_spectra = kSpectra;
  return c;
}

FineConfig fine_config(std::int64_t integration) {
  FineConfig f;
  f.beams.n_antennas = f.beams.n_beams = 1;
  f.beams.n_channels = kCoarse;
  f.beams.max_spectra = kSpectra;
  f.beams.format = SampleFormat::cf32;
  f.beams.output = beamform::OutputKind::voltage;
  f.beams.output_format = beamform::OutputFormat::cf32;
  f.coarse = {-0.5 * kSampleRate_hz, kWidth_hz, kCoarse};
  f.rate_hz = kWidth_hz;
  f.n_fine = kFine;
  f.n_taps = kTaps;
  f.integration = integration;
  return f;
}

TEST(FineChannels, ATonePassesTheBoundaryOfTwoChannels) {
  Queue queue = Queue::cpu(1);
  const auto coarse = channelize::make_channelizer(queue, coarse_config());
  // The filter of the fine channels, in units of coarse spectra.
  channelize::Config same = coarse_config();
  same.n_channels = kFine;
  same.sample_rate_hz = kWidth_hz;
  const auto fine_filter = channelize::make_channelizer(queue, same);
  const std::int64_t n_samples = kSpectra * kCoarse + kTaps * kCoarse;
  std::vector<cf32> tone(static_cast<std::size_t>(n_samples + 64));
  Buffer<std::byte> memory(dense_blocks_bytes(SampleFormat::cf32, kCoarse, kSpectra, 1));
  std::vector<std::uint64_t> valid(2);
  for (int offset = 0; offset < 64; ++offset) {
    // From the center of channel 4 (the middle of the band) to that of channel 5.
    const double f_hz = kWidth_hz * (offset + 0.5) / 64;
    for (std::int64_t t = 0; t < n_samples; ++t)
      tone[static_cast<std::size_t>(t)] = cf32(std::polar(
          1.0, 2 * kPi * std::remainder(f_hz * static_cast<double>(t) / kSampleRate_hz, 1.0)));
    const BlockView blocks = dense_blocks(memory.data(), SampleFormat::cf32, kCoarse, kSpectra, 1);
    coarse->execute(queue, {tone.data(), 0, n_samples, {}}, 0, kSpectra,
                    {blocks, valid.data(), 2, nullptr});
    FineChannels fine(queue, fine_config(1));
    const auto axis = fine.frequency();
    ASSERT_EQ(axis.n_channels, kCoarse * kFine);
    ASSERT_NEAR(axis.center_hz(4 * kFine + kFine / 2), 0, 1e-6);
    const auto out = fine.target(kSpectra);
    for (std::int64_t c = 0; c < kCoarse; ++c) {
      auto* to = reinterpret_cast<cf32*>(static_cast<std::byte*>(out.values) +
                                         c * out.channel_stride_bytes);
      for (std::int64_t t = 0; t < kSpectra; ++t) to[t] = cf32(get_sample(blocks, c, t, 0));
    }
    const std::int64_t n = fine.take(0, kSpectra, {});
    ASSERT_EQ(n, (kSpectra - kFine * kTaps) / kFine + 1);
    const auto values = fine.values();
    const auto power = [&](std::int64_t channel) {
      return double{reinterpret_cast<const float*>(static_cast<const std::byte*>(values.values) +
                                                   channel * values.channel_stride_bytes)[n - 1]};
    };
    const double fine_hz = kWidth_hz / kFine;
    const auto right =
        static_cast<std::int64_t>(std::llround((f_hz - axis.first_center_hz) / fine_hz));
    const std::int64_t channel = right / kFine;
    const double from_center_hz =
        f_hz - (-0.5 * kSampleRate_hz + kWidth_hz * static_cast<double>(channel));
    const double theory = response(coarse->filter(), from_center_hz, kSampleRate_hz) *
                          response(fine_filter->filter(), f_hz - axis.center_hz(right), kWidth_hz);
    EXPECT_NEAR(10 * std::log10(power(right)), 10 * std::log10(theory), 0.05)
        << "offset " << offset;
    std::int64_t largest = 0;
    for (std::int64_t c = 1; c < axis.n_channels; ++c) {
      if (power(c) > power(largest)) largest = c;
    }
    // Within half a fine channel of the boundary a critically sampled channel holds its own alias.
    if (std::fabs(f_hz - 0.5 * kWidth_hz) > 0.5 * fine_hz) {
      EXPECT_EQ(largest, right) << "offset " << offset;
    }
  }
}

// Gulps change nothing; a spectrum that touches a gap is left out of the mean.
TEST(FineChannels, SameValuesForAnyGulpsAndWithoutWhatIsMissing) {
  Queue queue = Queue::cpu(1);
  const auto run = [&](std::int64_t gulp, Tick first_tick, bool gap) {
    FineChannels fine(queue, fine_config(2));
    std::vector<float> all;
    for (Tick t = first_tick; t < 1000; t += gulp) {
      const std::int64_t n = std::min<std::int64_t>(gulp, 1000 - t);
      const auto out = fine.target(n);
      for (std::int64_t c = 0; c < kCoarse; ++c) {
        auto* to = reinterpret_cast<cf32*>(static_cast<std::byte*>(out.values) +
                                           c * out.channel_stride_bytes);
        for (std::int64_t k = 0; k < n; ++k)
          to[k] = cf32(std::polar(1.0, 0.1 * static_cast<double>((t + k) * (c + 1))));
      }
      std::vector<std::pair<std::int64_t, std::int64_t>> absent;
      if (gap && t < 500 && t + n > 480)
        absent.emplace_back(std::max<Tick>(t, 480), std::min<Tick>(t + n, 500));
      const std::int64_t made = fine.take(t, n, absent);
      const auto values = fine.values();
      for (std::int64_t k = 0; k < made; ++k) {
        for (std::int64_t c = 0; c < kCoarse * kFine; ++c)
          all.push_back(reinterpret_cast<const float*>(
              static_cast<const std::byte*>(values.values) + c * values.channel_stride_bytes)[k]);
      }
    }
    return all;
  };
  const auto want = run(128, 0, false);
  ASSERT_EQ(want.size(), (1000 - kFine * kTaps) / kFine / 2u * kCoarse * kFine);
  EXPECT_EQ(run(37, 0, false), want);
  EXPECT_EQ(run(100, 0, true), run(128, 0, true));
  const auto lossy = run(128, 0, true);
  // Tones: every spectrum of a channel has the same power. 480 .. 500 is behind fine spectra 27 to
  // 31, values 13 (one of two left), 14 and 15 (nothing).
  const std::size_t row = kCoarse * kFine;
  for (std::size_t c = 0; c < row; ++c) {
    EXPECT_NEAR(lossy[13 * row + c], want[13 * row + c], 1e-5 + 1e-4 * double{want[13 * row + c]});
    EXPECT_EQ(lossy[14 * row + c], 0);
    EXPECT_EQ(lossy[15 * row + c], 0);
    EXPECT_EQ(lossy[16 * row + c], want[16 * row + c]);
  }
}

TEST(FineChannels, RejectsAnUnevenAxis) {
  Queue queue = Queue::cpu(1);
  FineConfig f = fine_config(1);
  f.n_fine = 15;
  EXPECT_THROW(FineChannels(queue, f), ConfigError);
  f.n_fine = 16;
  f.rate_hz = 1.25 * kWidth_hz;
  EXPECT_THROW(FineChannels(queue, f), UnsupportedError);
}

}  // namespace
}  // namespace ryle::pipeline
