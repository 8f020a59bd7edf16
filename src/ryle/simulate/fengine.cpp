// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/simulate/fengine.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "ryle/core/checked.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/simulate/parallel.hpp"
#include "ryle/simulate/scene_model.hpp"
#include "ryle/simulate/spectra_mixer.hpp"

namespace ryle::simulate {
namespace {

using detail::dot;
using detail::turn;

void validate(const SpectraConfig& config, const ArrayLayout& array) {
  if (array.n_inputs() == 0) throw ConfigError("the layout has no inputs");
  if (config.n_spectra < 1 || config.channels.n_channels < 1) {
    throw ConfigError("n_spectra and n_channels must be positive");
  }
  if (!(config.spectrum_rate_hz.value() > 0)) {
    throw ConfigError("spectrum_rate_hz must be positive");
  }
  if (!(config.channels.first_center_hz > 0)) {
    throw ConfigError("the first channel is at " + std::to_string(config.channels.first_center_hz) +
                      " Hz; sky frequencies are above 0");
  }
  if (!(config.level_lsb > 0 && config.level_lsb <= 7)) {
    throw ConfigError("level_lsb = " + std::to_string(config.level_lsb) +
                      " does not fit 4 bits; 2.5 is a good level");
  }
}

SpectraRecord empty_record(const SpectraConfig& config, const ArrayLayout& array) {
  SpectraRecord record;
  record.n_spectra = config.n_spectra;
  record.n_channels = config.channels.n_channels;
  record.n_inputs = array.n_inputs();
  record.spectrum_rate_hz = config.spectrum_rate_hz;
  record.channels = config.channels;
  record.start_tai_ns = config.start_tai_ns;
  record.samples.assign(
      checked_product({record.n_spectra, record.n_channels, record.n_inputs}, "the spectra record"),
      0);
  return record;
}

/// Spectra of a channel up to `end` that one mix serves.
struct Stretch {
  std::int64_t end = 0;
  std::shared_ptr<const detail::Mixer> mixer;
};
using StretchesOfChannel = std::function<std::vector<Stretch>(std::int64_t channel)>;

// Draws all channels of spectra that begin at `first`. Tasks are pieces of a channel; what a sample
// is depends on its key alone.
void fill(SpectraRecord& record, std::uint64_t seed, int n_workers, Tick first,
          const StretchesOfChannel& stretches_of) {
  constexpr std::int64_t kPiece = 256;
  const auto n_inputs = static_cast<std::size_t>(record.n_inputs);
  if (n_workers <= 0) {
    n_workers = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  }
  const std::int64_t stride = record.n_channels * record.n_inputs;
  detail::Levels total{std::vector<std::int64_t>(n_inputs), std::vector<std::int64_t>(n_inputs)};
  std::mutex mutex;
  detail::parallel_for(record.n_channels, n_workers, [&](std::int64_t channel) {
    detail::Levels levels{std::vector<std::int64_t>(n_inputs), std::vector<std::int64_t>(n_inputs)};
    std::int64_t at = 0;
    for (const Stretch& stretch : stretches_of(channel)) {
      while (at < stretch.end) {
        const std::int64_t n = std::min(kPiece, stretch.end - at);
        stretch.mixer->run(seed, (first + at) * record.n_channels + channel, record.n_channels, n,
                           record.samples.data() + at * stride + channel * record.n_inputs, stride,
                           levels);
        at += n;
      }
    }
    const std::lock_guard lock(mutex);
    for (std::size_t i = 0; i < n_inputs; ++i) {
      total.sum2[i] += levels.sum2[i];
      total.clipped[i] += levels.clipped[i];
    }
  });
  const double n_parts = 2.0 * static_cast<double>(record.n_spectra * record.n_channels);
  record.rms_lsb.resize(n_inputs);
  record.clipped_fraction.resize(n_inputs);
  for (std::size_t i = 0; i < n_inputs; ++i) {
    record.rms_lsb[i] = std::sqrt(static_cast<double>(total.sum2[i]) / n_parts);
    record.clipped_fraction[i] = static_cast<double>(total.clipped[i]) / n_parts;
  }
}

// exp(-2 pi i nu cable) of an input.
cf64 cable_phasor(const ArrayInput& input, double frequency_hz) {
  return turn(-frequency_hz * cable_delay_s(input, frequency_hz));
}

// Phase of a wave at an antenna: it arrives early by r.s/c.
cf64 arrival_phasor(const Vector3& enu_m, const Vector3& direction, double frequency_hz) {
  return turn(frequency_hz * dot(enu_m, direction) / kSpeedOfLight_m_per_s);
}

// Two white waves a source (detail::FieldOfSource), one noise an input.
detail::Mix mix_of_scene(const ArrayLayout& array, const Scene& scene,
                         const std::vector<Vector3>& directions, const FrequencyAxis& channels,
                         double counts, const std::vector<bool>& shining, std::int64_t channel) {
  const double sky_hz = channels.center_hz(channel);
  const double center_hz = channels.band_center_hz();
  detail::Mix mix;
  mix.n_inputs = array.n_inputs();
  mix.n_waves = 2 * static_cast<std::int64_t>(scene.sources.size());
  mix.amplitude.assign(mix.n_waves * mix.n_inputs, cf32(0));
  mix.noise_rms.assign(mix.n_inputs, 0);
  for (std::int64_t i = 0; i < mix.n_inputs; ++i) {
    if (detail::is_dead(scene, i)) continue;
    const auto& input = array.inputs[i];
    const cf64 gain = detail::gain(scene, i) * counts;
    mix.noise_rms[i] = static_cast<float>(std::sqrt(detail::sefd_jy(scene, i)) * std::abs(gain));
    const cf64 path = scene.apply_cable_delays ? gain * cable_phasor(input, sky_hz) : gain;
    for (std::size_t s = 0; s < scene.sources.size(); ++s) {
      const auto field = detail::field_of_source(scene.sources[s]);
      if (!shining[s]) continue;
      const double root = std::sqrt(source_flux_jy(scene.sources[s], sky_hz, center_hz)) *
                          element_amplitude(scene, directions[s]);
      const cf64 wave =
          root * path * arrival_phasor(array.antennas[input.antenna].enu_m, directions[s], sky_hz);
      const bool x = input.pol == 0;
      mix.at(2 * static_cast<std::int64_t>(s), i) = cf32(wave * (x ? field.x_of_a : field.y_of_a));
      mix.at(2 * static_cast<std::int64_t>(s) + 1, i) = cf32(wave * (x ? cf64(0) : field.y_of_b));
    }
  }
  return mix;
}

// Counts per root Jy at which what always shines has the level.
double steady_counts(const ArrayLayout& array, const Scene& scene, const SpectraConfig& config) {
  validate(config, array);
  detail::validate(scene, array);
  if (!scene.tones.empty()) {
    throw ConfigError("tones are simulated in time samples only; remove [[simulator.tone]]");
  }
  Scene steady = scene;
  std::erase_if(steady.sources, is_transient);
  return detail::counts_per_root_jy(steady, array, config.level_lsb);
}

/// When a source shines in a channel, in spectra of the schedule.
class Shining {
 public:
  Shining(const Source& source, double delay_s, double rate_hz)
      : steady_(!is_transient(source)),
        start_((source.start_s + delay_s) * rate_hz),
        width_(source.duration_s * rate_hz),
        period_(source.period_s * rate_hz) {}

