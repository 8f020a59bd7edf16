// SPDX-License-Identifier: BSD-3-Clause
// Writes the simulated sky in every format, for the peers to open: make_products DIRECTORY.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "ryle/core/error.hpp"
#include "ryle/product/image_file.hpp"
#include "ryle/product/visibility_file.hpp"
#include "tests/product/simulated_sky.hpp"

namespace {

using namespace ryle;

constexpr std::int64_t kDumps = 4;

/// Some values lost: a dead baseline, a flagged channel, half counts.
void lose_some(const Observation& o, VisibilityDump& dump) {
  for (std::int64_t c = 0; c < dump.n_channels; ++c) {
    for (std::int64_t p = 0; p < dump.n_pol_products; ++p) {
      const auto dead = static_cast<std::size_t>(dump.index(c, pair_index(1, 3), p));
      dump.counts[dead] = 0;
      dump.data[dead] = 0;
      dump.counts[static_cast<std::size_t>(dump.index(c, pair_index(0, 2), p))] = 25000;
    }
  }
  (void)o;
}

void write_sky(const std::string& stem, const Observation& observation,
               const std::vector<test::Source>& sky, bool losses) {
  for (const char* suffix : {".ms", ".uvfits", ".uvh5"}) {
    auto writer = open_visibility_writer(stem + suffix, observation, true);
    for (std::int64_t d = 0; d < kDumps; ++d) {
      VisibilityDump dump = test::make_dump(observation, sky, d);
      if (losses) lose_some(observation, dump);
      writer->write(dump);
    }
    writer->publish(observation);
  }
}

/// Noise with a strong transmitter in one channel, for a flagger to find.
void write_interference(const std::string& path) {
  test::Shape shape;
  shape.n_antennas = 4;
  shape.n_channels = 64;
  const Observation observation = test::make_observation(shape);
  auto writer = open_visibility_writer(path, observation, true);
  std::mt19937_64 random(3);
  std::normal_distribution<float> normal;
  for (std::int64_t d = 0; d < 60; ++d) {
    VisibilityDump dump = test::make_dump(observation, {}, d);
    for (std::int64_t c = 0; c < dump.n_channels; ++c) {
      for (std::int64_t b = 0; b < dump.n_baselines; ++b) {
        for (std::int64_t p = 0; p < 4; ++p) {
          cf32& value = dump.data[static_cast<std::size_t>(dump.index(c, b, p))];
          value = cf32(normal(random), normal(random));
          if (c == 20) value += 100.0F;
        }
      }
    }
    writer->write(dump);
  }
  writer->publish(observation);
}

/// A picture of points painted on the pixel nearest to each source, for the WCS to be checked
/// against.
SkyImage paint(const Observation& observation, const std::vector<test::Source>& sky) {
  SkyImage image;
  image.n_pixels = 64;
  image.stokes = {1, 2, 3, 4};
  image.cell_direction_cosine = 0.005;
  image.center = observation.phase_center;
  image.frequency = observation.frequency;
  image.n_channels = observation.frequency.n_channels;
  image.start_tai_ns = test::kStart_tai_ns;
  image.centroid_tai_ns = test::kStart_tai_ns + 1'000'000'000;
  image.exposure_s = 2;
  image.unit = "Jy/beam";
  image.pixels.assign(static_cast<std::size_t>(64 * 64 * 4 * image.n_channels), 0.0F);
  image.pixels[0] = std::nanf("");
  for (const test::Source& s : sky) {
    const Vector3 lmn = test::direction_cosines(s.direction, image.center);
    const auto x = 32 - std::llround(lmn[0] / image.cell_direction_cosine);
    const auto y = 32 + std::llround(lmn[1] / image.cell_direction_cosine);
    image.pixels[static_cast<std::size_t>(y * 64 + x)] = static_cast<float>(s.i);
  }
  return image;
}

nlohmann::json truth_of(const Observation& o, const std::vector<test::Source>& sky) {
  nlohmann::json truth{
      {"ra_rad", o.phase_center.ra_rad}, {"dec_rad", o.phase_center.dec_rad}, {"n_dumps", kDumps}};
  for (const test::Source& s : sky) {
    const Vector3 lmn = test::direction_cosines(s.direction, o.phase_center);
    truth["sources"].push_back({{"l", lmn[0]},
                                {"m", lmn[1]},
                                {"ra_rad", s.direction.ra_rad},
                                {"dec_rad", s.direction.dec_rad},
                                {"i", s.i},
                                {"q", s.q},
                                {"u", s.u},
                                {"v", s.v}});
  }
  return truth;
}

int run(const std::string& directory) {
  std::filesystem::create_directories(directory);
  test::Shape shape;
  shape.n_antennas = 32;
  shape.n_channels = 8;
  shape.radius_m = 150;
  shape.width_hz = 160e3;
  const Observation observation = test::make_observation(shape);
  const auto sky = test::four_quadrants(observation);
  write_sky(directory + "/sky", observation, sky, false);
  test::Shape small;
  small.n_antennas = 5;
  const Observation lossy = test::make_observation(small);
  write_sky(directory + "/lossy", lossy, test::four_quadrants(lossy), true);
  test::Shape single;
  single.n_antennas = 3;
  single.n_channels = 1;
  single.n_pols = 1;
  const Observation one = test::make_observation(single);
  write_sky(directory + "/one", one, test::four_quadrants(one), false);
  write_interference(directory + "/interference.ms");
  write_fits_image(directory + "/painted.fits", paint(observation, sky), observation, true);
  std::ofstream(directory + "/truth.json") << truth_of(observation, sky).dump(1);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_products DIRECTORY\n");
    return 64;
  }
  try {
    return run(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "make_products: %s\n", error.what());
    return 1;
  }
}
