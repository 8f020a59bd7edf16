// SPDX-License-Identifier: BSD-3-Clause
// Channels of an F-engine cut into finer ones: where tones come out, what is lost with a lost
// spectrum, and that products of fine channels add up to those of the coarse ones.
#include "ryle/pipeline/visibility/fine_spectra.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <random>

#include "ryle/core/bits.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"

namespace ryle::pipeline {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kCoarse = 3, kInputs = 2, kChunk = 256;

SpectraMetadata received(double rate_hz, SampleFormat format) {
  SpectraMetadata m;
  m.frequency = {60e6, 25e3, kCoarse};
  m.clock = {1'000'000'000, {static_cast<std::int64_t>(rate_hz), 1}};
  m.format = format;
  m.four_bits = format == SampleFormat::ci4;
  return m;
}

FineSetup setup(const std::vector<std::string>& keys, double rate_hz = 25e3,
                SampleFormat format = SampleFormat::ci8) {
  std::vector<std::string> all{"source.format=chips", "runtime.device=cpu", "runtime.threads=1"};
  all.insert(all.end(), keys.begin(), keys.end());
  const auto config = parse_observation("schema = 1\n", "test", all);
  return fine_setup(config, {kCoarse, kInputs, kChunk, format, true}, received(rate_hz, format));
}

/// Fine spectra as they come out, and which of them were valid.
struct Fine {
  std::map<std::int64_t, std::vector<cf64>> values;  ///< [channel][input]
  std::map<std::int64_t, std::vector<bool>> valid;   ///< the same
  SampleClock clock;
};

/// Feeds `n` spectra of `value` in gulps of `at_once`; those for which `lost` holds are absent.
Fine run_fine(const FineSetup& s, std::int64_t first, std::int64_t n, std::int64_t at_once,
              const std::function<cf64(std::int64_t, std::int64_t, std::int64_t)>& value,
              const std::function<bool(std::int64_t, std::int64_t, std::int64_t)>& lost = {}) {
  Fine out;
  FineSpectra fine(Queue::cpu(1), s,
                   [&](const SpectraGulp& gulp, std::int64_t at, std::int64_t segment,
                       const SampleClock& clock) {
                     EXPECT_EQ(segment, 5);
                     out.clock = clock;
                     for (std::int64_t t = 0; t < gulp.n_spectra; ++t) {
                       for (std::int64_t c = 0; c < gulp.blocks.n_channels; ++c) {
                         for (std::int64_t p = 0; p < kInputs; ++p) {
                           out.values[at + t].push_back(get_sample(gulp.blocks, c, t, p));
                           const auto* row = gulp.valid + c * gulp.valid_channel_stride_words +
                                             p * gulp.valid_words;
                           out.valid[at + t].push_back(gulp.valid == nullptr || test_bit(row, t));
                         }
                       }
                     }
                   });
  SpectraShape shape = s.coarse;
  SpectraBlocks blocks(shape);
  for (std::int64_t done = 0; done < n;) {
    const std::int64_t some = std::min(at_once, n - done);
    fill_mask(shape, some, blocks.mask);
    for (std::int64_t c = 0; c < kCoarse; ++c) {
      for (std::int64_t p = 0; p < kInputs; ++p) {
        for (std::int64_t t = 0; t < some; ++t) {
          const bool gone = lost && lost(c, p, first + done + t);
          set_sample(blocks.view, c, t, p, gone ? cf64(0) : value(c, p, first + done + t));
          auto* row = blocks.mask.bits.data() + c * blocks.mask.channel_stride_words +
                      p * blocks.mask.words;
          if (gone) clear_bits(row, t, t + 1);
        }
      }
    }
    SpectraGulp gulp;
    gulp.blocks = blocks.view;
    gulp.n_spectra = some;
    if (lost) {
      gulp.valid = blocks.mask.bits.data();
      gulp.valid_words = blocks.mask.words;
      gulp.valid_channel_stride_words = blocks.mask.channel_stride_words;
    }
    fine.feed(gulp, first + done, 5, s.received.clock);
    done += some;
  }
  fine.flush();
  return out;
}

cf64 noise(std::int64_t c, std::int64_t p, std::int64_t t, int limit) {
  std::mt19937_64 random(static_cast<std::uint64_t>((c * 7 + p) * 1'000'003 + t));
  std::uniform_int_distribution<int> code(-limit, limit);
  const int re = code(random);
  return {static_cast<double>(re), static_cast<double>(code(random))};
}

// A tone k / K of the sample rate above the center of a channel is in fine channel N/2 + k of it,
// whose center is the tone's frequency; nothing of it is elsewhere but what the window leaks.
TEST(FineSpectra, ATonesChannelHasItsFrequency) {
  struct Case {
    double rate_hz;
    std::vector<std::string> keys;
    std::int64_t kept, points;
  };
  const std::vector<Case> cases{
      {25e3, {"channelize.fine_channels=16"}, 16, 16},
      {25e3, {"channelize.fine_channels=16", "channelize.taps=1"}, 16, 16},
      // Sampled 6/5 times as fast as channels are wide: the middle 10 of 12, 15 of 18.
      {30e3, {"channelize.fine_channels=10"}, 10, 12},
      {30e3, {"channelize.fine_channels=15"}, 15, 18}};
  for (const auto& test : cases) {
    auto keys = test.keys;
    keys.emplace_back("channelize.bits=32");
    const FineSetup s = setup(keys, test.rate_hz);
    ASSERT_EQ(s.channelize.n_channels, test.points);
    const SpectraMetadata fine = s.metadata();
    ASSERT_EQ(fine.frequency.n_channels, kCoarse * test.kept);
    EXPECT_DOUBLE_EQ(fine.frequency.channel_width_hz, 25e3 / static_cast<double>(test.kept));
    for (std::int64_t k = -test.kept / 2; k < test.kept - test.kept / 2; ++k) {
      const double turns = static_cast<double>(k) / static_cast<double>(test.points);
      const Fine out =
          run_fine(s, 960, 600, 200, [&](std::int64_t c, std::int64_t, std::int64_t t) {
            const double phase = 2 * kPi * turns * static_cast<double>(t);
            return c == 1
                       ? cf64(std::round(100 * std::cos(phase)), std::round(100 * std::sin(phase)))
                       : cf64(0);
          });
      ASSERT_FALSE(out.values.empty());
      EXPECT_EQ(out.clock.rate_hz.value() * static_cast<double>(test.points), test.rate_hz);
      const auto& [m, values] = *std::next(out.values.begin());
      const std::int64_t at = test.kept + test.kept / 2 + k;
      double all = 0;
      for (const auto& v : values) all += std::norm(v);
      const double there = std::norm(values[static_cast<std::size_t>(at * kInputs)]) +
                           std::norm(values[static_cast<std::size_t>(at * kInputs + 1)]);
      // Rounded to codes: 2 (1/12) of noise a sample beside 100^2, spread over all channels.
      EXPECT_GT(there, 0.9 * all) << test.points << " " << k << " at " << m;
      EXPECT_NEAR(fine.frequency.center_hz(at), 60e6 + 25e3 + turns * test.rate_hz, 1e-3);
    }
  }
}

// @eq with one tap the transform is unitary: sum over fine channels and spectra of X_p X_q* is that
// of the samples. Tolerance: 1e-6 of the power, float32 sums of 16 products.
TEST(FineSpectra, ProductsOfFineChannelsAddUpToThoseOfTheCoarse) {
  for (const SampleFormat format : {SampleFormat::ci4, SampleFormat::ci8}) {
    const int limit = format == SampleFormat::ci4 ? 7 : 100;
    const FineSetup s = setup(
        {"channelize.fine_channels=16", "channelize.taps=1", "channelize.bits=32"}, 25e3, format);
    const auto value = [&](std::int64_t c, std::int64_t p, std::int64_t t) {
      return noise(c, p, t, limit) + (p == 1 ? noise(c, 0, t, limit / 3) : cf64(0));
    };
    const auto clipped = [&](std::int64_t c, std::int64_t p, std::int64_t t) {
      const cf64 v = value(c, p, t);
      const double low = format == SampleFormat::ci4 ? -8 : -128, high = -low - 1;
      return cf64(std::clamp(v.real(), low, high), std::clamp(v.imag(), low, high));
    };
    const Fine out = run_fine(s, 32, 1600, 100, clipped);
    ASSERT_EQ(out.values.size(), 100U);
    EXPECT_EQ(out.values.begin()->first, 2);
    for (std::int64_t c = 0; c < kCoarse; ++c) {
      for (const auto& [p, q] : {std::pair{0, 0}, std::pair{0, 1}, std::pair{1, 1}}) {
        cf64 coarse = 0, fine = 0;
        double power = 0;
        for (std::int64_t t = 32; t < 1632; ++t) {
          coarse += clipped(c, p, t) * std::conj(clipped(c, q, t));
          power += std::norm(clipped(c, p, t));
        }
        for (const auto& [m, values] : out.values)
          for (std::int64_t f = 0; f < 16; ++f) {
            const auto row = static_cast<std::size_t>((c * 16 + f) * kInputs);
            fine += values[row + static_cast<std::size_t>(p)] *
                    std::conj(values[row + static_cast<std::size_t>(q)]);
          }
        EXPECT_LT(std::abs(fine - coarse), 1e-6 * power) << c << p << q;
      }
    }
  }
}

// Eight bits: every input has the level that was asked for, and the factor is told.
TEST(FineSpectra, LevelsAreSetInputByInputAndTold) {
  const FineSetup s = setup({"channelize.fine_channels=8", "channelize.target_rms_lsb=12"}, 25e3,
                            SampleFormat::ci4);
  std::vector<double> power(kInputs);
  const auto value = [](std::int64_t c, std::int64_t p, std::int64_t t) {
    return noise(c, p, t, p == 0 ? 2 : 6);
  };
  const Fine out = run_fine(s, 0, 4096, 256, value);
  std::int64_t n = 0;
  for (const auto& [m, values] : out.values) {
    for (std::size_t k = 0; k < values.size(); ++k) power[k % kInputs] += std::norm(values[k]);
    n += static_cast<std::int64_t>(values.size()) / kInputs;
  }
  ASSERT_GT(n, 10'000);
  // 5 sigma of the mean of n exponential powers.
  for (const double p : power)
    EXPECT_NEAR(p / static_cast<double>(n) / 2, 144, 144 * (0.01 + 5 / std::sqrt(n)));
}

// A fine spectrum is valid exactly where all of its L samples came; cuts change no bit of it.
TEST(FineSpectra, LossesAndCutsAreThoseOfTheSamples) {
  const FineSetup s = setup({"channelize.fine_channels=8", "channelize.taps=4"});
  const auto value = [](std::int64_t c, std::int64_t p, std::int64_t t) {
    return noise(c, p, t, 60);
  };
  const auto lost = [](std::int64_t c, std::int64_t p, std::int64_t t) {
    return (t / 5 + c * 3 + p * 7) % 40 == 0;
  };
  const Fine whole = run_fine(s, 3, 2000, 256, value, lost);
  const Fine cut = run_fine(s, 3, 2000, 37, value, lost);
  ASSERT_EQ(whole.values.size(), cut.values.size());
  EXPECT_EQ(whole.values.begin()->first, 1);  // ceil(3 / 8)
  std::int64_t n_valid = 0, n_lost = 0;
  for (const auto& [m, valid] : whole.valid) {
    EXPECT_EQ(valid, cut.valid.at(m));
    for (std::int64_t k = 0; k < kCoarse * 8 * kInputs; ++k) {
      const std::int64_t c = k / (8 * kInputs), p = k % kInputs;
      bool expected = true;
      for (std::int64_t t = m * 8; t < m * 8 + 32; ++t) expected = expected && !lost(c, p, t);
      EXPECT_EQ(valid[static_cast<std::size_t>(k)], expected) << m << " " << k;
      (expected ? n_valid : n_lost) += 1;
      if (!expected) {
        EXPECT_EQ(whole.values.at(m)[static_cast<std::size_t>(k)], cf64(0));
      }
    }
  }
  EXPECT_GT(n_valid, 0);
  EXPECT_GT(n_lost, 0);
  // The scale is set from what is there when the first gulp is whole: of cuts that may be more.
  const FineSetup plain = setup({"channelize.fine_channels=8", "channelize.bits=32"});
  EXPECT_EQ(run_fine(plain, 3, 2000, 256, value, lost).values,
            run_fine(plain, 3, 2000, 37, value, lost).values);
}

TEST(FineSpectra, WhatCannotBeCutIsRejected) {
  const auto why = [](const std::vector<std::string>& keys, double rate_hz) -> std::string {
    try {
      setup(keys, rate_hz);
    } catch (const Error& e) {
      return e.what();
    }
    return "taken";
  };
  EXPECT_THAT(why({"channelize.fine_channels=15"}, 25e3), HasSubstr("an even number is wanted"));
  EXPECT_THAT(why({"channelize.fine_channels=16"}, 30e3), HasSubstr("has 19.2 points"));
  EXPECT_THAT(why({"channelize.fine_channels=16"}, 20e3), HasSubstr("too slowly"));
  EXPECT_THAT(why({"channelize.fine_channels=16", "channelize.bits=5"}, 25e3),
              HasSubstr("channelize.bits = 5"));
  EXPECT_THAT(why({"channelize.fine_channels=16", "channelize.bits=32", "image.cadence_s=1"}, 25e3),
              HasSubstr("images are made of spectra of up to 8 bits"));
}

}  // namespace
}  // namespace ryle::pipeline
