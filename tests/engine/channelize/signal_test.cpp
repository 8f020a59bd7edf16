// SPDX-License-Identifier: BSD-3-Clause
// Tones, delays, noise: what the channelizer means, against analytic truth. Values at time t are
// exact (float input).
#include <functional>
#include <numbers>

#include "ryle/math/window.hpp"
#include "tests/engine/channelize/harness.hpp"

namespace ryle::channelize::test {
namespace {

constexpr double kTwoPi = 2 * std::numbers::pi;

std::vector<std::string> all_names() {
  auto names = cpu_names();
  names.emplace_back("reference");
  return names;
}

/// exp(2 pi i turns), the angle reduced first.
cf64 phasor(double turns) { return std::polar(1.0, kTwoPi * (turns - std::floor(turns))); }

/// Fills a float case: real input gets the real part.
void fill(Case& c, const std::function<cf64(std::int64_t input, Tick t)>& value) {
  const bool complex_input = is_complex(c.config.layout.format);
  for (std::int64_t p = 0; p < c.config.n_inputs; ++p) {
    for (std::int64_t t = 0; t < c.n_samples; ++t) {
      const cf64 x = value(p, c.first_tick + t);
      const std::array<float, 2> parts{static_cast<float>(x.real()), static_cast<float>(x.imag())};
      const auto at =
          (p * c.config.layout.input_stride_bits + t * c.config.layout.sample_stride_bits) / 8;
      std::memcpy(c.samples.data() + at, parts.data(), complex_input ? 8 : 4);
    }
  }
}

Config float_config(std::int64_t channels, std::int64_t taps, bool complex_input = true) {
  Config config;
  config.n_inputs = 1;
  config.n_channels = channels;
  config.n_taps = taps;
  config.layout.format = complex_input ? SampleFormat::cf32 : SampleFormat::f32;
  config.output = SampleFormat::cf32;
  config.sample_rate_hz = 1.28e6;
  config.reference_hz = 154.24e6;
  return config;
}

/// A wave of sky frequency nu after mixing: baseband frequency s (nu - nu_0); a real receiver sees
/// its real part, an inverted band the conjugate.
Case tone_case(const Config& config, double sky_hz, std::int64_t first, std::int64_t n) {
  Case c = make_case(config, first, n);
  const double s = config.inverted_band ? -1 : 1;
  fill(c, [&](std::int64_t, Tick t) {
    return 30.0 * phasor(s * (sky_hz - config.reference_hz) / config.sample_rate_hz *
                         static_cast<double>(t));
  });
  return c;
}

TEST(Tone, lands_where_the_header_says_in_upper_sideband_phase) {  // T-FX-17
  for (const bool complex_input : {true, false}) {
    for (const bool inverted : {false, true}) {
      for (const std::int64_t channels : {16, 15, 64}) {
        Config config = float_config(channels, 4, complex_input);
        config.inverted_band = inverted;
        for (const auto& each : all_names()) {
          for (std::int64_t c = 0; c < channels; ++c) {
            const double sky_hz = channel_center_hz(config, c);
            if (c > 0) {
              EXPECT_GT(sky_hz, channel_center_hz(config, c - 1));
            }
            // A real band edge has only itself as image; its phase is not defined.
            if (!complex_input && sky_hz == config.reference_hz) continue;
            const Case k = tone_case(config, sky_hz, 33, 3);
            Result r = run(k, each);
            double sum_h = 0;
            const auto h =
                math::prototype_filter(math::WindowShape::hann, 0, transform_length(config), 4);
            for (const double v : h) sum_h += v;
            // A centred tone of amplitude A gives A sum h in every spectrum: its phase is referred
            // to sample 0.
            const cf64 want(30 * sum_h * (complex_input ? 1 : 0.5), 0);
            // A real tone in the channels next to an edge gets the skirt of its image there: below
            // -60 dB.
            const double slack = complex_input ? 1e-5 : (c < 2 || c > channels - 3 ? 1e-2 : 1e-3);
            EXPECT_LT(std::abs(r.at(c, 1, 0) - want), slack * want.real())
                << each << " channel " << c;
            for (std::int64_t other = 0; other < channels; ++other) {
              if (std::abs(other - c) < 2 || channels - std::abs(other - c) < 2) continue;
              EXPECT_LT(std::abs(r.at(other, 1, 0)), 3e-3 * want.real())
                  << each << " " << c << " leaks to " << other;
            }
          }
        }
      }
    }
  }
}

TEST(Tone, response_follows_the_filter) {  // T-FX-05
  for (const auto& [taps, window] :
       {std::pair{1, Window::rectangular}, {4, Window::hamming}, {8, Window::hann}}) {
    Config config = float_config(64, taps);
    config.window = window;
    const auto shape =
        window == Window::hamming ? math::WindowShape::hamming : math::WindowShape::hann;
    const auto h = math::prototype_filter(shape, 0, 64, taps);
    double sum_h = 0;
    for (const double v : h) sum_h += v;
    const double spacing_hz = config.sample_rate_hz / 64;
    for (double offset = -4; offset <= 4; offset += 1.0 / 32) {
      const Case c = tone_case(config, config.reference_hz + (3 + offset) * spacing_hz, 7, 1);
      const double want = math::filter_response(h, 64, offset);
      for (const auto& each : cpu_names()) {
        const double got = std::abs(run(c, each).at(32 + 3, 0, 0)) / (30 * sum_h);
        // 0.01 dB down to -20 dB; below that the float floor, 1e-7 of the tone, takes over.
        EXPECT_NEAR(got, want, 1.1e-3 * want + 3e-7)
            << each << " taps " << taps << " offset " << offset;
      }
    }
  }
}

TEST(Tone, floats_keep_a_spurious_free_range_of_100_db) {  // T-FX-07
  Config config = float_config(1024, 8);
  for (const std::int64_t channel : {512 + 1, 512 + 3, 512 + 77, 512 - 201, 5}) {
    const Case c = tone_case(config, channel_center_hz(config, channel), 3, 2);
    for (const auto& each : cpu_names()) {
      Result r = run(c, each);
      const double peak = std::abs(r.at(channel, 1, 0));
      for (std::int64_t other = 0; other < 1024; ++other) {
        if (std::abs(other - channel) < 4) continue;
        ASSERT_LT(std::abs(r.at(other, 1, 0)), 1e-5 * peak) << each << " channel " << other;
      }
    }
  }
}

TEST(Noise, keeps_its_power) {  // T-FX-08
  for (const std::int64_t taps : {1, 8}) {
    Config config = float_config(128, taps);
    Case c = make_case(config, 0, 1024);
    double in = 0;
    for (std::int64_t i = 0; i < c.n_samples; ++i)
      in += std::norm(decode_sample(c.config.layout, c.samples.data(), 0, i));
    for (const auto& each : cpu_names()) {
      Result r = run(c, each);
      double out = 0;
      for (const auto& s : r.statistics) out += s.sum_of_squares;
      if (taps == 1) {
        // Parseval: exact but for float rounding, sqrt(2^17) terms of 1e-7 each.
        EXPECT_NEAR(out / in, 1, 1e-6) << each;
      } else {
        // 131072 complex samples, noise of neighbours nearly independent: 5 sigma = 5 /
        // sqrt(131072) = 1.4 %.
        EXPECT_NEAR(out / (1024 * 128 * 2 * 900.0), 1, 0.014) << each;
      }
    }
  }
}

TEST(Noise, the_channelizer_is_linear_over_54_db) {  // T-FX-09
  Config config = float_config(64, 8);
  config.output = SampleFormat::ci8;
  for (const auto& each : cpu_names()) {
    std::vector<double> amplitude;
    for (int step = 0; step < 10; ++step) {
      Case c = tone_case(config, config.reference_hz + 5 * config.sample_rate_hz / 64, 0, 2000);
      const double scale = std::ldexp(0.4, -step);
      c.gains.assign(64, cf32(static_cast<float>(scale), 0));
      Result r = run(c, each);
      cf64 mean = 0;
      for (std::int64_t i = 0; i < 2000; ++i) mean += r.at(32 + 5, i, 0) / 2000.0;
      amplitude.push_back(mean.real() / scale);
      // Dithered rounding: standard deviation of the mean at most 0.5 / sqrt(2000); 5 sigma = 0.056
      // LSB.
      EXPECT_NEAR(mean.real(), amplitude.front() * scale, 0.056 + 0.056 * scale / 0.4)
          << each << " step " << step;
    }
  }
}

// --- delay, phase, gain
// ---------------------------------------------------------------------------------------------

struct Applied {
  double delay_s, rate, phase_turns, phase_rate;
};

/// The tone of every channel centre with delay d(t) applied must be the tone at t - d(t): phase
/// error in degrees.
double worst_phase_error_deg(const Config& config, const Applied& a, const std::string& name,
                             double& amplitude_loss) {
  double worst = 0;
  amplitude_loss = 0;
  const std::int64_t channels = config.n_channels;
  for (const std::int64_t channel :
       {std::int64_t{1}, channels / 3, channels / 2 + 2, channels - 2}) {
    const double sky_hz =
        channel_center_hz(config, channel) +
        0.2 * config.sample_rate_hz / static_cast<double>(transform_length(config));
    Case c = tone_case(config, sky_hz, 100, 150);
    DelayPolynomial d;
    d.reference_tick = 100 * step_length(config);
    d.delay_s[0] = a.delay_s;
    d.delay_s[1] = a.rate;
    d.phase_turns[0] = a.phase_turns;
    d.phase_turns[1] = a.phase_rate;
    c.delays = {d};
    Case plain = c;
    plain.delays.clear();
    Result got = run(c, name);
    Result base = run(plain, name);
    for (std::int64_t i = 0; i < 150; ++i) {
      if (!got.is_valid(0, i) || !base.is_valid(0, i)) continue;
      const double centre =
          static_cast<double>((100 + i) * step_length(config) - d.reference_tick) +
          0.5 * static_cast<double>(filter_length(config) - 1);
      const double t = centre / config.sample_rate_hz;
      const double delay_s = a.delay_s + a.rate * t;
      const double turns = -sky_hz * delay_s + a.phase_turns + a.phase_rate * t;
      const cf64 ratio = got.at(channel, i, 0) / (base.at(channel, i, 0) * phasor(turns));
      worst = std::fmax(worst, std::abs(std::arg(ratio)) * 180 / std::numbers::pi);
      amplitude_loss = std::fmax(amplitude_loss, std::abs(std::abs(ratio) - 1));
    }
  }
  return worst;
}

TEST(Delay, moves_a_tone_in_time_at_its_sky_frequency) {  // T-FX-13, T-FE-04
  const double sample_s = 1 / 1.28e6;
  const Applied cases[] = {{0, 0, 0.5, 0},
                           {0, 0, 0.01, 3},
                           {2.5e-12, 0, 0, 0},
                           {2.75 * sample_s, 0, 0, 0},
                           {-2.75 * sample_s, 0, 0, 0},
                           {31 * sample_s, 0, 0, 0},
                           {-40.49 * sample_s, 0, 0, 0},
                           {0, 2.56e-9, 0, 0},
                           {0.49 * sample_s, -2.56e-9, 0, 0},
                           {1e-7, 0.27e-9, 0.3, -20},
                           {0.45 * sample_s, 2e-5, 0, 0}};
  for (const bool complex_input : {true, false}) {
    for (const bool inverted : {false, true}) {
      for (const std::int64_t channels : {64, 27}) {
        Config config = float_config(channels, 8, complex_input);
        config.inverted_band = inverted;
        for (const Applied& a : cases) {
          double loss = 0;
          const std::string name = cpu_names().front();
          const double error = worst_phase_error_deg(config, a, name, loss);
          // A tone 0.2 channels off centre sees the channel-centre slope: 0.2 / K turns per sample
          // of residual delay, up to half a sample; plus the same for a window that moved by whole
          // samples: exact. Degrees: 36 / K.
          const double k = static_cast<double>(transform_length(config));
          const double bound = 360 * 0.2 * 0.5 / k + 0.05 + (complex_input ? 0 : 0.3);
          EXPECT_LT(error, bound) << name << " delay " << a.delay_s << " rate " << a.rate << " C "
                                  << channels << " complex " << complex_input << " inverted "
                                  << inverted;
          EXPECT_LT(loss, complex_input ? 1e-3 : 6e-3) << name << " delay " << a.delay_s;
        }
      }
    }
  }
}

TEST(Delay,
     every_implementation_agrees_with_the_reference) {  // T-FE-02, T-FE-04: 0.1 degree; here 1e-6
  for (const bool inverted : {false, true}) {
    for (const std::int64_t step : {0, 50}) {
      Config config = float_config(60, 4);
      config.n_inputs = 3;
      config.inverted_band = inverted;
      config.step_samples = step;
      Case c = make_case(config, 5000, 90);
      c.delays.resize(3);
      for (int p = 0; p < 3; ++p) {
        c.delays[p].reference_tick = 4990 * step_length(config);
        c.delays[p].delay_s[0] = (p - 1) * 11.37 / config.sample_rate_hz;
        c.delays[p].delay_s[1] = (p - 1) * 2e-4;
        c.delays[p].delay_s[2] = 1e-3 * p;
        c.delays[p].phase_turns[0] = 0.3 * p;
        c.delays[p].phase_turns[1] = 30;
        c.delays[p].phase_turns[3] = -20;
      }
      for (int i = 0; i < 3 * 60; ++i)
        c.gains.push_back(
            cf32(std::polar(0.1f + 0.05f * static_cast<float>(i), 0.7f * static_cast<float>(i))));
      Result want = run(c, "reference");
      for (const auto& each : cpu_names()) {
        Result got = run(c, each);
        EXPECT_EQ(got.valid, want.valid);
        // Two more factors than without corrections: below 1e-6 of the rms in the mean.
        EXPECT_LT(compare(got, want).rms, 1e-6)
            << each << " inverted " << inverted << " step " << step;
      }
    }
  }
}

TEST(Delay, oversampled_spectra_keep_the_phase_of_the_absolute_sample) {
  for (const std::int64_t step : {28, 27, 16}) {
    Config config = float_config(32, 4);
    config.step_samples = step;
    const Case c = tone_case(config, channel_center_hz(config, 21), 11, 20);
    for (const auto& each : all_names()) {
      Result r = run(c, each);
      for (std::int64_t i = 1; i < 20; ++i) {
        EXPECT_LT(std::abs(r.at(21, i, 0) - r.at(21, 0, 0)), 1e-5 * std::abs(r.at(21, 0, 0)))
            << each << " M " << step;
      }
    }
  }
}

TEST(Gain, acts_on_the_exact_channel_and_input) {  // T-FX-16
  Config config = float_config(32, 4);
  config.n_inputs = 2;
  Case c = make_case(config, 0, 20);
  Case with = c;
  for (int i = 0; i < 64; ++i) {
    with.gains.push_back(
        cf32(std::polar(std::pow(10.0, -7 + 10.0 * uniform(i)), kTwoPi * uniform(1000 + i))));
  }
  for (const auto& each : all_names()) {
    Result plain = run(c, each);
    Result got = run(with, each);
    for (std::int64_t p = 0; p < 2; ++p) {
      for (std::int64_t ch = 0; ch < 32; ++ch) {
        const cf64 want = plain.at(ch, 7, p) * cf64(with.gains[p * 32 + ch]);
        EXPECT_LT(std::abs(got.at(ch, 7, p) - want), 1e-5 * std::abs(want)) << each;
      }
    }
  }
}

}  // namespace
}  // namespace ryle::channelize::test
