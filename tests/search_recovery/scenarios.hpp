// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include "ryle/pipeline/search/search_checks.hpp"
#include "ryle/pipeline/search/search_stream.hpp"
#include "tests/search_recovery/recovery.hpp"

/// Pulses among receivers and interference that are not white noise, as 8-bit codes of a receiver
/// with a real one's ratio of mean and rms: sqrt(channel width x sampling interval).
namespace ryle::test {

enum class Trouble { none, drift, step, flicker, strong_flicker, part_of_band, radar };
struct Scenario {
  const char* name;
  Trouble trouble;
  bool bounded = true;  ///< else measured, whatever comes of it
};
inline constexpr std::array<Scenario, 7> kScenarios{{
    {"steady gain", Trouble::none},
    {"gain +- 1 %, period 10 s", Trouble::drift},
    {"gain steps of 0.5 %, every 7 s", Trouble::step},
    {"1/f gain, 0.02 % rms from 0.008 to 8 Hz", Trouble::flicker},
    {"1/f gain, 0.05 % rms an octave there", Trouble::strong_flicker, false},
    {"pulses every 0.71 s in a fifth of the band", Trouble::part_of_band},
    {"radar: all channels, every 0.37 s", Trouble::radar},
}};

/// 64 channels of 4 MHz from 1.2 GHz on.
inline search::Band wide_band(double interval_s, std::int64_t n_channels = 64) {
  search::Band band;
  band.channel_width_hz = 256e6 / static_cast<double>(n_channels);
  for (std::int64_t c = 0; c < n_channels; ++c)
    band.center_hz.push_back(1.2e9 + (static_cast<double>(c) + 0.5) * band.channel_width_hz);
  band.sample_interval_s = interval_s;
  return band;
}

/// What a scenario searches, and finds.
struct ScenarioSetup {
  search::Band band;
  std::vector<double> dms;
  std::int64_t max_width = 0, block = 8192;
  double fwhm = 2;  ///< samples, of the pulses
  double snr = 20;  ///< ideal
  std::int64_t n_pulses = 24;
  double spacing_s = 1.3;
  double baseline_s = 0;  ///< 0: default, below: none
  search::ZeroDm zero_dm = search::ZeroDm::off;
  std::uint64_t seed = 1;
};

inline ScenarioSetup scenario_setup(double interval_s, double fwhm_s, std::int64_t n_pulses) {
  ScenarioSetup s;
  s.band = wide_band(interval_s);
  for (double dm = 0; dm <= 400; dm += 10) s.dms.push_back(dm);
  // As `ryle search` takes it: 0.1 s, of 8 to 1024 samples.
  s.max_width = std::clamp<std::int64_t>(std::llround(0.1 / interval_s), 8, 1024);
  s.fwhm = std::max(2.0, fwhm_s / interval_s);
  s.n_pulses = n_pulses;
  s.spacing_s = std::max(1.3, 300 * interval_s);  // no pulse is noise of another
  return s;
}

/// Relative gain of the receiver: a function of time.
inline std::vector<double> gain_of(Trouble trouble, double interval_s, std::int64_t n,
                                   std::uint64_t seed) {
  std::vector<double> gain(static_cast<std::size_t>(n), 1.0);
  // Ten octaves of sinusoids, four in each.
  std::vector<std::array<double, 2>> waves;
  for (int k = 0; k < 40; ++k)
    waves.push_back({std::exp2(0.25 * k - 7), 6.283185307179586 * uniform(combine(seed, 77, k))});
  for (std::int64_t t = 0; t < n; ++t) {
    const double s = static_cast<double>(t) * interval_s;
    double& g = gain[static_cast<std::size_t>(t)];
    if (trouble == Trouble::drift) g += 0.01 * std::sin(6.283185307179586 * s / 10);
    if (trouble == Trouble::step) g += static_cast<std::int64_t>(s / 7) % 2 == 1 ? 0.005 : 0;
    if (trouble != Trouble::flicker && trouble != Trouble::strong_flicker) continue;
    const double amplitude = trouble == Trouble::flicker ? 4.47e-5 : 3.54e-4;
    for (const auto& [hz, phase] : waves)
      g += amplitude * std::sin(6.283185307179586 * hz * s + phase);
  }
  return gain;
}

struct ScenarioResult {
  std::int64_t n_pulses = 0, n_found = 0;
  std::int64_t n_false = 0;  ///< candidates of `ryle search` (without a flag) that are no pulse
  double boxcar = 0, refined = 0;  ///< mean of those found over the ideal
  double expected = 0;             ///< of the boxcar, without noise or any trouble
  double data_s = 0;
  double masked_spectra = 0;  ///< part of all samples
};

inline ScenarioResult run_scenario(Trouble trouble, const ScenarioSetup& setup) {
  const search::Band& band = setup.band;
  const double dt = band.sample_interval_s;
  ScenarioResult out;
  std::vector<Injection> pulses;
  for (std::int64_t k = 0; k < setup.n_pulses; ++k) {
    Injection p{0, 120.0 + 10 * static_cast<double>(k % 24), setup.fwhm, 0};
    p.tick =
        (3.0 + setup.spacing_s * static_cast<double>(k)) / dt + 0.25 * static_cast<double>(k % 4);
    p.amplitude = setup.snr / p.ideal(band);
    pulses.push_back(p);
  }
  const double total_s = 3.0 + setup.spacing_s * static_cast<double>(setup.n_pulses) + 2;
  const auto n = static_cast<std::int64_t>(total_s / dt) + setup.block;
  const NoiseTable table;
  const auto gain = gain_of(trouble, dt, n, setup.seed);
  const double ratio = std::sqrt(band.channel_width_hz * dt);  // mean over rms
  std::vector<float> data(static_cast<std::size_t>(band.n_channels() * n));
  for (std::int64_t c = 0; c < band.n_channels(); ++c) {
    float* row = data.data() + c * n;
    table.fill(row, n, combine(setup.seed, static_cast<std::uint64_t>(c)));
    for (const auto& p : pulses)
      p.walk(band, c, [&](std::int64_t t, double x) {
        if (t < n) row[t] += static_cast<float>(p.amplitude * x);
      });
    // Channels answer to the gain by what they hold of the sky: 0.9 to 1.1 of it.
    const double response =
        0.9 + 0.2 * static_cast<double>(c) / static_cast<double>(band.n_channels());
    for (std::int64_t t = 0; t < n; ++t) {
      const double s = static_cast<double>(t) * dt;
      double x = static_cast<double>(row[t]);
      if (trouble == Trouble::part_of_band && c >= 20 && c < 33 &&
          std::fmod(s, 0.71) < std::max(dt, 2e-3))
        x += 3;
      if (trouble == Trouble::radar && std::fmod(s, 0.37) < std::max(dt, 3e-3)) x += 3;
      const double g = gain[static_cast<std::size_t>(t)];
      row[t] = static_cast<float>(g * x + (g - 1) * ratio * response);
    }
    quantize(row, n, 8);
  }
  pipeline::BeamSearchConfig config;
  config.chain.band = band;
  config.chain.dms = setup.dms;
  config.chain.normalize.n_channels = band.n_channels();
  config.chain.normalize.zero_dm = setup.zero_dm;
  config.chain.max_width = setup.max_width;
  config.chain.block_samples = setup.block;
  if (setup.baseline_s >= 0)
    config.chain.baseline_samples =
        search::drift_window(setup.baseline_s, band.sample_interval_s, setup.max_width);
  config.n_workers = 1;
  pipeline::BeamSearch search(config);
  std::vector<pipeline::BeamEvent> events;
  for (std::int64_t first = 0; first < n; first += setup.block)
    search.feed(data.data() + first, 0, n, std::min(setup.block, n - first), events);
  search.finish(events);

  out.n_pulses = std::ssize(pulses);
  out.data_s = static_cast<double>(n) * dt;
  std::vector<std::uint8_t> seen(pulses.size(), 0);
  for (const auto& e : events) {
    const auto& pulse = e.event.pulse;
    bool own = false;
    for (std::size_t k = 0; k < pulses.size(); ++k) {
      const double width = std::max({pulses[k].fwhm, pulse.fwhm_samples, 4.0});
      if (std::abs(pulse.tick - pulses[k].tick) > 3 * width) continue;
      own = true;
      if (seen[k]++ != 0) continue;
      ++out.n_found;
      out.boxcar += static_cast<double>(e.event.cluster.best.snr) / setup.snr;
      out.refined += pulse.snr / setup.snr;
    }
    const auto trial = static_cast<std::size_t>(e.event.cluster.best.trial);
    const auto flags =
        pipeline::candidate_flags(e, band.sweep_samples_per_dm(), dt, setup.dms[trial], 0);
    if (!own && flags.names.empty()) ++out.n_false;
  }
  if (out.n_found > 0) {
    out.boxcar /= static_cast<double>(out.n_found);
    out.refined /= static_cast<double>(out.n_found);
  }
  double expected = 0;
  for (std::size_t k = 0; k < std::min<std::size_t>(8, pulses.size()); ++k)
    expected += noise_free_recovery(band, setup.dms, pulses[k], setup.max_width) /
                static_cast<double>(std::min<std::size_t>(8, pulses.size()));
  out.expected = expected;
  out.masked_spectra = static_cast<double>(search.counts().normalize.masked_spectra) /
                       static_cast<double>(band.n_channels() * n);
  return out;
}

}  // namespace ryle::test
