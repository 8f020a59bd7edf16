// SPDX-License-Identifier: BSD-3-Clause
#include "bench/image_case.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "ryle/core/random.hpp"

namespace ryle::bench {

image::AllSkyConfig scattered_array(std::int64_t n_antennas, std::int64_t n_channels,
                                    std::int64_t n_spectra, image::Path path) {
  image::AllSkyConfig config;
  config.channels = {60e6, 25e3, n_channels};
  config.n_spectra_per_image = n_spectra;
  config.path = path;
  config.allow_wrap = true;  // 88 MHz reaches beyond the smallest grids
  constexpr double kSpacing_m = 4.5;
  for (std::uint64_t k = 0; static_cast<std::int64_t>(config.antenna_enu_m.size()) < n_antennas;
       ++k) {
    const double x = 100 * (uniform(combine(5, k, 0)) - 0.5);
    const double y = 120 * (uniform(combine(5, k, 1)) - 0.5);
    if (std::hypot(x / 50, y / 60) > 1) continue;
    const bool close = std::any_of(
        config.antenna_enu_m.begin(), config.antenna_enu_m.end(),
        [&](const auto& other) { return std::hypot(x - other[0], y - other[1]) < kSpacing_m; });
    if (close && k < 100'000) continue;
    config.antenna_enu_m.push_back({x, y, -0.0262 * x + 0.0178 * y});
  }
  for (std::int64_t a = 0; a < n_antennas; ++a) {
    config.inputs.push_back({a, 0, false});
    config.inputs.push_back({a, 1, false});
  }
  return config;
}

ImageData::ImageData(const image::AllSkyConfig& config, std::int64_t n_spectra, bool beyond_cache)
    : n_channels_(config.channels.n_channels),
      n_inputs_(static_cast<std::int64_t>(config.inputs.size())),
      n_spectra_(n_spectra),
      gulp_bytes_(dense_blocks_bytes(SampleFormat::ci4, n_channels_, n_spectra, n_inputs_)) {
  const long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
  const std::int64_t cache_bytes = cache > 0 ? cache : std::int64_t{32} << 20;
  n_gulps_ = beyond_cache ? 2 + cache_bytes * 5 / 4 / gulp_bytes_ : 1;
  memory_ = Buffer<std::byte>(n_gulps_ * gulp_bytes_);
  // Codes of 2.2 LSB, and what lies beyond the last spectrum of a block is 0.
  std::vector<std::byte> table(1 << 16);
  for (std::size_t k = 0; k < table.size(); ++k) {
    const auto code = [&](std::uint64_t part) {
      return static_cast<int>(
          std::clamp(std::nearbyint(2.2 * gaussian(combine(17, k, part))), -7.0, 7.0));
    };
    table[k] = static_cast<std::byte>((code(0) << 4 | (code(1) & 15)) & 255);
  }
  const std::int64_t last = n_spectra % kBlockBytes == 0 ? kBlockBytes : n_spectra % kBlockBytes;
  const std::int64_t n_blocks = (n_spectra + kBlockBytes - 1) / kBlockBytes;
  for (std::int64_t cell = 0; cell * kBlockBytes < memory_.bytes(); ++cell) {
    const std::int64_t block = cell / n_inputs_ % n_blocks;
    const std::int64_t n = block + 1 == n_blocks ? last : kBlockBytes;
    const auto from = combine(29, static_cast<std::uint64_t>(cell)) % (table.size() - kBlockBytes);
    std::copy_n(table.data() + from, n, memory_.data() + cell * kBlockBytes);
  }
}

ConstBlockView ImageData::blocks(std::int64_t gulp) const {
  return dense_blocks(memory_.data() + gulp % n_gulps_ * gulp_bytes_, SampleFormat::ci4,
                      n_channels_, n_spectra_, n_inputs_);
}

image::FieldInput ImageData::field(std::int64_t gulp) const {
  image::FieldInput input;
  input.blocks = blocks(gulp);
  input.n_spectra = n_spectra_;
  return input;
}

correlate::Input ImageData::correlator(std::int64_t gulp) const {
  correlate::Input input;
  input.blocks = blocks(gulp);
  input.n_spectra = n_spectra_;
  return input;
}

correlate::Sums correlated(Queue& queue, const image::AllSkyConfig& config, const ImageData& data,
                           std::int64_t n_gulps) {
  const auto input = data.correlator(0);
  auto correlator = correlate::make_correlator(
      queue, {static_cast<std::int64_t>(config.inputs.size()), config.channels.n_channels,
              SampleFormat::ci4, input.n_spectra, "auto"});
  for (std::int64_t g = 0; g < n_gulps; ++g) correlator->execute(queue, data.correlator(g));
  correlate::Sums sums;
  correlator->finish(queue, sums);
  return sums;
}

image::VisInput vis_input(const correlate::Sums& sums) {
  image::VisInput input;
  input.type = image::VisInput::Type::ci64;
  input.sums = sums.integer.data();
  input.counts = sums.counts.data();
  input.n_spectra = sums.n_spectra;
  return input;
}

TimedAtSpeed time_image(Queue& queue, CoreSpeedProbe& probe, const image::AllSkyConfig& config,
                        const ImageData& data, double seconds) {
  image::Images images;
  if (image::takes_voltages(config.path)) {
    auto imager = image::make_field_imager(queue, config);
    std::int64_t gulp = 0;
    return time_at_speed(probe, seconds, {{[&] {
                           imager->execute(queue, data.field(++gulp));
                           imager->finish(queue, images);
                         }}});
  }
  auto imager = image::make_vis_imager(queue, config);
  // Several sets of sums: a set just written by the correlator is in the cache, a late one is not.
  std::vector<correlate::Sums> sums{correlated(queue, config, data, 1)};
  while (sums.size() < 3) sums.push_back(sums.front());
  std::size_t set = 0;
  return time_at_speed(
      probe, seconds,
      {{[&] { imager->execute(queue, vis_input(sums[++set % sums.size()]), images); }}});
}

}  // namespace ryle::bench
