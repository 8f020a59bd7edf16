// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/image/sky_chain.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/pipeline/base/stopwatch.hpp"
#ifdef RYLE_HAVE_CUDA
#include "ryle/engine/correlate/cuda/make.hpp"
#endif

namespace ryle::pipeline {
namespace {

/// A source that moves by this many turns at the longest baseline between two images of the same
/// steering loses 1 - sinc^2: 4e-4 of its flux at the worst baseline, far less on average.
constexpr double kSteeringTurns = 0.01;

double largest_baseline_waves(const image::AllSkyConfig& sky) {
  double largest_m = 0;
  for (const auto& a : sky.antenna_enu_m) {
    for (const auto& b : sky.antenna_enu_m) {
      largest_m = std::max(largest_m, std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]));
    }
  }
  const double top_hz = sky.channels.center_hz(sky.channels.n_channels - 1);
  return std::max(1.0, largest_m * top_hz / kSpeedOfLight_m_per_s);
}

/// The same problem at single directions, by the exact Fourier sum of the same kind of input.
image::AllSkyConfig at_directions(image::AllSkyConfig sky,
                                  std::vector<std::array<double, 3>> directions) {
  sky.path = image::takes_voltages(sky.path) ? image::Path::efield_dft : image::Path::vis_dft;
  sky.directions = std::move(directions);
  // A name of one path ("cpu:avx512") need not exist for the other.
  sky.implementation = "auto";
  sky.function = {};
  return sky;
}

bool moved(const SkyChain::Watch& a, const SkyChain::Watch& b, double step) {
  if (a.index != b.index) return true;
  for (std::size_t k = 0; k < a.directions.size(); ++k) {
    const auto& p = a.directions[k];
    const auto& q = b.directions[k];
    if (std::hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]) > step) return true;
  }
  return false;
}

}  // namespace

SkyChain::SkyChain(Queue queue, const Setup& setup, std::vector<cf32> gains, WatchAt watch,
                   Sink sink)
    : setup_(setup),
      queue_(std::move(queue)),
      watch_queue_(queue_),
      watch_at_(std::move(watch)),
      sink_(std::move(sink)),
      gains_(std::move(gains)),
      image_(setup.sky.n_spectra_per_image) {
  const auto n_inputs = static_cast<std::int64_t>(setup_.sky.inputs.size());
  if (image::takes_voltages(setup_.sky.path)) {
    field_imager_ = image::make_field_imager(queue_, setup_.sky);
    field_imager_->set_gains(queue_, gains_);
  } else {
    vis_imager_ = image::make_vis_imager(queue_, setup_.sky);
    vis_imager_->set_gains(queue_, gains_);
    correlate::Config x;
    x.n_inputs = n_inputs;
    x.n_channels = setup_.sky.channels.n_channels;
    x.format = setup_.format;
    x.max_spectra = setup_.max_gulp;
    x.implementation = setup_.correlator;
    // For short images: the one that hands its tiles over without a pass to put them in order.
    const bool any = x.implementation == "auto" || x.implementation == "cuda";
    const bool tiles = setup_.format == SampleFormat::ci4 || setup_.format == SampleFormat::ci8;
    if (queue_.back_end() == BackEnd::cuda && any && tiles) x.implementation = "cuda:mma_s8";
    correlator_ = correlate::make_correlator(queue_, x);
  }
  direction_step_ = kSteeringTurns / largest_baseline_waves(setup_.sky);
}

SkyChain::~SkyChain() = default;

std::string SkyChain::implementation() const {
  const std::string path(image::name(setup_.sky.path));
  if (field_imager_) return path + "/" + std::string(field_imager_->implementation());
  return path + "/" + std::string(vis_imager_->implementation()) + " after " +
         std::string(correlator_->implementation());
}

void SkyChain::make_watchers(std::int64_t tai_ns) {
  if (!watch_at_) return;
  watch_ = watch_at_(tai_ns);
  if (!moved(watch_, watcher_for_, direction_step_)) return;
  watcher_for_ = watch_;
  field_watcher_.reset();
  vis_watcher_.reset();
  if (watch_.directions.empty()) return;
  const auto config = at_directions(setup_.sky, watch_.directions);
  if (field_imager_) {
    try {
      watch_queue_ = queue_;
      field_watcher_ = image::make_field_imager(watch_queue_, config);
    } catch (const UnsupportedError&) {
      // No code for it on this device: a few directions are little work for the host.
      watch_queue_ = Queue::cpu();
      field_watcher_ = image::make_field_imager(watch_queue_, config);
    }
    field_watcher_->set_gains(watch_queue_, gains_);
  } else {
    vis_watcher_ = image::make_vis_imager(queue_, config);
    vis_watcher_->set_gains(queue_, gains_);
  }
}

