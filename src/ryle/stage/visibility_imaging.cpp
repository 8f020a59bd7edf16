// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/stage/visibility_imaging.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "ryle/core/baseline.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/stage/image_setup.hpp"
#include "ryle/stage/run_common.hpp"
#include "ryle/stage/setup.hpp"
#include "ryle/stage/sky_products.hpp"

namespace ryle::stage {
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
    sums_.resize(static_cast<std::size_t>(first.n_channels * n_pairs(n_inputs_)));
    counts_.resize(sums_.size());
  }

  image::VisInput take(const VisibilityDump& dump) {
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
    image::VisInput input;
    input.type = image::VisInput::Type::cf64;
    input.sums = sums_.data();
    input.counts = counts_.data();
    input.n_spectra = std::max<std::int64_t>(1, dump.n_spectra);
    return input;
  }

  /// Powers of the autocorrelations; all equal when the data have none.
  InputLevels levels(const VisibilityDump& dump) const {
    InputLevels levels;
    levels.sum.assign(static_cast<std::size_t>(n_inputs_), 0);
    levels.n.assign(levels.sum.size(), 0);
    bool any = false;
    for (std::int64_t p = 0; p < n_inputs_; ++p) {
      const std::int64_t a = p / n_pols_;
      const std::int64_t pol = p % n_pols_ == 0 ? 0 : 3;
      const auto k = static_cast<std::size_t>(p);
      for (std::int64_t c = 0; c < dump.n_channels; ++c) {
        const auto at = static_cast<std::size_t>(dump.index(c, pair_index(a, a), pol));
        levels.sum[k] += static_cast<double>(dump.data[at].real()) * dump.counts[at];
        levels.n[k] += dump.counts[at];
      }
      any = any || levels.sum[k] > 0;
    }
    if (!any) {
      levels.sum.assign(levels.sum.size(), 1);
      levels.n.assign(levels.n.size(), 1);
    }
    return levels;
  }

  const ArrayLayout& array() const { return array_; }

 private:
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
      const auto a = static_cast<std::size_t>(array.inputs[static_cast<std::size_t>(p)].antenna);
      const Vector3& r = array.antennas[a].enu_m;
      const double turns = per_m * (r[0] * s0[0] + r[1] * s0[1] + r[2] * s0[2]);
#if RYLE_MUTANT == 208
      const double angle_rad = -2 * kPi * (turns - std::floor(turns));
#else
      const double angle_rad = 2 * kPi * (turns - std::floor(turns));
#endif
      gains[static_cast<std::size_t>(c * n + p)] *= cf32(std::polar(1.0, angle_rad));
    }
  }
}

RawImages stamp(const VisibilityDump& dump) {
  RawImages raw;
  raw.n_spectra = std::max<std::int64_t>(1, dump.n_spectra);
  raw.clock.epoch_tai_ns = dump.start_tai_ns;
  const auto length_ns =
      std::max<std::int64_t>(1, std::llround(std::max(0.0, dump.interval_s) * 1e9));
  raw.clock.rate_hz = Rational{raw.n_spectra * 1'000'000'000, length_ns}.reduced();
  return raw;
}

}  // namespace

