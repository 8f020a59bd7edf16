// SPDX-License-Identifier: BSD-3-Clause
// Splits, losses, dither, saturation, threads, rejections: everything that must be exact.
#include <algorithm>

#include "ryle/core/error.hpp"
#include "ryle/engine/channelize/dither.hpp"
#include "tests/engine/channelize/harness.hpp"

namespace ryle::channelize::test {
namespace {

Config small(SampleFormat format = SampleFormat::ci8, SampleFormat output = SampleFormat::ci8) {
  Config config;
  config.n_inputs = 3;
  config.n_channels = 64;
  config.n_taps = 4;
  config.layout.format = format;
  config.output = output;
  config.reference_hz = 150e6;
  return config;
}

std::vector<DelayPolynomial> moving_delays(const Config& config) {
  std::vector<DelayPolynomial> delays(static_cast<std::size_t>(config.n_inputs));
  for (std::int64_t p = 0; p < config.n_inputs; ++p) {
    delays[p].reference_tick = 1000;
    delays[p].delay_s[0] = (2.3 + 7.9 * static_cast<double>(p)) / config.sample_rate_hz;
    delays[p].delay_s[1] =
        4e-4 * static_cast<double>(p + 1);  // crosses whole samples every 600 samples or so
    delays[p].phase_turns[0] = 0.1 * static_cast<double>(p);
    delays[p].phase_turns[1] = 17;
  }
  return delays;
}

// --- purity
// --------------------------------------------------------------------------------------------------------

/// Spectra of the whole gulp, computed in two calls that split it, each with its own samples only.
void expect_split_invariance(const Case& whole, const std::string& implementation) {
  Result all = run(whole, implementation);
  for (std::int64_t cut = 1; cut < whole.n_spectra; cut += cut < 20 ? 1 : 13) {
    for (int half = 0; half < 2; ++half) {
      Case part = whole;
      part.first_spectrum = whole.first_spectrum + (half == 0 ? 0 : cut);
      part.n_spectra = half == 0 ? cut : whole.n_spectra - cut;
      // The samples start at another address, so alignment and staging differ as well.
      const std::int64_t skip = half == 0 ? 0 : cut * step_length(whole.config) - 64;
      const std::int64_t bytes =
          std::max<std::int64_t>(0, skip) * whole.config.layout.sample_stride_bits / 8;
      Config config = part.config;
      config.implementation = implementation;
      Queue queue = Queue::cpu(1);
      auto engine = make_channelizer(queue, config);
      engine->set_delays(part.delays);
      Result result(config, part.n_spectra);
      Input input = whole.input();
      input.samples = whole.samples.data() + bytes;
      input.first_tick += std::max<std::int64_t>(0, skip);
      input.n_samples -= std::max<std::int64_t>(0, skip);
      engine->execute(queue, input, part.first_spectrum, part.n_spectra, result.output());
      for (std::int64_t i = 0; i < part.n_spectra; ++i) {
        const std::int64_t j = i + (half == 0 ? 0 : cut);
        for (std::int64_t p = 0; p < config.n_inputs; ++p) {
          ASSERT_EQ(result.is_valid(p, i), all.is_valid(p, j))
              << implementation << " cut " << cut << " at " << i;
          for (std::int64_t c = 0; c < config.n_channels; ++c) {
            ASSERT_EQ(result.at(c, i, p), all.at(c, j, p))
                << implementation << " cut " << cut << " spectrum " << j;
          }
        }
      }
    }
  }
}

TEST(Split, anywhere_gives_the_same_bits) {
  auto names = cpu_names();
  for (const auto& each : names) {
    for (const auto output : {SampleFormat::ci8, SampleFormat::cf32}) {
      Case c = make_case(small(SampleFormat::ci8, output), 500, 77);
      c.delays = moving_delays(c.config);
      c.absent = {{1, c.first_tick + 900, c.first_tick + 1000}};
      expect_split_invariance(c, each);
    }
    Config oversampled = small(SampleFormat::ci5, SampleFormat::cf32);
    oversampled.step_samples = 48;
    Case c = make_case(oversampled, 333, 70);
    c.delays = moving_delays(c.config);
    expect_split_invariance(c, each);
  }
}

TEST(Split, any_number_of_workers_gives_the_same_bits) {
  Config config = small();
  config.n_inputs = 5;
  Case c = make_case(config, 10, 700);
  c.delays = moving_delays(c.config);
  for (const auto& each : cpu_names()) {
    Result one = run(c, each, 1);
    for (const int workers : {2, 3, 5}) {
      Result many = run(c, each, workers);
      EXPECT_TRUE(many.same_bytes(one)) << each << " " << workers;
      for (std::size_t i = 0; i < one.statistics.size(); ++i) {
        EXPECT_EQ(many.statistics[i].sum_of_squares, one.statistics[i].sum_of_squares);
        EXPECT_EQ(many.statistics[i].n_samples, one.statistics[i].n_samples);
      }
    }
  }
}

// --- losses
// --------------------------------------------------------------------------------------------------------

TEST(Loss, an_aligned_packet_of_q_spectra_flags_q_plus_taps_minus_one) {
  for (const std::int64_t q : {1, 2, 5}) {
    Case c = make_case(small(), 100, 90);
    const std::int64_t k = 64;
    const Tick begin = (100 + 40) * k;
    c.absent = {{1, begin, begin + q * k}};
    auto names = cpu_names();
    names.emplace_back("reference");
    for (const auto& each : names) {
      Result r = run(c, each);
      std::int64_t flagged = 0;
      for (std::int64_t i = 0; i < 90; ++i) {
        EXPECT_TRUE(r.is_valid(0, i) && r.is_valid(2, i));
        flagged += r.is_valid(1, i) ? 0 : 1;
        EXPECT_EQ(r.is_valid(1, i), i <= 36 || i >= 40 + q) << each << " " << i;
      }
      EXPECT_EQ(flagged, q + c.config.n_taps - 1) << each;
      EXPECT_EQ(r.statistics[1].n_samples, 90 - flagged);
    }
  }
}

TEST(Loss, every_single_lost_sample_flags_exactly_the_spectra_that_read_it) {
  Config config = small(SampleFormat::ci8, SampleFormat::ci4);
  config.step_samples = 56;
  Case c = make_case(config, 20, 40);
  c.delays = moving_delays(c.config);
  for (auto& d : c.delays) d.delay_s[1] = 0;
  Config with = c.config;
  for (Tick lost = c.first_tick; lost < c.first_tick + c.n_samples; lost += 29) {
    c.absent = {{2, lost, lost + 1}, {2, lost, lost}};
    Result r = run(c, cpu_names().front());
    const auto shift =
        static_cast<std::int64_t>(std::llround(c.delays[2].delay_s[0] * with.sample_rate_hz));
    for (std::int64_t i = 0; i < c.n_spectra; ++i) {
      const Tick begin = (20 + i) * 56 - shift;
      const bool inside = begin >= c.first_tick && begin + 256 <= c.first_tick + c.n_samples;
      const bool touched = begin <= lost && lost < begin + 256;
      ASSERT_EQ(r.is_valid(2, i), inside && !touched) << "lost " << lost << " spectrum " << i;
    }
  }
}

TEST(Loss, absent_spectra_are_zero_and_lost_values_never_matter) {
  for (const auto output :
       {SampleFormat::ci8, SampleFormat::ci4, SampleFormat::cf16, SampleFormat::cf32}) {
    Case c = make_case(small(SampleFormat::ci8, output), 0, 150);
    c.config.dither = true;
    c.absent = {{0, 1000, 1001}, {0, 3000, 5000}, {2, -50, 30}, {1, 0, 1 << 30}};
    Case other = c;
    for (Tick t = 3000; t < 5000; ++t) {
      for (int b = 0; b < 2; ++b)
        other.samples[static_cast<std::size_t>(2 * t + b)] ^= std::byte{0x55};
    }
    auto names = cpu_names();
    names.emplace_back("reference");
    for (const auto& each : names) {
      Result r = run(c, each);
      Result s = run(other, each);
      EXPECT_TRUE(r.same_bytes(s)) << each << ": values of lost samples changed the output";
      for (std::int64_t i = 0; i < 150; ++i) {
        EXPECT_FALSE(r.is_valid(1, i));
        for (std::int64_t p = 0; p < 3; ++p) {
          for (std::int64_t ch = 0; ch < 64; ++ch) {
            if (r.is_valid(p, i)) continue;
            ASSERT_EQ(r.at(ch, i, p), cf64(0, 0)) << each << " spectrum " << i;
          }
        }
      }
      // Words beyond the last spectrum are 0 too, so that counts may use popcount.
      EXPECT_EQ(r.valid[2] >> (150 - 128), 0u);
    }
  }
}

TEST(Loss, spectra_outside_the_gulp_are_absent) {
  Case c = make_case(small(), 10, 30);
  c.first_tick += 100;      // the first two spectra begin earlier
  c.n_samples -= 100 + 65;  // and the last two end later
  for (const auto& each : cpu_names()) {
    Result r = run(c, each);
    for (std::int64_t i = 0; i < 30; ++i)
      EXPECT_EQ(r.is_valid(0, i), i >= 2 && i < 28) << each << " " << i;
  }
}

TEST(Loss, a_partial_last_block_ends_in_zeros) {
  for (const auto output :
       {SampleFormat::ci8, SampleFormat::ci4, SampleFormat::cf16, SampleFormat::cf32}) {
    Case c = make_case(small(SampleFormat::ci8, output), 0, 67);
    for (const auto& each : cpu_names()) {
      Result r = run(c, each);
      const std::int64_t all = n_blocks(output, 67) * spectra_per_block(output);
      for (std::int64_t i = 67; i < all; ++i) {
        for (std::int64_t ch = 0; ch < 64; ++ch) ASSERT_EQ(r.at(ch, i, 1), cf64(0, 0)) << each;
      }
    }
  }
}

// --- dither, rounding, saturation
// ----------------------------------------------------------------------------------

/// A constant input with a rectangular plain FFT of one channel: y = gain * constant exactly.
Case constant_case(double value, bool dither, std::int64_t n,
                   SampleFormat output = SampleFormat::ci8) {
  Config config;
  config.n_inputs = 2;
  config.n_channels = 1;
  config.n_taps = 1;
  config.layout.format = SampleFormat::cf32;
  config.output = output;
  config.dither = dither;
  Case c = make_case(config, 12345, n);
  for (std::int64_t t = 0; t < 2 * c.n_samples; ++t) {
    const std::array<float, 2> v{static_cast<float>(value), static_cast<float>(-value)};
    if (8 * (t + 1) <= static_cast<std::int64_t>(c.samples.size()))
      std::memcpy(c.samples.data() + 8 * t, v.data(), 8);
  }
  return c;
}

TEST(Dither, is_the_same_on_every_implementation_and_equals_its_definition) {
  Case c = constant_case(0.3, true, 1000);
  Result reference = run(c, "reference");
  for (const auto& each : cpu_names()) EXPECT_TRUE(run(c, each).same_bytes(reference)) << each;
  for (std::int64_t i = 0; i < 1000; ++i) {
    const std::uint32_t bits =
        dither_bits(dither_channel_key(1, 0), dither_input_key(1), dither_spectrum_key(12345 + i));
    EXPECT_EQ(reference.at(0, i, 1).real(),
              std::nearbyint(static_cast<double>(0.3f) + dither_re(bits)));
    EXPECT_EQ(reference.at(0, i, 1).imag(),
              std::nearbyint(static_cast<double>(-0.3f) + dither_im(bits)));
  }
}

TEST(Dither, makes_the_mean_exact) {
  for (const double y : {0.3, 0.05, 3.77}) {
    constexpr std::int64_t kN = 250000;
    Case c = constant_case(y, true, kN);
    Result r = run(c, cpu_names().front());
    double sum = 0;
    for (std::int64_t i = 0; i < kN; ++i) {
      for (std::int64_t p = 0; p < 2; ++p) sum += r.at(0, i, p).real() - r.at(0, i, p).imag();
    }
    // 1e6 parts, each with a standard deviation of at most 0.5: 5 sigma = 2.5e-3.
    EXPECT_NEAR(sum / (4.0 * kN), y, 2.5e-3);
  }
}

TEST(Dither, differs_between_inputs_channels_spectra_parts_and_seeds) {
  // Correlation of uniform variables over 2^16 keys: 5 sigma = 5 / 256, in units of the variance
  // 1/12.
  const auto correlation = [](auto a, auto b) {
    double sum = 0;
    for (std::int64_t m = 0; m < 65536; ++m)
      sum += static_cast<double>(a(m)) * static_cast<double>(b(m));
    return 12 * sum / 65536;
  };
  const auto re = [](std::uint64_t seed, std::int64_t p, std::int64_t c, std::int64_t shift) {
    return [=](std::int64_t m) {
      return dither_re(dither_bits(dither_channel_key(seed, c), dither_input_key(p),
                                   dither_spectrum_key(m + shift)));
    };
  };
  const auto im = [](std::int64_t m) {
    return dither_im(
        dither_bits(dither_channel_key(1, 0), dither_input_key(0), dither_spectrum_key(m)));
  };
  EXPECT_NEAR(correlation(re(1, 0, 0, 0), re(1, 0, 0, 0)), 1, 0.02);
  EXPECT_NEAR(correlation(re(1, 0, 0, 0), im), 0, 0.0196);
  EXPECT_NEAR(correlation(re(1, 0, 0, 0), re(1, 1, 0, 0)), 0, 0.0196);
  EXPECT_NEAR(correlation(re(1, 0, 0, 0), re(1, 0, 1, 0)), 0, 0.0196);
  EXPECT_NEAR(correlation(re(1, 0, 0, 0), re(2, 0, 0, 0)), 0, 0.0196);
  EXPECT_NEAR(correlation(re(1, 0, 0, 0), re(1, 0, 0, 1)), 0, 0.0196);
}

TEST(Requantize, saturates_and_counts_low_and_high_apart) {
  for (const auto output : {SampleFormat::ci8, SampleFormat::ci4}) {
    const double limit = output == SampleFormat::ci8 ? 127 : 7;
    for (const double excess : {0.0, 0.49, 0.5, 0.51, 1000.0, 1e7}) {
      Case c = constant_case(limit + excess, false, 130, output);
      c.absent = {{0, 12345 + 5, 12345 + 15}};  // flagged samples are never counted
      auto names = cpu_names();
      names.emplace_back("reference");
      for (const auto& each : names) {
        Result r = run(c, each);
        const bool clipped = excess >= 0.5;  // 127.5 rounds to the even 128
        EXPECT_EQ(r.at(0, 0, 0), cf64(limit, -limit)) << each << " " << excess;
        EXPECT_EQ(r.statistics[0].saturated_high, clipped ? 120 : 0) << each << " " << excess;
        EXPECT_EQ(r.statistics[0].saturated_low, clipped ? 120 : 0) << each << " " << excess;
        EXPECT_EQ(r.statistics[1].saturated_low, clipped ? 130 : 0) << each << " " << excess;
        EXPECT_EQ(r.statistics[0].n_samples, 120);
        EXPECT_EQ(r.statistics[0].sum_of_squares, 120 * 2 * limit * limit) << each;
      }
    }
  }
}

TEST(Requantize, rounds_ties_to_even_or_truncates) {
  const double values[] = {0.5, 1.5, 2.5, 3.49, 3.51, -0.5, -1.5, 6.5};
  const double even[] = {0, 2, 2, 3, 4, 0, -2, 6};
  const double truncated[] = {0, 1, 2, 3, 3, 0, -1, 6};
  for (int v = 0; v < 8; ++v) {
    Case c = constant_case(values[v], false, 20);
    auto names = cpu_names();
    names.emplace_back("reference");
    for (const auto& each : names) {
      EXPECT_EQ(run(c, each).at(0, 3, 1), cf64(even[v], -even[v])) << each << " " << values[v];
      Case t = c;
      t.config.rounding = Rounding::truncate;
      EXPECT_EQ(run(t, each).at(0, 3, 1), cf64(truncated[v], -truncated[v]))
          << each << " " << values[v];
    }
  }
}

TEST(Requantize, halves_are_the_nearest_ones_everywhere) {
  Case c = make_case(small(SampleFormat::ci8, SampleFormat::cf16), 7, 40);
  Case single = c;
  single.config.output = SampleFormat::cf32;
  for (const auto& each : cpu_names()) {
    Result half = run(c, each);
    Result full = run(single, each);
    for (std::int64_t ch = 0; ch < 64; ++ch) {
      for (std::int64_t i = 0; i < 40; ++i) {
        // 11 significant bits: half a unit is 2^-11 of the value at most.
        const cf64 a = half.at(ch, i, 1);
        const cf64 b = full.at(ch, i, 1);
        EXPECT_LE(std::abs(a.real() - b.real()), std::abs(b.real()) * 0x1p-11) << each;
        EXPECT_LE(std::abs(a.imag() - b.imag()), std::abs(b.imag()) * 0x1p-11) << each;
      }
    }
  }
}

TEST(Levels, histogram_and_sums_are_exact_and_skip_what_is_absent) {
  Case c = make_case(small(), 5, 100);
  c.absent = {{1, c.first_tick + 10, c.first_tick + 20}, {1, c.first_tick + 15, c.first_tick + 40}};
  std::vector<LevelStatistics> got(3);
  add_level_statistics(c.config, c.input(), c.first_tick + 5, c.first_tick + 6005, got);
  for (std::int64_t p = 0; p < 3; ++p) {
    LevelStatistics want;
    for (Tick t = 5; t < 6005; ++t) {
      if (p == 1 && t >= 10 && t < 40) continue;
      const cf64 x = decode_sample(c.config.layout, c.samples.data(), p, t);
      ++want.n_samples;
      want.sum_re += x.real();
      want.sum_im += x.imag();
      want.sum_of_squares += std::norm(x);
      ++want.histogram[static_cast<int>(x.real()) + 128];
      ++want.histogram[static_cast<int>(x.imag()) + 128];
    }
    EXPECT_EQ(got[p].n_samples, want.n_samples);
    EXPECT_EQ(got[p].sum_re, want.sum_re);
    EXPECT_EQ(got[p].sum_im, want.sum_im);
    EXPECT_EQ(got[p].sum_of_squares, want.sum_of_squares);
    EXPECT_TRUE(std::equal(std::begin(want.histogram), std::end(want.histogram), got[p].histogram));
  }
}

// --- rejections
// ------------------------------------------------------------------------------------------------------

template <class E>
std::string message_of(const Config& config) {
  Queue queue = Queue::cpu(1);
  try {
    make_channelizer(queue, config);
  } catch (const E& error) {
    return error.what();
  }
  return "";
}

TEST(Rejection, names_what_is_wrong_and_what_would_work) {
  Case good = make_case(small(), 0, 10);
  const auto with = [&](auto change) {
    Config config = good.config;
    change(config);
    return config;
  };
  EXPECT_NE(message_of<UnsupportedError>(with([](Config& c) {
              c.implementation = "cpu:neon";
            })).find("cpu:generic"),
            std::string::npos);
  EXPECT_NE(message_of<UnsupportedError>(with([](Config& c) { c.implementation = ""; })), "");
  EXPECT_NE(message_of<UnsupportedError>(with([](Config& c) {
              c.output = SampleFormat::ci16;
            })).find("ci8"),
            std::string::npos);
  EXPECT_NE(message_of<ConfigError>(with([](Config& c) { c.n_inputs = 0; })).find("n_inputs = 0"),
            std::string::npos);
  EXPECT_NE(message_of<ConfigError>(with([](Config& c) { c.n_channels = 0; })), "");
  EXPECT_NE(message_of<ConfigError>(with([](Config& c) { c.n_taps = 65; })).find("1..64"),
            std::string::npos);
  EXPECT_NE(message_of<ConfigError>(with([](Config& c) { c.step_samples = 65; })).find("1..64"),
            std::string::npos);
  EXPECT_NE(message_of<ConfigError>(with([](Config& c) { c.max_spectra = 0; })), "");
  EXPECT_NE(message_of<ConfigError>(with([](Config& c) { c.sample_rate_hz = -1; })), "");
  EXPECT_NE(message_of<ConfigError>(with([](Config& c) { c.layout.sample_stride_bits = 8; })), "");
  EXPECT_NE(message_of<ConfigError>(with([](Config& c) { c.layout.encoding = Encoding::levels; })),
            "");
  Queue queue = Queue::cpu(1);
  auto engine = make_channelizer(queue, good.config);
  std::vector<DelayPolynomial> delays(2);
  EXPECT_THROW(engine->set_delays(delays), ConfigError);
  delays.resize(3);
  delays[1].delay_s[0] = NAN;
  EXPECT_THROW(engine->set_delays(delays), ConfigError);
  delays[1].delay_s[0] = 0;
  delays[1].delay_s[1] = 0.02;
  EXPECT_THROW(engine->set_delays(delays), ConfigError);
  std::vector<cf32> gains(64);
  EXPECT_THROW(engine->set_gains(View<const cf32, 2>(gains.data(), {1, 64})), ConfigError);
}

TEST(Rejection, every_listed_name_runs_under_that_name) {
  Case c = make_case(small(), 0, 3);
  for (const auto& each : available_implementations()) {
    if (each.rfind("cuda", 0) != 0) run(c, each);  // run() asserts implementation()
  }
  c.config.implementation = "auto";
  Queue queue = Queue::cpu(1);
  EXPECT_EQ(make_channelizer(queue, c.config)->implementation().rfind("channelize/cpu/", 0), 0u);
}

}  // namespace
}  // namespace ryle::channelize::test
