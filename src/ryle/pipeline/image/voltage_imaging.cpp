// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/image/voltage_imaging.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ryle/core/bits.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/pipeline/base/level_correction.hpp"
#include "ryle/pipeline/base/watch_list.hpp"
#include "ryle/pipeline/image/sky_products.hpp"
#include "ryle/pipeline/visibility/run_common.hpp"
#include "ryle/pipeline/visibility/setup.hpp"

namespace ryle::pipeline {
namespace {

// What levels are judged by: enough samples for 2 % per input, few enough to cost nothing.
constexpr std::int64_t kLevelSpectra = 256;
constexpr std::int64_t kLevelChannels = 16;
// Inputs are looked at again this often, on a few samples: dead is far from alive.
constexpr double kCheckEvery_s = 1;
constexpr std::int64_t kCheckSpectra = 64;
// Fewer say nothing: the power of 64 complex Gaussian samples is good to 1 / sqrt(64) = 12 %.
constexpr double kMinPowerSamples = 64;

std::int64_t channels_looked_at(std::int64_t n_spectra, std::int64_t enough_spectra,
                                std::int64_t n_channels) {
  return n_spectra < enough_spectra ? n_channels : kLevelChannels;
}

std::string function_text(const image::AllSkyConfig& sky) {
  if (sky.path == image::Path::vis_dft || sky.path == image::Path::efield_dft)
    return "none: exact Fourier sum";
  if (!sky.function.apertures.empty()) {
    return fmt::format("apertures, k {}, cell {:.4g} wavelengths", sky.function.support,
                       sky.cell_wavelengths);
  }
  return fmt::format("ES k {}, cell {:.4g} wavelengths{}", sky.function.support,
                     sky.cell_wavelengths, sky.function.correlated ? ", correlated" : "");
}

}  // namespace

SkyPath::SkyPath(const ObservationConfig& config, const ArrayLayout& array,
                 SpectraMetadata metadata, const std::string& command_line)
    : config_(config),
      array_(array),
      metadata_(std::move(metadata)),
      command_line_(command_line),
      cadence_(make_cadence(config.image.cadence_s, metadata_.clock.rate_hz.value(),
                            metadata_.n_spectra)),
      queue_(make_queue(config.runtime)),
      targets_(watch_targets(config.image.watch)) {
  // Rejected before data flow: a wrong table, products that cannot be made.
  calibration_gains(config_, array_.n_inputs(), 1);
  require_sky_outputs(config_);
}

SkyPath::~SkyPath() = default;

double SkyPath::flux_scale() const {
  return config_.calibration.jy_per_count2 > 0 ? config_.calibration.jy_per_count2
                                               : metadata_.jy_per_count2;
}

std::vector<cf32> SkyPath::gains() const {
  auto result =
      imager_gains(config_, array_, metadata_.frequency, levels_, dead_.flags, flux_scale());
  const bool equalized =
      equalizes(config_) && !(config_.image.equalize == "auto" && flux_scale() > 0);
  const auto quantized = quantization();
  const std::size_t n = levels_.n.size();
  for (std::size_t k = 0; k < result.size(); ++k) {
    if (!metadata_.scale.empty() && !equalizes(config_))
      result[k] /= static_cast<float>(metadata_.scale[k % n]);
    if (quantized.empty()) continue;
    // Equalization divides by the rms of the codes: it is that of the voltages that counts.
    const auto& q = quantized[k % n];
    result[k] *= static_cast<float>(equalized ? q.cross / std::sqrt(q.autos) : q.cross);
  }
  return result;
}

// What coarse samples and four-bit spectra did to the products of every input, to first order: the
// same for every path, E-field or visibilities.
std::vector<correlate::SamplerGain> SkyPath::quantization() const {
  if (config_.correlate.van_vleck != "auto") return {};
  std::vector<correlate::SamplerGain> result = metadata_.samplers;
  if (!metadata_.four_bits) return result;
  result.resize(levels_.n.size());
  for (std::size_t p = 0; p < result.size(); ++p) {
    const auto codes = correlate::quantized_gain(four_bit_codes(), levels_.power(p));
    result[p].cross *= codes.cross;
    result[p].autos *= codes.autos;
  }
  return result;
}

// The channelizer gives every input the same rms: what they had before tells the dead.
DeadInputs SkyPath::dead_inputs(const InputLevels& scaled,
                                std::span<const std::uint8_t> before) const {
  if (metadata_.scale.empty()) return find_dead(array_, scaled, config_.image, before);
  InputLevels levels = scaled;
  for (std::size_t p = 0; p < levels.sum.size(); ++p)
    levels.sum[p] /= metadata_.scale[p] * metadata_.scale[p];
  return find_dead(array_, levels, config_.image, before);
}

SkyChain::Watch SkyPath::watch_at(std::int64_t tai_ns) const {
  SkyChain::Watch watch;
  for (std::size_t k = 0; k < targets_.size(); ++k) {
    const auto enu = enu_of_direction(array_, targets_[k].direction(tai_ns, &array_), tai_ns,
                                      {config_.telescope.dut1_s});
    if (enu[2] <= 0) continue;
    watch.directions.push_back(enu);
    watch.index.push_back(static_cast<std::int64_t>(k));
  }
  return watch;
}

void SkyPath::measure(const SpectraGulp& gulp) {
  RYLE_ASSERT(!chain_);
  add_levels(levels_, gulp.blocks, gulp.n_spectra, gulp.valid, gulp.valid_words,
             gulp.valid_channel_stride_words, kLevelSpectra,
             channels_looked_at(gulp.n_spectra, kLevelSpectra, gulp.blocks.n_channels));
}

void SkyPath::begin(const SpectraGulp& gulp, std::int64_t first, const SampleClock& clock) {
  if (levels_.empty()) measure(gulp);
  dead_ = dead_inputs(levels_, {});
  // Dead inputs have gain 0 until they come back; only those bad by the layout never can.
  sky_ = make_sky_config(config_, array_, metadata_.frequency, cadence_.spectra_per_image, {});
  plan_ = choose_path(config_, sky_, queue_, false,
                      images_in(metadata_.n_spectra, cadence_.spectra_per_image));
  sky_.path = plan_.path;
  sky_.max_bytes = 0;  // checked above

  Observation observation = make_observation(config_, array_, metadata_.frequency, clock.seconds(1),
                                             clock.tai_ns(first), command_line_);
  observation.time_source = metadata_.time_source;
  observation.flux_unit = flux_scale() > 0 ? "Jy" : "uncalibrated";
  observation.nominal_dump_s =
      clock.seconds(cadence_.spectra_per_image * cadence_.images_per_stack);
  observation.provenance.notes["image_path"] = std::string(image::name(plan_.path));
  observation.provenance.notes["image_path_reason"] = plan_.plan.reason;

  SkyChain::Setup setup;
  setup.sky = sky_;
  setup.format = metadata_.format;
  setup.max_gulp = metadata_.max_gulp;
  setup.correlator = config_.correlate.implementation;
  chain_ = std::make_unique<SkyChain>(
      queue_, setup, gains(),
      targets_.empty() ? SkyChain::WatchAt{} : [this](std::int64_t t) { return watch_at(t); },
      [this](RawImages&& raw) { writer_->offer(std::move(raw)); });
  observation.provenance.implementations = {chain_->implementation()};

  SkyMetadata metadata;
  metadata.sky = sky_;
  metadata.plane = image::fit_plane(sky_);
  metadata.images_per_stack = cadence_.images_per_stack;
  const std::int64_t per_product = cadence_.spectra_per_image * cadence_.images_per_stack;
  metadata.expected_images =
      metadata_.n_spectra > 0 ? (metadata_.n_spectra + per_product - 1) / per_product : 0;
  metadata.window_s = metadata_.window_s > 0 ? metadata_.window_s : clock.seconds(1);
  const bool equalized = equalizes(config_) && flux_scale() == 0;
  metadata.unit = flux_scale() > 0 ? "Jy/beam" : equalized ? "" : "uncalibrated";
  // Of the inputs that are alive at the start: those that die or come back later change it little,
  // and a series has one header.
  metadata.beam = sky_beam(sky_, dead_.flags);
  metadata.metadata.path = std::string(image::name(plan_.path));
  metadata.metadata.function = function_text(sky_);
  metadata.metadata.gains_id =
      config_.calibration.gains.empty() ? "cable model" : config_.calibration.gains;
  metadata.metadata.implementation = chain_->implementation();
  metadata.targets = targets_;
  writer_ = std::make_unique<SkyWriter>(config_, std::move(observation), std::move(metadata),
                                        metadata_.live, on_event_, on_image_);
}

// Something came from an input that never sent before.
bool SkyPath::arrived(const SpectraGulp& gulp) const {
  const std::int64_t words = words_for_bits(gulp.n_spectra);
  const std::int64_t n_masks = gulp.valid_channel_stride_words == 0 ? 1 : gulp.blocks.n_channels;
  for (std::size_t p = 0; p < levels_.n.size(); ++p) {
    if (array_.inputs[p].bad || levels_.n[p] > 0) continue;
    if (gulp.valid == nullptr) return true;
    for (std::int64_t c = 0; c < n_masks; ++c) {
      const std::uint64_t* row = gulp.valid + c * gulp.valid_channel_stride_words +
                                 static_cast<std::int64_t>(p) * gulp.valid_words;
      if (std::any_of(row, row + words, [](std::uint64_t w) { return w != 0; })) return true;
    }
  }
  return false;
}

// Inputs die and come back: from the next image on they are left out or taken up.
void SkyPath::check_inputs(const SpectraGulp& gulp) {
  const double image_s = metadata_.clock.seconds(cadence_.spectra_per_image);
  const auto every = std::max<std::int64_t>(1, std::llround(kCheckEvery_s / image_s));
  if (chain_->images_done() < checked_image_ + every && !arrived(gulp)) return;
  checked_image_ = chain_->images_done();
  InputLevels now;
  add_levels(now, gulp.blocks, gulp.n_spectra, gulp.valid, gulp.valid_words,
             gulp.valid_channel_stride_words, kCheckSpectra,
             channels_looked_at(gulp.n_spectra, kCheckSpectra, gulp.blocks.n_channels));
  for (std::size_t p = 0; p < now.n.size(); ++p) {
    if (now.n[p] < kMinPowerSamples) now.sum[p] = now.n[p] = 0;  // stays what it was
  }
  DeadInputs dead;
  try {
    dead = dead_inputs(now, dead_.flags);
  } catch (const FormatError&) {
    return;  // nothing arrives from any input: the weights say so
  }
  std::int64_t lost = 0;
  std::int64_t back = 0;
  for (std::size_t p = 0; p < dead.flags.size(); ++p) {
    if (dead.flags[p] != 0) {
      lost += dead_.flags[p] == 0 ? 1 : 0;
    } else if (now.power(p) > 0 && (dead_.flags[p] != 0 || !(levels_.power(p) > 0))) {
      // Its level was that of a dead input, or none: it is what it is now.
      levels_.sum[p] = now.sum[p];
      levels_.n[p] = now.n[p];
      ++back;
    }
  }
  if (lost == 0 && back == 0) return;
  dead_ = std::move(dead);
  if (warnings_.size() < 20) {
    warnings_.push_back(
        fmt::format("{:.1f} s: {} inputs lost their power, {} have it again; {} "
                    "are left out",
                    data_s(), lost, back, dead_.n_dead));
  }
  chain_->set_gains(gains());
}

std::int64_t SkyPath::room(std::int64_t first) {
  if (!chain_) return std::min(metadata_.max_gulp, cadence_.spectra_per_image);
  std::int64_t room = metadata_.max_gulp;
  loss_.guard([&] { room = std::min(room, chain_->advance(first, 0, metadata_.clock)); });
  return room;
}

void SkyPath::feed(const SpectraGulp& gulp, std::int64_t first, std::int64_t segment,
                   const SampleClock& clock) {
  if (!chain_) begin(gulp, first, clock);
  loss_.guard([&] {
    check_inputs(gulp);
    feed_in_slices(*chain_, slice_, gulp, first, segment, clock);
  });
}

double SkyPath::data_s() const {
  return chain_ ? metadata_.clock.seconds(chain_->spectra_done()) : 0;
}

void SkyPath::set_levels(const std::vector<double>& scale,
                         const std::vector<correlate::SamplerGain>& samplers) {
  metadata_.scale = scale;
  metadata_.samplers = samplers;
}

void SkyPath::finish(const std::map<std::string, std::string>& /*notes*/, RunSummary& summary) {
  if (!chain_) return;
  loss_.guard([&] { chain_->flush(); });
  writer_->finish();
  const SkyProducts& products = writer_->products();
  ImageSummary image;
  image.images = writer_->images_written();
  image.dropped = writer_->images_dropped();
  image.path = std::string(image::name(plan_.path));
  image.reason = plan_.plan.reason;
  image.implementation = chain_->implementation();
  image.image_s = metadata_.clock.seconds(cadence_.spectra_per_image);
  image.predicted_s = plan_.predicted_s;
  image.measured_s =
      chain_->images_done() > 0 ? chain_->busy_s() / static_cast<double>(chain_->images_done()) : 0;
  image.coherence = plan_.plan.coherence;
  image.n_pixels = sky_.n_pixels;
  image.cell_wavelengths = sky_.cell_wavelengths;
  image.n_bins = image::n_bins(sky_);
  image.n_inputs = array_.n_inputs();
  image.n_bad_inputs = dead_.n_bad;
  image.n_dead_inputs = dead_.n_dead;
  image.equalized = equalizes(config_) && flux_scale() == 0;
  image.weight_fraction = products.weight_fraction();
  image.watched = products.watched();
  image.events = products.events();
  image.images_not_searched = products.images_not_searched();
  image.events_in_one_bin = products.events_in_one_bin();
  image.peak = products.peak();
  summary.image = std::move(image);
  summary.implementations.push_back(chain_->implementation());
  summary.data_s = std::max(summary.data_s, data_s());
  summary.engine_margin = busy_s() > 0 ? data_s() / busy_s() : 0;
  const auto append = [](std::vector<std::string>& to, const std::vector<std::string>& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  append(summary.products, products.published());
  append(summary.errors, products.errors());
  append(summary.warnings, warnings_);
  append(summary.warnings, products.warnings());
  if (!plan_.plan.warning.empty()) summary.warnings.push_back(plan_.plan.warning);
  loss_.report(summary);
}

void measure_levels(SpectraReader& reader, SkyPath& path) {
  const std::int64_t n_spectra = reader.n_spectra;
  const std::uint64_t lost = reader.lost_samples;
  SpectraGulp gulp;
  for (std::int64_t first = 0; first < std::min(n_spectra, kLevelSpectra);) {
    const std::int64_t n = std::min({reader.max_gulp, n_spectra - first, kLevelSpectra - first});
    reader.read(first, n, gulp);
    path.measure(gulp);
    first += n;
  }
  reader.lost_samples = lost;  // counted when they are read again
}

}  // namespace ryle::pipeline
