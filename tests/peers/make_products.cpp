// SPDX-License-Identifier: BSD-3-Clause
// Writes the simulated sky in every format, for the peers to open: make_products DIRECTORY.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/io/beam/sigproc.hpp"
#include "ryle/io/beam/vdif_file.hpp"
#include "ryle/io/image/image_cube.hpp"
#include "ryle/io/image/image_file.hpp"
#include "ryle/io/image/light_curve.hpp"
#include "ryle/io/visibility/visibility_file.hpp"
#include "tests/io/simulated_sky.hpp"
#include "tests/peers/make_maps.hpp"

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

/// Every kind of product a correlator makes: the unit, the feeds, losses, the phase centre at the
/// zenith (drift) or on a field.
void write_kinds(const std::string& directory) {
  for (const char* unit : {"uncalibrated", "Jy"}) {
    for (const int n_pols : {1, 2}) {
      for (const bool losses : {false, true}) {
        for (const bool drift : {false, true}) {
          test::Shape shape;
          shape.n_antennas = 4;
          shape.n_channels = 3;
          shape.n_pols = n_pols;
          Observation o = test::make_observation(shape);
          o.flux_unit = unit;
          if (drift) {
            o.phase_center = zenith(o.array, test::kStart_tai_ns, o.earth_orientation);
            o.phase_center_name = "zenith";
          }
          write_sky(directory + "/kind_" + unit + "_" + std::to_string(n_pols) +
                        (losses ? "_lossy" : "_whole") + (drift ? "_drift" : "_field"),
                    o, test::four_quadrants(o), losses);
        }
      }
    }
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

/// Point sources through a tilted array, one a plane: what an E-field imager makes of voltages (a
/// direct sum with heights phased to the zenith), with coordinates for astropy to judge.
struct AllSky {
  Observation observation;
  SkyImage image;
  nlohmann::json truth;
};

AllSky inject() {
  constexpr double kAlpha = -0.0262, kBeta = 0.0178, kCell = 1 / 51.2;
  AllSky out;
  Observation& o = out.observation;
  o.array.name = "tilted";
  o.array.latitude_rad = 34.3491 * kDegree_rad;
  o.array.longitude_rad = -106.8857 * kDegree_rad;
  o.array.height_m = 1477;
  o.frequency = {60e6, 25e3, 5};
  SkyImage& image = out.image;
  image.n_pixels = 128;
  image.n_channels = 5;
  image.cell_direction_cosine = kCell;
  image.frequency = o.frequency;
  image.plane_alpha = kAlpha;
  image.plane_beta = kBeta;
  image.start_tai_ns = tai_ns_from_utc_iso("2024-06-27T17:32:27");
  image.centroid_tai_ns = image.start_tai_ns + 20'000'000;
  image.exposure_s = 0.04;
  image.unit = "";
  image.metadata = {"efield", "none (direct sum)", "none", "reference", 0};
  place_at_zenith(image, o.array);
  image.pixels.assign(static_cast<std::size_t>(5 * image.plane_size()), std::nanf(""));
  std::mt19937_64 random(8);
  std::uniform_real_distribution<double> place_m(-50, 50);
  std::vector<std::array<double, 2>> antennas(64);
  for (auto& a : antennas) a = {place_m(random), place_m(random)};
  for (std::int64_t k = 0; k < 5; ++k) {
    const double z = (k == 0 ? 2.0 : 5.0 + 17.5 * static_cast<double>(k)) * kDegree_rad;
    const double az = (40 + 75.0 * static_cast<double>(k)) * kDegree_rad;
    const Vector3 s{std::sin(z) * std::sin(az), std::sin(z) * std::cos(az), std::cos(z)};
    out.truth.push_back({{"az_deg", az / kDegree_rad}, {"zd_deg", z / kDegree_rad}});
    const double turns_per_m = o.frequency.center_hz(k) / kSpeedOfLight_m_per_s;
    for (std::int64_t y = 0; y < 128; ++y) {
      for (std::int64_t x = 0; x < 128; ++x) {
        const double l = -static_cast<double>(x - 64) * kCell;
        const double m = static_cast<double>(y - 64) * kCell;
        if (l * l + m * m >= 1) continue;
        cf64 sum{};
        for (const auto& [east, north] : antennas) {
          const double up = kAlpha * east + kBeta * north;
          sum += std::polar(1.0, 2 * kPi * turns_per_m *
                                     (east * (s[0] - l) + north * (s[1] - m) + up * (s[2] - 1)));
        }
        image.pixels[static_cast<std::size_t>((k * 128 + y) * 128 + x)] =
            static_cast<float>(std::norm(sum) / (64.0 * 64.0));
      }
    }
  }
  return out;
}

/// Everything an image file may hold: bins with a short last one, the cross product, weights; a
/// series.
void write_cubes(const std::string& directory, const AllSky& all_sky) {
  const Observation& o = all_sky.observation;
  SkyImage image = all_sky.image;
  image.n_channels_per_bin = 2;  // five channels: bins of 2, 2, 1
  const std::vector<float> pixels(static_cast<std::size_t>(3 * 4 * image.plane_size()), 1.0F);
  const std::vector<double> weights(9, 5.0);
  take_planes(image, pixels, weights, 3, {-5, -6, kPlaneReXY, kPlaneImXY});
  write_fits_image(directory + "/linear.fits", image, o, true);
  FitsImageSeries series(directory + "/series.fits", o, true);
  for (int k = 0; k < 3; ++k) {
    take_planes(image, pixels, weights, 3, {1, 2, 3, 4});
    image.start_tai_ns += 5'000'000'000;
    image.centroid_tai_ns += 5'000'000'000;
    place_at_zenith(image, o.array);
    series.append(image);
  }
  series.publish();
  ImageCubeWriter cube(directory + "/cube.h5", o, true);
  LightCurveStore store(directory + "/watch.sqlite", o);
  const std::int64_t source = store.source(parse_watch("Cyg A"));
  for (int k = 0; k < 4; ++k) {
    image.start_tai_ns += 5'000'000'000;
    image.centroid_tai_ns += 5'000'000'000;
    image.pixels.front() = static_cast<float>(k);
    cube.append(image);
    const LightCurveSample sample{source, 1,  {1.5 * k, 0, 0, -0.5}, k == 3 ? 0.0 : 7.0, 1,
                                  0.1,    0.2};
    std::vector<FrequencyBin> bins;
    for (std::int64_t b = 0; b < image.n_channels; ++b) bins.push_back(frequency_bin(image, b));
    store.append({image.start_tai_ns, image.centroid_tai_ns, 0.04, bins, "efield", ""},
                 std::span(&sample, 1));
  }
  cube.publish(o);
  ImageEvent event;
  event.tai_ns = image.centroid_tai_ns;
  event.duration_s = 0.32;
  event.direction = {1, 0.5};
  event.snr = {12, std::nan(""), std::nan(""), -3};
  event.cutout_shape = {1, 1, 1, 2};
  event.cutout = {0.5F, 1.5F};
  store.append(event);
  std::ofstream(directory + "/event.xml") << voevent_xml(event, o, 1);
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

// Voltages of a beam: 4 channels, 2 pols, codes anyone can compute.
void write_beam_vdif(const std::string& path, int bits) {
  VdifFileInfo info;
  info.clock.epoch_tai_ns = tai_ns_from_utc_iso("2025-03-01T12:00:00.5");
  info.clock.rate_hz = {32'000, 1};
  info.n_channels = 4;
  info.n_threads = 2;
  info.bits = bits;
  constexpr std::int64_t kTimes = 20'000;
  const int levels = bits == 8 ? 255 : 15;
  std::vector<std::uint8_t> codes;
  for (int channel = 0; channel < 4; ++channel) {
    for (int t = 0; t < kTimes; ++t) {
      for (int pol = 0; pol < 2; ++pol) {
        const auto code = [&](int part) {
          return (channel * 31 + t * 7 + pol * 13 + part * 5) % levels - levels / 2;
        };
        if (bits == 8) {
          codes.push_back(static_cast<std::uint8_t>(code(0)));
          codes.push_back(static_cast<std::uint8_t>(code(1)));
        } else {
          codes.push_back(static_cast<std::uint8_t>((code(0) & 15) << 4 | (code(1) & 15)));
        }
      }
    }
  }
  VdifWriter writer(path, info, true);
  writer.append(codes.data(), kTimes * 2 * bits / 4, 0, kTimes);
  writer.finish();
}

// Power of a beam in every bit depth: codes anyone can compute, as test_filterbank.py does.
void write_filterbank(const std::string& path, int bits) {
  constexpr std::int64_t kChannels = 24, kTimes = 1000;
  FilterbankInfo info;
  info.n_channels = kChannels;
  info.bits = bits;
  info.channel_width_hz = 0.5e6;
  for (std::int64_t c = 0; c < kChannels; ++c)
    info.channel_center_hz.push_back(400e6 + 0.5e6 * static_cast<double>(c));
  info.sample_interval_s = 69.12e-6;
  info.start_mjd_utc = 60310.25;
  info.telescope = "Northern Cross";
  info.source_name = "B0329+54";
  info.position = {0.9338, -0.0087};  // -0 degrees 30 arcminutes: the sign must not be lost
  std::vector<float> data;
  const std::int64_t levels = bits < 32 ? std::int64_t{1} << bits : 0;
  for (std::int64_t c = 0; c < kChannels; ++c) {
    for (std::int64_t t = 0; t < kTimes; ++t) {
      const std::int64_t code = c * 31 + t * 7 + t / 13;
      data.push_back(levels > 0 ? static_cast<float>(code % levels)
                                : -0.25F * static_cast<float>(code));
    }
  }
  SigprocWriter writer(path, info, {true, true});
  writer.append(data.data(), kTimes, kTimes);
  writer.finish();
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
  write_kinds(directory);
  write_interference(directory + "/interference.ms");
  write_fits_image(directory + "/painted.fits", paint(observation, sky), observation, true);
  const AllSky all_sky = inject();
  write_fits_image(directory + "/allsky.fits", all_sky.image, all_sky.observation, true);
  write_cubes(directory, all_sky);
  write_beam_vdif(directory + "/beam8.vdif", 8);
  write_beam_vdif(directory + "/beam4.vdif", 4);
  for (const int bits : {1, 2, 4, 8, 16, 32})
    write_filterbank(directory + "/beam" + std::to_string(bits) + ".fil", bits);
  auto truth = truth_of(observation, sky);
  truth["all_sky"] = all_sky.truth;
  truth["maps"] = write_maps(directory);
  std::ofstream(directory + "/truth.json") << truth.dump(1);
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