void SkyChain::begin_image() {
  if (!next_gains_.empty()) {
    gains_ = std::move(next_gains_);
    next_gains_.clear();
    if (field_imager_) field_imager_->set_gains(queue_, gains_);
    if (vis_imager_) vis_imager_->set_gains(queue_, gains_);
    if (field_watcher_) field_watcher_->set_gains(watch_queue_, gains_);
    if (vis_watcher_) vis_watcher_->set_gains(queue_, gains_);
  }
  make_watchers(image_.clock().tai_ns(image_.first() + image_.length() / 2));
}

std::int64_t SkyChain::advance(std::int64_t first, std::int64_t segment, const SampleClock& clock) {
  return image_.advance(first, segment, clock, [this] { flush(); });
}

void SkyChain::feed(const SpectraGulp& gulp) {
  RYLE_ASSERT(gulp.n_spectra > 0 && gulp.n_spectra <= std::min(image_.room(), setup_.max_gulp));
  const Stopwatch watch(busy_s_);
  if (image_.filled() == 0) begin_image();
  const ConstBlockView blocks = blocks_for(queue_, gulp, own_blocks_);
  if (correlator_) {
    correlator_->execute(queue_, {blocks, gulp.n_spectra, gulp.valid, gulp.valid_words,
                                  gulp.valid_channel_stride_words});
  } else {
    const image::FieldInput input{blocks, gulp.n_spectra, gulp.valid, gulp.valid_words,
                                  gulp.valid_channel_stride_words};
    field_imager_->execute(queue_, input);
    if (field_watcher_) {
      image::FieldInput watched = input;
      if (watch_queue_.back_end() == BackEnd::cpu) watched.blocks = gulp.blocks;
      field_watcher_->execute(watch_queue_, watched);
    }
  }
  queue_.synchronize();  // the caller's buffers are used again for the next gulp
  image_.add(gulp.n_spectra);
  if (image_.room() == 0) close_image();
}

// The sums of a dump where they lie: on a device they stay there.
image::VisInput SkyChain::finished_sums() {
  image::VisInput input;
#ifdef RYLE_HAVE_CUDA
  if (queue_.back_end() == BackEnd::cuda) {
    const auto sums = correlate::finish_on_device(queue_, *correlator_);
    input.type = sums.integer ? image::VisInput::Type::ci64 : image::VisInput::Type::cf64;
    input.sums = sums.sums;
    input.tiles = sums.tiles;
    input.tile_shift = sums.tile_shift;
    input.counts = sums.counts;
    input.n_spectra = sums.n_spectra;
    return input;
  }
#endif
  correlator_->finish(queue_, sums_);
  input.n_spectra = image_.filled();
  if (!sums_.integer.empty()) {
    input.type = image::VisInput::Type::ci64;
    input.sums = sums_.integer.data();
  } else {
    input.type = image::VisInput::Type::cf64;
    input.sums = sums_.real.data();
  }
  input.counts = sums_.counts.data();
  return input;
}

void SkyChain::correlate_images(RawImages& raw) {
  const image::VisInput input = finished_sums();
  vis_imager_->execute(queue_, input, raw.images);
  if (vis_watcher_) vis_watcher_->execute(queue_, input, raw.watched);
}

// Inputs without a gain in any channel.
std::array<std::int64_t, 2> SkyChain::dead_inputs() const {
  const auto& inputs = setup_.sky.inputs;
  std::array<std::int64_t, 2> n_dead{};
  for (std::size_t p = 0; p < inputs.size(); ++p) {
    bool used = inputs[p].bad;  // known to be: not counted
    for (std::size_t k = p; k < gains_.size() && !used; k += inputs.size())
      used = gains_[k] != cf32{};
    n_dead[inputs[p].pol] += used ? 0 : 1;
  }
  return n_dead;
}

void SkyChain::close_image() {
  RawImages raw;
  raw.n_dead = dead_inputs();
  raw.segment = image_.segment();
  raw.first_spectrum = image_.first();
  raw.n_spectra = image_.filled();
  raw.clock = image_.clock();
  if (correlator_) {
    correlate_images(raw);
  } else {
    field_imager_->finish(queue_, raw.images);
    if (field_watcher_) field_watcher_->finish(watch_queue_, raw.watched);
  }
  queue_.synchronize();
  if (field_watcher_ || vis_watcher_) raw.watched_index = watch_.index;
  raw.images.n_spectra = image_.filled();
  image_.restart();
  ++images_done_;
  sink_(std::move(raw));
}

void SkyChain::flush() {
  if (image_.filled() == 0) return;
  const Stopwatch watch(busy_s_);
  close_image();
}

}  // namespace ryle::pipeline
