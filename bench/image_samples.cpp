// SPDX-License-Identifier: BSD-3-Clause
// Visibilities in memory to a dirty image: the recording of examples/mwa32t.toml, 16 integrations
// of 128 channels and 496 baselines, on 1,024 x 1,024 pixels of the hemisphere.
#include <array>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "bench/bench.hpp"
#include "ryle/core/random.hpp"
#include "ryle/core/units.hpp"
#include "ryle/engine/image/image.hpp"

namespace ryle::bench {
namespace {

std::vector<image::Sample> scattered_visibilities(int n_antennas, int n_channels, int n_dumps) {
  std::vector<std::array<double, 3>> places;
  for (std::uint64_t a = 0; static_cast<int>(places.size()) < n_antennas; ++a) {
    const auto place = [&](std::uint64_t axis) { return 2 * uniform(combine(17, a, axis)) - 1; };
    places.push_back({90 * place(0), 90 * place(1), 3 * place(2)});  // waves
  }
  std::vector<image::Sample> samples;
  std::uint64_t k = 0;
  for (int dump = 0; dump < n_dumps; ++dump) {
    const double turned_rad = 3.6e-5 * dump;  // half a second of the sky
    for (int b = 1; b < n_antennas; ++b) {
      for (int a = 0; a < b; ++a) {
        const double x = places[a][0] - places[b][0], y = places[a][1] - places[b][1];
        const double z = places[a][2] - places[b][2];
        for (int c = 0; c < n_channels; ++c) {
          const double scale = 1 + 6.5e-5 * c;
          image::Sample s;
          s.u = scale * (x + turned_rad * y);
          s.v = scale * (y - turned_rad * x);
          s.w = scale * z;
          s.visibility = std::polar(1.0, 2 * kPi * uniform(combine(18, ++k, 0)));
          s.weight = 1;
          samples.push_back(s);
        }
      }
    }
  }
  return samples;
}

/// Against the exact sum on a few pixels of a picture as wide.
bool verified_against_sum(Queue& queue, const image::Config& config,
                          const std::vector<image::Sample>& samples,
                          const std::vector<double>& picture) {
  image::Config coarse;
  coarse.n_pixels = 8;
  coarse.width_direction_cosines = config.width_direction_cosines;
  coarse.implementation = "reference";
  std::vector<double> exact;
  image::make_imager(queue, coarse)->execute(queue, samples, exact);
  const std::int64_t step = config.n_pixels / coarse.n_pixels;
  for (std::int64_t y = 0; y < coarse.n_pixels; ++y) {
    for (std::int64_t x = 0; x < coarse.n_pixels; ++x) {
      const double expected = exact[y * coarse.n_pixels + x];
      const double got = picture[y * step * config.n_pixels + x * step];
      if (std::isnan(expected) != std::isnan(got)) return false;
      if (!std::isnan(expected) && !(std::abs(got - expected) < config.max_error)) return false;
    }
  }
  return true;
}

}  // namespace

void bench_sample_image(const Options& options, const Emit& emit) {
  Queue queue = Queue::cpu(options.n_workers);
  const auto samples =
      options.quick ? scattered_visibilities(12, 8, 1) : scattered_visibilities(32, 128, 16);
  for (const double max_error : {1e-4, 1e-6, 1e-9}) {
    image::Config config;
    config.n_pixels = options.quick ? 128 : 1024;
    config.path = image::SamplePath::w_stacked;
    config.implementation = options.implementation;
    config.max_error = max_error;
    const auto imager = image::make_imager(queue, config);
    std::vector<double> picture;
    Result result;
    result.engine = "image";
    result.implementation =
        std::string(image::name(config.path)) + "/" + std::string(imager->implementation());
    result.device = device_description(options.n_workers);
    result.sizes = {{"n_samples", static_cast<double>(samples.size())},
                    {"n_pixels", static_cast<double>(config.n_pixels)},
                    {"max_error", max_error}};
    result.rate_unit = "Mvisibilities/s";
    imager->execute(queue, samples, picture);
    result.verified = verified_against_sum(queue, config, samples, picture);
    if (result.verified) {
      std::tie(result.median_s, result.min_s) =
          time_runs(options.seconds_per_case, [&] { imager->execute(queue, samples, picture); });
      result.rate = 1e-6 * static_cast<double>(samples.size()) / result.median_s;
    }
    emit(result);
  }
}

}  // namespace ryle::bench
