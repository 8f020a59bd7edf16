// SPDX-License-Identifier: BSD-3-Clause
// Predicts every path and chooses (image.md 6).
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "ryle/core/baseline.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/engine/image/all_sky_limits.hpp"
#include "ryle/engine/image/cost_model.hpp"
#include "ryle/engine/image/cpu/cost.hpp"
#include "ryle/engine/image/geometry.hpp"

namespace ryle::image {
namespace {

// Sizes that the equations use, with the symbols of image.md.
struct Sizes {
  double a = 0;                 // antennas used
  double n = 0;                 // inputs of the correlator
  double pols = 0;              // polarizations imaged
  double g = 0;                 // grid cells per side
  double k = 0;                 // support
  double t = 0;                 // spectra per image
  double c = 0;                 // channels
  double pixels = 0;            // above the horizon, or directions
  double box_x = 0, box_y = 0;  // occupied cells
  double columns = 0;           // inside the disc
  double fft_share = 1;         // q: rows of the box, columns inside the disc
};

Sizes sizes_of(const AllSkyConfig& config) {
  Sizes s;
  const auto used = antennas_used(config);
  s.a = static_cast<double>(std::count(used.begin(), used.end(), 1));
  s.n = static_cast<double>(config.inputs.size());
  s.pols = n_pols(config);
  s.g = static_cast<double>(config.n_pixels);
  s.k = static_cast<double>(config.function.support);
  s.t = static_cast<double>(config.n_spectra_per_image);
  s.c = static_cast<double>(config.channels.n_channels);
  const double share = std::min(1.0, kPi * config.cell_wavelengths * config.cell_wavelengths);
  s.pixels =
      config.directions.empty() ? share * s.g * s.g : static_cast<double>(config.directions.size());
  const auto [x, y] = aperture_extent_cells(config);
  s.box_x = std::min(s.g, std::ceil(x) + s.k);
  s.box_y = std::min(s.g, std::ceil(y) + s.k);
  s.columns = std::min(1.0, 2 * config.cell_wavelengths) * s.g;
  s.fft_share = std::min(1.0, (s.box_y + 0.84 * s.columns) / (2 * s.g));
  return s;
}

double fft_ops(double g) { return 5 * g * g * std::log2(g * g); }

// Between the numbers of inputs that were measured: linear in their logarithm.
double correlate_rate(const CostModel& m, double n_inputs) {
  const auto& known = m.correlate_shares;
  if (known.empty()) return m.correlate_ops;
  const double x = std::clamp(n_inputs, known.front()[0], known.back()[0]);
  std::size_t i = 0;
  while (i + 1 < known.size() && known[i + 1][0] <= x) ++i;
  if (i + 1 == known.size()) return m.correlate_ops * known[i][1];
  const auto& [x0, s0] = known[i];
  const auto& [x1, s1] = known[i + 1];
  return m.correlate_ops * (s0 + std::log(x / x0) / std::log(x1 / x0) * (s1 - s0));
}

double correlate_s(const Sizes& s, const CostModel& m) {
  const double pairs = s.n * (s.n + 1) / 2;
  // Unpacking to planar int8: 3 bytes per sample at the memory's rate, 1.8 times that of products
  // written; inside the measured rate of the cpu.
  const double unpack = m.back_end == BackEnd::cuda ? 3 * s.n * s.t / 1.8 : 0;
  return 8 * pairs * s.t / correlate_rate(m, s.n) + (8 * pairs + unpack) / m.correlate_output_bytes;
}

double efield_s(const Sizes& s, const CostModel& m) {
  // The fused kernel of a GPU takes the shorter axis of the box as rows.
  const double saved = m.back_end == BackEnd::cuda ? std::max(0.0, s.box_y - s.box_x) : 0;
  const double transforms =
      s.pols * fft_ops(s.g) * (s.fft_share - saved / (2 * s.g)) / m.efield_fft_ops;
  const double rest = 8 * s.pols * s.a * s.k * s.k + 4 * s.pols * s.pols * s.pixels;
  return s.t * (transforms + rest / m.efield_grid_ops);
}

// Apertures on a GPU: nothing is pruned and every pass crosses the memory, at a seventh of the
// fused rate; cells are complex and not separable, at a twelfth. Once an image the
// autocorrelations, k^4 products for every antenna. Measured.
double efield_apertures_s(const Sizes& s, const CostModel& m) {
  const double k2 = s.k * s.k;
  const double grid = 12 * 8 * s.pols * s.a * k2 + 4 * s.pols * s.pols * s.pixels;
  return s.t * (7 * s.pols * fft_ops(s.g) / m.efield_fft_ops + grid / m.efield_grid_ops) +
         20 * 24 * s.a * k2 * k2 / m.efield_grid_ops;
}

// Blocks of 8 |l| x 64 |m| (cuda/all_sky_half.hpp), two polarizations: rows from tiles of sixteen
// antennas, 840 operations of the tensor cores for every antenna and cell of its footprint's side;
// columns of 16 pairs of rows at a time. Both measured.
double efield_half_s(const Sizes& s, const CostModel& m) {
  const double half = s.columns / 2;
  const double blocks = std::ceil(half / 8) * std::ceil(half / 64);
  const double products =
      blocks * (840 * s.a * s.k + 576e3 * std::ceil(s.box_y / 32)) * s.pols / 2 / m.efield_half_ops;
  const double detection = 4 * s.pols * s.pols * s.pixels / m.efield_grid_ops;
  return s.t * std::max(products, detection);
}

double vis_grid_s(const Sizes& s, const CostModel& m, bool correlated, double planes) {
  const double footprint = correlated ? 2 * s.k - 1 : s.k;
  // A GPU warp owns 8 x 8 cells and visits every tile that a footprint touches.
  const double side = m.back_end == BackEnd::cuda ? footprint + 7 : footprint;
  const double baselines = s.a * (s.a - 1) / 2;
  const double transforms = std::ceil(planes / 2);
  // Global transforms are 1.5 times slower than fused ones; planes, taper and image cross the
  // memory of the GPU (80 bytes per pixel and four planes, 2.2 times the rate of products written).
  const double traffic = m.back_end == BackEnd::cuda ? 20 * planes * s.g * s.g / 2.2 : 0;
  return baselines * side * side * planes * 8 / m.vis_grid_ops +
         1.5 * transforms * fft_ops(s.g) / m.efield_fft_ops + traffic / m.correlate_output_bytes;
}

// Apertures on a GPU: correlated anew for every baseline, k^4 products of all four polarizations.
// Measured.
double correlated_apertures_s(const Sizes& s, const CostModel& m) {
  const double baselines = s.a * (s.a - 1) / 2;
  return 8.2 * 32 * baselines * s.k * s.k * s.k * s.k / m.vis_grid_ops;
}

double products_of(const AllSkyConfig& config, const Sizes& s) {
  return s.pols == 1 ? 1 : config.products == Products::intensity ? 2 : 3;
}

detail::CpuSizes cpu_sizes(const AllSkyConfig& config, const Sizes& s) {
  const bool correlated = config.function.correlated;
  detail::CpuSizes sizes;
  sizes.antennas = s.a;
  sizes.pols = s.pols;
  sizes.planes = static_cast<double>(n_planes(config));
  sizes.products = products_of(config, s);
  sizes.grid = s.g;
  sizes.support = s.k;
  sizes.footprint = correlated ? 2 * s.k - 1 : s.k;
  sizes.spectra = s.t;
  sizes.channels = s.c;
  sizes.transforms = correlated ? s.c : static_cast<double>(n_bins(config));
  sizes.pixels = s.pixels;
  sizes.fft_share = s.fft_share;
  return sizes;
}

double seconds_of(const AllSkyConfig& config, const Sizes& s, const CostModel& m, Path path,
                  bool correlator_runs_anyway) {
  const double planes = static_cast<double>(n_planes(config));
  const double x = correlator_runs_anyway ? 0 : correlate_s(s, m);
  if (m.back_end == BackEnd::cpu) {
    const double correlator_s = takes_voltages(path) ? 0 : s.c * x;
    detail::CpuSizes sizes = cpu_sizes(config, s);
    if (path == Path::vis_grid) sizes.places = detail::places_of_baselines(config);
    return correlator_s + detail::cpu_images_s(sizes, m, path) + s.c * m.overhead_s;
  }
  const bool apertures = !config.function.apertures.empty();
  double each = 0;
  switch (path) {
    case Path::efield:
      each = apertures ? efield_apertures_s(s, m) : efield_s(s, m);
      break;
    case Path::efield_half:
      each = efield_half_s(s, m);
      break;
    case Path::vis_grid:
      each = x + vis_grid_s(s, m, config.function.correlated, planes);
      if (apertures) each += correlated_apertures_s(s, m);
      break;
    case Path::vis_dft:
      each = x + 8 * products_of(config, s) * s.pixels * s.a * s.a / m.vis_dft_ops;
      break;
    case Path::efield_dft:
      each = s.t * (8 * s.pols * s.pixels * s.a / m.efield_dft_ops +
                    4 * s.pols * s.pols * s.pixels / m.efield_grid_ops);
      break;
    case Path::automatic:
      break;
  }
  return s.c * (each + m.overhead_s);
}

bool has_code(const CostModel& m, Path path) {
  switch (path) {
    case Path::efield:
      return m.efield_fft_ops > 0 && m.efield_grid_ops > 0;
    case Path::efield_half:
      return m.efield_half_ops > 0;
    case Path::vis_grid:
      return m.vis_grid_ops > 0;
    case Path::vis_dft:
      return m.vis_dft_ops > 0;
    case Path::efield_dft:
      return m.efield_dft_ops > 0;
    case Path::automatic:
      break;
  }
  return false;
}

std::string printed(const char* format, double a, double b) {
  char text[160];
  std::snprintf(text, sizeof text, format, a, b);
  return text;
}

bool is_gridded(Path path) { return path != Path::vis_dft && path != Path::efield_dft; }

// Shared memory of a thread block of efield-half (cuda/all_sky_half.cpp), four spectra at a time:
// tiles of sixteen antennas for every row, the last of each row partly filled.
double half_shared_bytes(const Sizes& s) {
  const double tiles = s.a * s.k / 16 + 1.2 * s.box_y;
  const double rows = 16 * (64 * 16 * std::ceil(s.box_y / 32) + 8);
  return 516 * tiles + std::max({rows, 64 * s.a, 32768.0}) + 56 * s.a + 1024;
}

// What the kernels would reject when the imager is made, on GPUs with 227 KiB for a thread block.
std::string why_not_cuda(const AllSkyConfig& config, const Sizes& s, Path path) {
  constexpr double kShared = 227 * 1024;
  if (!config.function.apertures.empty() && path == Path::efield_half) {
    return "apertures per antenna have no CUDA code in half precision";
  }
  if (path == Path::efield_half && s.box_y > 128) {
    return printed("the array spans %.0f rows of cells; the kernel takes %.0f", s.box_y, 128);
  }
  const double bytes = path == Path::efield_half  ? half_shared_bytes(s)
                       : path == Path::efield_dft ? 400 * s.a
                       : path == Path::vis_dft    ? 256 * (s.a + 24)
                                                  : 0;
  if (bytes > kShared) {
    return printed("%.0f antennas need about %.0f KiB of shared memory, more than a GPU has", s.a,
                   bytes / 1024);
  }
  return "";
}

// What the ground costs: rms height over the fitted plane, and its effects at the edge of the
// field.
struct Ground {
  double residual_rms_m = 0;
  double coherence = 1;
  HeightError error;
};

Ground ground_of(const AllSkyConfig& config) {
  const ArrayPlane plane = fit_plane(config);
  const auto used = antennas_used(config);
  const double top_hz = config.channels.center_hz(config.channels.n_channels - 1);
  const double z_rad = config.max_zenith_distance_rad;
  return {plane.residual_rms_m, plane_coherence(plane, used, top_hz, z_rad),
          height_error(plane, used, top_hz, z_rad)};
}

std::string not_flat(const AllSkyConfig& config, const Ground& ground) {
  return printed("the array is not flat: heights %.2g m rms off its plane lose %.2g %% of a source",
                 ground.residual_rms_m, 100 * ground.error.flux_loss) +
         printed(" at %.0f deg from zenith (coherence %.3f",
                 config.max_zenith_distance_rad / kDegree_rad, ground.coherence) +
         printed(" below min_coherence %.3f)", config.min_coherence, 0);
}

PathPrediction predicted(const AllSkyConfig& config, const Sizes& s, const CostModel& model,
                         Path path, const Ground& ground, bool correlator_runs_anyway) {
  PathPrediction p;
  p.path = path;
  p.why_not = why_not(config, path);
  if (p.why_not.empty() && !has_code(model, path)) {
    p.why_not = std::string("no fast code for it on the ") +
                (model.back_end == BackEnd::cpu ? "cpu" : "cuda") + " back-end";
  }
  if (p.why_not.empty() && model.back_end == BackEnd::cuda)
    p.why_not = why_not_cuda(config, s, path);
  if (!p.why_not.empty()) return p;
  p.seconds = seconds_of(config, s, model, path, correlator_runs_anyway);
  if (model.back_end == BackEnd::cpu) {
    p.setup_s = detail::cpu_setup_s(cpu_sizes(config, s), model, path);
  }
  p.bytes = path_bytes(config, path, correlator_runs_anyway);
  p.relative_error = path_error(config, path);
  if (is_gridded(path)) {
    p.height_phase_rad = ground.error.phase_rad;
    p.height_error = ground.error.flux_loss;
  }
  if (config.max_bytes > 0 && p.bytes > config.max_bytes) {
    p.why_not = printed("it needs %.3g GiB, more than the limit of %.3g GiB",
                        static_cast<double>(p.bytes) / 0x1p30,
                        static_cast<double>(config.max_bytes) / 0x1p30);
    return p;
  }
  p.possible = true;
  if (p.relative_error > config.max_relative_error) {
    p.why_not = printed("its error of %.1e of the peak exceeds max_relative_error %.1e",
                        p.relative_error, config.max_relative_error);
  } else if (is_gridded(path) && ground.coherence < config.min_coherence) {
    p.why_not = not_flat(config, ground);
  }
  return p;
}

void choose(Plan& plan, std::int64_t n_sets) {
  const auto each_s = [n_sets](const PathPrediction& p) {
    return p.seconds + (n_sets > 0 ? p.setup_s / static_cast<double>(n_sets) : 0);
  };
  const PathPrediction *best = nullptr, *second = nullptr;
  for (const auto& p : plan.paths) {
    if (!p.why_not.empty()) continue;
    if (best == nullptr || each_s(p) < each_s(*best)) {
      second = best;
      best = &p;
    } else if (second == nullptr || each_s(p) < each_s(*second)) {
      second = &p;
    }
  }
  if (best == nullptr) {
    std::string reasons;
    for (const auto& p : plan.paths) {
      reasons += (reasons.empty() ? "" : "; ") + std::string(name(p.path)) + ": " + p.why_not;
    }
    throw ConfigError("all-sky imager: no path fits the configuration: " + reasons);
  }
  plan.choice = best->path;
  plan.reason =
      printed("fastest within the limits: %.3g ms per set of images", each_s(*best) * 1e3, 0);
  if (n_sets > 0 && best->setup_s > 0) {
    plan.reason += printed(" with its share of %.3g ms for the set-up", best->setup_s * 1e3, 0);
  }
  if (second != nullptr) {
    plan.reason +=
        ", " + std::string(name(second->path)) + printed(" %.3g ms", each_s(*second) * 1e3, 0);
  } else {
    plan.reason += "; no other path is possible within them";
  }
}

}  // namespace

std::int64_t path_bytes(const AllSkyConfig& config, Path path, bool correlator_runs_anyway) {
  const auto antennas = static_cast<std::int64_t>(config.antenna_enu_m.size());
  const std::int64_t channels = config.channels.n_channels;
  const std::int64_t size = plane_size(config), planes = n_planes(config);
  const std::int64_t cells_bytes = 8 * (config.function.support + 1);
  std::int64_t bytes = 2 * n_bins(config) * planes * size * 4;  // sums and the images
  if (is_gridded(path)) bytes += channels * antennas * cells_bytes + size * 4;
  if (!is_gridded(path)) bytes += size * antennas * 8;  // steering of a channel in flight
  if (is_gridded(path) && !config.function.apertures.empty()) {
    // Complex weights of both polarizations, k x k cells.
    bytes += channels * antennas * 16 * config.function.support * config.function.support;
  }
  if (path == Path::vis_grid) {
    // One record per baseline and channel: its weights along both axes and its place, 64 bytes
    // for k = 7, on baselines 112.
    const std::int64_t taps =
        config.function.correlated ? 2 * config.function.support - 1 : config.function.support;
    const std::int64_t record_bytes = (2 * taps + 2 + 3) / 4 * 4 * 4;
    bytes += planes * size * 8 + channels * (antennas * (antennas - 1) / 2) * record_bytes;
  }
  if (!takes_voltages(path) && !correlator_runs_anyway) {
    // int64 complex sums and counts
    bytes += channels * n_pairs(static_cast<std::int64_t>(config.inputs.size())) * 20;
  }
  return bytes;
}

Plan plan(const AllSkyConfig& config, const CostModel& model, bool correlator_runs_anyway,
          std::int64_t n_sets) {
  validate(config);
  Plan result;
  const Ground ground = ground_of(config);
  result.coherence = ground.coherence;
  const Sizes s = sizes_of(config);
  for (const Path path : kPaths) {
    result.paths.push_back(predicted(config, s, model, path, ground, correlator_runs_anyway));
  }
  if (config.path == Path::automatic) {
    choose(result, n_sets);
    return result;
  }
  for (const auto& p : result.paths) {
    if (p.path != config.path) continue;
    if (!p.possible) {
      throw ConfigError("all-sky imager: path " + std::string(name(p.path)) + ": " + p.why_not);
    }
    result.choice = p.path;
    result.reason = "asked for by name";
    if (!p.why_not.empty()) result.reason += ", although " + p.why_not;
    if (is_gridded(p.path) && ground.coherence < config.min_coherence) {
      result.warning = std::string(name(p.path)) + " by name: " + not_flat(config, ground) +
                       "; vis-dft and efield-dft have the true heights";
    }
  }
  return result;
}

}  // namespace ryle::image
