// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/image/visibility_imaging.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "ryle/core/baseline.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/device/buffer.hpp"
#include "ryle/pipeline/base/stopwatch.hpp"
#include "ryle/pipeline/base/watch_list.hpp"
#include "ryle/pipeline/image/image_setup.hpp"
#include "ryle/pipeline/image/sky_products.hpp"
#include "ryle/pipeline/visibility/imaging.hpp"
#include "ryle/pipeline/visibility/run_common.hpp"
#include "ryle/pipeline/visibility/setup.hpp"

namespace ryle::pipeline {
namespace {

/// Visibilities of a dump as the sums of a correlator over inputs 2 antenna + pol.
class DumpSums {
 public:
  DumpSums(const Observation& observation, const VisibilityDump& first)
      : n_pols_(first.n_pol_products == 1 ? 1 : 2),
        n_antennas_(observation.array.n_antennas()),
        n_inputs_(n_antennas_ * n_pols_) {
    // An array with one input per antenna may list other inputs than its data have.
    array_ = observation.array;
    array_.inputs.clear();
    for (std::int64_t p = 0; p < n_inputs_; ++p) {
      ArrayInput input;
      input.antenna = p / n_pols_;
      input.pol = static_cast<int>(p % n_pols_);
      input.bad = is_bad(observation.array, input);
      array_.inputs.push_back(input);
    }
    sums_.resize(first.n_channels * n_pairs(n_inputs_));
    counts_.resize(sums_.size());
  }

  /// Sums of a dump where the imager of this queue wants them.
  image::VisInput take(const VisibilityDump& dump, Queue& queue) {
    gather(dump);
    image::VisInput input;
    input.type = image::VisInput::Type::cf64;
    input.sums = sums_.data();
    input.counts = counts_.data();
    input.n_spectra = std::max<std::int64_t>(1, dump.n_spectra);
    if (queue.back_end() == BackEnd::cpu) return input;
    const auto size = static_cast<std::int64_t>(sums_.size());
    if (device_sums_.size() != size) {
      device_sums_ = Buffer<cf64>(size, MemorySpace::device);
      device_counts_ = Buffer<std::uint32_t>(size, MemorySpace::device);
    }
    copy_bytes(queue, device_sums_.data(), input.sums, device_sums_.bytes());
    copy_bytes(queue, device_counts_.data(), input.counts, device_counts_.bytes());
    input.sums = device_sums_.data();
    input.counts = device_counts_.data();
    return input;
  }

  /// Powers of the autocorrelations of all dumps: an antenna that comes late has a level too. All
  /// equal when the data have none.
  InputLevels levels(std::span<const VisibilityDump> dumps) const {
    InputLevels levels;
    levels.sum.assign(n_inputs_, 0);
    levels.n.assign(levels.sum.size(), 0);
    for (const auto& dump : dumps) add_levels(dump, levels);
    if (!any_power(levels)) {
      levels.sum.assign(levels.sum.size(), 1);
      levels.n.assign(levels.n.size(), 1);
    }
    return levels;
  }
  /// Whether there is anything to equalize by.
  bool has_autos(std::span<const VisibilityDump> dumps) const {
    InputLevels levels;
    levels.sum.assign(n_inputs_, 0);
    levels.n.assign(levels.sum.size(), 0);
    for (const auto& dump : dumps) add_levels(dump, levels);
    return any_power(levels);
  }

  const ArrayLayout& array() const { return array_; }

 private:
  void add_levels(const VisibilityDump& dump, InputLevels& levels) const {
    for (std::int64_t p = 0; p < n_inputs_; ++p) {
      const std::int64_t a = p / n_pols_;
      const std::int64_t pol = p % n_pols_ == 0 ? 0 : 3;
      const auto k = static_cast<std::size_t>(p);
      for (std::int64_t c = 0; c < dump.n_channels; ++c) {
        const auto at = static_cast<std::size_t>(dump.index(c, pair_index(a, a), pol));
        levels.sum[k] += static_cast<double>(dump.data[at].real()) * dump.counts[at];
        levels.n[k] += dump.counts[at];
      }
    }
  }

  static bool any_power(const InputLevels& levels) {
    return std::any_of(levels.sum.begin(), levels.sum.end(), [](double s) { return s > 0; });
  }