  bool at(Tick spectrum) const {
    if (steady_) return true;
    double since = static_cast<double>(spectrum) - start_;
    if (since >= 0 && period_ > 0) since = std::fmod(since, period_);
    return since >= 0 && since < width_;
  }
  /// Appends the spectra of (first, last) at which that may change.
  void add_changes(Tick first, Tick last, std::vector<std::int64_t>& changes) const {
    if (steady_) return;
    const double since = static_cast<double>(first) - start_ - width_;
    const double n0 = period_ > 0 ? std::max(0.0, std::floor(since / period_)) : 0;
    for (double n = n0; start_ + n * period_ < static_cast<double>(last); ++n) {
      for (const double edge : {start_ + n * period_, start_ + n * period_ + width_}) {
        const auto spectrum = static_cast<std::int64_t>(std::ceil(edge));
        if (spectrum > first && spectrum < last) changes.push_back(spectrum);
      }
      if (period_ <= 0) break;
    }
  }

 private:
  bool steady_;
  double start_, width_, period_;
};

}  // namespace

SpectraRecord simulate_spectra(const ArrayLayout& array, const Scene& scene,
                               const SpectraConfig& config) {
  const double counts = steady_counts(array, scene, config);
  SpectraRecord record = empty_record(config, array);
  record.sources_enu =
      detail::source_directions(scene, array, config.start_tai_ns, config.earth_orientation);
  record.jy_per_count2 = 1 / (counts * counts);
  std::vector<bool> shining;
  for (const auto& source : scene.sources) shining.push_back(shines(source, config.at_s));
  fill(record, scene.seed, config.n_workers, 0, [&](std::int64_t channel) {
    return std::vector<Stretch>{
        {record.n_spectra,
         std::make_shared<detail::Mixer>(mix_of_scene(array, scene, record.sources_enu,
                                                      record.channels, counts, shining, channel))}};
  });
  return record;
}

SpectraStream::SpectraStream(ArrayLayout array, Scene scene, const SpectraConfig& config)
    : array_(std::move(array)),
      scene_(std::move(scene)),
      config_(config),
      counts_(steady_counts(array_, scene_, config_)) {}

SpectraRecord SpectraStream::make_record() const {
  SpectraRecord record = empty_record(config_, array_);
  record.sources_enu =
      detail::moving_directions(scene_, array_, config_.start_tai_ns, config_.earth_orientation);
  record.jy_per_count2 = 1 / (counts_ * counts_);
  return record;
}

void SpectraStream::draw(Tick first, SpectraRecord& record) const {
  constexpr double kStep_s = 0.01;  // of the sky
  const double rate_hz = config_.spectrum_rate_hz.value();
  const std::int64_t step = std::max<std::int64_t>(1, std::llround(kStep_s * rate_hz));
  const Tick last = first + record.n_spectra;
  const SampleClock clock{config_.start_tai_ns, config_.spectrum_rate_hz};
  std::vector<std::int64_t> steps;  // where the sky moves on
  std::vector<std::vector<Vector3>> directions;
  for (Tick t = first - ((first % step) + step) % step; t < last; t += step) {
    steps.push_back(t);
    directions.push_back(detail::moving_directions(scene_, array_, clock.tai_ns(t + step / 2),
                                                   config_.earth_orientation));
  }
  const double top_hz = config_.channels.center_hz(config_.channels.n_channels - 1);
  fill(record, scene_.seed, config_.n_workers, first, [&](std::int64_t channel) {
    std::vector<Shining> sources;
    std::vector<std::int64_t> ends(steps.begin() + 1, steps.end());
    ends.push_back(last);
    for (const auto& source : scene_.sources) {
      const double delay_s =
          dispersion_delay_s(source.dm_pc_cm3, config_.channels.center_hz(channel), top_hz);
      sources.emplace_back(source, delay_s, rate_hz);
      sources.back().add_changes(first, last, ends);
    }
    std::sort(ends.begin(), ends.end());
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    std::vector<Stretch> stretches;
    Tick begin = first;
    for (const std::int64_t end : ends) {
      const auto& now = directions[static_cast<std::size_t>((begin - steps.front()) / step)];
      std::vector<bool> shining;
      for (std::size_t s = 0; s < sources.size(); ++s)
        shining.push_back(now[s][2] >= 0 && sources[s].at(begin));
      stretches.push_back(
          {end - first, std::make_shared<detail::Mixer>(mix_of_scene(
                            array_, scene_, now, record.channels, counts_, shining, channel))});
      begin = end;
    }
    return stretches;
  });
}

cf64 expected_visibility_jy(const ArrayLayout& array, const Scene& scene,
                            const SpectraRecord& record, std::int64_t i, std::int64_t j,
                            std::int64_t channel) {
  return detail::visibility_jy(scene, array, record.sources_enu, i, j,
                               record.channels.center_hz(channel),
                               record.channels.band_center_hz());
}

RankOneTerm polarized_wave(const ArrayLayout& array, double l, double m, cf64 x, cf64 y,
                           double frequency_hz, bool apply_cable_delays) {
  Source source;
  source.name = "polarized wave";
  source.l = l;
  source.m = m;
  const Vector3 direction = source_enu(source, array, 0);
  RankOneTerm term;
  for (const auto& input : array.inputs) {
    const cf64 cable = apply_cable_delays ? cable_phasor(input, frequency_hz) : cf64(1);
    term.amplitude.push_back(
        (input.pol == 0 ? x : y) * cable *
        arrival_phasor(array.antennas[input.antenna].enu_m, direction, frequency_hz));
  }
  return term;
}

SpectraRecord draw_spectra(const ArrayLayout& array, const CovarianceRoot& root,
                           const std::vector<RankOneTerm>& polarized, std::uint64_t seed,
                           const SpectraConfig& config) {
  validate(config, array);
  if (root.n != array.n_antennas()) {
    throw ConfigError("the covariance is of " + std::to_string(root.n) +
                      " antennas, the layout of " + std::to_string(array.n_antennas()));
  }
  SpectraRecord record = empty_record(config, array);
  const std::int64_t n_pols = array.n_pols();
  const auto n_terms = static_cast<std::int64_t>(polarized.size());
  // rms of a part is level_lsb where the covariance has 1.
  const double counts = config.level_lsb * std::sqrt(2.0);
  detail::Mix mix;
  mix.n_inputs = record.n_inputs;
  mix.n_waves = root.n * n_pols + n_terms;
  mix.amplitude.assign(mix.n_waves * mix.n_inputs, cf32(0));
  mix.noise_rms.assign(mix.n_inputs, 0);
  for (std::int64_t i = 0; i < mix.n_inputs; ++i) {
    const auto& input = array.inputs[i];
    for (std::int64_t column = 0; column < root.n; ++column) {
      // Waves of one pol first: inputs of a pol then lie together in the mixer.
      mix.at(input.pol * root.n + column, i) =
          cf32(counts * root.root[input.antenna * root.n + column]);
    }
    for (std::int64_t k = 0; k < n_terms; ++k) {
      if (static_cast<std::int64_t>(polarized[k].amplitude.size()) != mix.n_inputs) {
        throw ConfigError("a polarized term has " + std::to_string(polarized[k].amplitude.size()) +
                          " amplitudes for " + std::to_string(mix.n_inputs) + " inputs");
      }
      mix.at(root.n * n_pols + k, i) = cf32(counts * polarized[k].amplitude[i]);
    }
  }
  const auto mixer = std::make_shared<detail::Mixer>(mix);  // every channel has this covariance
  fill(record, seed, config.n_workers, 0, [&](std::int64_t) {
    return std::vector<Stretch>{{record.n_spectra, mixer}};
  });
  return record;
}

}  // namespace ryle::simulate
