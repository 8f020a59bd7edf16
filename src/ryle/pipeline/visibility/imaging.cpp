// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/visibility/imaging.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "ryle/core/baseline.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/engine/image/dirty_beam.hpp"
#include "ryle/pipeline/visibility/horizon.hpp"

namespace ryle::pipeline {
namespace {

double dot(const Vector3& a, const Vector3& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

/// Pol products that make up the wanted image.
std::vector<std::int64_t> wanted_products(const std::string& stokes, std::int64_t n_pol_products) {
  if (n_pol_products == 1) return {0};
  if (stokes == "I") return {0, 3};
  if (stokes == "XX") return {0};
  if (stokes == "YY") return {3};
  throw ConfigError("stokes \"" + stokes + "\": this imager makes I, XX or YY");
}

/// 1/sqrt of the band-averaged auto-correlation of every (antenna, pol); 0 where it is flagged. The
/// band average keeps the statistics of short integrations: per channel and spectrum it would throw
/// the amplitudes away.
class Equalizer {
 public:
  explicit Equalizer(const VisibilityDump& dump) : n_pols_(dump.n_pol_products == 1 ? 1 : 2) {
    for (std::int64_t a = 0; n_pairs(a) < dump.n_baselines; ++a) {
      for (std::int64_t pol = 0; pol < n_pols_; ++pol) factors_.push_back(factor(dump, a, pol));
    }
    // A file without any auto-correlation gives nothing to equalize by.
    const bool none =
        std::all_of(factors_.begin(), factors_.end(), [](double f) { return f == 0; });
    if (none) std::fill(factors_.begin(), factors_.end(), 1.0);
    equalizes_ = !none;
  }
  bool equalizes() const { return equalizes_; }
  double operator()(std::int64_t antenna, std::int64_t pol) const {
    return factors_[antenna * n_pols_ + pol];
  }

 private:
  static double factor(const VisibilityDump& dump, std::int64_t antenna, std::int64_t pol) {
    double power = 0;
    double weight = 0;
    for (std::int64_t c = 0; c < dump.n_channels; ++c) {
      const auto at =
          static_cast<std::size_t>(dump.index(c, pair_index(antenna, antenna), 3 * pol));
      power += dump.counts[at] * static_cast<double>(dump.data[at].real());
      weight += dump.counts[at];
    }
    return power > 0 ? std::sqrt(weight / power) : 0;
  }

  std::int64_t n_pols_;
  std::vector<double> factors_;
  bool equalizes_ = true;
};

constexpr double kPhaseError_rad = 0.1;  // loses 0.2 % of the flux
constexpr std::int64_t kMaxChannelAverage = std::int64_t{1} << 31;

/// A Gaussian beam of full width F has the transform exp(-(pi F)^2 (u^2 + v^2) / (4 ln 2)).
double uv_taper(double uv2, double fwhm) {
  return std::exp(-kPi * kPi * fwhm * fwhm * uv2 / (4 * std::numbers::ln2));
}

class SampleMaker {
 public:
  SampleMaker(const Observation& observation, const ImagingOptions& options)
      : observation_(observation), options_(options) {}

  void add(const VisibilityDump& dump, std::vector<image::Sample>& samples) const {
    const auto axes = uvw_axes(observation_.array, observation_.phase_center, dump.centroid_tai_ns,
                               observation_.earth_orientation);
    const auto products = wanted_products(options_.stokes, dump.n_pol_products);
    const Equalizer equalizer(dump);
    for (std::int64_t b = 0; b < dump.n_baselines; ++b) {
      const auto [i, j] = pair_of(b);
      if (i == j && !options_.autocorrelations) continue;
      const auto& ri = observation_.array.antennas[i].enu_m;
      const auto& rj = observation_.array.antennas[j].enu_m;
      const Vector3 r{ri[0] - rj[0], ri[1] - rj[1], ri[2] - rj[2]};
      const Vector3 uvw_m{dot(axes[0], r), dot(axes[1], r), dot(axes[2], r)};
      for (std::int64_t first = 0; first < dump.n_channels; first += options_.channel_average) {
        add_group(dump, b, first, products, uvw_m, equalizer, samples);
      }
    }
  }

 private:
  void add_group(const VisibilityDump& dump, std::int64_t baseline, std::int64_t first,
                 const std::vector<std::int64_t>& products, const Vector3& uvw_m,
                 const Equalizer& equalizer, std::vector<image::Sample>& samples) const {
    const std::int64_t last = std::min(first + options_.channel_average, dump.n_channels);
    const auto [i, j] = pair_of(baseline);
    cf64 sum{};
    double weight = 0;
    double weighted_hz = 0;
    for (std::int64_t c = first; c < last; ++c) {
      for (const auto product : products) {
        const auto at = static_cast<std::size_t>(dump.index(c, baseline, product));
        double count = dump.counts[at];
        if (count == 0) continue;
        cf64 value = dump.data[at];
        if (options_.equalize_inputs) {
          const double scale = equalizer(i, product / 2) * equalizer(j, product % 2);
          if (scale == 0) continue;
          value *= scale;
        }
        sum += count * value;
        weight += count;
        weighted_hz += count * observation_.frequency.center_hz(c);
      }
    }
    if (weight == 0) return;
    const double per_wavelength = weighted_hz / weight / kSpeedOfLight_m_per_s;
    samples.push_back({uvw_m[0] * per_wavelength, uvw_m[1] * per_wavelength,
                       uvw_m[2] * per_wavelength, sum / weight, weight});
  }

  const Observation& observation_;
  const ImagingOptions& options_;
};

/// Why there is nothing to image: products that the data lack, or flags.
std::string why_nothing(std::span<const VisibilityDump> dumps, const std::string& stokes) {
  constexpr std::array kNames{"XX", "XY", "YX", "YY"};
  std::array<bool, 4> there{};
  for (const VisibilityDump& dump : dumps) {
    const auto n = static_cast<std::size_t>(dump.n_pol_products);
    for (std::size_t k = 0; k < dump.counts.size(); ++k)
      there[k % n] = there[k % n] || dump.counts[k] > 0;
  }
  std::string has;
  for (std::size_t p = 0; p < there.size(); ++p) {
    if (there[p]) has += (has.empty() ? "" : " and ") + std::string(kNames[p]);
  }
  bool wanted = has.empty();
  for (const std::int64_t p : wanted_products(stokes, dumps.empty() ? 1 : dumps[0].n_pol_products))
    wanted = wanted || there[p];
  if (wanted)
    return "every cross-correlation is flagged (are all antennas marked bad, or is this a "
           "single-antenna file?)";
  const bool one_feed = there[0] || there[3];
  return "the data hold " + has + " only, and " + stokes + " is made of " +
         (stokes == "I" ? "XX and YY" : stokes) +
         (one_feed ? "; --stokes " + std::string(there[0] ? "XX" : "YY") + " works"
                   : "; image the files of XX and YY, one by one or joined (pyuvdata: UVData.read "
                     "of the list of files, then write_uvh5)");
}

}  // namespace

std::string single_polarization(const Observation& observation) {
  const auto& notes = observation.provenance.notes;
  const auto found = notes.find("single_polarization");
  if (found == notes.end() || observation.array.n_pols() > 1) return "";
  if (found->second == "X" || found->second == "XX") return "XX";
  if (found->second == "Y" || found->second == "YY") return "YY";
  return "I";
}

int stokes_code(const std::string& stokes) { return stokes == "XX" ? -5 : stokes == "YY" ? -6 : 1; }

std::vector<image::Sample> image_samples(const Observation& observation,
                                         std::span<const VisibilityDump> dumps,
                                         const ImagingOptions& options) {
  if (options.channel_average < 1 || options.channel_average > kMaxChannelAverage)
    throw ConfigError("averages of " + std::to_string(options.channel_average) +
                      " channels: must lie in 1 .. " + std::to_string(kMaxChannelAverage));
  std::vector<image::Sample> samples;
  const SampleMaker maker(observation, options);
  for (const auto& dump : dumps) maker.add(dump, samples);
  // A cell of the picture's own uv plane: fringes that differ by less look the same in it.
  image::weigh(samples, options.weighting, options.robust, 1 / options.width);
  for (auto& sample : samples)
    sample.weight *= uv_taper(sample.u * sample.u + sample.v * sample.v, options.taper_fwhm);
  return samples;
}

ImagingResult make_image(Queue& queue, const Observation& observation,
                         std::span<const VisibilityDump> dumps, const ImagingOptions& options) {
  const auto samples = image_samples(observation, dumps, options);
  if (samples.empty()) {
    throw FormatError("nothing to image: " + why_nothing(dumps, options.stokes));
  }
  // The sum over samples has CPU implementations only; the engines before it may run on a GPU.
  Queue host = queue.back_end() == BackEnd::cpu ? queue : Queue::cpu();
  // Two pictures share one line of progress.
  const double share = options.want_psf ? 0.5 : 1;
  double before = 0;
  image::Config config;
  config.n_pixels = options.n_pixels;
  config.width_direction_cosines = options.width;
  config.implementation = options.implementation;
  config.path = options.path;
  config.max_error = options.max_error;
  if (options.go_on)
    config.go_on = [&](double done) { return options.go_on(before + share * done); };
  const auto imager = image::make_imager(host, config);
  const auto picture_of = [&](const std::vector<image::Sample>& of) {
    std::vector<double> pixels;
    imager->execute(host, of, pixels);
    if (pixels.empty()) throw Error(ExitCode::try_again, "stopped by a signal: no image was made");
    return std::vector<float>(pixels.begin(), pixels.end());
  };

  ImagingResult result;
  result.equalized = options.equalize_inputs &&
                     std::any_of(dumps.begin(), dumps.end(), [](const VisibilityDump& dump) {
                       return Equalizer(dump).equalizes();
                     });
  result.n_samples = static_cast<std::int64_t>(samples.size());
  SkyImage& image = result.image;
  image.n_pixels = options.n_pixels;
  const std::string single = single_polarization(observation);
  if (options.stokes != "I" && !single.empty() && options.stokes != single) {
    throw ConfigError("stokes \"" + options.stokes + "\": the data hold " + single + " alone");
  }
  image.stokes = {stokes_code(single.empty() ? options.stokes : single)};
  image.pixels = picture_of(samples);
  result.path = imager->path();
  result.implementation = std::string(imager->implementation());
  image.metadata.path = std::string(image::name(result.path));
  image.metadata.implementation = result.implementation;
  image.cell_direction_cosine = options.width / static_cast<double>(options.n_pixels);
  image.center = observation.phase_center;
  const auto& f = observation.frequency;
  image.frequency = {f.band_center_hz(), f.channel_width_hz * static_cast<double>(f.n_channels), 1};
  image.start_tai_ns = dumps.front().start_tai_ns;
  const auto& last = dumps.back();
  image.centroid_tai_ns =
      dumps.front().centroid_tai_ns + (last.centroid_tai_ns - dumps.front().centroid_tai_ns) / 2;
  for (const auto& dump : dumps) image.exposure_s += dump.interval_s;
  image.unit = result.equalized ? "" : observation.flux_unit == "Jy" ? "Jy/beam" : "uncalibrated";
  if (const auto beam = image::dirty_beam(host, samples))
    image.beam = SynthesizedBeam{beam->major, beam->minor, beam->angle_rad};
  if (!image.beam) {
    result.warnings.emplace_back(
        "no BMAJ, BMIN and BPA: the dirty beam has no main lobe that closes within the sky (are "
        "all baselines on one line, or shorter than a wavelength?)");
  }
  if (options.path == image::SamplePath::gridded) {
    const double wrong_rad = image::w_phase_error_rad(config, samples);
    if (wrong_rad > kPhaseError_rad) {
      result.warnings.push_back(fmt::format(
          "the path gridded leaves out w: phases at the edge of the picture are up to {:.2g} rad "
          "wrong, and sources there lose flux; w-stacked keeps it",
          wrong_rad));
    }
  }
  if (options.want_psf) {
    before = share;
    std::vector<image::Sample> ones = samples;
    for (auto& sample : ones) {
      if (std::isfinite(std::abs(sample.visibility))) sample.visibility = 1;
    }
    result.psf = image;
    result.psf->unit = "";
    result.psf->pixels = picture_of(ones);
  }
  return result;
}

void rephase(Observation& observation, std::span<VisibilityDump> dumps, const SkyDirection& center,
             const std::string& name) {
  const auto& antennas = observation.array.antennas;
  for (auto& dump : dumps) {
    const auto toward = [&](const SkyDirection& direction) {
      return enu_of_direction(observation.array, direction, dump.centroid_tai_ns,
                              observation.earth_orientation);
    };
    const Vector3 before = toward(observation.phase_center);
    const Vector3 after = toward(center);
    std::vector<double> path_m;
    for (const auto& antenna : antennas)
      path_m.push_back(dot(antenna.enu_m, after) - dot(antenna.enu_m, before));
    for (std::int64_t c = 0; c < dump.n_channels; ++c) {
      const double per_m = observation.frequency.center_hz(c) / kSpeedOfLight_m_per_s;
      for (std::int64_t b = 0; b < dump.n_baselines; ++b) {
        const auto [i, j] = pair_of(b);
        const double turns = per_m * (path_m[i] - path_m[j]);
        const cf32 turn(std::polar(1.0, -2 * kPi * (turns - std::floor(turns))));
        for (std::int64_t pol = 0; pol < dump.n_pol_products; ++pol)
          dump.data[dump.index(c, b, pol)] *= turn;
      }
    }
  }
  observation.phase_center = center;
  observation.phase_center_name = name;
}

std::string low_phase_center(const Observation& observation,
                             std::span<const VisibilityDump> dumps) {
  std::size_t n_low = 0;
  std::int64_t first_low_tai_ns = 0;
  for (const auto& dump : dumps) {
    const Vector3 enu = enu_of_direction(observation.array, observation.phase_center,
                                         dump.centroid_tai_ns, observation.earth_orientation);
    if (enu[2] > 0) continue;
    if (n_low++ == 0) first_low_tai_ns = dump.centroid_tai_ns;
  }
  if (n_low == 0) return "";
  return fmt::format(
      "the phase center of {} of {} integrations is below the horizon, so that the image shows the "
      "ground there: it {}",
      n_low, dumps.size(),
      altitude_text(observation.array, observation.phase_center, first_low_tai_ns,
                    observation.earth_orientation));
}

}  // namespace ryle::pipeline
