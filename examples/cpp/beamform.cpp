// SPDX-License-Identifier: BSD-3-Clause
// Points two beams of a line of antennas and prints the power that a plane wave leaves in each.
#include <cmath>
#include <cstdio>
#include <numbers>
#include <ryle/engine/beamform/beamform.hpp>
#include <vector>

int main() {
  constexpr std::int64_t kAntennas = 8, kBeams = 2, kSpectra = 64;
  constexpr double kSpacing_wavelengths = 0.5, kSource_rad = 0.4;
  const auto phase_rad = [](std::int64_t antenna, double angle_rad) {
    return 2 * std::numbers::pi * kSpacing_wavelengths * static_cast<double>(antenna) *
           std::sin(angle_rad);
  };
  // Samples [channel][time][antenna]: a wave from kSource_rad, 8-bit parts.
  std::vector<ryle::ci8> samples;
  for (std::int64_t t = 0; t < kSpectra; ++t) {
    for (std::int64_t a = 0; a < kAntennas; ++a) {
      const auto v = std::polar(100.0, phase_rad(a, kSource_rad) + 0.3 * static_cast<double>(t));
      samples.push_back({static_cast<std::int8_t>(std::lround(v.real())),
                         static_cast<std::int8_t>(std::lround(v.imag()))});
    }
  }
  auto queue = ryle::Queue::cpu();
  const ryle::beamform::Config config{.n_antennas = kAntennas,
                                      .n_beams = kBeams,
                                      .n_channels = 1,
                                      .max_spectra = kSpectra,
                                      .format = ryle::SampleFormat::ci8,
                                      .weights = ryle::beamform::WeightFormat::f32,
                                      .integration = kSpectra};
  const auto beamformer = ryle::beamform::make_beamformer(queue, config);
  std::vector<ryle::cf32> weights;  // [beam][channel][input]: the mean of all antennas
  for (const double angle_rad : {kSource_rad, 0.0})
    for (std::int64_t a = 0; a < kAntennas; ++a)
      weights.emplace_back(std::polar(1.0 / kAntennas, -phase_rad(a, angle_rad)));
  beamformer->set_weights(queue,
                          ryle::View<const ryle::cf32, 3>(weights.data(), {kBeams, 1, kAntennas}));
  std::vector<float> power(kBeams);
  beamformer->execute(queue, {.samples = samples.data(), .n_spectra = kSpectra},
                      ryle::beamform::dense_output(config, power.data(), 1));
  std::printf("%s: at the source %.1f, off it %.1f\n",
              std::string(beamformer->implementation()).c_str(), power[0], power[1]);
}