RunSummary image_visibilities(const ObservationConfig& config, const Observation& observation,
                              std::span<const VisibilityDump> dumps) {
  const auto start = std::chrono::steady_clock::now();
  if (dumps.empty()) throw FormatError("nothing to image: no integration");
  const auto requested = config.image.path;
  if (requested != "auto" && requested != "vis-grid" && requested != "vis-dft") {
    throw UnsupportedError("image.path = \"" + requested +
                           "\" needs voltages; visibilities can take vis-grid or vis-dft");
  }
  DumpSums sums(observation, dumps.front());
  const ArrayLayout& array = sums.array();
  const InputLevels levels = sums.levels(dumps.front());
  ImageConfig limits = config.image;
  limits.dead_below = 0;  // gains of calibrated data may differ by anything
  limits.dead_above = 1e9;
  const DeadInputs dead = find_dead(array, levels, limits);
  const bool calibrated = observation.flux_unit == "Jy";
  ObservationConfig settings = config;
  if (config.image.equalize == "auto") settings.image.equalize = calibrated ? "no" : "yes";

  const double dump_s = std::max(1e-9, dumps.front().interval_s);
  SkyFacts facts;
  facts.images_per_stack =
      config.image.cadence_s > 0
          ? std::max<std::int64_t>(1, std::llround(config.image.cadence_s / dump_s))
          : static_cast<std::int64_t>(dumps.size());
  const auto n_dumps = static_cast<std::int64_t>(dumps.size());
  facts.expected_images = (n_dumps + facts.images_per_stack - 1) / facts.images_per_stack;
  facts.sky = make_sky_config(settings, array, observation.frequency,
                              std::max<std::int64_t>(1, dumps.front().n_spectra), dead.flags);
  Queue queue = make_queue(config.runtime);
  image::AllSkyConfig choice = facts.sky;
  SkyPlan plan = choose_path(settings, choice, queue, true);
  if (image::takes_voltages(plan.path)) {
    // The correlation is already paid for: only the paths of visibilities stand.
    choice.path = image::Path::vis_grid;
    double best = 0;
    for (const auto& p : plan.plan.paths) {
      if (image::takes_voltages(p.path) || !p.possible) continue;
      if (best > 0 && p.seconds >= best) continue;
      best = p.seconds;
      choice.path = p.path;
    }
    plan = choose_path(settings, choice, queue, true);
  }
  facts.sky.path = plan.path;
  facts.sky.max_bytes = 0;
  facts.plane = image::fit_plane(facts.sky);
  facts.unit = calibrated && settings.image.equalize != "yes" ? "Jy/beam" : "";
  facts.facts.path = std::string(image::name(plan.path));
  facts.facts.gains_id = "as in the visibilities";
  const auto imager = image::make_vis_imager(queue, facts.sky);
  facts.facts.implementation = facts.facts.path + "/" + std::string(imager->implementation());
  facts.window_s = dump_s / static_cast<double>(std::max<std::int64_t>(1, dumps.front().n_spectra));

  Observation product = observation;
  product.provenance.notes["image_path"] = facts.facts.path;
  product.provenance.implementations.push_back(facts.facts.implementation);
  const image::AllSkyConfig sky = facts.sky;
  SkyProducts products(settings, product, std::move(facts));
  const auto base = imager_gains(settings, array, observation.frequency, levels, dead.flags, 0);
  double busy_s = 0;
  for (const auto& dump : dumps) {
    RawImages raw = stamp(dump);
    auto gains = base;
    undo_phase_center(observation, array, dump.centroid_tai_ns, gains);
    const auto begin = std::chrono::steady_clock::now();
    imager->set_gains(queue, gains);
    imager->execute(queue, sums.take(dump), raw.images);
    queue.synchronize();
    busy_s += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    products.write(raw);
  }
  products.finish();

  RunSummary summary;
  ImageSummary image;
  image.images = products.images_written();
  image.path = std::string(image::name(plan.path));
  image.reason = plan.plan.reason;
  image.implementation = image.path + "/" + std::string(imager->implementation());
  image.image_s = dump_s;
  image.predicted_s = plan.predicted_s;
  image.measured_s = busy_s / static_cast<double>(n_dumps);
  image.coherence = plan.plan.coherence;
  image.n_pixels = sky.n_pixels;
  image.cell_wavelengths = sky.cell_wavelengths;
  image.n_bins = image::n_bins(sky);
  image.n_inputs = array.n_inputs();
  image.n_bad_inputs = dead.n_bad;
  image.n_dead_inputs = dead.n_dead;
  image.equalized = settings.image.equalize == "yes";
  image.weight_fraction = products.weight_fraction();
  image.peak = products.peak();
  summary.image = image;
  summary.implementations = {image.implementation};
  summary.products = products.published();
  summary.errors = products.errors();
  summary.warnings = products.warnings();
  summary.data_s = dump_s * static_cast<double>(n_dumps);
  summary.elapsed_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  summary.real_time_factor = summary.data_s / std::max(summary.elapsed_s, 1e-9);
  summary.engine_margin = summary.data_s / std::max(busy_s, 1e-9);
  summary.state = "OK";
  note_peak_memory(summary);
  return summary;
}

}  // namespace ryle::stage
