// SPDX-License-Identifier: BSD-3-Clause
// What only the integer filter does: arranged windows, digits of coefficients, constant terms.
// Every implementation runs, because all must agree with the equation.
#include "tests/engine/channelize/harness.hpp"

namespace ryle::channelize::test {
namespace {

constexpr std::int64_t kSpare = 4;  // spectra on either side that delays may reach into

Case case_with_room(const Config& config, std::int64_t first, std::int64_t n) {
  Case c = make_case(config, first - kSpare, n + 2 * kSpare);
  c.first_spectrum = first;
  c.n_spectra = n;
  return c;
}

Config interleaved(std::int64_t n_channels, std::int64_t n_taps) {
  Config config;
  config.n_inputs = 64;
  config.n_channels = n_channels;
  config.n_taps = n_taps;
  config.output = SampleFormat::cf32;
  config.layout.format = SampleFormat::ci5;
  config.layout.re_shift = 0;
  config.layout.im_shift = 5;
  config.layout.input_stride_bits = 16;
  config.layout.sample_stride_bits = 16 * 64;
  config.sample_rate_hz = 1e6;
  return config;
}

void expect_reference(const Case& c, const std::string& what) {
  Result want = run(c, "reference");
  for (const auto& each : cpu_names()) {
    Result got = run(c, each);
    // Single precision, as in reference_test; coefficients of 23 bits add 3e-7.
    EXPECT_LT(compare(got, want).rms, 1e-6) << each << ", " << what;
    EXPECT_EQ(got.valid, want.valid) << each << ", " << what;
  }
}

// Inputs that start at different samples share one unpacking: windows begin anywhere in the first
// row. Delays beyond one row, and transforms in two steps, go another way.
TEST(Digits, interleaved_inputs_with_delays_of_their_own) {
  for (const std::int64_t channels : {20, 32, 512}) {
    for (const std::int64_t spread : {channels - 1, 2 * channels}) {
      Case c = case_with_room(interleaved(channels, 4), 11, 67);
      for (std::int64_t p = 0; p < 64; ++p) {
        DelayPolynomial d;
        d.delay_s[0] = static_cast<double>(p * spread / 63 - spread / 2) / c.config.sample_rate_hz;
        c.delays.push_back(d);
      }
      c.absent.push_back({5, c.first_tick + 30 * channels, c.first_tick + 31 * channels});
      if (channels == 512) c.n_spectra = 20;
      expect_reference(c, std::to_string(channels) + " channels, spread " + std::to_string(spread));
    }
  }
}

// Samples of the sign of the coefficient they meet, as large as a byte can be: the largest sums
// there are. They must not wrap.
TEST(Digits, the_largest_sums_fit) {
  for (const auto window : {Window::rectangular, Window::hann, Window::kaiser}) {
    for (const std::int64_t taps : {1, 3, 8, 16}) {
      Config config;
      config.n_inputs = 1;
      config.n_channels = 32;
      config.n_taps = taps;
      config.window = window;
      config.layout.format = SampleFormat::ci8;
      config.output = SampleFormat::cf32;
      Case c = make_case(config, 0, 1);
      Queue queue = Queue::cpu(1);
      const auto engine = make_channelizer(queue, c.config);
      for (std::int64_t n = 0; n < c.n_samples; ++n) {
        const bool up = engine->filter()[static_cast<std::size_t>(n)] < 0;
        // One part the least code everywhere, the other the largest.
        c.samples[static_cast<std::size_t>(2 * n)] = static_cast<std::byte>(up ? 127 : -128);
        c.samples[static_cast<std::size_t>(2 * n + 1)] = static_cast<std::byte>(up ? -128 : 127);
      }
      expect_reference(c, std::to_string(taps) + " taps");
    }
  }
}

// Where the delay steps by a sample, windows do not slide and are read one by one; a spectrum
// asked for alone always slides. The same integers must come out.
TEST(Digits, a_step_of_the_delay_changes_no_bit) {
  for (const std::int64_t channels : {24, 256}) {
    Config config;
    config.n_inputs = 2;
    config.n_channels = channels;
    config.n_taps = 8;
    config.layout.format = SampleFormat::ci8;
    config.sample_rate_hz = 1e6;
    config.output = SampleFormat::cf32;
    const Case all = [&] {
      Case c = case_with_room(config, 100, 70);
      DelayPolynomial d;
      d.reference_tick = 120 * channels;
      d.delay_s[1] = 0.3 / static_cast<double>(channels) / 10;  // a sample in 33 spectra
      c.delays.assign(2, d);
      return c;
    }();
    for (const auto& each : cpu_names()) {
      Result whole = run(all, each);
      for (std::int64_t i = 0; i < all.n_spectra; ++i) {
        Case one = all;
        one.first_spectrum += i;
        one.n_spectra = 1;
        Result alone = run(one, each);
        for (std::int64_t k = 0; k < channels; ++k) {
          ASSERT_EQ(alone.at(k, 0, 1), whole.at(k, i, 1)) << each << ", spectrum " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace ryle::channelize::test
