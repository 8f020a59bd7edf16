// SPDX-License-Identifier: BSD-3-Clause
// Correlates noise that two inputs share and prints the visibility of every pair.
#include <complex>
#include <cstdio>
#include <random>
#include <ryle/core/blocks.hpp>
#include <ryle/device/buffer.hpp>
#include <ryle/engine/correlate/correlate.hpp>

int main() {
  constexpr std::int64_t kInputs = 3, kChannels = 2, kSpectra = 4096;
  using ryle::SampleFormat;
  // Planar blocks of 8-bit samples, as the channelizer makes them.
  ryle::Buffer<std::byte> bytes(
      ryle::dense_blocks_bytes(SampleFormat::ci8, kChannels, kSpectra, kInputs));
  const auto blocks =
      ryle::dense_blocks(bytes.data(), SampleFormat::ci8, kChannels, kSpectra, kInputs);
  std::mt19937 random(1);
  std::normal_distribution<double> noise(0, 10);
  for (std::int64_t c = 0; c < kChannels; ++c) {
    for (std::int64_t t = 0; t < kSpectra; ++t) {
      const double re = std::round(noise(random)), im = std::round(noise(random));
      ryle::set_sample(blocks, c, t, 0, {re, im});
      ryle::set_sample(blocks, c, t, 1, {-im, re});  // the same, a quarter turn ahead
      ryle::set_sample(blocks, c, t, 2, {std::round(noise(random)), std::round(noise(random))});
    }
  }
  auto queue = ryle::Queue::cpu();
  const auto correlator = ryle::correlate::make_correlator(
      queue, {.n_inputs = kInputs, .n_channels = kChannels, .max_spectra = kSpectra});
  correlator->execute(queue, {.blocks = blocks, .n_spectra = kSpectra});
  ryle::correlate::Sums sums;
  correlator->finish(queue, sums);
  std::printf("%s\n", std::string(correlator->implementation()).c_str());
  for (std::int64_t j = 0; j < kInputs; ++j) {
    for (std::int64_t i = 0; i <= j; ++i) {
      const auto v = sums.integer[static_cast<std::size_t>(ryle::pair_index(i, j))];
      std::printf("channel 0, inputs %d %d: %9.3f %+9.3fi\n", static_cast<int>(i),
                  static_cast<int>(j), static_cast<double>(v.re) / kSpectra,
                  static_cast<double>(v.im) / kSpectra);
    }
  }
}