  void gather(const VisibilityDump& dump) {
    std::fill(sums_.begin(), sums_.end(), cf64{});
    std::fill(counts_.begin(), counts_.end(), 0U);
    for (std::int64_t c = 0; c < dump.n_channels; ++c) {
      for (std::int64_t b = 0; b < dump.n_baselines; ++b) {
        const auto [i, j] = pair_of(b);
        for (std::int64_t pol = 0; pol < n_pols_ * n_pols_; ++pol) {
          const std::int64_t p = i * n_pols_ + pol / n_pols_;
          const std::int64_t q = j * n_pols_ + pol % n_pols_;
          if (p > q) continue;  // YX of an antenna with itself
          const auto from = static_cast<std::size_t>(dump.index(c, b, pol));
          const auto to = static_cast<std::size_t>(c * n_pairs(n_inputs_) + pair_index(p, q));
          counts_[to] = dump.counts[from];
          sums_[to] = cf64(dump.data[from]) * static_cast<double>(dump.counts[from]);
        }
      }
    }
  }

  static bool is_bad(const ArrayLayout& array, const ArrayInput& wanted) {
    for (const auto& input : array.inputs) {
      if (input.antenna == wanted.antenna && input.pol == wanted.pol) return input.bad;
    }
    return true;
  }

  std::int64_t n_pols_, n_antennas_, n_inputs_;
  ArrayLayout array_;
  std::vector<cf64> sums_;
  std::vector<std::uint32_t> counts_;
  Buffer<cf64> device_sums_;  // CUDA only
  Buffer<std::uint32_t> device_counts_;
};

/// Undoes the phase centre: multiplies the gains of antennas with exp(+2 pi i nu r.s_0 / c).
void undo_phase_center(const Observation& observation, const ArrayLayout& array,
                       std::int64_t tai_ns, std::vector<cf32>& gains) {
  const Vector3 s0 = uvw_axes(observation.array, observation.phase_center, tai_ns,
                              observation.earth_orientation)[2];
  const std::int64_t n = array.n_inputs();
  for (std::int64_t c = 0; c < observation.frequency.n_channels; ++c) {
    const double per_m = observation.frequency.center_hz(c) / kSpeedOfLight_m_per_s;
    for (std::int64_t p = 0; p < n; ++p) {
      const auto a = static_cast<std::size_t>(array.inputs[p].antenna);
      const Vector3& r = array.antennas[a].enu_m;
      const double turns = per_m * (r[0] * s0[0] + r[1] * s0[1] + r[2] * s0[2]);
      const double angle_rad = 2 * kPi * (turns - std::floor(turns));
      gains[c * n + p] *= cf32(std::polar(1.0, angle_rad));
    }
  }
}

RawImages stamp(const VisibilityDump& dump) {
  RawImages raw;
  raw.centroid_tai_ns = dump.centroid_tai_ns;
  raw.n_spectra = std::max<std::int64_t>(1, dump.n_spectra);
  raw.clock.epoch_tai_ns = dump.start_tai_ns;
  const auto length_ns =
      std::max<std::int64_t>(1, std::llround(std::max(0.0, dump.interval_s) * 1e9));
  raw.clock.rate_hz = Rational{raw.n_spectra * 1'000'000'000, length_ns}.reduced();
  return raw;
}

/// The path of these visibilities: what the planner chooses among those that take visibilities.
SkyPlan choose_visibility_path(const ObservationConfig& config, image::AllSkyConfig sky,
                               Queue& queue) {
  SkyPlan plan = choose_path(config, sky, queue, true);
  if (!image::takes_voltages(plan.path)) return plan;
  double best = 0;
  for (const auto& p : plan.plan.paths) {
    if (image::takes_voltages(p.path) || !p.possible) continue;
    if (best > 0 && p.seconds >= best) continue;
    best = p.seconds;
    sky.path = p.path;
  }
  if (best == 0) sky.path = image::Path::vis_dft;
  return choose_path(config, sky, queue, true);
}

void reject_voltage_paths(const std::string& path) {
  if (path == "auto" || path == "vis-grid" || path == "vis-dft") return;
  throw UnsupportedError("image.path = \"" + path +
                         "\" needs voltages; visibilities can take vis-grid or vis-dft");
}

/// Inputs without any data; gains of calibrated data may differ by anything.
DeadInputs inputs_without_data(const ArrayLayout& array, const InputLevels& levels,
                               ImageConfig limits) {
  limits.dead_below = 0;
  limits.dead_above = std::numeric_limits<double>::infinity();
  return find_dead(array, levels, limits);
}

class DumpImaging {
 public:
  DumpImaging(const ObservationConfig& config, const Observation& observation,
              std::span<const VisibilityDump> dumps)
      : settings_(config),
        observation_(observation),
        dumps_(dumps),
        sums_(observation, dumps.front()),
        queue_(make_queue(config.runtime)),
        dump_s_(std::max(0.0, dumps.front().interval_s)) {
    const bool calibrated = observation.flux_unit == "Jy";
    if (config.image.equalize == "auto") {
      // Equal powers would divide the amplitudes of a table out again.
      const bool table = !config.calibration.gains.empty();
      settings_.image.equalize = calibrated || table ? "no" : "yes";
    }
    if (settings_.image.equalize == "yes" && !sums_.has_autos(dumps)) {
      settings_.image.equalize = "no";  // there are no autocorrelations to do it by
      if (config.image.equalize == "yes") {
        warnings_.emplace_back(
            "image.equalize = \"yes\" has no effect: the data hold no autocorrelations");
      }
    }
    const InputLevels levels = sums_.levels(dumps);
    dead_ = inputs_without_data(sums_.array(), levels, config.image);
    sky_ = make_sky_config(settings_, sums_.array(), observation.frequency,
                           std::max<std::int64_t>(1, dumps.front().n_spectra), dead_.flags);
    plan_ = choose_visibility_path(settings_, sky_, queue_);
    sky_.path = plan_.path;
    sky_.max_bytes = 0;
    imager_ = image::make_vis_imager(queue_, sky_);
    name_ = std::string(image::name(plan_.path)) + "/" + std::string(imager_->implementation());
    gains_ = imager_gains(settings_, sums_.array(), observation.frequency, levels, dead_.flags, 0);
    auto targets = watch_targets(config.image.watch);
    if (!targets.empty()) {
      watch_ = std::make_unique<VisibilityWatch>(sky_, sums_.array(), observation.earth_orientation,
                                                 std::move(targets));
    }
  }

  RunSummary run(const std::function<bool(double done)>& go_on) {
    const auto start = std::chrono::steady_clock::now();
    Observation observation = observation_;
    observation.provenance.notes["image_path"] = std::string(image::name(plan_.path));
    observation.provenance.implementations.push_back(name_);
    SkyProducts products(settings_, std::move(observation), metadata());
    for (const auto& dump : dumps_) {
      const double done = static_cast<double>(n_done_) / static_cast<double>(n_dumps());
      if (go_on && !go_on(done)) break;
      products.write(image_of(dump));
      ++n_done_;
    }
    products.finish();
    RunSummary summary = summarize(products);
    summary.stopped_by_signal = n_done_ < n_dumps();
    summary.elapsed_s = seconds_since(start);
    summary.real_time_factor = summary.data_s / std::max(summary.elapsed_s, 1e-9);
    note_peak_memory(summary);
    return summary;
  }

 private:
  std::int64_t n_dumps() const { return static_cast<std::int64_t>(dumps_.size()); }

  SkyMetadata metadata() const {
    SkyMetadata metadata;
    metadata.sky = sky_;
    metadata.plane = image::fit_plane(sky_);
    const double cadence_s = settings_.image.cadence_s;
    metadata.images_per_stack = cadence_s > 0 && dump_s_ > 0
                                    ? std::max<std::int64_t>(1, std::llround(cadence_s / dump_s_))
                                    : n_dumps();
    metadata.expected_images =
        (n_dumps() + metadata.images_per_stack - 1) / metadata.images_per_stack;
    metadata.window_s =
        dump_s_ / static_cast<double>(std::max<std::int64_t>(1, dumps_.front().n_spectra));
    const bool jy = observation_.flux_unit == "Jy" && settings_.image.equalize != "yes";
    metadata.unit = jy ? "Jy/beam" : settings_.image.equalize == "yes" ? "" : "uncalibrated";
    metadata.beam = sky_beam(sky_, {});
    if (const std::string single = single_polarization(observation_); !single.empty())
      metadata.stokes = {stokes_code(single)};
    metadata.metadata.path = std::string(image::name(plan_.path));
    const auto& table = settings_.calibration.gains;
    metadata.metadata.gains_id = table.empty() ? "as in the visibilities" : table;
    metadata.metadata.implementation = name_;
    if (watch_) metadata.targets = watch_->targets();
    return metadata;
  }

  RawImages image_of(const VisibilityDump& dump) {
    RawImages raw = stamp(dump);
    std::vector<cf32> gains = gains_;
    undo_phase_center(observation_, sums_.array(), dump.centroid_tai_ns, gains);
    const auto begin = std::chrono::steady_clock::now();
    const image::VisInput input = sums_.take(dump, queue_);
    imager_->set_gains(queue_, gains);
    imager_->execute(queue_, input, raw.images);
    if (watch_) {
      watch_->measure(queue_, input, gains, dump.centroid_tai_ns, raw.watched, raw.watched_index);
    }
    queue_.synchronize();
    busy_s_ += seconds_since(begin);
    return raw;
  }

  RunSummary summarize(const SkyProducts& products) const {
    RunSummary summary;
    ImageSummary image;
    image.images = products.images_written();
    image.path = std::string(image::name(plan_.path));
    image.reason = plan_.plan.reason;
    image.implementation = name_;
    image.image_s = dump_s_;
    image.predicted_s = plan_.predicted_s;
    image.measured_s = busy_s_ / static_cast<double>(std::max<std::int64_t>(1, n_done_));
    image.coherence = plan_.plan.coherence;
    image.n_pixels = sky_.n_pixels;
    image.cell_wavelengths = sky_.cell_wavelengths;
    image.n_bins = image::n_bins(sky_);
    image.n_inputs = sums_.array().n_inputs();
    image.n_bad_inputs = dead_.n_bad;
    image.n_dead_inputs = dead_.n_dead;
    image.equalized = settings_.image.equalize == "yes";
    image.weight_fraction = products.weight_fraction();
    image.events = products.events();
    image.images_not_searched = products.images_not_searched();
    image.events_in_one_bin = products.events_in_one_bin();
    image.peak = products.peak();
    image.watched = products.watched();
    summary.image = image;
    summary.implementations = {name_};
    summary.products = products.published();
    summary.errors = products.errors();
    summary.warnings = warnings_;
    summary.warnings.insert(summary.warnings.end(), products.warnings().begin(),
                            products.warnings().end());
    if (!plan_.plan.warning.empty()) summary.warnings.push_back(plan_.plan.warning);
    summary.data_s = dump_s_ * static_cast<double>(n_done_);
    summary.engine_margin = summary.data_s / std::max(busy_s_, 1e-9);
    summary.state = "OK";
    return summary;
  }

  ObservationConfig settings_;
  const Observation& observation_;
  std::span<const VisibilityDump> dumps_;
  DumpSums sums_;
  Queue queue_;
  double dump_s_;
  DeadInputs dead_;
  image::AllSkyConfig sky_;
  SkyPlan plan_;
  std::unique_ptr<image::VisImager> imager_;
  std::string name_;
  std::vector<cf32> gains_;
  std::unique_ptr<VisibilityWatch> watch_;
  double busy_s_ = 0;
  std::int64_t n_done_ = 0;  // dumps
  std::vector<std::string> warnings_;
};

/// XY without XX and YY, as some archives keep a polarization a file: no brightness can be made.
void require_a_feed(std::span<const VisibilityDump> dumps) {
  for (const VisibilityDump& dump : dumps) {
    const auto n = static_cast<std::size_t>(dump.n_pol_products);
    for (std::size_t k = 0; k < dump.counts.size(); ++k) {
      if (dump.counts[k] > 0 && (k % n == 0 || k % n == 3)) return;
    }
  }
  throw FormatError(
      "nothing to image: the data hold neither XX nor YY, or all of them are flagged; images want "
      "the files of XX and YY, one by one or joined (pyuvdata: UVData.read of the list of files, "
      "then write_uvh5)");
}

}  // namespace

RunSummary image_visibilities(const ObservationConfig& config, const Observation& observation,
                              std::span<const VisibilityDump> dumps,
                              const std::function<bool(double done)>& go_on) {
  if (dumps.empty()) throw FormatError("nothing to image: no integration");
  require_a_feed(dumps);
  reject_voltage_paths(config.image.path);
  return DumpImaging(config, observation, dumps).run(go_on);
}

}  // namespace ryle::pipeline
